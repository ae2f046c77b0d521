"""The wanted table: every breakpoint of the job, and which member has which share of it.

The editor's breakpoints are the one source of truth; the root session alone changes
the table. A change is sent to the members concurrently, arms those that need the
debugger now, and lets go of those that no longer do.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.errors import UserError
from rankscope.hub.binding import Binding
from rankscope.hub.entries import EXCEPTION, FUNCTION, LINE, Breakpoint, checked
from rankscope.hub.holds import Holds
from rankscope.hub.paths import Paths
from rankscope.hub.settings import LaunchSettings
from rankscope.hub.standing import Standing
from rankscope.ranks import DRIVER, RankFacts
from rankscope.wire import messages as m

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

ANSWER_SECONDS = 2.0
QUIET_SECONDS = 2.0
_INSTALLED = ("/site-packages/", "/dist-packages/")
# What a process is taken for of which nothing is known yet but that it may become a rank.
_SOME_RANK = RankFacts(role="rank")


Table = dict[tuple[str, str], list[Breakpoint]]


class Wanted:
    """The table. Owns one :class:`Binding` per armed member and the tasks that serve them.

    ``standing`` tells how each entry stands; ``listeners`` are called, soon, after that has changed.
    """

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        self.settings = settings or LaunchSettings()
        self.paths = Paths(settings)
        self.listeners: list[Callable[[], None]] = []
        self.installed: set[str] = set()
        self.standing = Standing(self)
        self._fleet: Fleet | None = None
        self._table: Table = {}
        self._ids = itertools.count(1)
        self._bindings: dict[str, Binding] = {}
        self.holds = Holds(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: dict[str, str] = {}
        self._is_telling = False

    @property
    def fleet(self) -> Fleet | None:
        """The members the table is for; set once, and listened to from then on."""
        return self._fleet

    @fleet.setter
    def fleet(self, fleet: Fleet) -> None:
        self._fleet = fleet
        fleet.listeners.append(self)

    def apply(self, settings: LaunchSettings) -> None:
        """Let launch arguments hold from now on."""
        self.settings = settings
        self.paths = Paths(settings)

    # --- what the root session asks for -----------------------------------------------------------

    async def set_lines(self, path: str, requests: Sequence[dict[str, Any]]) -> list[Breakpoint]:
        """Replace a file's breakpoints; returns once the members have answered, at most :data:`ANSWER_SECONDS`."""
        entries = [self._entry(LINE, path, request) for request in requests]
        self._replace(LINE, path, entries)
        if any(mark in path for mark in _INSTALLED):
            self.installed.add(path)
        await self._spread((LINE, path))
        return entries

    async def set_functions(self, requests: Sequence[dict[str, Any]]) -> list[Breakpoint]:
        """Replace all function breakpoints."""
        entries = [self._entry(FUNCTION, str(request.get("name", "")).strip(), request) for request in requests]
        self._replace(FUNCTION, "", entries)
        await self._spread((FUNCTION, ""))
        return entries

    async def set_exceptions(self, filters: Sequence[str], options: Sequence[dict[str, Any]]) -> list[Breakpoint]:
        """Replace all exception filters."""
        requests = [{"filterId": name} for name in filters] + list(options)
        entries = [self._entry(EXCEPTION, str(request.get("filterId", "")), request) for request in requests]
        self._replace(EXCEPTION, "", entries)
        await self._spread((EXCEPTION, ""))
        return entries

    def take_table(self) -> Table:
        """Another root begins, with no breakpoints; returns what was wanted so far."""
        table, self._table = self._table, {}
        self._spread_all(table)
        return table

    def give_table(self, table: Table) -> None:
        """That root has gone: what was wanted before holds again."""
        old, self._table = self._table, table
        self._spread_all({**old, **table})

    def _spread_all(self, keys: Table) -> None:
        for key in keys:
            self._start(self._spread(key))

    def _entry(self, kind: str, where: str, request: dict[str, Any]) -> Breakpoint:
        old = self.find(kind, where, request)
        if old is not None:
            return old
        number = self.next_id()
        try:
            return checked(number, kind, where, request, self.settings.rank_sets)
        except UserError as e:
            return Breakpoint(number, kind, where, request, error=str(e))

    def _replace(self, kind: str, where: str, entries: list[Breakpoint]) -> None:
        if entries:
            self._table[kind, where] = entries
        else:
            self._table.pop((kind, where), None)

    # --- what others ask of it --------------------------------------------------------------------

    def all(self) -> Iterable[Breakpoint]:
        """Every entry."""
        return itertools.chain.from_iterable((*self._table.values(), *self.holds.lines.values()))

    def entries(self, kind: str, where: str = "") -> list[Breakpoint]:
        """The entries of a file (by client path), or all function or exception ones."""
        return [*self._table.get((kind, where), ()), *self.holds.lines.get((kind, where), ())]

    def find(self, kind: str, where: str, request: dict[str, Any]) -> Breakpoint | None:
        """The entry for the same fields, if there is one."""
        for entry in self.entries(kind, where if kind == LINE else ""):
            if entry.where == where and entry.request == request:
                return entry
        return None

    def entries_of(self, member: Member, locals_: Iterable[int]) -> set[int]:
        """The table ids of a member's own breakpoint ids."""
        binding = self._bindings.get(member.id)
        found = () if binding is None else map(binding.entry_of, locals_)
        return {entry for entry in found if entry is not None}

    def keys(self) -> list[tuple[str, str]]:
        """What there is to send: one (kind, client path or empty) per file and per kind."""
        return list({**self._table, **self.holds.lines})

    def wants(self, member: Member) -> bool:
        """Whether a member needs the debugger."""
        if self.settings.stop_on_entry and member.facts.role == DRIVER:
            return True
        if self.settings.stop_together and member.facts.role == "rank" and not member.is_greyed:
            somebody = RankFacts(group=member.facts.group)  # one that has to be armed first would stop too late
            return any(entry.arms and entry.may_stop(somebody) for entry in self.all())
        return any(entry.arms and entry.concerns(member) for entry in self.all())

    def wants_uncaught(self, member: Member, error: str) -> bool:
        """Whether an exception of that class, which nothing caught, is to stop a member."""
        return any(
            entry.where == "uncaught"
            and entry.concerns(member)
            and (not entry.names or error in entry.names or error.rpartition(".")[2] in entry.names)
            for entry in self.entries(EXCEPTION)
        )

    def may_arm_ranks(self) -> bool:
        """Whether a process of which nothing is known yet may need the debugger once it is a rank."""
        return any(entry.arms and entry.may_stop(_SOME_RANK) for entry in self.all())

    def files_for(self, member: Member) -> list[str]:
        """The paths a dormant member watches for: those of breakpoints that may concern it, spelled every known way."""
        return [
            place
            for (kind, path), entries in self._table.items()
            if kind == LINE and any(entry.concerns(member) for entry in entries)
            for place in self.paths.known_in_members(path)
        ]

    def attach_arguments(self, member: Member) -> dict[str, Any]:
        """What a member's debugpy is attached with. Called again on an armed member it brings new rules."""
        del member
        places = [place for path in sorted(self.installed) for place in self.paths.known_in_members(path)]
        return {
            "justMyCode": self.settings.just_my_code,
            "rules": [
                *({"path": place, "include": True} for place in places),
                {"path": "**/rankscope/agent/**", "include": False},
                {"path": "**/rankscope/bundled/**", "include": False},
            ],
            "redirectOutput": False,
            "showReturnValue": True,
            "resolveSymlinks": True,
            "subProcess": False,
            "terminateChildProcesses": False,
            "stopAllThreadsOnSuspend": True,
            "variablePresentation": {"special": "group", "function": "group", "class": "group", "protected": "inline"},
        }

    async def configure(self, member: Member) -> None:
        """Send a member its whole share: it has just been attached, or has become another rank."""
        binding = self._bindings.get(member.id)
        if binding is None or not member.is_armed:
            binding = self._bindings[member.id] = Binding(self, member)
        binding.dirty.update(self.keys())
        binding.dirty.update(binding.keys())
        await binding.flush()
        if self.settings.stop_on_entry and member.facts.role == DRIVER and member.state == "starting":
            # debugpy stops on entry only after a "launch", which sets the same options as an "attach".
            await member.debug("launch", {**self.attach_arguments(member), "stopOnEntry": True})
        self.tell()

    # --- spreading a change -----------------------------------------------------------------------

    async def _spread(self, key: tuple[str, str]) -> None:
        """Send a change everywhere; waits for the answers, within a bound. The last state of the table wins."""
        if self._fleet is None:
            return
        tasks = []
        for member in self._fleet.select(None):
            binding = self._bindings.get(member.id)
            if member.is_armed and binding is not None:
                binding.dirty.add(key)
                tasks.append(self._start(binding.flush()))
                self.consider(member)
            elif member.facts.role == "child":
                if member.state == "running":
                    member.send(m.Settled(files=self.files_for(member)))
            elif self.wants(member):
                tasks.append(self._start(self._arm(member)))
        if tasks:
            await asyncio.wait(tasks, timeout=ANSWER_SECONDS)
        self.tell()

    def next_id(self) -> int:
        """The number of an entry."""
        return next(self._ids)

    async def send(self, member: Member, key: tuple[str, str]) -> None:
        """Send a member its share of a file or a kind as it is now. Raises :class:`DapError` or ``TimeoutError``."""
        binding = self._bindings.get(member.id)
        if binding is not None:
            binding.dirty.add(key)
            await binding.flush()

    def send_soon(self, member: Member, key: tuple[str, str]) -> None:
        """The same by and by."""
        self._start(self.send(member, key))

    async def _arm(self, member: Member) -> None:
        try:
            await member.arm("a breakpoint concerns it")
        except DapError as e:
            self._failed[member.id] = str(e)
            raise
        self._failed.pop(member.id, None)
        # The table may have changed after the share was taken.
        binding = self._bindings.get(member.id)
        if binding is not None:
            await binding.flush()

    def consider(self, member: Member) -> None:
        """Disarm a member after a short quiet if nothing wants it then."""
        if member.is_armed and not self.wants(member):
            asyncio.get_running_loop().call_later(QUIET_SECONDS, self._disarm_if_idle, member)

    def _disarm_if_idle(self, member: Member) -> None:
        if member.is_armed and not member.stopped and not self.holds.of(member) and not self.wants(member):
            self._start(self._disarm(member))

    async def _disarm(self, member: Member) -> None:
        await member.disarm()
        if self.wants(member) and member.is_live:  # changed its mind meanwhile
            await self._arm(member)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def run() -> None:
            try:
                await work
            except (DapError, TimeoutError, asyncio.TimeoutError) as e:
                if self._fleet is not None:
                    self._fleet.notice("warning", str(e) or "a rank did not answer about its breakpoints in time")
            self.tell()

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- what it is told by the fleet -------------------------------------------------------------

    def member_joined(self, member: Member) -> None:
        """A member counts from now on."""
        if member.facts.role == DRIVER:
            for root in member.hello.roots:
                self.paths.add_base(root)
        self.tell()

    def member_changed(self, member: Member) -> None:
        """Its rank, its place or its debugger is another."""
        if member.is_armed:
            self.consider(member)
        self.tell()

    def member_left(self, member: Member) -> None:
        """A member has gone."""
        self._bindings.pop(member.id, None)
        self.holds.end(member)
        self._failed.pop(member.id, None)
        self.paths.forget(member)
        self.tell()

    def member_event(self, member: Member, event: str, body: dict[str, Any]) -> None:
        """Take in what its debugpy says of breakpoints, and when it stops and runs."""
        if event == "breakpoint":
            binding = self._bindings.get(member.id)
            if binding is not None:
                binding.changed(body.get("breakpoint") or {})
                self.tell()
        elif event == "stopped":
            self.holds.end(member)
            hit = body.get("hitBreakpointIds") or ()
            if member.id in self._bindings:
                self._bindings[member.id].hit(hit)
            if self.standing.stopped(member, self.entries_of(member, hit)):
                self.tell()
        elif event == "continued":
            self.consider(member)

    def notice(self, level: str, text: str, member: Member | None) -> None:
        """Not for us."""

    def tell(self) -> None:
        """Call the listeners once, soon."""
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_telling = False
        for listener in list(self.listeners):
            listener()

    def bound_lines(self, member: Member) -> list[tuple[int, str, int]]:
        """The table id, the member's path and the line of every line breakpoint that is bound in an armed member."""
        binding = self._bindings.get(member.id)
        return [] if binding is None else binding.bound_lines()

    # --- how it stands ----------------------------------------------------------------------------

    def answer(self, entry: Breakpoint, member: Member) -> dict[str, Any] | None:
        """What a member's debugpy says of an entry; ``None`` while it has not answered."""
        if member.id in self._failed:
            return {"verified": False, "message": self._failed[member.id]}
        if not entry.arms and not member.is_armed:
            return {"verified": True}
        binding = self._bindings.get(member.id)
        return binding.answers.get(entry.id) if binding is not None and member.is_armed else None
