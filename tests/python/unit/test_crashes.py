"""Failures at the hub: which is the first, which follow, who is asked where it is, who is held and how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rankscope.hub import crashes as hub_crashes
from rankscope.hub.crashes import Crashes
from rankscope.hub.findings import Findings
from rankscope.hub.fleet import Fleet
from rankscope.hub.member import Member
from rankscope.postmortem import kept_run
from rankscope.ranks import RankFacts
from rankscope.wire import messages as m

pytestmark = pytest.mark.core

DUMP = {"version": 1, "threads": [], "frames": [], "nodes": [], "sources": {}, "exception": None, "cut": {}}
CLOSED = "RuntimeError: Connection closed by peer [127.0.0.1]:1"


class FakeMember:
    def __init__(self, fleet: FakeFleet, rank: int) -> None:
        self.id, self.number, self.label = f"m{rank}", rank, f"world {rank}"
        self.facts = RankFacts(role="rank", group="world", rank=rank)
        self.hello = SimpleNamespace(host="here", pid=100 + rank)
        self.incarnation = 0
        self.is_greyed = self.is_silent = False
        self.state, self.ending = "running", ""
        self.lost_at: float | None = None
        self.last_seen: dict[str, Any] = {}
        self.verdicts: list[bool] = []
        self.continued = asyncio.Event()
        self.asked = 0
        self._fleet = fleet

    def send(self, message: m.Message) -> None:
        assert isinstance(message, m.Verdict)
        self.verdicts.append(message.will_hold)

    async def ask(self, what: str, arguments: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        self.asked += 1
        if self.is_silent:
            await asyncio.sleep(timeout)
            raise asyncio.TimeoutError
        return DUMP

    async def debug(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert command == "continue"
        self.continued.set()
        return {}

    def fails(self, text: str = "ValueError: bad", age: float = 0.0, **about: Any) -> None:
        """Its agent tells of a failure and what is kept of it."""
        whole = {"text": text, "message": text, "path": "/code/train.py", "line": 3, "name": "step", **about}
        ask = len(self.verdicts) + 1000 * self.number + id(whole) % 1000
        crashes = self._fleet.crashes
        crashes.handle(cast("Member", self), m.Failed(ask=ask, age=age, about=whole))
        crashes.handle(cast("Member", self), m.FailedDump(ask=ask, dump=DUMP))


class FakeFleet:
    def __init__(self, folder: Path, count: int = 4) -> None:
        self.has_ended = False
        self.endpoint = SimpleNamespace(faults="")
        self.wanted = SimpleNamespace(wants_uncaught=lambda _member, _error: False)
        self.notices: list[str] = []
        self.exits: list[tuple[str, int, int]] = []
        self.findings = Findings(cast("Fleet", self))
        self.crashes = Crashes(cast("Fleet", self))
        self.findings.begin(folder)
        self.hangs = SimpleNamespace(failed=lambda: None)
        self.crashes.begin(folder, 1 << 30)
        self.members = [FakeMember(self, rank) for rank in range(count)]
        self.folder = folder

    def select(self, _ranks: None) -> list[FakeMember]:
        return self.members

    def notice(self, level: str, text: str, member: FakeMember | None = None) -> None:
        self.notices.append(text if member is None else f"{member.label}: {text}")

    def told_exit(self, host: str, pid: int, code: int) -> None:
        self.exits.append((host, pid, code))

    @property
    def found(self) -> dict[str, tuple[int, bool]]:
        """Episode, and whether it was the first, by label."""
        read = kept_run.open_run(self.folder).findings
        return {finding["label"]: (finding["episode"], finding["isFirst"]) for finding in read}

    async def settled(self) -> None:
        while self.crashes._tasks:
            await asyncio.wait(list(self.crashes._tasks))


def run(folder: Path, work: Callable[[FakeFleet], Coroutine[Any, Any, None]], count: int = 4) -> None:
    async def whole() -> None:
        await work(FakeFleet(folder, count))

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_what_follows_is_folded_under_the_first(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[2].fails()
        fleet.members[0].fails(CLOSED)
        fleet.members[1].fails("torch.ChildFailedError: x", isEcho=True, exits={"102": -9})
        await fleet.settled()
        assert fleet.found == {"world 2": (1, True), "world 0": (1, False), "world 1": (1, False)}
        [told] = fleet.notices
        assert told.startswith("first failure: world 2: ValueError: bad at train.py:3 in step (4 processes kept")
        assert fleet.exits == [("here", 102, -9)]
        assert len(list((tmp_path / kept_run.DUMPS).iterdir())) == 4

    run(tmp_path, work)


def test_a_consequence_that_is_heard_of_before_its_cause_is_not_the_first(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails(CLOSED)
        fleet.members[1].fails("ray.RayTaskError", isEcho=True)
        await asyncio.sleep(0.05)
        fleet.members[2].fails(age=-0.01)
        await fleet.settled()
        assert fleet.found["world 2"] == (1, True)
        assert [isFirst for _, isFirst in fleet.found.values()].count(True) == 1
        assert fleet.notices[0].startswith("first failure: world 2")

    run(tmp_path, work)


def test_a_consequence_without_a_cause_is_the_first_all_the_same(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails(CLOSED)
        await fleet.settled()
        assert fleet.found == {"world 0": (1, True)}

    run(tmp_path, work)


def test_the_agents_age_of_a_failure_counts_not_the_order_of_arrival(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails("KeyError: later", age=0.1)
        fleet.members[1].fails("KeyError: earlier", age=0.9)
        assert fleet.crashes.episodes[0].first.member.label == "world 1"
        await fleet.settled()

    run(tmp_path, work)


def test_long_after_it_is_another_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_crashes, "_EPISODE_SECONDS", 0.05)

    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails()
        await fleet.settled()
        await asyncio.sleep(0.1)
        fleet.members[1].fails()
        await fleet.settled()
        assert fleet.found == {"world 0": (1, True), "world 1": (2, True)}

    run(tmp_path, work)


def test_a_job_that_is_started_again_begins_another_episode(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails()
        await fleet.settled()
        fleet.crashes.begin_run()
        fleet.members[1].fails()
        fleet.members[2].fails(CLOSED)
        await fleet.settled()
        assert fleet.found == {"world 0": (1, True), "world 1": (2, True), "world 2": (2, False)}

    run(tmp_path, work)


def test_one_that_does_not_answer_is_named_and_not_waited_for(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[3].is_silent = True
        started = time.monotonic()
        fleet.members[0].fails()
        while not fleet.members[0].verdicts:
            await asyncio.sleep(0.01)
        assert time.monotonic() - started < 1.5
        await fleet.settled()
        assert "without world 3, who did not answer" in fleet.notices[0]

    run(tmp_path, work)


def test_a_storm_of_failures_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_crashes, "_MAX_FAILURES", 5)

    async def work(fleet: FakeFleet) -> None:
        for member in fleet.members:
            member.fails()
        await fleet.settled()
        assert len(fleet.found) == 5
        assert all(len(member.verdicts) == 1 for member in fleet.members)
        assert sum(member.asked for member in fleet.members) == 19  # for the first failure alone

    run(tmp_path, work, count=20)


def test_the_first_alone_is_held_and_let_go_at_the_limit(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.crashes.policy, fleet.crashes.limit = "pause", 0.2
        first, second = fleet.members[:2]
        first.fails()
        second.fails()
        while not (first.verdicts and second.verdicts):
            await asyncio.sleep(0.01)
        assert (first.verdicts, second.verdicts) == ([True], [False])
        await asyncio.wait_for(first.continued.wait(), 5)
        await fleet.settled()
        assert "world 0: was held for 0.2 s after its failure and runs on" in fleet.notices
        assert fleet.crashes.held_seconds(cast("Member", first)) is None

    run(tmp_path, work)


def test_an_echo_is_not_held(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.crashes.policy = "pause"
        fleet.members[0].fails("ray.RayTaskError", isEcho=True)
        await fleet.settled()
        assert fleet.members[0].verdicts == [False]

    run(tmp_path, work)


def test_with_policy_off_nothing_is_kept(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.crashes.policy = "off"
        fleet.members[0].fails()
        await fleet.settled()
        assert fleet.found == {} and not (tmp_path / kept_run.DUMPS).exists()
        assert all(member.asked == 0 for member in fleet.members)

    run(tmp_path, work)


def test_a_member_that_was_killed_is_kept_as_it_was_seen_last(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        member = fleet.members[2]
        member.last_seen = {
            "at": time.monotonic(),
            "memory": 3_000_000,
            "frame": {"name": "f", "path": "/t.py", "line": 9},
        }
        member.state, member.ending = "crashed", "killed by SIGKILL"
        fleet.crashes.died(cast("Member", member), None)
        await fleet.settled()
        [finding] = kept_run.open_run(tmp_path).findings
        assert (finding["path"], finding["line"]) == ("/t.py", 9)
        assert finding["text"].startswith("killed by SIGKILL (seen last") and "3 MB" in finding["text"]

    run(tmp_path, work)


def test_one_that_turns_out_to_have_been_ended_on_purpose_is_no_failure(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        member = fleet.members[2]
        member.state = "crashed"
        fleet.crashes.died(cast("Member", member), None)
        member.state = "exited"
        await fleet.settled()
        assert fleet.found == {} and fleet.notices == []

    run(tmp_path, work)


def test_a_folder_that_is_gone_is_made_again_and_one_that_cannot_be_is_told(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.folder.rmdir()
        fleet.members[0].fails()
        await fleet.settled()
        assert fleet.found == {"world 0": (1, True)}
        fleet.findings.begin(Path("/proc/nowhere"))
        fleet.crashes.begin(Path("/proc/nowhere"), 1 << 30)
        fleet.members[1].fails()
        await fleet.settled()
        assert [text for text in fleet.notices if "could not be kept" in text or "could not be written" in text]

    folder = tmp_path / "run"
    folder.mkdir()
    run(folder, work)


def test_texts_are_safe_for_a_terminal(tmp_path: Path) -> None:
    async def work(fleet: FakeFleet) -> None:
        fleet.members[0].fails("ValueError: \x1b[31mred\x1b[0m\x07")
        await fleet.settled()
        [finding] = kept_run.open_run(tmp_path).findings
        assert finding["text"] == "ValueError: red"
        assert "\x1b" not in fleet.notices[0]

    run(tmp_path, work)
