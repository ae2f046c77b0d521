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
    """What each session hears and says, step by step; within a step each session's own order counts.

    What the ranks list is told is left out: it is debounced, so its number is not fixed.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._step: dict[str, list[str]] = {}
        self._sessions: list[Session] = []

    def listen(self, session: Session) -> Session:
        """Note what a session hears from now on."""
        self._sessions.append(session)
        session.listeners.append(lambda event, body: self._event(session.name, event, body))
        return session

    def _event(self, name: str, event: str, body: dict[str, Any]) -> None:
        if event not in _LEFT_OUT:
            self._line(name, f"<- {event} {_plain(body)}")

    def _line(self, name: str, text: str) -> None:
        self._step.setdefault(name, []).append(f"{name} {text}")

    def say(self, session: Session, text: str) -> None:
        """Note something else that a session said or was told."""
        self._line(session.name, text)

    async def note(self, text: str) -> None:
        """End a step once everything on the way has been heard; ``text`` says what the test does next."""
        for session in self._sessions:
            await session.request("cancel")
        for name in sorted(self._step):
            self._text += self._step[name]
        self._step.clear()
        self._text.append(f"# {text}")

    async def ask(self, session: Session, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """Send a request and note it with its answer."""
        self._line(session.name, f"-> {command} {_plain(arguments or {})}")
        body = await session.request(command, arguments)
        self._line(session.name, f"== {command} {_plain(body)}")
        return body

    async def check(self, name: str) -> None:
        """Compare with the golden file."""
        await self.note("the end")
        path = _FOLDER / f"{name}.txt"
        text = "\n".join(self._text) + "\n"
        if os.environ.get("RANKSCOPE_UPDATE_GOLDEN"):
            path.write_text(text)
        assert path.exists(), f"no golden transcript {path.name}; it would be\n{text}"
        assert text == path.read_text()


def _plain(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)
