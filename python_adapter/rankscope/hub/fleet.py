"""All members of the job: who joins, who they are, who has gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from rankscope.dap.messages import DapError
from rankscope.escapes import without_escapes
from rankscope.hub import processes
from rankscope.hub.crashes import Crashes
from rankscope.hub.creation_order import CreationOrder
from rankscope.hub.findings import Findings
from rankscope.hub.hangs import Hangs
from rankscope.hub.member import LOOK_SECONDS, Member
from rankscope.hub.run_control import RunControl
from rankscope.ranks import DRIVER, RankFacts, RankSet
from rankscope.wire import messages as m
from rankscope.wire.link import HEARTBEAT_SECONDS, Endpoint

if TYPE_CHECKING:
    from rankscope.hub.breakpoints import Wanted

WITHOUT_A_WORD = "killed or ended without a word"
_BY_SIGNAL = 128
_END_SECONDS = 0.5
_END_EVERY_SECONDS = 0.01
_log = logging.getLogger("rankscope.hub")
_LEVELS = {"warning": logging.WARNING, "error": logging.ERROR, "failure": logging.ERROR}


class FleetListener(Protocol):
    """What a front is told. All calls are on the loop and must not block."""

    def member_joined(self, member: Member) -> None: ...
    def member_changed(self, member: Member) -> None: ...
    def member_left(self, member: Member) -> None: ...
    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None: ...
    def notice(self, level: str, text: str, member: Member | None) -> None: ...


class Fleet:
    """Owns the members and the tasks that arm them; :meth:`close` ends both."""

    def __init__(self, endpoint: Endpoint, wanted: Wanted) -> None:
        self.members: dict[str, Member] = {}
        self.listeners: list[FleetListener] = []
        self.wanted = wanted
        self.endpoint = endpoint
        self.ranks: RankSet | None = None
        self.findings = Findings(self)
        self.crashes = Crashes(self)
        self.hangs = Hangs(self)
        self.control = RunControl(self)
        self.has_ended = False
        self._is_any_armed = False
        self._joined = 0
        self._created = CreationOrder()
        self._nodes: list[tuple[str, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def start_wait(self) -> float:
        """How long a starting member waits for its breakpoints, seconds."""
        return self.endpoint.start_wait

    @property
    def node_count(self) -> int:
        """How many nodes have members."""
        return len(self._nodes)

    def missing_actors(self) -> int:
        """How many Ray actors of the job were asked for and have not joined."""
        return len(self._created.awaited() - {str(m.hello.ray.get("actor_id") or "") for m in self.members.values()})

    def select(self, ranks: RankSet | None) -> list[Member]:
        """The live members of a set (``None``: every one), in order of joining. Idle ones are in none."""
        return [
            member
            for member in self.members.values()
            if member.is_live and member.facts.role != "idle" and (ranks is None or ranks.contains(member.facts))
        ]

    # --- joining ----------------------------------------------------------------------------------

    def join(self, hello: m.Hello) -> Member:
        """A new process has proved itself: number it, and tell it whether to wait."""
        for other in list(self.members.values()):
            if other.lost_at is not None and (other.hello.host, other.hello.pid) == (hello.host, hello.pid):
                self.left(other, "exited")  # it has become another program
        member = self.members[hello.member] = Member(self, hello, self._joined)
        self._joined += 1
        self._place(member)
        will_arm = hello.waits and self._should_arm(member)
        member.send(
            m.Welcome(
                will_arm=will_arm,
                prepares=member.facts.role == "idle" and self.wanted.may_arm_ranks(),
                keeps_failures=self.crashes.keeps,
                raise_timeouts=self.endpoint.raise_timeouts,
                rank=member.facts.rank,
                node=member.facts.node,
                files=self.wanted.files_for(member),
            )
        )
        self.adopt(member)
        self._arm_or_go(member, will_arm, "it starts")
        return member

    def adopt(self, member: Member) -> None:
        """Take in a member; one that is the record of one needs no more."""
        self.members[member.id] = member
        for listener in list(self.listeners):
            listener.member_joined(member)

    def handle(self, member: Member, message: m.Message) -> None:
        """One message from a member's agent."""
        if isinstance(message, m.Identity):
            self._identified(member, message)
        elif isinstance(message, m.ArmMe):
            will_arm = not member.is_greyed and not self.has_ended
            self._settle(member, message.ask, will_arm=will_arm)
            self._arm_or_go(member, will_arm, message.why)
        elif isinstance(message, (m.Failed, m.FailedDump)):
            self.crashes.handle(member, message)
        elif isinstance(message, m.Waits):
            self.hangs.handle(member, message)
        elif isinstance(message, m.Diverged):
            self.findings.divergences.handle(member, message.about)
        elif isinstance(message, m.Created):
            self._created.note(message.actor, message.label)
            self.changed(member)
        elif isinstance(message, m.Dismissed):
            self._dismissed(message.actor)
        elif isinstance(message, m.Notice):
            self.notice(message.level, message.text, member)
        elif isinstance(message, m.Leaving):
            self.left(member, "crashed" if message.why else "exited", message.why)
        else:
            if isinstance(message, m.Disarmed) and message.reason and member.is_armed:
                self.notice("warning", f"debugger dropped: {message.reason}", member)
            member.handle(message)

    def _settle(self, member: Member, ask: int, *, will_arm: bool) -> None:
        """Answer a member that asked whether to wait."""
        member.send(
            m.Settled(
                answers=ask,
                will_arm=will_arm and not member.is_armed,
                rank=member.facts.rank,
                files=self.wanted.files_for(member),
            )
        )

    def _identified(self, member: Member, message: m.Identity) -> None:
        old = member.facts
        member.facts = RankFacts(**message.facts)
        if member.facts.rank is None and member.facts.group == old.group:
            member.facts = member.facts.with_changes(rank=old.rank)
        member.hello.name = message.name or member.hello.name
        member.hello.roots = message.roots or member.hello.roots
        member.hello.ray = {**member.hello.ray, **message.ray}
        self._place(member)
        will_arm = self._should_arm(member)
        if message.ask:
            self._settle(member, message.ask, will_arm=will_arm)
        self.changed(member)
        self._arm_or_go(member, will_arm, "its rank is known")
        if member.is_armed:
            self.start(self.wanted.configure(member))

    def _place(self, member: Member) -> None:
        """Node index, provisional rank, incarnation, and whether it may stop."""
        facts = member.facts.with_changes(node=self._node_of(member.hello))
        others = [
            other
            for other in self.members.values()
            if other is not member and other.facts.role == facts.role and other.facts.group == facts.group
        ]
        predecessor = _predecessor(member, others)
        if facts.role == "rank" and facts.rank is None:
            created = self._created.number(str(member.hello.ray.get("actor_id") or ""))
            taken = {other.facts.rank for other in others if other.is_live}
            free = next(number for number in range(len(others) + 1) if number not in taken)
            provisional = free if created is None or created in taken else created
            facts = facts.with_changes(rank=provisional if predecessor is None else predecessor.facts.rank)
        member.facts = facts
        if predecessor is None and facts.is_final and facts.role == "rank":
            same = [other for other in others if other.facts.rank == facts.rank and not other.is_live]
            predecessor = same[-1] if same else None
        if predecessor is not None:
            member.incarnation = predecessor.incarnation + 1
        member.is_greyed = self.ranks is not None and facts.role != "driver" and self.ranks.contains(facts) is False

    def _node_of(self, hello: m.Hello) -> int:
        """The node's index. Only Ray workers know Ray's node id, so a host's first one goes with its name."""
        host, node_id = hello.host, str(hello.ray.get("node_id") or "")
        for index, (known_host, known_id) in enumerate(self._nodes):
            if host == known_host and (not node_id or not known_id or node_id == known_id):
                self._nodes[index] = (host, known_id or node_id)
                return index
        self._nodes.append((host, node_id))
        return len(self._nodes) - 1

    def _should_arm(self, member: Member) -> bool:
        return member.facts.role in ("driver", "rank") and not member.is_greyed and self.wanted.wants(member)

    def _arm_or_go(self, member: Member, will_arm: bool, why: str) -> None:
        if will_arm:
            self.start(member.arm(why))
        else:
            member.running()
            self.changed(member)

    # --- leaving ----------------------------------------------------------------------------------

    def left(self, member: Member, state: str, ending: str = "") -> None:
        """A member has ``exited``, ``crashed`` or is ``lost``; idempotent."""
        if not member.is_live:
            return
        member.close(state, ending)
        self.crashes.let_go(member)
        self.crashes.forget(member)
        self._created.forget(str(member.hello.ray.get("actor_id") or ""))
        for listener in list(self.listeners):
            listener.member_left(member)

    def unlinked(self, member: Member) -> None:
        """A member's link broke: it may have ended, or be about to, or come back."""
        if member.is_local:  # else nobody here can see its end
            self.start(self._await_end(member))

    async def _await_end(self, member: Member) -> None:
        """Look often at first, so that where the others are is asked while they still are there; then :meth:`watch`."""
        deadline = time.monotonic() + _END_SECONDS
        while member.is_live and member.lost_at is not None:
            if member.has_ended():
                self.vanished(member)
            elif time.monotonic() > deadline:
                return
            else:
                await asyncio.sleep(_END_EVERY_SECONDS)

    def vanished(self, member: Member) -> None:
        """A member's process is gone and has not taken leave: somebody killed it, unless that was to be expected."""
        if not member.is_live:
            return
        fault = self.crashes.fault_of(member)
        is_expected = member.is_dismissed or member.facts.role in ("child", "idle")
        if self.has_ended or (is_expected and not (fault and fault.is_fatal)):
            self.left(member, "exited")
        else:
            self.left(member, "crashed", f"killed by {fault.signal}" if fault else WITHOUT_A_WORD)
            self.crashes.died(member, fault)

    def _dismissed(self, actor: str) -> None:
        """A Ray actor, or every Ray worker, is ended on purpose; this may be heard after it has ended."""
        self._created.forget(actor)
        for member in self.members.values():
            if member.hello.ray.get("actor_id") == actor if actor else member.is_ray_worker:
                member.is_dismissed = True
                if actor:
                    self._reconsider(member, "exited", "")

    def driver_ended(self, code: int | None) -> None:
        """The driver is gone, with this exit code where that is known: it may say what killed it."""
        if self.has_ended:
            return
        is_killed = code is None or code > _BY_SIGNAL
        for member in self.members.values():
            if member.facts.role == DRIVER and member.has_ended():
                self.vanished(member)
                if not is_killed:
                    self._reconsider(member, "exited", "")
                elif code is not None:
                    self._reconsider(member, "crashed", f"killed by {processes.signal_name(code - _BY_SIGNAL)}")

    def _reconsider(self, member: Member, state: str, ending: str) -> None:
        """More is known of a member that went without a word."""
        if member.ending == WITHOUT_A_WORD:
            member.close(state, ending)
            self.changed(member)

    def told_exit(self, host: str, pid: int, code: int) -> None:
        """A launcher has said how one of its children ended: ``code``, below 0 for a signal."""
        for member in self.members.values():
            if (member.hello.host, member.hello.pid) == (host, pid):
                if code < 0:
                    self._reconsider(member, "crashed", f"killed by {processes.signal_name(-code)}")
                elif code > 0:
                    self._reconsider(member, "crashed", f"exited with code {code}")

    def forget_run(self) -> None:
        """Another run begins, the last one has been ended: whoever was in it is no member of this."""
        for member in list(self.members.values()):
            self.left(member, "exited")
        self.members.clear()
        self.crashes.begin_run()
        self.hangs.forget()
        self._created = CreationOrder()
        self._nodes = []
        self.wanted.standing.forget()

    async def watch(self) -> None:
        """Heartbeats, and the search for members that are gone. Runs until cancelled."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS / 4)
            now = time.monotonic()
            for member in list(self.members.values()):
                if not member.is_live:
                    continue
                if member.lost_at is None:
                    if now - member.looked_at >= LOOK_SECONDS and member.facts.role != "idle":
                        member.glance()
                    elif now - member.spoke_at >= HEARTBEAT_SECONDS:
                        member.heartbeat()
                elif member.has_ended():
                    self.vanished(member)
                elif now - member.lost_at > self.endpoint.release_after:
                    self.left(member, "lost")

    async def release_all(self) -> None:
        """Disarm every member, so that none stays paused; bounded by the disarm's own bounds."""
        self.has_ended = True
        await asyncio.gather(*(member.disarm() for member in self.select(None)), return_exceptions=True)

    def close(self) -> None:
        """Cancel what arms members."""
        self.crashes.close()
        self.hangs.close()
        self.control.close()
        for task in self._tasks:
            task.cancel()

    # --- time-outs --------------------------------------------------------------------------------

    def armed_changed(self) -> None:
        """Keep every member's process-group time-outs raised while anybody is armed, and give them back after.

        One paused rank can time out a collective of any other, so this is the job's matter, not the member's.
        """
        is_any = any(member.is_armed for member in self.members.values())
        if is_any == self._is_any_armed or not self.endpoint.raise_timeouts:
            return
        self._is_any_armed = is_any
        for member in self.select(None):
            self.start(_set_timeouts(member, is_any=is_any))

    # --- telling ----------------------------------------------------------------------------------

    def changed(self, member: Member) -> None:
        """Something about a member that people see has changed."""
        for listener in list(self.listeners):
            listener.member_changed(member)

    def event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Pass on an event of a member's debugpy."""
        if event == "continued":
            self.crashes.let_go(member)
        for listener in list(self.listeners):
            listener.member_event(member, event, body)

    def notice(self, level: str, text: str, member: Member | None = None) -> None:
        """Say something to the person, and to the log."""
        text = without_escapes(text)
        _log.log(_LEVELS.get(level, logging.INFO), "%s%s", "" if member is None else f"{member.label}: ", text)
        for listener in list(self.listeners):
            listener.notice(level, text, member)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Work on a member whose failure is told."""

        async def run() -> None:
            try:
                await work
            except (DapError, TimeoutError, asyncio.TimeoutError) as e:
                self.notice("warning", str(e))

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _set_timeouts(member: Member, *, is_any: bool) -> None:
    with contextlib.suppress(DapError, TimeoutError, asyncio.TimeoutError):  # it has ended, or keeps its own
        await member.ask("timeouts", {"raised": is_any})


def _predecessor(member: Member, others: list[Member]) -> Member | None:
    """The last incarnation of the same Ray actor."""
    actor = member.hello.ray.get("actor_id")
    same = [other for other in others if actor and other.hello.ray.get("actor_id") == actor]
    return same[-1] if same else None
