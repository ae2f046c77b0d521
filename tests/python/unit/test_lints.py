"""Lints of whatever a file may hold: nothing breaks them, and a long file takes no more than its length."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankscope
from rankscope.lsp.diagnostics import Readme
from rankscope.lsp.lints import Unreadable, lines_of, lint
from rankscope.lsp.rules import RULES

README = Path(__file__).parents[3] / "README.md"
BAD = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"

# Pieces that rules look at, put together in every way.
NAMES = st.sampled_from(["rank", "dist", "x", "self", "ray", "is_main_process", "torch", "os", "f", "local_rank"])
CALLS = st.sampled_from(
    [
        "dist.barrier()",
        "dist.all_reduce(x)",
        "dist.broadcast(x, 0, *y)",
        "f()",
        "self.f()",
        "ray.get(f.remote(x))",
        "torch.manual_seed(0)",
        "loss.backward()",
        "loss.item()",
        "breakpoint()",
        "os.environ['LOCAL_RANK']",
        "f(g)(h)",
        "dist.init_process_group()",
        "ray.remote(f)",
        "(lambda: dist.barrier())()",
        "[ray.get(a.f.remote()) for a in b]",
    ]
)
TESTS = st.sampled_from(
    [
        "rank == 0",
        "not rank",
        "0 != self.rank",
        "rank in (0, 1)",
        "rank % 2 == x",
        "is_main_process()",
        "x",
        "rank < 1 < 2",
        "rank == 0 and x",
        "rank == 0 or not is_main_process",
        "dist.get_rank() == 0",
        "rank == rank",
        "rank >= 0",
    ]
)
SIMPLE = st.one_of(
    CALLS,
    st.sampled_from(
        ["return", "break", "continue", "raise", "pass", "yield", "import ray", "from x import *", "del x"]
    ),
    st.builds("{} = {}".format, NAMES, st.one_of(CALLS, NAMES, TESTS)),
)


def indented(block: list[str]) -> str:
    return "\n".join("    " + line for statement in block for line in statement.split("\n"))


def compound(block: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(block, min_size=1, max_size=4).map(indented)
    return st.one_of(
        st.builds("if {}:\n{}".format, TESTS, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, TESTS, body, body),
        st.builds("if {}:\n{}\nelif {}:\n{}".format, TESTS, body, TESTS, body),
        st.builds("for {} in {}:\n{}".format, NAMES, CALLS, body),
        st.builds("while {}:\n{}\nelse:\n{}".format, TESTS, body, body),
        st.builds("with {}:\n{}".format, CALLS, body),
        st.builds("try:\n{}\nexcept E:\n{}\nfinally:\n{}".format, body, body, body),
        st.builds("def {}(self, rank):\n{}".format, st.sampled_from(["f", "g", "__del__"]), body),
        st.builds("@ray.remote\nclass {}(Worker):\n{}".format, st.sampled_from(["A", "B"]), body),
        st.builds(
            "match x:\n    case {{'rank': rank}}:\n{}".format,
            body.map(lambda text: "    " + text.replace("\n", "\n    ")),
        ),
    )


SOURCES = st.lists(st.recursive(SIMPLE, compound, max_leaves=25), min_size=1, max_size=8).map("\n".join)
HEAD = "import os, ray, torch\nimport torch.distributed as dist\nfrom verl.x import Worker\n"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SOURCES)
def test_no_source_breaks_a_rule(source: str) -> None:
    try:
        found = lint(HEAD + source)
    except Unreadable:
        with pytest.raises((SyntaxError, ValueError)):
            ast.parse(HEAD + source)
        return
    lines = lines_of(HEAD + source)
    for problem in found:
        assert 1 <= problem.node.lineno <= len(lines)
        assert problem.message.endswith((".", "end."))
        assert all(1 <= node.lineno <= len(lines) for node, _ in problem.related)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.binary())
def test_no_text_breaks_them(text: str, data: bytes) -> None:
    for source in (text, f"import ray\n{text}", f"ray {data!r}", data.decode("utf-8", "surrogateescape") + " ray"):
        try:
            lint(source)
        except Unreadable:
            pass


@pytest.mark.parametrize(
    "source",
    [
        "import ray\n" + "(" * 5000,
        "import ray\nx = " + "-" * 50000 + "1",
        "import ray\nx = " + "1+" * 50000 + "1",
        "import ray\n" + "\n".join(" " * at + "if x:" for at in range(150)),
        "ray = '�'",
        "ray\x00",
        "ray.get(" * 90,
        f"{BAD}\nif {'not ' * 3000}rank == 0:\n    dist.barrier()\n",
        f"{BAD}x = [{'[' * 1000}{']' * 1000}]\n",
    ],
)
def test_what_no_parser_likes_is_unreadable_or_clean(source: str) -> None:
    try:
        lint(source)
    except Unreadable:
        pass


@pytest.mark.parametrize("source", [f"\ufeff{BAD}", BAD.replace("\n", "\r\n"), BAD.replace("\n", "\r"), BAD.rstrip()])
def test_a_mark_and_other_line_ends_change_nothing(source: str) -> None:
    assert [(one.node.lineno, one.node.col_offset) for one in lint(source)] == [(4, 4)]


@pytest.mark.parametrize(
    "piece",
    [
        "if rank == {}:\n    return_ = dist.barrier()\n",
        "def f{}(rank):\n    if rank != 0:\n        return\n    dist.barrier()\n",
        "for a{} in actors:\n    x = ray.get(a{}.f.remote())\n",
        "x{} = 1\ny = 2\n",
    ],
)
def test_a_long_file_takes_as_long_as_its_length(piece: str) -> None:
    head = "import ray\nimport torch.distributed as dist\n"

    def seconds(lines: int) -> float:
        count = lines // piece.count("\n")
        source = head + "".join(piece.replace("{}", str(number)) for number in range(count))
        started = time.process_time()
        lint(source)
        return time.process_time() - started

    short = min(seconds(5_000) for _ in range(3))
    assert seconds(50_000) < 30 * short, "ten times the lines"


def test_the_package_itself_is_clean() -> None:
    for path in Path(rankscope.__file__).parent.rglob("*.py"):
        assert lint(path.read_text(encoding="utf-8")) == [], path


def test_every_code_has_its_row_in_the_readme() -> None:
    readme = Readme(README)
    lines = README.read_text().split("\n")
    for code in (*(rule.name for rule in RULES), "crash", "hang", "mismatch", "divergence", "leak", "record"):
        link = readme.link(code)
        assert link is not None, code
        uri, _, row = link.href.partition("#L")
        assert uri == README.as_uri()
        assert lines[int(row) - 1].startswith(f"| `{code}`")
    assert readme.link("pathMappings") is None
    assert Readme(None).link("crash") is None
    assert Readme(Path("/nowhere")).link("crash") is None
