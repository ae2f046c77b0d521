"""debugpy's own handler of values with our plugin: what it makes of holders and batches, and that it loads nothing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from rankscope.agent import presentation

PROGRAM = '''
import sys
from rankscope.agent.debugger import Debugger

path = list(sys.path)
Debugger().prepare()
assert sys.path == path
assert not {"torch", "numpy", "pandas"} & set(sys.modules), "loaded"

from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from _pydevd_bundle.pydevd_safe_repr import SafeRepr
from _pydevd_bundle.pydevd_xml import get_type, get_variable_details

def shown(value):
    return get_variable_details(value, to_string=SafeRepr())[4]

class TensorDictBase:
    """What is known by its name and parts, where there is no torch."""

    def __init__(self, **entries):
        self._tensordict, self._batch_size = entries, [4]

    def __repr__(self):
        raise AssertionError("the whole repr")

Pair = namedtuple("Pair", "left right")

@dataclass
class Holder:
    batch: object
    name: str = "n"
    hidden: object = field(default=None, repr=False)

class Sub(dict):
    pass

class Own(dict):
    def __repr__(self):
        return "my own"

class Loud(list):
    def __iter__(self):
        raise AssertionError("code of a person's ran")

b = TensorDictBase(ids=1)
B = "TensorDictBase 4: ids"
wanted = [
    (b, B),
    ([b, 1], f"[{B}, 1]"),
    ((b,), f"({B},)"),
    ({"a": b, 2: "x"}, "{'a': %s, 2: 'x'}" % B),
    ({"a": {"b": [b]}}, "{'a': {'b': [%s]}}" % B),
    (Sub(a=b), "{'a': %s}" % B),
    (OrderedDict(a=b), "OrderedDict({'a': %s})" % B),
    (defaultdict(list, a=b), "defaultdict({'a': %s})" % B),
    (UserDict(a=b), "{'a': %s}" % B),
    ({"a": b}.values(), f"dict_values([{B}])"),
    (deque([b]), f"deque([{B}])"),
    ({b}, "{%s}" % B),
    (Pair(b, 1), f"Pair(left={B}, right=1)"),
    (Holder(b, hidden=2), f"Holder(batch={B}, name='n')"),
    (SimpleNamespace(a=b), f"namespace(a={B})"),
    (Loud([b]), f"[{B}]"),
    (Own(a=b), "my own"),
    ([b] * 61, "[" + f"{B}, " * 60 + "...]"),
    ([1, "two"], "[1, 'two']"),
    (Pair(1, 2), "Pair(left=1, right=2)"),
    (Holder(1), "Holder(batch=1, name='n')"),
    ([255], "[255]"),
]
for value, text in wanted:
    assert shown(value) == text, (shown(value), text)
cycle = [b]
cycle.append(cycle)
assert shown(cycle).startswith(f"[{B}, [{B}, [")
hexadecimal = SafeRepr()
hexadecimal.convert_to_hex = True
assert get_variable_details([255], to_string=hexadecimal)[4] == "[0xff]"
resolver = get_type(b)[2]
assert resolver.get_contents_debug_adapter_protocol(b) == [("batch_size", (4,), ".batch_size"), ("ids", 1, "['ids']")]
assert resolver.resolve(b, "ids") == 1
odd = TensorDictBase()
odd._batch_size = 7  # cannot be told
assert shown(odd) == "<TensorDictBase: TypeError while it was looked at>", shown(odd)
del odd._tensordict
assert resolver.get_dictionary(odd)["_batch_size"] == 7
print("all")
'''


def test_debugpy_shows_by_our_plugin() -> None:
    """On every Python, where no torch is."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "all\n", done.stderr


def test_the_values_of_one_list_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(presentation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    budget = presentation.Budget()
    given = []
    for _ in range(12):
        given.append(budget.seconds())
        now[0] += given[-1]
        budget.spent()
    assert given[0] == 0.4 and sorted(given, reverse=True) == given and given[-1] < 0.05
    assert sum(given) < 1.5
    now[0] += 1.0
    assert budget.seconds() == 0.4
