"""Breakpoint requests: the root's change the wanted table, a child's are answered from it."""

from __future__ import annotations

import json
from typing import Any

from rankscope.dap.front_base import FrontBase, ShownBreakpoint
from rankscope.hub.entries import EXCEPTION, FUNCTION, LINE

_FIELDS = ("line", "column", "condition", "hitCondition", "logMessage", "mode", "name", "filterId")


class BreakpointRequests(FrontBase):
    """The client's view of the wanted table, kept up to date by ``breakpoint`` events."""

    async def do_set_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the breakpoints of a file."""
        path = str((arguments.get("source") or {}).get("path") or "")
        asked = arguments.get("breakpoints")
        requests = [{"line": line} for line in arguments.get("lines") or []] if asked is None else asked
        requests = [_fields(request) for request in requests]
        if not path:
            return {"breakpoints": [{"verified": False, "message": "this source is no file"} for _ in requests]}
        shown = self._show(LINE, path, [(path, request) for request in requests])
        if self.is_root:
            await self.hub.wanted.set_lines(path, requests)
        return self._answer(shown)

    async def do_set_function_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace all function breakpoints."""
        requests = [_fields(request) for request in arguments.get("breakpoints") or []]
        shown = self._show(FUNCTION, "", [(str(request.get("name", "")).strip(), request) for request in requests])
        if self.is_root:
            await self.hub.wanted.set_functions(requests)
        return self._answer(shown)

    async def do_set_exception_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the exception filters."""
        filters = [str(name) for name in arguments.get("filters") or []]
        options = [_fields(option) for option in arguments.get("filterOptions") or []]
        requests = [{"filterId": name} for name in filters] + options
        shown = self._show(EXCEPTION, "", [(str(request.get("filterId", "")), request) for request in requests])
        if self.is_root:
            await self.hub.wanted.set_exceptions(filters, options)
        return self._answer(shown)

    def _show(self, kind: str, path: str, asked: list[tuple[str, dict[str, Any]]]) -> list[ShownBreakpoint]:
        """What the client has from now on; the last request counts, whichever is answered last."""
        shown = []
        for where, request in asked:
            key = json.dumps([kind, where, request], sort_keys=True)
            shown.append(ShownBreakpoint(self.ids.breakpoints.give(key, 0), kind, where, request))
        self.breakpoints[kind, path] = shown
        return shown

    def _answer(self, shown: list[ShownBreakpoint]) -> dict[str, Any]:
        for one in shown:
            one.told = self._status(one)
        return {"breakpoints": [one.told for one in shown]}

    def _status(self, one: ShownBreakpoint) -> dict[str, Any]:
        wanted = self.hub.wanted
        entry = wanted.find(one.kind, one.where, one.request)
        if entry is not None:
            return {"id": one.id, **wanted.standing.status(entry)}
        line = {"line": one.request["line"]} if "line" in one.request else {}
        return {"id": one.id, "verified": False, **line, "message": "the job's root session has no such breakpoint yet"}

    def breakpoints_changed(self) -> None:
        """Tell the client what it has not been told yet."""
        for shown in list(self.breakpoints.values()):
            for one in shown:
                now = self._status(one)
                if one.told and now != one.told:
                    one.told = now
                    self.channel.send_event("breakpoint", {"reason": "changed", "breakpoint": now})

    def ids_of_entries(self, entries: set[int]) -> list[int]:
        """This client's ids of table entries."""
        return [
            one.id
            for shown in self.breakpoints.values()
            for one in shown
            if (entry := self.hub.wanted.find(one.kind, one.where, one.request)) is not None and entry.id in entries
        ]


def _fields(request: dict[str, Any]) -> dict[str, Any]:
    """What counts of a request; an empty text is no field."""
    return {name: request[name] for name in _FIELDS if request.get(name) not in (None, "")}
