"""What comes from a file, of which nothing is known, made safe to look into."""

from __future__ import annotations

from typing import Any

_MAX_CHAIN = 20
_MAX_TIME = 32_503_680_000  # of the year 3000
_TEXTS_OF_MEMBER = ("id", "label", "role", "group", "host", "ending")
_NUMBERS_OF_MEMBER = ("number", "rank", "localRank", "worldSize", "node", "incarnation", "pid", "episode")
_TEXTS_OF_FINDING = ("kind", "severity", "member", "label", "path", "name", "type", "message", "text", "how")


def repaired_about(about: dict[str, Any]) -> dict[str, Any]:
    """Whose dump it is: every field that a reader relies on is there and of its type, or ``None`` for a number."""
    found: dict[str, Any] = {name: _text(about.get(name)) for name in _TEXTS_OF_MEMBER}
    found |= {name: number if _is_int(number := about.get(name)) else None for name in _NUMBERS_OF_MEMBER}
    return {**about, **found, "failed": about.get("failed") is True, "at": _time(about.get("at"))}


def repaired_finding(finding: dict[str, Any]) -> dict[str, Any]:
    """The same of a finding."""
    found: dict[str, Any] = {name: _text(finding.get(name)) for name in _TEXTS_OF_FINDING}
    found |= {name: number if _is_int(number := finding.get(name)) else 0 for name in ("line", "episode")}
    found |= {name: finding.get(name) is True for name in ("isFirst", "isEcho")}
    details = _dict(finding.get("details"))
    found["details"] = {**details, "text": _text(details.get("text"))}
    return {**finding, **found, "at": _time(finding.get("at"))}


def repaired(dump: dict[str, Any]) -> dict[str, Any]:
    """A dump from a file, of which nothing is known: every number in it points at something, the rest is left out."""
    nodes = [node if isinstance(node, dict) else {} for node in _list(dump.get("nodes"))]
    for node in nodes:
        node["text"], node["type"] = str(node.get("text", "")), str(node.get("type", ""))
        kids = [kid for kid in _list(node.get("kids")) if isinstance(kid, list) and len(kid) == 2]
        node["kids"] = [[str(name), number] for name, number in kids if _points(number, nodes)]
        facts = node.get("facts")
        node["facts"] = {str(k): str(v) for k, v in facts.items()} if isinstance(facts, dict) else {}
        node["more"] = node["more"] if isinstance(node.get("more"), int) else 0
    frames = [frame if isinstance(frame, dict) else {} for frame in _list(dump.get("frames"))]
    for frame in frames:
        frame["name"], frame["path"] = str(frame.get("name", "?")), str(frame.get("path", ""))
        frame["line"] = frame["line"] if isinstance(frame.get("line"), int) else 0
        if not _points(frame.get("locals"), nodes):
            frame.pop("locals", None)
    threads = [thread if isinstance(thread, dict) else {} for thread in _list(dump.get("threads"))]
    for thread in threads:
        thread["name"], thread["ident"] = str(thread.get("name", "?")), thread.get("ident", 0)
        thread["isMain"], thread["isFailing"] = bool(thread.get("isMain")), bool(thread.get("isFailing"))
        thread["frames"] = [number for number in _list(thread.get("frames")) if _points(number, frames)]
    return {
        **dump,
        "python": _text(dump.get("python")),
        "argv": [_text(word) for word in _list(dump.get("argv"))],
        "env": {_text(name): _text(text) for name, text in _dict(dump.get("env")).items()},
        "cut": {_text(why): count for why, count in _dict(dump.get("cut")).items() if _is_int(count)},
        "nodes": nodes,
        "frames": frames,
        "threads": threads,
        "sources": _repaired_sources(dump.get("sources")),
        "exception": _repaired_exception(dump.get("exception"), frames, 0),
    }


def _repaired_sources(sources: Any) -> dict[str, dict[str, str]]:
    if not isinstance(sources, dict):
        return {}
    return {
        str(path): {str(name): str(text) for name, text in kept.items()}
        for path, kept in sources.items()
        if isinstance(kept, dict) and "sha256" in kept
    }


def _repaired_exception(error: Any, frames: list[Any], depth: int) -> dict[str, Any] | None:
    if not isinstance(error, dict) or depth > _MAX_CHAIN:
        return None
    found: dict[str, Any] = {
        "type": str(error.get("type", "?")),
        "message": str(error.get("message", "")),
        "frames": [number for number in _list(error.get("frames")) if _points(number, frames)],
        "notes": [str(note) for note in _list(error.get("notes"))],
    }
    inner = {key: _repaired_exception(error.get(key), frames, depth + 1) for key in ("cause", "context")}
    found |= {key: other for key, other in inner.items() if other is not None}
    members = [_repaired_exception(member, frames, depth + 1) for member in _list(error.get("members"))]
    return {**found, "members": [member for member in members if member is not None]}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _time(value: Any) -> float:
    """A Unix time that a calendar has."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value < _MAX_TIME else 0.0


def _points(number: Any, things: list[Any]) -> bool:
    return _is_int(number) and 0 <= number < len(things)
