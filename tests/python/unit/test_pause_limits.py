"""Time-outs that run on while somebody is paused: found in the process that waits, raised where the environment can."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rankscope.agent import pause_limits
from support.fake_hub import FakeHub, FakeMember


@contextmanager
def waiting(
    tmp_path: Path, program: str, *arguments: str
) -> Iterator[tuple[FakeHub, FakeMember, subprocess.Popen[str]]]:
    """A member whose program has printed READY, and goes on into what the test is about."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    with FakeHub(tmp_path) as hub:
        process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            env=hub.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("READY")
            yield hub, hub.member(lambda member: member.hello.pid == process.pid), process
        finally:
            process.kill()
            process.communicate()


def limits_of(member: FakeMember, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = member.ask("limits", **arguments)["limits"]
    return found


def until_limit(hub: FakeHub, member: FakeMember, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask again and again until a limit is as wished."""
    for _ in range(200):
        for limit in limits_of(member):
            if is_it(limit):
                return limit
        hub.pause(0.05)
    raise AssertionError(f"the last answer was {limits_of(member)}")


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def free_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


# --- the environment ------------------------------------------------------------------------------------


def test_what_the_environment_can_raise_is_raised_and_what_somebody_has_set_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"RAY_CGRAPH_get_timeout": "12"}
    monkeypatch.setattr(os, "environ", environment)
    pause_limits.raise_environment()
    assert environment == {**pause_limits.ENVIRONMENT, "RAY_CGRAPH_get_timeout": "12"}


# --- torch ----------------------------------------------------------------------------------------------

STORES = """
    import sys, threading
    from datetime import timedelta
    import torch.distributed as dist

    class Holder:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=77))
        def __init__(self):
            self.own = self.store.clone()
            self.long = timedelta(days=2)
        @property
        def odd(self):
            raise SystemExit("a property of the job was run")

    def given(h, patience):
        h.own.wait(["absent"], patience)
    def made(h, patience):
        h.own.wait(["absent"], timedelta(minutes=1))
    def several_lines(h, patience):
        h.own.wait(
            ["absent", str(len("x"))],
            timedelta(
                seconds=62,
            ),
        )
    def computed(h, patience):
        h.own.wait(["absent"], patience * 2)
    def of_store(h, patience):
        print(len(h.own.get("absent")))
    def prefixed(h, patience):
        store = dist.PrefixStore("p", h.own)
        store.multi_get(["absent"])
    def constructed(h, patience):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=64))
    def default(h, patience):
        dist.TCPStore(host_name="127.0.0.1", port=0, world_size=2, is_master=True)
    def long(h, patience):
        h.own.wait(["absent"], h.long)
    def nobody_knows_whose(h, patience):
        dist.PrefixStore("p", h.own).get("absent")
    def no_store(h, patience):
        {}.get("x"); threading.Event().wait(500)
    def later(h, patience):
        sys.stdin.readline()
        h.own.wait(["absent"], timedelta(seconds=40))

    CASES = (given, made, several_lines, computed, of_store, prefixed, constructed, default, long, nobody_knows_whose)
    for case in (*CASES, no_store):
        threading.Thread(target=case, args=(Holder(), timedelta(seconds=55)), daemon=True).start()
    print("READY", flush=True)
    later(Holder(), None)
"""


@pytest.mark.torch
def test_waits_on_a_store_are_read_from_their_lines(tmp_path: Path) -> None:
    known = {
        "store.wait(timeout=55)",
        "store.wait(timeout=60)",
        "store.wait(timeout=62)",
        "store.wait",  # an expression says how long: nothing of the job is run to know it
        "store.get(timeout=77)",
        "store.multi_get(timeout=77)",
        "TCPStore(timeout=64)",
        "TCPStore(timeout=300)",
    }
    with waiting(tmp_path, STORES) as (hub, member, process):
        hub.wait(lambda: {limit["what"] for limit in limits_of(member)} == known)  # and no others
        # They began before the first look, or nearly so: only of what was looked for before is the end known.
        hub.pause(pause_limits._RECENT_SECONDS + 0.5)
        limits_of(member)
        go_on(process)
        limit = until_limit(hub, member, lambda limit: limit["what"] == "store.wait(timeout=40)")
        assert 20 < limit["left"] <= 40, limit
        assert (limit["option"], limit["fails"]) == ("", True)


GROUPS = """
    import sys
    from datetime import timedelta
    import torch.distributed as dist
    rank = int(sys.argv[1])
    store = dist.TCPStore("127.0.0.1", int(sys.argv[2]), 2, rank == 0, wait_for_workers=False)
    print("READY", flush=True)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=66))
    if rank == 0:
        dist.monitored_barrier(timeout=timedelta(seconds=68))
    sys.stdin.readline()
"""


@pytest.mark.torch
def test_how_long_a_process_group_waits_to_be_made_is_known_from_its_beginning(tmp_path: Path) -> None:
    port = free_port()
    with waiting(tmp_path, GROUPS, "0", port) as (hub, member, _):
        limit = until_limit(hub, member, lambda limit: limit["left"] is not None)
        assert limit["what"] == "new process group(timeout=66)"
        assert 40 < limit["left"] <= 66
        with hub.job(str(tmp_path / "program.py"), "1", port):
            barrier = until_limit(hub, member, lambda limit: limit["what"] == "monitored_barrier(timeout=68)")
            assert barrier["left"] > 40  # it was not there when we looked before


# --- Ray ------------------------------------------------------------------------------------------------

RAY = """
    import sys, threading, time
    import ray
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @ray.remote
    class Slow:
        def run(self):
            time.sleep(600)
        def quick(self):
            return 1

    slow = Slow.remote()
    def poll():
        while True:
            ray.get(other.quick.remote(), timeout=50)
    def wait():
        ray.wait([running], timeout=45)
    def forever():
        ray.get(running)
    other = Slow.options(num_cpus=0).remote()
    running = slow.run.remote()
    for target in (wait, forever):
        threading.Thread(target=target, daemon=True).start()
    print("READY", flush=True)
    ray.get(running, timeout=60)
"""


@pytest.mark.ray
@pytest.mark.slow
def test_what_is_left_of_a_ray_get_is_known_however_long_ago_it_began(tmp_path: Path) -> None:
    with waiting(tmp_path, RAY) as (hub, member, _):
        hub.pause(2)  # nobody has looked yet
        get = until_limit(hub, member, lambda limit: limit["what"] == "ray.get(timeout=60)")
        assert 30 < get["left"] < 59
        assert get["fails"]
        wait = until_limit(hub, member, lambda limit: limit["what"] == "ray.wait(timeout=45)")
        assert 15 < wait["left"] < 44
        assert not wait["fails"]
        assert len(limits_of(member)) == 2
