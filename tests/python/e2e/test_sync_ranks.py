"""Checks on real gloo ranks: models, shards, ranks that do not come, collectives under way, and steps."""

from __future__ import annotations

import math
from typing import Any

import pytest

from support.gloo_ranks import GlooRanks
from support.sync_reports import agreed, summary

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import torch.distributed as dist  # noqa: E402 - only where torch is

import rankscope  # noqa: E402
from rankscope import SyncChecker, TensorsDiffer, UserError, verify_distributed_tensors  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(180)]


# --- shards -------------------------------------------------------------------------------------------------------


def sharded(group: Any, change: str) -> dict[str, Any]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    full = torch.arange(64.0).view(8, 8)
    tensors = {
        "sharded": DTensor.from_local(full.chunk(4)[mesh.get_local_rank("tp")].clone(), mesh, (Replicate(), Shard(0))),
        "own": DTensor.from_local(torch.randn(2), mesh, (Shard(0), Shard(0))),
        "replicated": DTensor.from_local(full.clone(), mesh, (Replicate(), Replicate())),
        "plain": torch.ones(3),
    }
    if dist.get_rank() == 6 and change:
        tensors[change].to_local()[1, 3] += 1
    return summary(verify_distributed_tensors(tensors, group=group))


@pytest.mark.parametrize("change", ["", "sharded", "replicated"])
def test_shards_are_compared_with_their_replicas_only(ranks: GlooRanks, change: str) -> None:
    report = agreed(ranks.call(sharded, change))
    assert report["alone"] == 1
    if not change:
        assert report["ok"] and report["is_bitwise"] and report["compared"] == 3
        return
    (found,) = report["differences"].values()
    assert list(report["differences"]) == [change] and found["deviating"] == (6,)
    # Rank 6 holds rows 4 and 5 of the sharded one: the index is that of the whole tensor.
    assert found["first"] == ((5, 3) if change == "sharded" else (1, 3))
    assert found["is_tie"] == (change == "sharded")


def model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def fully_sharded(group: Any, kind: str) -> dict[str, Any]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    is_hybrid = kind == "hybrid"
    mesh = init_device_mesh("cpu", (2, 2) if is_hybrid else (4,), mesh_dim_names=("r", "s") if is_hybrid else ("s",))
    net = model()
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    report = verify_distributed_tensors({"net": net, "optimizer": optimizer}, group=group)
    if is_hybrid and dist.get_rank() == 3:
        next(net.parameters()).to_local().detach()[0, 0] += 1
    again = verify_distributed_tensors(net, group=group)
    return summary(report) | {"again": [(each.name, each.deviating) for each in again.differences]}


def test_fsdp_gives_no_false_alarm(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(fully_sharded, "full", count=4))
    assert report["ok"] and report["alone"] > 0 and not report["again"]


def test_hsdp_compares_the_replicas_of_a_shard(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(fully_sharded, "hybrid", count=4))
    assert report["ok"] and not report["alone"]
    assert report["again"] == [("0.weight", (3,))]


def fsdp_1(group: Any, strategy: str, is_original: bool) -> dict[str, Any]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    kind = ShardingStrategy[strategy]
    where = {"device_mesh": init_device_mesh("cpu", (2, 2), mesh_dim_names=("r", "s"))}
    net = FullyShardedDataParallel(
        torch.nn.Linear(6, 6),
        sharding_strategy=kind,
        use_orig_params=is_original,
        device_id=torch.device("cpu"),
        **(where if "HYBRID" in strategy else {"process_group": group}),
    )
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 6)).sum().backward()
    optimizer.step()
    report = verify_distributed_tensors({"net": net, "optimizer": optimizer}, group=group)
    if dist.get_rank() == 3:
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(1)
    again = verify_distributed_tensors(net, group=group)
    counts = {"compared": 0, "alone": 0, "text": ""}  # each rank has shards of its own
    return summary(report) | counts | {"again": sorted({each.deviating for each in again.differences})}


@pytest.mark.parametrize("is_original", [False, True])
@pytest.mark.parametrize(("strategy", "again"), [("FULL_SHARD", []), ("HYBRID_SHARD", [(3,)]), ("NO_SHARD", [(3,)])])
def test_fsdp_1(ranks: GlooRanks, strategy: str, is_original: bool, again: list[Any]) -> None:
    report = agreed(ranks.call(fsdp_1, strategy, is_original, count=4))
    assert report["ok"], report["differences"]
    assert report["again"] == again


# --- bad input, and ranks that do not come --------------------------------------------------------------------------


def code_of(*arguments: Any, **options: Any) -> str:
    try:
        verify_distributed_tensors(*arguments, **options)
    except UserError as e:
        return e.code
    return "none"


def bad_input(group: Any) -> dict[str, str]:
    some, rank = torch.ones(2), dist.get_rank()
    inside: dict[str, Any] = {}
    inside["self"] = inside
    return {
        "number": code_of(5, group=group),
        "text": code_of("text", group=group),
        "object": code_of(object(), group=group),
        "in itself": code_of(inside, group=group),
        "below zero": code_of(some, -1.0, group=group),
        "nan": code_of(some, math.nan, group=group),
        "true": code_of(some, True, group=group),
        "mode": code_of(some, group=group, on_mismatch="stop"),
        "timeout": code_of(some, group=group, timeout=0),
        "one rank only": code_of(5 if rank == 1 else some, group=group),
        "excluded": code_of(some, group=dist.GroupMember.NON_GROUP_MEMBER),
        "empty": code_of({}, group=group),
        "names": code_of(some, 0.0, f"name {rank}", group=group),
    }


def test_bad_input_is_told_on_every_rank(ranks: GlooRanks) -> None:
    for answer in ranks.call(bad_input, count=4):
        assert answer == {
            "number": "not-tensors",
            "text": "not-tensors",
            "object": "not-tensors",
            "in itself": "not-tensors",
            "below zero": "bad-check",
            "nan": "bad-check",
            "true": "bad-check",
            "mode": "bad-check",
            "timeout": "bad-check",
            "one rank only": "not-tensors",
            "excluded": "no-group",
            "empty": "none",
            "names": "checks-differ",
        }


def test_before_a_process_group_is_there() -> None:
    with pytest.raises(UserError) as caught:
        verify_distributed_tensors({"a": torch.ones(1)})
    assert caught.value.code == "no-group"


def one_stays_away(group: Any, absent: int) -> Any:
    error = None
    if dist.get_rank() != absent:
        try:
            verify_distributed_tensors(torch.ones(2), group=group, timeout=1.0, operation_name="lonely")
        except UserError as e:
            error = (e.code, e.message)
    dist.barrier(group)
    late = None
    if dist.get_rank() == absent:
        late = code_of(torch.ones(2), group=group, timeout=1.0, operation_name="lonely")
    dist.barrier(group)
    again = verify_distributed_tensors(torch.ones(2), group=group).ok
    return error, late, again


@pytest.mark.parametrize("absent", [0, 2])
def test_a_rank_that_never_calls_is_named(ranks: GlooRanks, absent: int) -> None:
    for rank, (error, late, again) in enumerate(ranks.call(one_stays_away, absent, count=4)):
        assert again
        if rank == absent:
            assert error is None and late == "rank-missing"
        else:
            code, message = error
            assert code == "rank-missing" and message.startswith(f"Rank {absent} has not called")


def left_out(group: Any, absent: int) -> list[str]:
    codes = []
    for call in range(4):
        is_called = call != 1 or dist.get_rank() != absent
        codes.append(code_of(torch.ones(2), group=group, timeout=1.0) if is_called else "not called")
        dist.barrier(group)
    return codes


@pytest.mark.parametrize("absent", [0, 2])
def test_a_rank_that_left_one_out_comes_along_again(ranks: GlooRanks, absent: int) -> None:
    for rank, codes in enumerate(ranks.call(left_out, absent, count=4)):
        assert codes == ["none", "not called" if rank == absent else "rank-missing", "none", "none"]


def under_way(group: Any) -> dict[str, Any]:
    rank, count = dist.get_rank(), dist.get_world_size(group)
    busy, done = torch.full((4,), float(rank)), torch.full((1 << 18,), float(rank))
    rankscope.verify_distributed_tensors({}, group=group)  # from now on it is known what is begun
    works = [dist.all_reduce(done, group=group, async_op=True)]
    if rank == 0:
        works.append(dist.isend(torch.ones(1), group=group, group_dst=1))
        works.append(dist.irecv(busy, group=group, group_src=1))
    report = summary(verify_distributed_tensors({"busy": busy, "done": done}, group=group))
    if rank == 1:
        dist.recv(torch.ones(1), group=group, group_src=0)
        dist.send(torch.ones(4), group=group, group_dst=0)
    for work in works:
        work.wait()
    return report | {"count": count}


def test_collectives_under_way_make_no_false_report(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(under_way, count=4))
    assert report["ok"], report["text"]
    assert "may still write it" in report["skipped"]["busy"] and "done" not in report["skipped"]


def functional(group: Any) -> dict[str, Any]:
    from torch.distributed._functional_collectives import all_reduce

    result = all_reduce(torch.full((8,), float(dist.get_rank())), "sum", group)
    return summary(verify_distributed_tensors({"result": result}, group=group)) | {"type": type(result).__name__}


def test_functional_collectives_are_waited_for(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(functional, count=4))
    assert report["type"] == "AsyncCollectiveTensor"
    assert report["ok"] and not report["skipped"] and report["compared"] == 1


def raising(group: Any) -> tuple[str, bool]:
    tensor = torch.full((2,), float(dist.get_rank() == 1))
    try:
        verify_distributed_tensors(tensor, group=group, on_mismatch="raise")
    except TensorsDiffer as e:
        return e.code, e.report.is_deviating
    return "", False


def test_a_mismatch_raises_where_asked_to(ranks: GlooRanks) -> None:
    assert ranks.call(raising, count=4) == [("tensors-differ", rank == 1) for rank in range(4)]


# --- the checker --------------------------------------------------------------------------------------------------


def checked(group: Any, options: dict[str, Any], bad_at: int, steps: int) -> dict[str, Any]:
    tensor = torch.zeros(4)
    checker = SyncChecker({"w": tensor}, group=group, **options)
    found = []
    for step in range(1, steps + 1):
        tensor += 1
        if step == bad_at and dist.get_rank() == 1:
            tensor[3] += 1
        report = checker.step()
        if report is not None:
            found.append((step, report.ok, [each.since for each in report.differences]))
    return {"checks": found, "good": [step for step, _ in checker.last_good], "bad": checker.first_bad}


def test_the_first_bad_step_is_known_to_within_the_interval_and_bisected(ranks: GlooRanks) -> None:
    (answer, *_) = ranks.call(checked, {"interval": 4}, 6, 13, count=4)
    assert answer["checks"] == [(1, True, []), (4, True, []), (8, False, [(4, 8)]), (12, False, [(4, 8)])]
    assert (answer["good"], answer["bad"]) == ([1, 4], 8)
    (answer, *_) = ranks.call(checked, {"interval": 4, "bisect": (4, 8)}, 6, 9, count=4)
    assert answer["bad"] == 6 and answer["checks"][-1][2] == [(5, 6)]


def read_batches(group: Any, meant: str) -> list[list[tuple[str, tuple[int, ...]]]]:
    checker = SyncChecker({"w": torch.zeros(1)}, interval=1, group=group, batches=meant)
    rank, found = dist.get_rank(), []
    for batch in (torch.ones(2), torch.full((2,), float(rank)), torch.tensor([float(min(rank, 2))])):
        report = checker.step({"x": batch})
        assert report is not None
        found.append([(each.what, each.deviating) for each in report.differences])
    return found


def test_batches_against_intent(ranks: GlooRanks) -> None:
    different, same = (ranks.call(read_batches, meant, count=4)[0] for meant in ("different", "same"))
    assert different == [[("batch", (0, 1, 2, 3))], [], [("batch", (2, 3))]]
    assert same == [[], [("batch", (1, 2, 3))], [("batch", (0, 1))]]


def random_state(group: Any) -> list[str]:
    torch.manual_seed(5)
    checker = SyncChecker({}, interval=1, group=group, what=["rng"])
    first = checker.step()
    torch.rand(1 + (dist.get_rank() == 2))
    second = checker.step()
    assert first is not None and second is not None
    return [each.name for each in second.differences if each not in first.differences and each.name == "rng.torch"]


def test_the_state_of_random_generators(ranks: GlooRanks) -> None:
    assert ranks.call(random_state, count=4) == [["rng.torch"]] * 4


def test_arguments_of_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNC_CHECK_INTERVAL", "7")
    monkeypatch.setenv("SYNC_CHECK_BISECT", "14-21")
    checker = SyncChecker(torch.ones(1))
    assert (checker.interval, checker.bisect) == (7, (14, 21))
    assert [step for step in range(1, 30) if checker.is_due(step)] == [1, 7, *range(14, 22), 28]
    monkeypatch.setenv("SYNC_CHECK_INTERVAL", "often")
    for options in ({}, {"interval": 0}, {"interval": 2, "what": ["weights"]}, {"interval": 2, "batches": "any"}):
        with pytest.raises(UserError) as caught:
            SyncChecker(torch.ones(1), **options)
        assert caught.value.code == "bad-check"
