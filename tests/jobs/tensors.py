"""Values of many kinds in one frame, for what a debugger makes of them."""

import sys
from collections import namedtuple
from dataclasses import dataclass

import numpy
import pandas
import torch
from tensordict import TensorDict


@dataclass
class Batch:
    ids: torch.Tensor
    name: str


class DataProto:
    """As verl's: three parts."""

    def __init__(self, batch, non_tensor_batch, meta_info):
        self.batch, self.non_tensor_batch, self.meta_info = batch, non_tensor_batch, meta_info


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("RESULT code of a person's ran", flush=True)
        raise RuntimeError("not for you")


Pair = namedtuple("Pair", "left right")


def main(size):
    gigabyte = torch.arange(size, dtype=torch.float32)
    weights = torch.ones(300, 40, dtype=torch.bfloat16, requires_grad=True)
    square = (weights * 2).sum()
    spoiled = torch.tensor([1.0, float("nan"), float("inf"), -2.0])
    loss = torch.tensor(0.25)
    loud = torch.arange(4.0).as_subclass(Loud)
    array = numpy.arange(12.0).reshape(3, 4)
    table = pandas.DataFrame({"step": [1, 2, 3], "loss": [0.5, None, 0.1]})
    entries = TensorDict({"ids": torch.zeros(4, 8, dtype=torch.int64), "mask": torch.ones(4, 8, dtype=torch.bool)}, [4])
    proto = DataProto(entries, {"uid": numpy.array(["a", "b", "c", "d"], dtype=object)}, {"temperature": 1.0})
    held = [gigabyte, weights]
    named = {"weights": weights, "rest": (1, "two")}
    batch = Batch(entries["ids"], "first")
    pair = Pair(loss, 1)
    top = torch.ones(3, 4).max(0)
    plain = {"a": [1, 2]}
    print(f"RESULT {square.item()} {gigabyte[-1].item()} {weights.grad}", flush=True)  # @bp shown
    return gigabyte, spoiled, loud, array, table, proto, held, named, batch, pair, top, plain


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20)
