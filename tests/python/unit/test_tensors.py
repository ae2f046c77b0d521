"""How a tensor is told: every dtype and layout, bounded, and without a line of the person's code."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rankscope.agent import device_streams, tensors
from rankscope.tensors import statistics

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def line(value: Any) -> str:
    return tensors.text(value).replace("−", "-")


class Refuses(torch.Tensor):  # type: ignore[name-defined]
    """A subclass whose own code must not run."""

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        raise AssertionError("the person's code ran")

    def __repr__(self, **_: Any) -> str:
        raise AssertionError("the person's code ran")


# --- dtypes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_of_any_width(name: str) -> None:
    tensor = torch.tensor([[-2.0, 0.0, 1.0, 4.0]] * 3).to(getattr(torch, name))
    shown = name.replace("bfloat16", "bf16").replace("float8", "fp8")
    assert line(tensor) == f"Tensor 3×4 {shown} cpu · min -2 max 4 mean 0.75 · NaN 0 Inf 0"
    facts = tensors.summary(tensor)
    assert (facts["min"], facts["max"], facts["mean"], facts["count"]) == (-2.0, 4.0, 0.75, 12)
    assert facts["norm"] == pytest.approx(math.sqrt(63))
    assert facts["dtype"] == name


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_of_any_width(name: str) -> None:
    tensor = torch.tensor([1, 2, 3, 100, 4, 5, 6], dtype=torch.int64).to(getattr(torch, name))
    assert line(tensor) == f"Tensor 7 {name} cpu · min 1 max 100 mean 17.29"


def test_integers_whose_sum_does_not_fit() -> None:
    tensor = torch.full((1000,), 2**62)
    assert tensors.summary(tensor)["mean"] == pytest.approx(2.0**62)
    assert line(tensor).startswith("Tensor 1000 int64 cpu · min 4611686018427387904 max 4611686018427387904")


def test_truth_values_are_counted() -> None:
    assert line(torch.arange(10) > 6) == "Tensor 10 bool cpu · True 3 of 10"


def test_complex_numbers_by_their_magnitude() -> None:
    tensor = torch.tensor([3 + 4j, 0j, complex(math.nan, 0)] * 3)
    assert line(tensor) == "Tensor 9 complex64 cpu · |z| min 0 max 5 mean 2.5 · NaN 3 Inf 0"
    assert line(tensor.conj()) == line(tensor)


def test_a_dtype_without_arithmetic_says_so() -> None:
    tensor = torch.zeros(16, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert line(tensor).startswith("Tensor 16 float4_e2m1fn_x2 cpu · values not read: RuntimeError: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.25, "float32 cpu · 0.25"),
        (math.nan, "float32 cpu · nan"),
        (7, "int64 cpu · 7"),
        (True, "bool cpu · True"),
        (1 + 2j, "complex64 cpu · 1+2j"),
    ],
)
def test_a_single_number_is_its_value(value: Any, text: str) -> None:
    assert line(torch.tensor(value)) == f"Tensor scalar {text}"


def test_a_single_number_as_json() -> None:
    assert tensors.summary(torch.tensor(0.25))["value"] == 0.25
    assert tensors.summary(torch.tensor([-math.inf]))["value"] == "-Infinity"
    assert tensors.summary(torch.tensor(math.nan))["value"] == "NaN"


def test_nan_and_inf_are_counted_and_left_out() -> None:
    tensor = torch.arange(1.0, 11.0)
    tensor[3], tensor[5], tensor[7] = math.nan, math.inf, -math.inf
    assert line(tensor) == "Tensor 10 float32 cpu · min 1 max 10 mean 5.286 · NaN 1 Inf 2"
    assert line(torch.full((9,), math.nan)) == "Tensor 9 float32 cpu · NaN 9 Inf 0"
    facts = tensors.summary(torch.full((9,), math.inf))
    assert (facts["min"], facts["mean"], facts["norm"], facts["inf"]) == (None, None, None, 9)


def test_a_sum_that_overflows_is_no_inf() -> None:
    assert line(torch.full((100,), 3e38)) == "Tensor 100 float32 cpu · min 3e+38 max 3e+38 mean 3e+38 · NaN 0 Inf 0"


# --- layouts ----------------------------------------------------------------------------------------------------


def test_an_expanded_tensor_is_read_once() -> None:
    assert line(torch.tensor([1.0, math.nan]).expand(1 << 40, 2)).endswith(f"mean 1 · NaN {1 << 40} Inf 0")


def test_sparse_layouts() -> None:
    eye = torch.eye(20)
    assert line(eye.to_sparse()) == (
        "Tensor 20×20 float32 cpu sparse_coo · min 1 max 1 mean 1 · NaN 0 Inf 0 · of the values stored"
    )
    assert "sparse_csr · min 1 max 1" in line(eye.to_sparse_csr())
    assert "sparse_bsr · min 0 max 1" in line(eye.to_sparse_bsr((2, 2)))


def test_quantized() -> None:
    tensor = torch.quantize_per_tensor(torch.arange(8.0), 0.5, 0, torch.qint8)
    assert line(tensor) == "Tensor 8 qint8 cpu · min 0 max 7 mean 3.5"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.empty(3, 4, device="meta"), "Tensor 3×4 float32 meta · no values"),
        (lambda: torch.empty(0, 4), "Tensor 0×4 float32 cpu · empty"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "Tensor nested float32 cpu · "),
        (lambda: torch.randn(3, 3).to_mkldnn(), "Tensor 3×3 float32 cpu mkldnn · values not read: mkldnn"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_values(make: Any, text: str) -> None:
    value = make()
    assert line(value).startswith(text)
    assert tensors.digest(value) == ""
    assert tensors.summary(value)["min"] is None


def test_memory_that_was_freed_is_not_touched() -> None:
    """As fully sharded parameters are between their uses: a read would be a segmentation fault."""
    tensor = torch.randn(1 << 20)
    tensor.untyped_storage().resize_(0)
    assert line(tensor) == "Tensor 1048576 float32 cpu · its memory is freed"
    assert tensors.digest(tensor) == ""


def test_a_fake_tensor() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, 4, device="cuda")
        assert line(fake) == "FakeTensor 3×4 float32 cuda:0 · no values"
        assert line(torch.ones(2, 4)).startswith("FakeTensor 2×4")
    assert line(torch.ones(2, 4)) == "Tensor 2×4 float32 cpu · min 1 max 1 mean 1 · NaN 0 Inf 0"


# --- whose code runs --------------------------------------------------------------------------------------------


def test_a_subclass_whose_code_fails() -> None:
    tensor = torch.arange(8.0).as_subclass(Refuses)
    assert line(tensor) == "Refuses 8 float32 cpu · min 0 max 7 mean 3.5 · NaN 0 Inf 0"
    assert tensors.digest(tensor) == tensors.digest(torch.arange(8.0))


def test_a_subclass_with_operations_of_its_own_is_not_asked() -> None:
    class Own(torch.Tensor):  # type: ignore[name-defined]
        @staticmethod
        def __new__(cls) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, (3, 4))

        @classmethod
        def __torch_dispatch__(cls, *_: Any, **__: Any) -> Any:
            raise AssertionError("the person's code ran")

    assert line(Own()) == "Own 3×4 float32 cpu · values not read: its class has code of its own for that"


def test_modes_of_the_calling_thread_see_nothing() -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("a mode was asked")

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("a mode was asked")

    tensor = torch.arange(8.0)
    expected = line(tensor)
    with Dispatch():
        assert line(tensor) == expected
    with torch.device("meta"), Function():
        shown = tensors.text(tensor)
    assert shown == expected


def test_no_gradient_is_recorded() -> None:
    tensor = torch.ones(8, requires_grad=True)
    product = tensor * 2
    before = product._version
    assert line(product).startswith("Tensor 8 float32 cpu · min 2 max 2")
    assert tensors.summary(product)["requiresGrad"] is True
    assert product._version == before
    product.sum().backward()
    assert torch.equal(tensor.grad, torch.full((8,), 2.0))
    assert line(torch.nn.Parameter(torch.ones(8))).startswith("Parameter 8 float32 cpu · min 1")


def test_in_inference_mode() -> None:
    with torch.inference_mode():
        tensor = torch.ones(8) * 2
        assert line(tensor).startswith("Tensor 8 float32 cpu · min 2 max 2 mean 2")
    assert line(tensor).startswith("Tensor 8 float32 cpu · min 2 max 2 mean 2")


def test_inside_a_transform_of_torch_func() -> None:
    seen = []

    def look(row: Any) -> Any:
        seen.append(line(row))
        return row * 2

    torch.func.vmap(look)(torch.ones(3, 8))
    assert seen == ["Tensor 8 float32 cpu · values not read: inside torch.func"]


def test_nothing_else_is_a_tensor() -> None:
    for value in (1, "text", None, [torch.ones(2)], torch.float32, torch.Size([2]), torch.Tensor):
        assert (tensors.text(value), tensors.summary(value), tensors.digest(value)) == ("", {}, "")


# --- time -------------------------------------------------------------------------------------------------------


def test_what_was_not_read_in_time_is_said() -> None:
    tensor = torch.ones(statistics._CPU_PIECE * 4)
    facts = tensors.summary(tensor, seconds=0.0)
    assert facts["isPartial"] and facts["seen"] == statistics._CPU_PIECE
    assert tensors.text(tensor, 0.0).endswith("of the first 25%")
    assert tensors.digest(torch.ones(1 << 25), seconds=-1.0) == ""


def test_an_unavailable_device() -> None:
    tensor = torch._C._acc.create_empty_tensor([2, 3], torch.float32)
    assert line(tensor) == "Tensor 2×3 float32 privateuseone:0 · values not read on privateuseone"


def test_a_device_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look gives up in time, the next does not even try, and once it answers it is asked again."""
    answers, begun = threading.Event(), []

    @contextmanager
    def hangs(*_: Any) -> Iterator[str]:
        begun.append(1)
        answers.wait(30)
        yield "after all"

    monkeypatch.setattr(device_streams, "refusal", lambda _: "")
    monkeypatch.setattr(device_streams, "current", lambda _: object())
    monkeypatch.setattr(device_streams, "own", hangs)
    tensor = torch._C._acc.create_empty_tensor([2, 3], torch.float32)
    try:
        assert tensors.text(tensor, 0.05).endswith("values not read: no answer in 0.05 s")
        assert tensors.text(tensor, 0.05).endswith("values not read: the device does not answer")
        assert begun == [1]
    finally:
        answers.set()
    tensors._stuck["privateuseone:0"].join(30)
    tensors.text(tensor, 5.0)
    assert begun == [1, 1]
