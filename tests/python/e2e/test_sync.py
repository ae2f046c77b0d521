"""``verify_distributed_tensors`` on real gloo ranks: every kind of value, held against a naive comparison."""

from __future__ import annotations

import math
from typing import Any

import pytest

from support.gloo_ranks import GlooRanks
from support.sync_reports import agreed, summary

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")

import torch.distributed as dist  # noqa: E402 - only where torch is
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from rankscope import SyncChecker, verify_distributed_tensors  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(180)]


# --- values -------------------------------------------------------------------------------------------------------


def flipped_bit(group: Any, megabytes: int) -> dict[str, Any]:
    tensor = torch.arange(megabytes << 18, dtype=torch.float32)
    place = len(tensor) // 3 * 2 + 1
    if dist.get_rank() == 1:
        tensor.view(torch.int32)[place] ^= 1
    return summary(verify_distributed_tensors({"weight": tensor.view(-1, 512)}, 0.0, group=group))


@pytest.mark.parametrize("count", [2, 4, 8])
def test_p16_one_flipped_bit_is_found_named_and_located_on_every_rank(ranks: GlooRanks, count: int) -> None:
    megabytes = 100 if count == 4 else 10
    report = agreed(ranks.call(flipped_bit, megabytes, count=count))
    found = report["differences"]["weight"]
    place = (megabytes << 18) // 3 * 2 + 1
    assert found["deviating"] == (1,)
    assert found["is_tie"] == (count == 2)
    assert found["first"] == found["max_index"] == (place // 512, place % 512)
    assert (found["beyond"], found["count"]) == (1, megabytes << 18)
    assert found["values"][0] == str(float(np.float32(place))) != found["values"][1]
    assert "'weight' differs: rank 1 against rank" in report["text"]


CHANGES = {
    "swapped": ([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], 0.5),
    "just within": ([1.0], [1.0 + 1e-6], 1.1e-6),
    "just beyond": ([1.0], [1.0 + 1e-6], 0.9e-6),
    "minus zero": ([0.0, 1.0], [-0.0, 1.0], 0.0),
    "nan": ([math.nan, 1.0], [math.nan, 1.0], 0.0),
    "nan on one": ([math.nan, 1.0], [0.0, 1.0], 5.0),
    "infinite": ([math.inf, 1.0], [-math.inf, 1.0], 5.0),
    "both infinite": ([math.inf, 1.0], [math.inf, 1.5], 0.6),
}


def changed(group: Any, name: str) -> list[dict[str, Any]]:
    common, other, tolerance = CHANGES[name]
    tensor = torch.tensor(other if dist.get_rank() == 2 else common, dtype=torch.float64)
    found = [summary(verify_distributed_tensors(tensor, tolerance, group=group))]
    found.append(summary(verify_distributed_tensors([tensor], tolerance, group=group, equal_nan=False)))
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_the_tolerance_and_what_is_not_a_number(ranks: GlooRanks, name: str) -> None:
    answers = ranks.call(changed, name, count=4)
    report = agreed([answer[0] for answer in answers])
    strict = agreed([answer[1] for answer in answers])
    is_beyond = name in {"swapped", "just beyond", "nan on one", "infinite"}
    assert report["ok"] == (not is_beyond), report["text"]
    # Equal bits are not looked at more closely: NaN that all ranks have alike is no difference.
    assert strict["ok"] == report["ok"]
    if is_beyond:
        (found,) = report["differences"].values()
        assert found["deviating"] == (2,) and found["first"] == (0,)


def payloads(group: Any) -> list[dict[str, Any]]:
    bits = 0x7FC00001 if dist.get_rank() == 0 else 0x7FC00002
    tensor = torch.tensor([bits, 0x3F800000], dtype=torch.int32).view(torch.float32)
    return [summary(verify_distributed_tensors([tensor], group=group, equal_nan=flag)) for flag in (True, False)]


def test_payloads_of_nan(ranks: GlooRanks) -> None:
    equal, unequal = (agreed([answer[at] for answer in ranks.call(payloads, count=4)]) for at in (0, 1))
    assert equal["ok"] and not equal["is_bitwise"]
    assert unequal["differences"]["0"]["deviating"] == (0,)


FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool"]


def dtypes(group: Any, count: int) -> dict[str, Any]:
    tensors = {}
    for name in FLOATS + INTEGERS:
        values = torch.arange(count) % 2 == 0
        tensor = values.to(torch.float32).to(getattr(torch, name))
        if dist.get_rank() == 1:
            tensor[0] = 0
        tensors[name] = tensor
    return summary(verify_distributed_tensors(tensors, group=group))


def test_every_dtype(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(dtypes, 10, count=4))
    for name in FLOATS + INTEGERS:
        found = report["differences"][name]
        assert found["deviating"] == (1,) and found["first"] == (0,) and found["max"] == 1.0, name


def shapes(group: Any) -> dict[str, Any]:
    is_other = dist.get_rank() == 1
    wide = torch.arange(48.0).view(6, 8)
    if is_other:
        wide[3, 4] += 1
    sparse = torch.eye(4)
    sparse[2, 2] += 3.0 * is_other
    quantised = torch.quantize_per_tensor(torch.ones(4) * (1 + is_other), 0.1, 0, torch.quint8)
    scalar = torch.tensor(5.0 + is_other)
    strings = np.array(["a", "b" if is_other else "c"])
    tensors = {
        "transposed": wide.t().contiguous().t() if is_other else wide,
        "view": wide[::2, 1:],
        "expanded": scalar.expand(3, 2),
        "scalar": scalar,
        "empty": torch.empty(0, 3),
        "sparse": sparse.to_sparse(),
        "csr": sparse.to_sparse_csr(),
        "quantised": quantised,
        "meta": torch.empty(3, device="meta"),
        "conjugate": torch.complex(wide, wide).conj(),
        "array": wide.numpy()[::-1],
        "float16 array": wide.numpy().astype("float16"),
        "strings": strings,
        "objects": np.array(["x", 5 if is_other else 4], dtype=object),
        "strange": np.array([object()]),
        "nothing": object(),
        "number": 1.5 + is_other,
        "text": "one" if is_other else "two",
        "none": None,
    }
    return summary(verify_distributed_tensors(tensors, group=group))


def test_every_kind_of_tensor(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(shapes, count=4))
    different = {name: (each["deviating"], each["first"]) for name, each in report["differences"].items()}
    assert different == {
        "transposed": ((1,), (3, 4)),
        "expanded": ((1,), (0, 0)),
        "scalar": ((1,), ()),
        "sparse": ((1,), (2,)),
        "csr": ((1,), (2,)),
        "quantised": ((1,), (0,)),
        "conjugate": ((1,), (3, 4)),
        "array": ((1,), (2, 4)),
        "float16 array": ((1,), (3, 4)),
        "strings": ((1,), (4,)),
        "objects": ((1,), None),
        "number": ((1,), ()),
        "text": ((1,), None),
    }
    assert set(report["skipped"]) == {"meta", "strange", "nothing"}
    assert report["skipped"]["meta"] == "no values" and "not a tensor" in report["skipped"]["nothing"]


def own_structure(group: Any) -> dict[str, Any]:
    tensors = {"same": torch.ones(3), "shape": torch.ones(2, 2), "dtype": torch.ones(3), "gone": torch.ones(1)}
    if dist.get_rank() == 3:
        tensors = {"same": torch.ones(3), "shape": torch.ones(4), "dtype": torch.ones(3).half(), "more": torch.ones(1)}
    return summary(verify_distributed_tensors(tensors, group=group))


def test_p16_another_structure_is_named_on_every_rank_and_nothing_hangs(ranks: GlooRanks) -> None:
    report = agreed(ranks.call(own_structure, count=4))
    assert {name: (each["what"], each["deviating"]) for name, each in report["differences"].items()} == {
        "shape": ("shape", (3,)),
        "dtype": ("dtype", (3,)),
        "gone": ("missing", (3,)),
        "more": ("missing", (3,)),
    }
    assert "'gone' is missing on rank 3" in report["text"] and "'more' is missing on ranks 0-2" in report["text"]
    assert "4×" not in report["text"] and "2×2 on rank 0" in report["text"]


def noise(group: Any) -> dict[str, Any]:
    rank = dist.get_rank()
    tensor = torch.ones(8, dtype=torch.float64) + rank * 1e-9
    if rank == 0:
        tensor[5] += 1.0
    return summary(verify_distributed_tensors({"x": tensor}, group=group))


def test_who_is_wrong_where_no_two_ranks_have_the_same_bits(ranks: GlooRanks) -> None:
    found = agreed(ranks.call(noise, count=4))["differences"]["x"]
    assert found["deviating"] == (0,) and found["first"] == (5,)


# --- what is given ------------------------------------------------------------------------------------------------


def model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def trained(group: Any, what: str) -> dict[str, Any]:
    net = model()
    net[0].weight.requires_grad_(False)
    optimizer = torch.optim.Adam([each for each in net.parameters() if each.requires_grad])
    net(torch.ones(3, 4) * torch.arange(3).view(3, 1)).sum().backward()
    optimizer.step()
    if dist.get_rank() == 1:
        with torch.no_grad():
            if what == "buffer":
                net[1].running_mean[2] += 1
            elif what == "frozen":
                net[0].weight[1, 2] += 1
            elif what == "optimizer":
                optimizer.state[net[2].bias]["exp_avg"][1] += 1
            elif what == "rate":
                optimizer.param_groups[0]["lr"] = 0.5
    found = summary(verify_distributed_tensors({"net": net, "optimizer": optimizer}, group=group))
    again = SyncChecker([net, optimizer], group=group).step()
    assert again is not None and again.ok == found["ok"]
    return found | {"again": [each.name for each in again.differences]}


@pytest.mark.parametrize(
    ("what", "name", "again", "first"),
    [
        ("nothing", "", "", ()),
        ("buffer", "net.1.running_mean", "1.running_mean", (2,)),
        ("frozen", "net.0.weight", "0.weight", (1, 2)),
        ("optimizer", "optimizer.state.4.exp_avg", "2.bias.exp_avg", (1,)),
        ("rate", "optimizer.param_groups.0.lr", "param_groups.0.lr", ()),
    ],
)
def test_models_and_optimizers(ranks: GlooRanks, what: str, name: str, again: str, first: Any) -> None:
    report = agreed(ranks.call(trained, what, count=4))
    found = {each: (one["deviating"], one["first"]) for each, one in report["differences"].items()}
    assert found == ({name: ((1,), first)} if name else {})
    assert report["again"] == ([again] if again else [])


def batches(group: Any) -> dict[str, Any]:
    from tensordict import TensorDict  # type: ignore[import-untyped]

    class DataProto:
        def __init__(self) -> None:
            inner = TensorDict({"deep": torch.ones(2, 2)}, batch_size=[2])
            self.batch = TensorDict({"ids": torch.arange(2), "inner": inner}, batch_size=[2])
            self.non_tensor_batch = {"uid": np.array(["a", "b"], dtype=object)}
            self.meta_info = {"step": 4}

    proto = DataProto()
    if dist.get_rank() == 0:
        proto.batch["inner", "deep"][1, 1] = 7
        proto.non_tensor_batch["uid"][0] = "z"
    return summary(verify_distributed_tensors(proto, group=group))


def test_tensordicts_and_verls_batches(ranks: GlooRanks) -> None:
    pytest.importorskip("tensordict")
    report = agreed(ranks.call(batches, count=4))
    assert set(report["differences"]) == {"batch.inner.deep", "non_tensor_batch.uid"}
    assert report["differences"]["batch.inner.deep"]["first"] == (1, 1)


# --- against a naive comparison -----------------------------------------------------------------------------------

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-7, 1.0 + 1e-3, math.nan, math.inf, -math.inf, 1e30, -5.0])
SHAPES = st.sampled_from([(), (0,), (1,), (3,), (2, 3), (2, 1, 2)])
TYPES = st.sampled_from(["float32", "float64", "bfloat16", "int32", "bool"])


@st.composite
def worlds(draw: Any) -> tuple[list[dict[str, tuple[str, tuple[int, ...], list[float]]]], float]:
    """What each of four ranks has, mostly alike, and a tolerance."""
    names = draw(st.lists(st.sampled_from(["a", "b.c", "b.d", "e"]), unique=True, min_size=1))
    common = {}
    for name in names:
        shape = draw(SHAPES)
        common[name] = (draw(TYPES), shape, draw(st.lists(NUMBERS, min_size=(n := math.prod(shape)), max_size=n)))
    held = [dict(common) for _ in range(4)]
    for _ in range(draw(st.integers(0, 3))):
        rank, name = draw(st.integers(0, 3)), draw(st.sampled_from(names))
        kind, shape, values = held[rank].get(name, common[name])
        how = draw(st.sampled_from(["value", "missing", "shape", "dtype"]))
        if how == "value" and values:
            values = list(values)
            values[draw(st.integers(0, len(values) - 1))] = draw(NUMBERS)
            held[rank][name] = (kind, shape, values)
        elif how == "missing":
            held[rank].pop(name, None)
        elif how == "shape":
            held[rank][name] = (kind, (*shape, 1), values)
        else:
            held[rank][name] = (draw(TYPES), shape, values)
    return held, draw(st.sampled_from([0.0, 1e-6, 0.5]))


def as_tensor(kind: str, shape: tuple[int, ...], values: list[float]) -> Any:
    numbers = torch.tensor(values, dtype=torch.float64).reshape(shape)
    if kind in {"int32", "bool"}:
        numbers = numbers.nan_to_num(3.0, 4.0, -4.0).clamp(-100, 100)
    return numbers.to(getattr(torch, kind))


def naive(group: Any, held: list[Any], tolerance: float) -> tuple[dict[str, Any], dict[str, str]]:
    tensors = {name: as_tensor(*what) for name, what in held[dist.get_rank()].items()}
    report = summary(verify_distributed_tensors(tensors, tolerance, group=group))
    everything: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everything, tensors, group=group)
    expected: dict[str, str] = {}
    for name in {name for each in everything for name in each}:
        here = [each.get(name) for each in everything]
        if any(each is None for each in here):
            expected[name] = "missing"
        elif len({each.dtype for each in here}) > 1:
            expected[name] = "dtype"
        elif len({each.shape for each in here}) > 1:
            expected[name] = "shape"
        elif not all(torch.allclose(each.double(), here[0].double(), 0.0, tolerance, equal_nan=True) for each in here):
            expected[name] = "values"
    return report, expected


def test_random_structures_as_a_naive_gather_finds_them(ranks: GlooRanks) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(worlds())
    def compare(world: Any) -> None:
        held, tolerance = world
        answers = ranks.call(naive, held, tolerance, count=4)
        report, expected = agreed([answer[0] for answer in answers]), answers[0][1]
        assert {name: each["what"] for name, each in report["differences"].items()} == expected, report["text"]

    compare()
