"""Arrays, tables and batches as they are told; and the parts that they and tensors unfold to."""

from __future__ import annotations

import math
import types
from typing import Any

import pytest

from rankscope.agent import expansion, tensors
from rankscope.tensors.kinds import kind_of_class

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
tensordict = pytest.importorskip("tensordict")
pytestmark = pytest.mark.torch


def line(value: Any) -> str:
    return tensors.text(value).replace("−", "-")


def unfold(value: Any) -> dict[str, Any]:
    return {name: part for name, part, _ in expansion.parts(value) or []}


class DataProto:
    """As verl's."""

    def __init__(self, batch: Any, non_tensor_batch: Any, meta_info: Any) -> None:
        self.batch, self.non_tensor_batch, self.meta_info = batch, non_tensor_batch, meta_info


# --- lines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: numpy.arange(12.0).reshape(3, 4), "ndarray 3×4 float64 · min 0 max 11 mean 5.5 · NaN 0 Inf 0"),
        (lambda: numpy.asfortranarray(numpy.ones((3, 4))), "ndarray 3×4 float64 · min 1 max 1 mean 1 · NaN 0 Inf 0"),
        (lambda: numpy.ones((9, 9))[::-2, ::3], "ndarray 5×3 float64 · min 1 max 1 mean 1 · NaN 0 Inf 0"),
        (lambda: numpy.arange(8, dtype=numpy.int16), "ndarray 8 int16 · min 0 max 7 mean 3.5"),
        (lambda: numpy.ones(8, numpy.float16), "ndarray 8 float16 · min 1 max 1 mean 1 · NaN 0 Inf 0"),
        (lambda: numpy.arange(8) > 5, "ndarray 8 bool · True 2 of 8"),
        (lambda: numpy.array([3 + 4j] * 8), "ndarray 8 complex128 · |z| min 5 max 5 mean 5 · NaN 0 Inf 0"),
        (lambda: numpy.array(2.5), "ndarray scalar float64 · 2.5"),
        (lambda: numpy.array([1.0, math.nan, -math.inf] * 3), "ndarray 9 float64 · min 1 max 1 mean 1 · NaN 3 Inf 3"),
        (lambda: numpy.broadcast_to(numpy.float64(2), (1 << 20, 1 << 20)), "mean 2 · NaN 0 Inf 0"),
        (lambda: numpy.zeros((0, 3)), "ndarray 0×3 float64 · empty"),
        (lambda: numpy.array(["a", "bc"]), "ndarray 2 <U2"),
        (lambda: numpy.array([object()]), "ndarray 1 object"),
        (lambda: numpy.zeros(2, "i4,f8"), "ndarray 2 of 2 fields"),
        (lambda: numpy.ma.masked_array([1.0, 2.0], [0, 1]), "MaskedArray 2 float64 · min 1 max 2 mean 1.5"),
    ],
)
def test_arrays(make: Any, text: str) -> None:
    assert text in line(make())


@pytest.mark.parametrize("kind", ["f4", "f8", "i8", "?", "c8"])
def test_the_digest_of_an_array(kind: str) -> None:
    array = numpy.arange(60).reshape(6, 10).astype(kind)
    swapped = array.copy()
    swapped[0, 0], swapped[0, 1] = array[0, 1], array[0, 0]
    assert tensors.digest(array) == tensors.digest(numpy.asfortranarray(array)) != tensors.digest(swapped)


def test_tables() -> None:
    frame = pandas.DataFrame({"step": [1, 2, 3], "loss": [0.5, None, 0.1], "who": ["a", "b", "c"]})
    assert line(frame).startswith("DataFrame 3×3: step int64, loss float64, who ")
    wide = pandas.DataFrame(numpy.zeros((2, 500)))
    assert line(wide).endswith("7 float64, … (500 in all)")
    assert line(frame["loss"]) == "Series 3 float64 · min 0.1 max 0.5 mean 0.3 · NaN 1 Inf 0 · [0.5, nan, 0.1]"
    assert line(frame["step"].astype("Int64")) == "Series 3 Int64"
    assert line(frame["step"][:0]) == "Series 0 int64 · empty"
    assert tensors.summary(frame)["shape"] == [3, 3]


def test_batches() -> None:
    inner = tensordict.TensorDict({"mask": torch.ones(4, 8, dtype=torch.bool)}, [4])
    entries = tensordict.TensorDict({"ids": torch.zeros(4, 8, dtype=torch.int64), "inner": inner}, [4])
    assert line(entries) == "TensorDict 4: ids 4×8 int64, inner 4"
    assert line(tensordict.lazy_stack([entries, entries])) == "LazyStackedTensorDict 2×4: [0] 4, [1] 4"
    uids = numpy.array(["a", "b", "c", "d"], dtype=object)
    proto = DataProto(entries, {"uid": uids}, {"temperature": 1.0})
    assert line(proto) == "DataProto 4 · batch: ids 4×8 int64, inner 4 · non-tensor: uid · meta: temperature"
    assert line(DataProto(None, {}, {})) == "DataProto · batch"
    assert unfold(proto) == {"batch": entries, "non_tensor_batch": {"uid": uids}, "meta_info": {"temperature": 1.0}}
    assert unfold(entries)["inner"] is inner


def test_a_tensorclass() -> None:
    fields = {"left": torch.Tensor, "right": torch.Tensor}
    made = tensordict.tensorclass(type("Pairs", (), {"__annotations__": fields}))
    pairs = made(left=torch.ones(4), right=torch.zeros(4), batch_size=[4])
    assert kind_of_class(type(pairs)) == "batch"
    assert line(pairs) == "Pairs 4: left 4 float32, right 4 float32"


def test_a_mock_of_a_tensor_is_none() -> None:
    from unittest.mock import Mock

    assert (line(Mock(spec=torch.Tensor)), expansion.parts(types.SimpleNamespace())) == ("", None)


# --- unfolded ---------------------------------------------------------------------------------------------------


def test_attributes_of_a_tensor() -> None:
    leaf = torch.ones(3, requires_grad=True)
    product = leaf * 2
    product.sum().backward()
    parts = unfold(product)
    assert list(parts) == ["shape", "dtype", "device", "requires_grad", "grad_fn", "[0]", "[1]", "[2]"]
    assert type(parts["grad_fn"]).__name__ == "MulBackward0"
    assert torch.equal(unfold(leaf)["grad"], torch.full((3,), 2.0))
    assert parts["[0]"] == 2.0
    rows = unfold(torch.ones(3, 4, requires_grad=True))
    assert rows["[2]"].requires_grad is False


@pytest.mark.parametrize("count", [1, 100, 101, 10_000, 10_001, 268_435_456])
def test_every_row_is_within_reach_and_no_page_is_long(count: int) -> None:
    """The expression of a row is that of the whole with its index, however deep the pages."""
    tensor = torch.empty(1).expand(count)

    def reach(parts: expansion.Contents, expression: str, wanted: int) -> str:
        assert len(parts) <= 2 * expansion.PAGE + 10
        rows = [entry for entry in parts if entry[0].startswith("[")]
        for name, part, after in rows:
            own: str = after(expression) if callable(after) else expression + after
            if name == f"[{wanted}]":
                return own
            if isinstance(part, expansion.Page) and part.start <= wanted < part.stop:
                assert own == f"x{name}"
                return reach(part.contents(), own, wanted)
        raise AssertionError(f"row {wanted} cannot be reached: {rows[:3]} … {rows[-3:]}")

    for wanted in {0, count // 3, count - 1}:
        assert reach(expansion.parts(tensor) or [], "x", wanted) == f"x[{wanted}]"


def test_rows_of_what_has_no_rows() -> None:
    for value in (torch.tensor(1.0), torch.empty(3, device="meta"), torch.eye(3).to_sparse()):
        assert not [name for name in unfold(value) if name.startswith("[")]
    assert unfold(torch.eye(3).to_sparse())["values"].tolist() == [1.0, 1.0, 1.0]
    assert set(unfold(torch.eye(3).to_sparse_csr())) >= {"crow_indices", "col_indices", "values"}
    assert unfold(numpy.array(2.5))["[()]"] == 2.5


def test_rows_of_freed_memory_are_not_read() -> None:
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(0)
    assert list(unfold(tensor))[:2] == ["shape", "dtype"] and "[0]" not in unfold(tensor)


def test_a_table_unfolds_to_columns_and_rows() -> None:
    frame = pandas.DataFrame({"step": range(250), "loss": 0.5}, index=[f"r{at}" for at in range(250)])
    parts = expansion.parts(frame) or []
    assert [(name, after) for name, _, after in parts] == [
        ("shape", ".shape"),
        ("step", "['step']"),
        ("loss", "['loss']"),
        ("rows", ".iloc[0:250]"),
    ]
    rows = parts[-1][1].contents()
    assert [name for name, *_ in rows] == ["[0:100]", "[100:200]", "[200:250]"]
    name, row, after = rows[1][1].contents()[5]
    assert (name, row.name, after("df.iloc[100:200]")) == ("[105]", "r105", "df.iloc[105]")
    assert unfold(frame["step"])["[1] r1"] == 1
    wide = pandas.DataFrame(numpy.zeros((1, 250)))
    assert [entry[0] for entry in expansion.parts(wide) or []][-2:] == ["more columns", "rows"]


def test_rows_of_arrays() -> None:
    assert unfold(numpy.arange(3)) == {"shape": (3,), "dtype": numpy.dtype("int64"), "[0]": 0, "[1]": 1, "[2]": 2}
    held = object()
    assert unfold(numpy.array([held, 1], dtype=object))["[0]"] is held
    assert unfold(numpy.zeros((2, 3)))["[1]"].shape == (3,)
    assert unfold(numpy.zeros(2, "i4,f8"))["[1]"].item() == (0, 0.0)
