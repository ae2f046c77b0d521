"""Where a file of the client is in a member, and back.

The person's own file is what the editor names and shows. A member may run a copy of
it (Ray's working_dir), see it under another prefix, or behind a symlink. Nothing is
configured: the members' agents look for candidates, and what was found is remembered.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.dap.messages import DapError
from rankscope.hub.settings import LaunchSettings

if TYPE_CHECKING:
    from rankscope.hub.member import Member

_RAY_COPY = re.compile(r".*/working_dir_files/[^/]+/(?P<rest>.+)")
_ASK_SECONDS = 3.0


class Paths:
    """The mapping of one job. Remembers per member what its agent has found; :meth:`forget` drops it."""

    def __init__(self, settings: LaunchSettings | None = None) -> None:
        self._mappings = settings.path_mappings if settings else []
        self._bases: list[str] = []
        if settings is not None:
            program = Path(settings.cwd or Path.cwd(), settings.program) if settings.program else Path()
            for folder in (*settings.workspace_folders, settings.cwd, str(program.parent)):
                self.add_base(folder)
        self._found: dict[str, dict[str, list[str]]] = {}
        self._client: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}

    def add_base(self, folder: str) -> None:
        """Files below this folder of the client may be copies' originals."""
        folder = folder.rstrip("/")
        if folder.startswith("/") and folder not in self._bases:
            self._bases.append(folder)

    def forget(self, member: Member) -> None:
        """The member has gone, or its roots have changed."""
        self._found.pop(member.id, None)

    # --- client → member --------------------------------------------------------------------------

    async def in_member(self, member: Member, path: str) -> list[str]:
        """The member's files that are the client's ``path``; the path itself where the agent cannot tell."""
        known = self._found.setdefault(member.id, {})
        if path in known:
            return known[path]
        for mapping in self._mappings:
            if _is_below(path, mapping.local):
                known[path] = [mapping.remote + path[len(mapping.local) :]]
                self._remember(path, known[path][0])
                return known[path]
        found = await self._ask(member, path)
        for place in found:
            self._remember(path, place)
        if found:
            known[path] = found  # what is not there yet may come, so only a find is kept
        return found or [path]

    async def _ask(self, member: Member, path: str) -> list[str]:
        """Ray's copies and the path itself where there is any; else the same place below another root."""
        copies: list[str] = []
        others: list[str] = []
        itself: list[str] = []
        real = os.path.realpath(path)
        for relative in self._relatives(path) or [""]:
            try:
                answer = await member.ask("paths", {"paths": [{"path": path, "rel": relative}]}, timeout=_ASK_SECONDS)
            except (DapError, TimeoutError, asyncio.TimeoutError):
                break
            places = [str(place) for place in (answer.get("found") or {}).get(path, ())]
            itself = itself or [place for place in places if place in (path, real)]
            copies = copies or [place for place in places if _RAY_COPY.match(place) and place not in itself]
            others = others or [place for place in places if place not in itself and place not in copies]
        return [*copies, *itself] or others

    def _relatives(self, path: str) -> list[str]:
        """The path below each base, most specific (longest) first."""
        relatives = {
            place[len(base) + 1 :]
            for folder in self._bases
            for base in (folder, os.path.realpath(folder))
            for place in (path, os.path.realpath(path))
            if _is_below(place, base)
        }
        return sorted(relatives, key=lambda relative: (-len(relative), relative))

    def known_in_members(self, path: str) -> list[str]:
        """Every path under which any member is known to have the client's ``path``."""
        places = [path, os.path.realpath(path)]
        for known in self._found.values():
            places += known.get(path, ())
        return list(dict.fromkeys(places))

    # --- member → client --------------------------------------------------------------------------

    def in_client(self, place: str) -> str:
        """The person's own file for a member's file, spelled as the client spells it."""
        known = self._client.get(place)
        if known is not None:
            return known
        found = self._guess(place)
        if len(self._client) < 100_000:
            self._client[place] = found
        return found

    def _guess(self, place: str) -> str:
        for mapping in self._mappings:
            if _is_below(place, mapping.remote):
                return mapping.local + place[len(mapping.remote) :]
        for prefix in sorted(self._prefixes, key=len, reverse=True):
            if _is_below(place, prefix):
                candidate = self._prefixes[prefix] + place[len(prefix) :]
                if Path(candidate).exists():
                    return candidate
        copy = _RAY_COPY.match(place)
        if copy is not None:
            for base in self._bases:
                for candidate in _candidates(base, copy["rest"]):
                    if Path(candidate).exists():
                        return candidate
            return place
        for base in self._bases:
            real = os.path.realpath(base)
            if real != base and _is_below(place, real):
                return base + place[len(real) :]
        return place

    def _remember(self, path: str, place: str) -> None:
        """``path`` is ``place`` in a member: so are their folders, up to where the names differ."""
        self._client[place] = path
        if place == path:
            return
        ours, _, our_name = path.rpartition("/")
        theirs, _, their_name = place.rpartition("/")
        while our_name == their_name and "/" in ours and "/" in theirs:
            (above, _, our_name), (above_theirs, _, their_name) = ours.rpartition("/"), theirs.rpartition("/")
            if our_name != their_name:
                break
            ours, theirs = above, above_theirs
        if ours != theirs and theirs not in self._prefixes:
            self._prefixes[theirs] = ours
            self._client = {known: client for known, client in self._client.items() if not _is_below(known, theirs)}
            self._client[place] = path


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def _candidates(base: str, rest: str) -> list[str]:
    """``rest`` below the base, and for a base that is itself a sub-folder of what was copied, without that folder."""
    parts = rest.split("/")
    below = ["/".join(parts[at:]) for at in range(1, len(parts)) if base.endswith("/" + "/".join(parts[:at]))]
    return [f"{base}/{place}" for place in (rest, *below)]
