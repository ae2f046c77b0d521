"""Which wait on a store a frame is in, read from its line; the real ones are in ``test_pause_limits``."""

from __future__ import annotations

import sys
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from rankscope.agent import store_waits


class Store:
    """Tells what its caller is seen to wait in, instead of waiting."""

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=77)

    def wait(self, *_: object) -> Any:
        return store_waits.of_frame(sys._getframe(1))

    get = wait


class TCPStore(Store):
    def __new__(cls, *_: object, **__: object) -> Any:
        return store_waits.of_frame(sys._getframe(1))


class Holder:
    def __init__(self) -> None:
        self.store = Store()
        self.patience = timedelta(seconds=5)

    @property
    def computed(self) -> Store:
        return self.store


@pytest.fixture(autouse=True)
def _torch(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch._C._distributed_c10d")
    module.Store = Store  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_a_constant_a_name_an_attribute_and_the_stores_own_say_how_long() -> None:
    holder = Holder()
    store, patience = Store(), timedelta(minutes=2)
    assert store.wait(["x"], timedelta(seconds=3)) == ("store.wait", 3)
    assert store.wait(["x"], patience) == ("store.wait", 120)
    assert holder.store.wait(["x"], holder.patience) == ("store.wait", 5)
    assert holder.store.get("x") == ("store.get", 77)
    assert TCPStore("host", 0, 2, True, patience) == ("TCPStore", 120)
    assert TCPStore("host", 0, timeout=timedelta(0, 4)) == ("TCPStore", 4)
    assert TCPStore("host", 0) == ("TCPStore", 300)


def test_a_call_over_several_lines_is_found() -> None:
    store = Store()
    found = store.wait(
        ["x", str(len("y"))],
        timedelta(
            seconds=6,
        ),
    )
    assert found == ("store.wait", 6)


def test_what_would_have_to_be_run_is_not_known() -> None:
    holder = Holder()
    store = Store()
    assert store.wait(["x"], holder.patience * 2) == ("store.wait", None)
    assert holder.computed.wait(["x"]) is None
    assert [Store()][0].wait(["x"]) is None


def test_another_objects_wait_is_none_of_a_store() -> None:
    class Other:
        def wait(self) -> Any:
            return store_waits.of_frame(sys._getframe(1))

    other = Other()
    assert other.wait() is None


def test_without_source_or_torch_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    names: dict[str, Any] = {"store": store}
    exec("found = store.wait(['x'])", names)
    assert names["found"] is None
    monkeypatch.delitem(sys.modules, "torch._C._distributed_c10d")
    assert store.wait(["x"]) is None
