"""Failures of the job: which came first, where everybody was at that moment, and who is held.

An *episode* is a first failure and those that follow from it (peers whose connection
closed, a launcher that ends the rest). Of its first failure the dump comes with the news;
every other member is asked for one at once, before the failing process may die.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.journal import Journal
from rankscope.postmortem import kept_run
from rankscope.wire import messages as m

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

_PEERS_SECONDS = 0.7
_OWN_SECONDS = 1.5
_EPISODE_SECONDS = 60.0
_MAX_FAILURES = 1000


@dataclass
class Failure:
    """One failure. ``at`` is the hub's clock (Unix time) when it was raised; ``about`` comes from the agent."""

    member: Member
    at: float
    about: dict[str, Any]

    @property
    def text(self) -> str:
        """One line for people: who, what, where."""
        place = Path(str(self.about.get("path", ""))).name
        where = f" at {place}:{self.about.get('line')} in {self.about.get('name')}" if place else ""
        return f"{self.member.label}: {self.about.get('text')}{where}"


@dataclass
class Episode:
    """A first failure, what followed from it, and the dumps that were kept."""

    number: int
    failures: list[Failure] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    late: list[str] = field(default_factory=list)

    @property
    def first(self) -> Failure:
        """The one that was raised first and does not merely tell of another."""
        own = [failure for failure in self.failures if not failure.about.get("isEcho")]
        return min(own or self.failures, key=lambda failure: failure.at)


class Crashes:
    """Takes failures in, keeps them in the record, and says who is held. Owns a task per failure.

    ``policy`` is ``pause``, ``capture`` or ``off``; ``limit`` is how long one is held at most, seconds.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.episodes: list[Episode] = []
        self.listeners: list[Callable[[Episode, Failure], None]] = []
        self.policy = "capture"
        self.limit = 1800.0
        self.held_until: dict[str, float] = {}
        self._goes: dict[str, asyncio.Event] = {}
        self._folder: Path | None = None
        self._fleet = fleet
        self._findings: Journal | None = None
        self._dumps: dict[tuple[str, int], asyncio.Future[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def keeps(self) -> bool:
        """Whether failures are kept."""
        return self.policy != "off"

    def begin(self, folder: Path) -> None:
        """What is kept from now on goes into this record's folder."""
        self._folder = folder
        self._findings = Journal(folder / kept_run.FINDINGS, "findings")

    def handle(self, member: Member, message: m.Failed | m.FailedDump) -> None:
        """A member tells of a failure, then what it has kept of it."""
        key = (member.id, message.ask)
        if isinstance(message, m.FailedDump):
            if key in self._dumps and not self._dumps[key].done():
                self._dumps[key].set_result(message.dump)
            return
        failure = Failure(member, time.time() - message.age, message.about)
        episode = self._episode_of(failure)
        if len(episode.failures) > _MAX_FAILURES or self._fleet.has_ended:
            member.send(m.Verdict(ask=message.ask))
            return
        self._dumps[key] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._keep(episode, failure, message.ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _episode_of(self, failure: Failure) -> Episode:
        last = self.episodes[-1] if self.episodes else None
        if last is None or failure.at - last.failures[-1].at > _EPISODE_SECONDS:
            last = Episode(len(self.episodes) + 1)
            self.episodes.append(last)
        last.failures.append(failure)
        return last

    def _holds(self, failure: Failure) -> bool:
        """Whether the person wants a failure held: by policy, by Ray's own switch, or by the exception filter."""
        member, about = failure.member, failure.about
        if about.get("isEcho") or member.is_greyed:
            return False
        if self.policy == "pause" or (about.get("wantsPause") and self.keeps):
            return True
        return self._fleet.wanted.wants_uncaught(member, str(about.get("type", "")))

    async def _keep(self, episode: Episode, failure: Failure, ask: int) -> None:
        is_first = episode.first is failure
        will_hold = is_first and self._holds(failure)
        others = [other for other in self._fleet.select(None) if other is not failure.member]
        keeps_others = is_first and self.keeps and not failure.about.get("isEcho")
        await asyncio.gather(
            self._keep_own(episode, failure, ask),
            *(self._keep_other(episode, other) for other in others if keeps_others),
        )
        failure.member.send(m.Verdict(ask=ask, will_hold=will_hold))
        self._note(episode, failure, is_first=is_first)
        if will_hold:
            await self._hold(failure)

    async def _hold(self, failure: Failure) -> None:
        """Let it go when the limit is reached, unless somebody has done so before."""
        member = failure.member
        until = self.held_until[member.id] = time.monotonic() + self.limit
        go = self._goes[member.id] = asyncio.Event()
        try:
            await asyncio.wait_for(go.wait(), until - time.monotonic())
        except (TimeoutError, asyncio.TimeoutError):
            self._fleet.notice("warning", f"was held for {self.limit:g} s after its failure and runs on", member)
            with contextlib.suppress(DapError, TimeoutError, asyncio.TimeoutError):
                await member.debug("continue", {"threadId": "*"})
        finally:
            self.held_until.pop(member.id, None)
            self._goes.pop(member.id, None)

    def let_go(self, member: Member) -> None:
        """A member runs on, or is gone: it is held no longer."""
        if member.id in self._goes:
            self._goes[member.id].set()

    async def _keep_own(self, episode: Episode, failure: Failure, ask: int) -> None:
        key = (failure.member.id, ask)
        try:
            dump = await asyncio.wait_for(self._dumps[key], _OWN_SECONDS)
        except (TimeoutError, asyncio.TimeoutError):
            episode.late.append(failure.member.label)
        else:
            self._save(episode, failure.member, dump, failed=failure)
        finally:
            del self._dumps[key]

    def close(self) -> None:
        """Wait for nobody any more."""
        for task in self._tasks:
            task.cancel()

    async def _keep_other(self, episode: Episode, member: Member) -> None:
        """Where another member is now. One that does not answer in time is named, and waited for no longer."""
        try:
            dump = await member.ask("dump", {}, timeout=_PEERS_SECONDS)
        except (DapError, TimeoutError, asyncio.TimeoutError):
            episode.late.append(member.label)
            return
        self._save(episode, member, dump)

    def _save(self, episode: Episode, member: Member, dump: dict[str, Any], failed: Failure | None = None) -> None:
        if self._folder is None or not dump or member.id in episode.members:
            return  # the first of an episode counts: where it was at that moment
        episode.members.add(member.id)
        facts = member.facts
        about = {
            "id": member.id,
            "number": member.number,
            "label": member.label,
            "role": facts.role,
            "group": facts.group,
            "rank": facts.rank,
            "localRank": facts.local_rank,
            "worldSize": facts.world_size,
            "node": facts.node,
            "incarnation": member.incarnation,
            "host": member.hello.host,
            "pid": member.hello.pid,
            "episode": episode.number,
            "failed": failed is not None,
            "ending": "" if failed is None else str(failed.about.get("text", "")),
            "at": time.time() if failed is None else failed.at,
        }
        try:
            episode.kept.append(kept_run.save(self._folder, about, dump))
        except OSError as e:
            self._fleet.notice("error", f"its last moment could not be kept: {e.strerror or e}", member)

    def _note(self, episode: Episode, failure: Failure, *, is_first: bool) -> None:
        """Write the finding, tell the person, and whoever listens."""
        if is_first:
            late = f"; without {', '.join(episode.late)}, who did not answer" if episode.late else ""
            kept = f" ({len(episode.kept)} processes kept{late})" if episode.kept else ""
            self._fleet.notice("error", f"first failure: {failure.text}{kept}", None)
        if self._findings is not None:
            finding = {
                "kind": "crash",
                "severity": "error" if is_first else "information",
                "at": failure.at,
                "member": failure.member.id,
                "label": failure.member.label,
                "episode": episode.number,
                "isFirst": is_first,
                **{key: failure.about.get(key) for key in ("path", "line", "name", "type", "message", "text", "how")},
            }
            if not self._findings.append(finding) and self._findings.lost == 1:
                self._fleet.notice("error", f"findings could not be written: {self._findings.failure}", None)
        for listener in list(self.listeners):
            listener(episode, failure)
