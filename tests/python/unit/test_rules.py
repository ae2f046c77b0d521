"""Each lint on samples: what it must find is marked `# !`, and nothing else may be found by any rule."""

from __future__ import annotations

from textwrap import dedent

import pytest

from rankscope.lsp.lints import lint
from rankscope.lsp.rules import RULES
from support.rule_samples import BAD, GOOD, HEAD


def found(sample: str) -> list[tuple[str, int]]:
    return [(problem.rule, problem.node.lineno) for problem in lint(HEAD + dedent(sample))]


@pytest.mark.parametrize(("rule", "sample"), [(rule, sample) for rule, samples in BAD.items() for sample in samples])
def test_it_finds_the_mistake_and_nothing_else(rule: str, sample: str) -> None:
    lines = (HEAD + dedent(sample)).split("\n")
    marked = [(rule, number) for number, line in enumerate(lines, 1) if line.endswith("# !")]
    assert marked
    assert found(sample) == marked


@pytest.mark.parametrize("sample", GOOD)
def test_it_leaves_good_code_alone(sample: str) -> None:
    assert found(sample) == []


@pytest.mark.parametrize(
    ("rule", "sample"), [(rule, sample) for rule, samples in BAD.items() for sample in samples[:1]]
)
def test_a_comment_switches_it_off(rule: str, sample: str) -> None:
    assert found(sample.replace("# !", f"# rankscope: ignore[{rule}]")) == []
    assert found(sample.replace("# !", "#rankscope: ignore")) == []
    assert found(sample.replace("# !", f"# why  # rankscope: ignore[other-rule, {rule}]")) == []
    assert {name for name, _ in found(sample.replace("# !", "# rankscope: ignore[other-rule]"))} == {rule}
    assert lint(HEAD + dedent(sample), disabled=[rule]) == []


def test_every_rule_has_samples_and_states_when_it_may_be_wrong() -> None:
    assert {rule.name for rule in RULES} == set(BAD)
    for rule in RULES:
        assert "wrong" in (rule.check.__doc__ or "").lower(), rule.name
