"""Golden transcripts: what a client hears and is answered, compared with a file beside the test.

``RANKSCOPE_UPDATE_GOLDEN=1`` writes the files anew; read the diff before committing it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from support.dap_client import Session

_FOLDER = Path(__file__).parent / "golden"
_LEFT_OUT = {"rankscope/ranksChanged"}


class Transcript:
    """Lines in the order in which the sessions hear and say them; ``changes`` are debounced and left out."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def listen(self, session: Session) -> Session:
        """Note what a session hears from now on."""
        session.listeners.append(lambda event, body: self._event(session.name, event, body))
        return session

    def _event(self, name: str, event: str, body: dict[str, Any]) -> None:
        if event not in _LEFT_OUT:
            self.lines.append(f"{name} <- {event} {_plain(body)}")

    def note(self, text: str) -> None:
        """A heading: what the test does next."""
        self.lines.append(f"# {text}")

    async def ask(self, session: Session, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """Send a request and note it with its answer."""
        self.lines.append(f"{session.name} -> {command} {_plain(arguments or {})}")
        body = await session.request(command, arguments)
        self.lines.append(f"{session.name} == {command} {_plain(body)}")
        return body

    def check(self, name: str) -> None:
        """Compare with the golden file."""
        path = _FOLDER / f"{name}.txt"
        text = "\n".join(self.lines) + "\n"
        if os.environ.get("RANKSCOPE_UPDATE_GOLDEN"):
            path.write_text(text)
        assert path.exists(), f"no golden transcript {path.name}; it would be\n{text}"
        assert text == path.read_text()


def _plain(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)
