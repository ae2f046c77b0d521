"""Failures of the job: which came first, where everybody was at that moment, and who is held.

Of an episode's first failure the dump comes with the news; every other member is asked
for one at once, before the failing process may die.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankscope.dap.messages import DapError
from rankscope.hub.episodes import Episode, Failure
from rankscope.hub.member import who
from rankscope.postmortem import fault_text
from rankscope.postmortem.dump_folder import DumpFolder
from rankscope.wire import messages as m
from rankscope.wire.link import fault_file

if TYPE_CHECKING:
    from rankscope.hub.fleet import Fleet
    from rankscope.hub.member import Member

_TEXTS = ("path", "name", "type", "message", "text", "how")
_PEERS_SECONDS = 0.7
_OWN_SECONDS = 1.5
_EPISODE_SECONDS = 60.0
_CAUSE_SECONDS = 0.8
_SETTLE_SECONDS = 1.5
_MAX_FAILURES = 1000


class Crashes:
    """Takes failures in, keeps them in the record, and says who is held. Owns a task per failure.

    ``policy`` is ``pause``, ``capture`` or ``off``; ``limit`` is how long one is held at most, seconds.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.episodes: list[Episode] = []
        self.policy = "capture"
        self.limit = 1800.0
        self.held_until: dict[str, float] = {}
        self._begins_anew = False
        self._goes: dict[str, asyncio.Event] = {}
        self._written: DumpFolder | None = None
        self._fleet = fleet
        self._dumps: dict[tuple[str, int], asyncio.Future[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def keeps(self) -> bool:
        """Whether failures are kept."""
        return self.policy != "off"

    def begin(self, folder: Path, max_bytes: int) -> None:
        """What is kept from now on goes into this record's folder; of dumps at most so many bytes."""
        self._written = DumpFolder(folder, max_bytes)

    def begin_run(self) -> None:
        """The job is started again: what fails from now on follows from nothing before."""
        self._begins_anew = True

    def handle(self, member: Member, message: m.Failed | m.FailedDump) -> None:
        """A member tells of a failure, then what it has kept of it."""
        key = (member.id, message.ask)
        if isinstance(message, m.FailedDump):
            if key in self._dumps and not self._dumps[key].done():
                self._dumps[key].set_result(message.dump)
            return
        failure = Failure(member, time.time() - message.age, message.about)
        if self._fleet.has_ended:
            member.send(m.Verdict(ask=message.ask))
            return
        self._fleet.hangs.failed()
        episode = self._episode_of(failure)
        for pid, code in dict(message.about.get("exits") or {}).items():
            self._fleet.told_exit(member.hello.host, int(pid), int(code))
        if len(episode.failures) > _MAX_FAILURES:
            member.send(m.Verdict(ask=message.ask))
            return
        self._dumps[key] = asyncio.get_running_loop().create_future()
        self._start(self._keep(episode, failure, message.ask))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- deaths without a word --------------------------------------------------------------------

    def fault_of(self, member: Member) -> fault_text.Fault | None:
        """What a signal handler has written down of a member's death."""
        folder = self._fleet.endpoint.faults
        return fault_text.read(fault_file(folder, member.id)) if folder else None

    def forget(self, member: Member) -> None:
        """A member is gone, and so is what would have been written of its death."""
        if self._fleet.endpoint.faults:
            fault_file(self._fleet.endpoint.faults, member.id).unlink(missing_ok=True)

    def died(self, member: Member, fault: fault_text.Fault | None) -> None:
        """A member's process was killed; nobody there could tell of it."""
        now = time.monotonic()
        name, path, line = fault.place if fault else _last_place(member)
        about = {
            "type": fault.signal if fault else "",
            "message": fault.message if fault else "",
            "text": member.ending,
            "path": path,
            "line": line,
            "name": name,
            "how": "killed",
        }
        failure = Failure(member, time.time() - (now - (member.lost_at or now)), about)
        self._start(self._keep_death(self._episode_of(failure), failure, fault))

    async def _keep_death(self, episode: Episode, failure: Failure, fault: fault_text.Fault | None) -> None:
        member, about = failure.member, failure.about
        seen = _seen(member)
        if episode.first is failure and self.keeps:
            others = [other for other in self._fleet.select(None) if other is not member]
            await asyncio.gather(*(self._keep_other(episode, other) for other in others))
        await self._until_cause(episode)  # and until somebody says what killed it
        if member.state != "crashed":  # it was ended on purpose
            episode.failures.remove(failure)
            return
        about["text"] = member.ending if fault else f"{member.ending}{seen}"
        if fault is not None:
            self._save(episode, member, fault.dump, failed=failure)
        elif about["path"]:
            kept = fault_text.of_place(about["name"], about["path"], about["line"], about["text"])
            self._save(episode, member, kept, failed=failure)
        self._note(episode, failure, is_first=episode.first is failure)

    async def _until_cause(self, episode: Episode) -> None:
        """What follows from a failure may be heard of before it: wait a little for the one that is a cause."""
        if not episode.first.is_own:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(episode.has_cause.wait(), _CAUSE_SECONDS)
        else:
            await asyncio.sleep(_CAUSE_SECONDS / 4)

    # --- failures that were told ------------------------------------------------------------------

    def _episode_of(self, failure: Failure) -> Episode:
        last = self.episodes[-1] if self.episodes else None
        is_long_ago = last is not None and failure.at - last.latest > _EPISODE_SECONDS
        if last is None or is_long_ago or self._begins_anew:
            self._begins_anew = False
            last = Episode(len(self.episodes) + 1)
            self.episodes.append(last)
        last.failures.append(failure)
        if failure.is_own:
            last.has_cause.set()
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
        if will_hold:
            self._start(self._hold(failure))
        if not failure.is_own:
            await self._until_cause(episode)
        self._note(episode, failure, is_first=episode.first is failure)

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

    def held_seconds(self, member: Member) -> int | None:
        """How long a member is still held at most; ``None`` when it is not."""
        until = self.held_until.get(member.id)
        return None if until is None else max(0, round(until - time.monotonic()))

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

    async def settle(self) -> None:
        """The job has ended: let what is under way be written and told, within a bound."""
        for event in self._goes.values():
            event.set()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=_SETTLE_SECONDS)

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
        if self._written is None or not (self.keeps and dump) or member.id in episode.members:
            return  # the first of an episode counts: where it was at that moment
        episode.members.add(member.id)
        about = {
            **who(member),
            "episode": episode.number,
            "failed": failed is not None,
            "ending": "" if failed is None else str(failed.about.get("text", "")),
            "at": time.time() if failed is None else failed.at,
        }
        try:
            had_room = not self._written.dropped
            episode.kept.append(self._written.save(about, dump))
        except OSError as e:
            self._fleet.notice("error", f"its last moment could not be kept: {e.strerror or e}", member)
            return
        if had_room and self._written.dropped:
            self._fleet.notice("warning", "the record is full (recordMaxMB): dumps go, the oldest detail first", None)

    def _note(self, episode: Episode, failure: Failure, *, is_first: bool) -> None:
        """Write the finding, tell the person, and whoever listens."""
        if is_first:
            late = f"; without {', '.join(episode.late)}, who did not answer" if episode.late else ""
            count = len(episode.kept)
            kept = f" ({count} process{'es' if count != 1 else ''} kept{late})" if count else ""
            self._fleet.notice("failure", f"first failure: {failure.text}{kept}", None)
        about = failure.about
        finding = {
            "kind": "crash",
            "severity": "error" if is_first else "information",
            "at": failure.at,
            "member": failure.member.id,
            "label": failure.member.label,
            "episode": episode.number,
            "isFirst": is_first,
            "isEcho": bool(about.get("isEcho")),
            "line": int(about.get("line") or 0),
            **{key: about.get(key) for key in _TEXTS},
        }
        self._fleet.findings.add(finding, is_kept=self.keeps)


def _last_place(member: Member) -> tuple[str, str, int]:
    frame = member.last_seen.get("frame")
    if not isinstance(frame, dict):
        return "", "", 0
    return str(frame.get("name", "")), str(frame.get("path", "")), int(frame.get("line") or 0)


def _seen(member: Member) -> str:
    """How long ago a member that is no more was seen last, and how much memory it held."""
    if not member.last_seen:
        return ""
    ago = time.monotonic() - float(member.last_seen["at"])
    memory = int(member.last_seen.get("memory") or 0)
    held = f" with {memory / 1e6:,.0f} MB of memory" if memory else ""
    return f" (seen last {ago:.1f} s before{held})"
