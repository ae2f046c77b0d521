"""Where the hub is, and an order of messages that outlives a broken connection.

Every message of a link carries a number and the number of the last one received.
What is not acknowledged is kept, and sent again after a reconnect; what has
arrived already is dropped. So a reconnect loses and repeats nothing.
"""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

JOB_FILE_VARIABLE = "RANKSCOPE_JOB_FILE"
JOB_VARIABLE = "RANKSCOPE_JOB"
PARENT_VARIABLE = "RANKSCOPE_PARENT"
HEARTBEAT_SECONDS = 2.0
ACK_EVERY = 32
MAX_UNACKED = 100_000


class LinkBroken(Exception):
    """The link cannot be resumed: numbers are missing, or too much is unacknowledged."""


@dataclass(frozen=True)
class Endpoint:
    """Where a job's hub listens and how the job is run; kept in a 0600 file, never in argv or a log.

    ``release_after`` and ``start_wait`` are seconds. ``faults`` is a folder of the hub's host: see :func:`fault_file`.
    ``sync`` says what of the ranks is compared: see :mod:`rankscope.checks.zero_code`.
    """

    job: str
    host: str
    port: int
    secret: str
    release_after: float = 10.0
    start_wait: float = 20.0
    raise_timeouts: bool = True
    hub_pid: int = 0
    faults: str = ""
    sync: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | bytes) -> Endpoint:
        """From the JSON of a job file. Raises ``ValueError`` when it is not one."""
        raw = json.loads(text)
        if not isinstance(raw, dict):
            raise ValueError("not a job file")
        known = cls.__dataclass_fields__
        try:
            return cls(**{name: value for name, value in raw.items() if name in known})
        except TypeError as e:
            raise ValueError(f"not a job file: {e}") from e

    @classmethod
    def load(cls) -> Endpoint | None:
        """The endpoint this process's environment names; ``None`` when there is none to read."""
        path = os.environ.get(JOB_FILE_VARIABLE)
        if not path:
            return None
        try:
            return cls.parse(Path(path).read_text())
        except (OSError, ValueError):
            return None

    def dump(self) -> str:
        """The JSON that :meth:`parse` reads."""
        return json.dumps(asdict(self))

    def save(self, path: Path) -> None:
        """Write the job file, readable by its owner only."""
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.dump())


def fault_file(folder: str, member: str) -> Path:
    """Where a member's death by a signal is written down."""
    return Path(folder) / f"fault-{member}"


def fault_pointer(path: str, start: int) -> bytes:
    """What stands in that file where the death is written into another one, from byte ``start`` on."""
    return b"elsewhere " + str(start).encode() + b" " + os.fsencode(path) + b"\n"


def pointed_fault(content: bytes) -> tuple[str, int] | None:
    """The last pointer in such a file: path and first byte; ``None`` when there is none."""
    for line in reversed(content.splitlines()):
        words = line.split(b" ", 2)
        if len(words) == 3 and words[0] == b"elsewhere" and words[1].isdigit():
            return os.fsdecode(words[2]), int(words[1])
    return None


class Sequencer:
    """Numbers the messages of one link in both directions. Owns nothing but its buffer."""

    def __init__(self) -> None:
        self.received = 0
        self._sent = 0
        self._unacked: deque[dict[str, Any]] = deque()
        self._since_ack = 0

    def wrap(self, message: dict[str, Any]) -> dict[str, Any]:
        """The numbered frame of a new message; kept until the peer has it."""
        if len(self._unacked) >= MAX_UNACKED:
            raise LinkBroken(f"{MAX_UNACKED} messages are unacknowledged")
        self._sent += 1
        frame = {"n": self._sent, "m": message}
        self._unacked.append(frame)
        self._since_ack = 0
        return {**frame, "a": self.received}

    def heartbeat(self) -> dict[str, Any]:
        """A frame that only acknowledges."""
        self._since_ack = 0
        return {"a": self.received}

    @property
    def owes_ack(self) -> bool:
        """Whether so much has been received in one direction that the peer should hear of it."""
        return self._since_ack >= ACK_EVERY

    def unwrap(self, frame: dict[str, Any]) -> dict[str, Any] | None:
        """The message of a frame; ``None`` for a heartbeat or one seen before. Raises :class:`LinkBroken`."""
        self._acknowledged(frame.get("a", 0))
        number = frame.get("n")
        if number is None or number <= self.received:
            return None
        if number != self.received + 1:
            raise LinkBroken(f"message {number} follows {self.received}")
        self.received = number
        self._since_ack += 1
        message = frame.get("m")
        if not isinstance(message, dict):
            raise LinkBroken("a numbered frame without a message")
        return message

    def resume(self, seen: int) -> list[dict[str, Any]]:
        """After a reconnect: the frames the peer, which has ``seen`` so many, still lacks."""
        self._acknowledged(seen)
        if seen > self._sent or (self._unacked and self._unacked[0]["n"] != seen + 1):
            raise LinkBroken(f"the peer has seen {seen} of {self._sent} messages")
        return [{**frame, "a": self.received} for frame in self._unacked]

    def _acknowledged(self, upto: int) -> None:
        while self._unacked and self._unacked[0]["n"] <= upto:
            self._unacked.popleft()
