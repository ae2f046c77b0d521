"""The hub of one job: editors on one side, agents on the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import secrets
import shutil
import socket
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import rankscope
from rankscope import record
from rankscope.dap.channel import Channel
from rankscope.dap.front import Front
from rankscope.errors import UserError
from rankscope.hub import compiled, divergences
from rankscope.hub.agents import AgentPort
from rankscope.hub.breakpoints import Table, Wanted
from rankscope.hub.fleet import Fleet
from rankscope.hub.job import Job
from rankscope.hub.kept_member import KeptMember
from rankscope.hub.pause_limits import PauseLimits
from rankscope.launch.command import job_argv
from rankscope.postmortem import kept_run, listing
from rankscope.wire.link import Endpoint

if TYPE_CHECKING:
    from rankscope.hub.member import Member
    from rankscope.hub.settings import LaunchSettings

_IDLE_SECONDS = 30.0
_FAILED_JOINS_SECONDS = 0.25


class Hub:
    """Owns the agent port, the fleet, the job and the fronts; :meth:`serve` runs until all are done."""

    def __init__(self, editor: str) -> None:
        self.editor = editor
        self.token = ""
        self.folder = Path(tempfile.mkdtemp(prefix="rankscope-"))
        self._agent_socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.endpoint = Endpoint(
            job=uuid.uuid4().hex[:12],
            host="127.0.0.1",
            port=self._agent_socket.getsockname()[1],
            secret=secrets.token_hex(32),
            hub_pid=os.getpid(),
            faults=str(self.folder),
        )
        self.job_file = self.folder / "job.json"
        self.endpoint.save(self.job_file)
        self.wanted = Wanted()
        self.fleet = Fleet(self.endpoint, self.wanted)
        self.wanted.fleet = self.fleet
        self.fleet.findings.listeners.append(self._finding)
        self.limits = PauseLimits(self.fleet, self._limits_changed)
        self.job = Job(self.endpoint.job, self.job_file, self.fleet, self._job_ended)
        self.settings: LaunchSettings | None = None
        self._roots: list[tuple[Front, Table]] = []
        self.fronts: list[Front] = []
        self._agents = AgentPort(self.fleet, self.endpoint)
        self._done = asyncio.Event()
        self._had_front = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed_joins: set[str] = set()
        self._record: Path | None = None
        self._about: dict[str, Any] = {}
        self._is_restarting = False

    # --- life -------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Serve until the last front has gone and the job has ended, then leave nothing behind."""
        await self._agents.open(self._agent_socket)
        watch = asyncio.gather(self.fleet.watch(), compiled.watch(self.wanted), self._watch_failed_joins())
        try:
            await self._done.wait()
        finally:
            await self.job.end()
            self.job.close()
            await self.fleet.release_all()
            await asyncio.gather(*(front.channel.close() for front in list(self.fronts)), return_exceptions=True)
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            self.limits.close()
            self.fleet.close()
            await self._agents.close()
            self._end_record()
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _watch_failed_joins(self) -> None:
        """Say which Pythons of the job could not load the agent (they note it beside the job file)."""
        while True:
            await asyncio.sleep(_FAILED_JOINS_SECONDS)
            self._say_failed_joins()

    def _say_failed_joins(self) -> None:
        with contextlib.suppress(OSError):
            for line in dict.fromkeys((self.folder / "could-not-join").read_text(errors="replace").splitlines()):
                if line not in self._failed_joins:
                    self._failed_joins.add(line)
                    self.fleet.notice("error", f"a process could not join and runs without breakpoints: {line}")

    def give_up_without_front(self) -> None:
        """Nobody came: end rather than wait for ever."""
        asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._leave_if_alone)

    def _leave_if_alone(self) -> None:
        if not self._had_front:
            self._done.set()

    def stop(self) -> None:
        """End the hub (a signal was sent to it)."""
        self._done.set()

    # --- fronts -----------------------------------------------------------------------------------

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One DAP connection; returns when it has closed."""
        self._had_front = True
        front = Front(Channel(reader, writer), self, self.token)
        self.fronts.append(front)
        try:
            await front.serve()
        except asyncio.CancelledError:
            pass  # the hub ends

    @property
    def root(self) -> Front | None:
        """The front whose breakpoints are the job's."""
        return self._roots[-1][0] if self._roots else None

    def become_root(self, front: Front) -> None:
        """Let a front be the root; the one before it steps back until this one has gone."""
        before = self.root
        self._roots.append((front, self.wanted.take_table()))
        if before is not None:
            before.present_all()

    def front_closed(self, front: Front) -> None:
        """A DAP connection has gone. Without any root the job is ended if launched, left alone if not."""
        with contextlib.suppress(ValueError):
            self.fronts.remove(front)
        was_root = front is self.root
        for at, (root, table) in enumerate(self._roots):
            if root is front:
                del self._roots[at]
                if was_root and self._roots:
                    self.wanted.give_table(table)
                break
        if not self._roots or not self.fronts:
            self._done.set()

    def _finding(self, finding: dict[str, Any]) -> None:
        if self.root is not None:
            self.root.finding(finding)

    def _limits_changed(self) -> None:
        if self.root is not None:
            self.root.ranks_changed()

    async def open_record(self, place: str, base: Path) -> None:
        """Present a run that is over as it was when it failed. Raises :class:`UserError`."""
        folder = listing.find(place if place != "newest" else "", base, with_dumps=True)
        run = await asyncio.to_thread(kept_run.open_run, folder)
        for problem in run.problems:
            self.fleet.notice("warning", problem)
        if not run.kept:
            raise UserError("no-failure", f"'{folder}' keeps no failure.", "Only runs in which something failed do.")
        for number, kept in enumerate(run.kept):
            member = KeptMember(number, kept.about, kept.load)
            member.in_client = self.wanted.paths.in_client
            self.fleet.adopt(cast("Member", member))

    # --- the job ----------------------------------------------------------------------------------

    async def launch(self, settings: LaunchSettings, front: Front) -> None:
        """Start the job. Raises :class:`UserError`."""
        self.settings = settings
        self.apply(settings)
        self._begin_record(settings)
        await self.job.launch(settings, front)

    def apply(self, settings: LaunchSettings) -> None:
        """Let the launch arguments hold for members that join from now on."""
        changes = {
            "release_after": settings.release_after,
            "start_wait": settings.start_wait,
            "raise_timeouts": settings.raise_timeouts,
            "sync": divergences.for_job(settings.sync_check, _base(settings)),
        }
        self.endpoint = Endpoint(**{**self.endpoint.__dict__, **changes})
        self.fleet.endpoint = self.endpoint
        self.wanted.apply(settings)
        self.fleet.ranks = settings.ranks
        self.fleet.crashes.policy = settings.post_mortem
        self.fleet.crashes.limit = settings.post_mortem_timeout
        self.fleet.hangs.after = settings.hang_after
        self.job_file.unlink(missing_ok=True)
        self.endpoint.save(self.job_file)

    async def end_job(self, why: str = "") -> None:
        """End the job: politely once, then by force, within 5 s; ``why`` is told to the person. Idempotent."""
        if why and self.job.is_running:
            self.fleet.notice("info", why)
        await self.job.end()

    async def restart(self) -> None:
        """End the job and launch it again in the same sessions."""
        if self.settings is None or not self._roots:
            return
        self._is_restarting = True
        try:
            await self.job.end()
        finally:
            self._is_restarting = False
        self.fleet.forget_run()
        self.apply(self.settings)  # what the last run found is known now
        launcher, _ = self._roots[0]
        await self.job.launch(self.settings, launcher)

    def _begin_record(self, settings: LaunchSettings) -> None:
        self._about = {
            "job": self.endpoint.job,
            "name": settings.name,
            "command": job_argv(settings),
            "cwd": settings.cwd,
            "pathMappings": [[mapping.local, mapping.remote] for mapping in settings.path_mappings],
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "rankscope": rankscope.__version__,
            "python": platform.python_version(),
            "hub": {"pid": os.getpid(), "editor": self.editor, "host": socket.gethostname()},
        }
        try:
            self._record = record.begin(_base(settings), settings.name, self._about)
            self.fleet.findings.begin(self._record)
            self.fleet.crashes.begin(self._record, settings.record_max_mb << 20)
        except OSError as e:
            self.fleet.notice("info", f"no record is kept of this run: {e}")

    def _end_record(self) -> None:
        if self._record is not None:
            about = {**self._about, "exitCode": self.job.exit_code, "hub": None}
            with contextlib.suppress(OSError):
                record.write(self._record, about)

    def _job_ended(self, code: int) -> None:
        self._say_failed_joins()
        if self._is_restarting:
            return
        for front in [front for front in self.fronts if front is not self.root]:
            front.job_ended(code)
        if self.root is not None:
            self.root.job_ended(code)


def _base(settings: LaunchSettings) -> Path:
    """The folder below which the record is kept."""
    return Path(settings.workspace_folders[0] if settings.workspace_folders else settings.cwd or Path.cwd())
