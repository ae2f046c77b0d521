"""A process that is no more, as a member of a hub's fleet: its debugger's answers come from its dump.

To a front it is a member that is stopped for good: stacks, scopes, variables and
expressions work as in a live one, whatever needs a running process says that there is none.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rankscope.dap.messages import DapError
from rankscope.ranks import RankFacts

Dump = dict[str, Any]

_MAX_STACK_TEXT = 20_000


class KeptMember:
    """One dump as a member. ``about`` is what the hub knew of it (``rankscope/ranks``), ``load`` reads the dump."""

    is_armed = True
    is_greyed = False
    is_live = True
    is_local = False
    is_dismissed = False
    is_ray_worker = False
    lost_at = None
    spoke_at = looked_at = float("inf")

    def __init__(self, number: int, about: dict[str, Any], load: Callable[[], Dump]) -> None:
        self.id = str(about.get("id") or f"kept-{number}")
        self.number = number
        self.label = str(about.get("label") or f"process {number}")
        self.facts = RankFacts(
            role=str(about.get("role") or "rank"),
            group=str(about.get("group") or ""),
            rank=_number(about.get("rank")),
            world_size=_number(about.get("worldSize")),
            local_rank=_number(about.get("localRank")),
            node=_number(about.get("node")),
            is_final=True,
        )
        self.incarnation = _number(about.get("incarnation")) or 0
        self.hello = SimpleNamespace(
            member=self.id, host=str(about.get("host") or ""), pid=_number(about.get("pid")) or 0,
            name=self.label, cwd="", roots=[], ray={}, parent="", python="",
        )  # fmt: skip
        self.ending = str(about.get("ending") or "")
        self.state = "crashed" if about.get("failed") else "paused"
        self.stopped: dict[int, dict[str, Any]] = {}
        self.in_client: Callable[[str], str] = str
        self._load = load
        self._dump: Dump | None = None
        # the one that failed has the focus, whoever is shown first
        first: dict[str, Any] = {"threadId": 1, "allThreadsStopped": True, "preserveFocusHint": not about.get("failed")}
        if about.get("failed"):
            first |= {"reason": "exception", "description": "Failed here", "text": self.ending}
        else:
            first |= {"reason": "pause", "description": "At that moment"}
        self.stopped[1] = first

    @property
    def dump(self) -> Dump:
        """The dump, read when it is first looked into."""
        if self._dump is None:
            self._dump = self._load()
        return self._dump

    # --- what a member does -----------------------------------------------------------------------

    def send(self, message: Any) -> None:
        """Nobody is there to be told."""
        del message

    def heartbeat(self) -> None:
        """Nobody is there to be told."""

    async def arm(self, why: str) -> None:
        """It is as armed as it will ever be."""
        del why

    async def disarm(self) -> None:
        """There is nothing to be let go."""

    async def ask(self, what: str, arguments: dict[str, Any], *, timeout: float = 3.0) -> dict[str, Any]:
        """The agent's answers that a dump can give."""
        del arguments, timeout
        if what == "stacks":
            return {"threads": [self._agent_thread(thread) for thread in self.dump["threads"]], "left_out": 0}
        raise DapError(f"{self.label} is a record: nothing runs that could answer.", "of-record")

    async def debug(
        self, command: str, arguments: dict[str, Any] | None = None, *, timeout: float = 10.0
    ) -> dict[str, Any]:
        """debugpy's answers that a dump can give; the others raise :class:`DapError` ``of-record``."""
        del timeout
        answer = getattr(self, f"_on_{command}", None)
        if answer is None:
            raise DapError(f"'{command}' needs a process that runs; {self.label} is a record of one.", "of-record")
        if self._dump is None:
            await asyncio.to_thread(lambda: self.dump)
        body: dict[str, Any] = answer(arguments or {})
        return body

    # --- threads and stacks -----------------------------------------------------------------------

    def _on_threads(self, _: dict[str, Any]) -> dict[str, Any]:
        threads = [{"id": at, "name": thread["name"]} for at, thread in enumerate(self.dump["threads"], 1)]
        return {"threads": threads or [{"id": 1, "name": "MainThread"}]}

    def _on_stackTrace(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - DAP's name
        numbers = self._thread(arguments)["frames"]
        start, levels = int(arguments.get("startFrame") or 0), int(arguments.get("levels") or 0)
        chosen = numbers[start : start + levels] if levels else numbers[start:]
        return {"stackFrames": [self._frame(number) for number in chosen], "totalFrames": len(numbers)}

    def _thread(self, arguments: dict[str, Any]) -> dict[str, Any]:
        threads = self.dump["threads"]
        at = int(arguments.get("threadId") or 1)
        if not 1 <= at <= len(threads):
            return {"name": "MainThread", "frames": []}
        thread: dict[str, Any] = threads[at - 1]
        return thread

    def _frame(self, number: int) -> dict[str, Any]:
        kept = self.dump["frames"][number]
        frame = {"id": number, "name": kept["name"], "line": kept["line"], "column": 1, "source": self._source(kept)}
        if not kept.get("isUser"):
            frame["presentationHint"] = "subtle"
        return frame

    def _source(self, kept: dict[str, Any]) -> dict[str, Any]:
        """The person's file where it is what it was; else the text that was kept."""
        path = str(kept["path"])
        source: dict[str, Any] = {"name": Path(path).name, "path": path}
        stored = self.dump["sources"].get(path)
        if stored is None or "text" not in stored:
            return source
        try:
            now = hashlib.sha256(Path(self.in_client(path)).read_bytes()).hexdigest()
        except OSError:
            now = ""
        if now != stored["sha256"]:
            source["sourceReference"] = 1 + sorted(self.dump["sources"]).index(path)
            source["origin"] = "as it was in the run: the file has changed since" if now else "kept with the run"
        return source

    def _on_source(self, arguments: dict[str, Any]) -> dict[str, Any]:
        paths = sorted(self.dump["sources"])
        at = int(arguments.get("sourceReference") or 0)
        if not 1 <= at <= len(paths):
            raise DapError("The run kept no such source.", "of-record")
        return {"content": self.dump["sources"][paths[at - 1]].get("text", ""), "mimeType": "text/x-python"}

    def _agent_thread(self, thread: dict[str, Any]) -> dict[str, Any]:
        frames = [self.dump["frames"][number] for number in thread["frames"]]
        return {
            "thread": thread["name"],
            "ident": thread["ident"],
            "is_main": thread["isMain"],
            "frames": [{key: frame[key] for key in ("name", "path", "line")} for frame in frames],
        }

    # --- variables --------------------------------------------------------------------------------

    def _on_scopes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        scope = self._scope(arguments)
        if scope is None:
            return {"scopes": []}
        reference = int(scope) + 1
        return {"scopes": [{"name": "Locals", "variablesReference": reference, "expensive": False}]}

    def _scope(self, arguments: dict[str, Any]) -> int | None:
        """The node of a frame's variables; ``None`` where none were kept."""
        frames, at = self.dump["frames"], int(arguments.get("frameId") or 0)
        return frames[at].get("locals") if 0 <= at < len(frames) else None

    def _on_variables(self, arguments: dict[str, Any]) -> dict[str, Any]:
        node = self.dump["nodes"][int(arguments["variablesReference"]) - 1]
        variables = [self._variable(name, number) for name, number in node.get("kids", ())]
        variables += [_fact(name, text) for name, text in node.get("facts", {}).items()]
        if node.get("more"):
            variables.append(_fact("…", f"{node['more']:,} more, left out"))
        return {"variables": variables}

    def _variable(self, name: str, number: int) -> dict[str, Any]:
        node = self.dump["nodes"][number]
        has_parts = bool(node.get("kids") or node.get("facts") or node.get("more"))
        return {
            "name": name,
            "value": node.get("text", ""),
            "type": node.get("type", ""),
            "variablesReference": number + 1 if has_parts else 0,
            "presentationHint": {"attributes": ["readOnly"]},
        }

    def _on_evaluate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Names, attributes and indexes of what was kept."""
        expression = str(arguments.get("expression", "")).strip()
        scope = self._scope(arguments)
        number = self._find(_steps(expression), scope, expression)
        shown = self._variable(expression, number)
        return {"result": shown["value"], **{key: shown[key] for key in ("type", "variablesReference")}}

    def _find(self, steps: list[str], scope: int | None, expression: str) -> int:
        at = scope
        for step in steps:
            kids = dict(self.dump["nodes"][at].get("kids", ())) if at is not None else {}
            at = kids.get(step)
            if at is None:
                raise DapError(f"'{step.strip('[]')}' of '{expression}' was not kept.", "of-record")
        if at is None:
            raise DapError(f"'{expression}' was not kept.", "of-record")
        return int(at)

    def _on_completions(self, arguments: dict[str, Any]) -> dict[str, Any]:
        scope = self._scope(arguments)
        names = [name for name, _ in self.dump["nodes"][scope].get("kids", ())] if scope is not None else []
        return {"targets": [{"label": name, "type": "variable"} for name in names]}

    # --- the exception ----------------------------------------------------------------------------

    def _on_exceptionInfo(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - DAP's name
        error = self.dump.get("exception")
        if not error:
            raise DapError(f"{self.label} did not fail: this is where it was when another did.", "of-record")
        return {
            "exceptionId": error["type"],
            "description": error["message"],
            "breakMode": "unhandled",
            "details": self._details(error),
        }

    def _traceback_entry(self, frame: dict[str, Any]) -> str:
        lines = self.dump["sources"].get(frame["path"], {}).get("text", "").splitlines()
        source = f"    {lines[frame['line'] - 1].strip()}\n" if 0 < frame["line"] <= len(lines) else ""
        return f'  File "{frame["path"]}", line {frame["line"]}, in {frame["name"]}\n{source}'

    def _details(self, error: dict[str, Any]) -> dict[str, Any]:
        notes = "".join(f"\n{note}" for note in error.get("notes", ()))
        inner = [error[key] for key in ("cause", "context") if key in error][:1] + list(error.get("members", ()))
        frames = [self.dump["frames"][number] for number in error["frames"]]
        stack = "".join(map(self._traceback_entry, frames))
        return {
            "message": error["message"] + notes,
            "typeName": error["type"].rpartition(".")[2],
            "fullTypeName": error["type"],
            "stackTrace": stack[-_MAX_STACK_TEXT:],
            "innerException": [self._details(other) for other in inner],
        }


def _steps(expression: str) -> list[str]:
    """``a.b[0]['k']`` → ``a``, ``b``, ``[0]``, ``['k']``. Raises :class:`DapError` for anything else."""
    try:
        node: ast.expr = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as e:
        raise DapError(f"'{expression}' is no expression.", "of-record") from e
    steps: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            try:
                steps.append(f"[{ast.literal_eval(node.slice)!r}]")
            except ValueError as e:
                raise _only_kept() from e
            node = node.value
        else:
            raise _only_kept()
    return [node.id, *reversed(steps)]


def _only_kept() -> DapError:
    return DapError("A record knows names, attributes and indexes of kept values, no calls or operators.", "of-record")


def _fact(name: str, text: str) -> dict[str, Any]:
    hint = {"kind": "virtual", "attributes": ["readOnly"]}
    return {"name": name, "value": text, "variablesReference": 0, "presentationHint": hint}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
