"""What the check without code makes of jobs that it knows nothing of: no false alarm, and faults are found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from support.gloo_ranks import GlooRanks, gloo_ranks

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402 - only where torch is
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from rankscope.checks import tell, zero_code  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(180)]

STEPS = 6


@pytest.fixture(scope="module")
def ranks() -> Iterator[GlooRanks]:
    with gloo_ranks(4) as started:
        yield started


def network(seed: int = 1) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 4))


def made(kind: str) -> tuple[Any, list[Any]]:
    """A model to run and its optimizers."""
    rank = dist.get_rank()
    adam = torch.optim.Adam
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(network(rank))
        return model, [adam(model.parameters())]
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        model = network()
        fully_shard(model)
        return model, [adam(model.parameters())]
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = torch.nn.parallel.DistributedDataParallel(network())
        return model, [ZeroRedundancyOptimizer(model.parameters(), optimizer_class=adam, lr=0.01)]
    if kind == "stages":
        model = torch.nn.Linear(6, 6) if rank < 2 else torch.nn.Linear(6, 3)
        for parameter in model.parameters():
            torch.nn.init.ones_(parameter)
        return model, [adam(model.parameters())]
    if kind == "own models":
        model = network(rank)
        return model, [adam(model.parameters())]
    model = network()
    return model, [adam(model[0].parameters()), torch.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.9)]


def run(group: Any, kind: str, bad_at: int) -> dict[str, Any]:
    """Trains under the check; rank 2 changes an element after a step."""
    found: list[tuple[int, str, tuple[int, ...]]] = []
    said: list[str] = []
    told, noticed = tell.divergence, tell.notice
    step = 0
    tell.divergence = lambda report, place, **details: found.extend(
        (step, each.name, each.deviating) for each in report.differences
    )
    tell.notice = lambda level, text: said.append(f"{level}: {text}")
    check = zero_code.ZeroCode({"interval": 2, "what": ["parameters", "buffers", "gradients", "optimizer"]})
    hook = register_optimizer_step_post_hook(lambda each, *_: check.after_step(each, sys._getframe(0)))
    try:
        model, optimizers = made(kind)
        for step in range(1, STEPS + 1):
            for optimizer in optimizers:
                optimizer.zero_grad()
            model(torch.full((2, 6), 0.5 + step)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
            if step == bad_at and dist.get_rank() == 2:
                with torch.no_grad():
                    parameter = next(model.parameters())
                    (parameter.to_local().detach() if hasattr(parameter, "to_local") else parameter)[0, 1] += 0.25
    finally:
        hook.remove()
        tell.divergence, tell.notice = told, noticed
    return {"found": found, "said": said}


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "zero", "stages", "own models", "two optimizers"])
def test_a_healthy_job_gives_no_false_alarm(ranks: GlooRanks, kind: str) -> None:
    answers = ranks.call(run, kind, 0)
    assert [answer["found"] for answer in answers] == [[]] * 4
    said = [text for answer in answers for text in answer["said"]]
    assert bool(said) == (kind in {"own models", "zero"}), said
    if kind == "own models":
        assert "no buffers and no gradients and no optimizer and no parameters of Adam" in said[0]


@pytest.mark.parametrize(
    ("kind", "name", "deviating"),
    [("ddp", "0.weight", (2,)), ("stages", "weight", (3,)), ("two optimizers", "0.weight", (2,))],
)
def test_an_element_that_goes_astray_is_found(ranks: GlooRanks, kind: str, name: str, deviating: Any) -> None:
    answers = ranks.call(run, kind, 3)
    found = answers[3]["found"]
    assert (4, name, deviating) in found and not [each for each in found if each[0] < 4]
