"""Every message that crosses the link between an agent and the hub.

Declared once, typed, and read by both ends. An unknown field is ignored; an
unknown message makes :func:`decode` return ``None`` and is refused by the caller.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

VERSION = 1

_by_kind: dict[str, type[Message]] = {}


@dataclass(slots=True)
class Message:
    """Base of all messages; ``kind``, the class's name, is the name on the wire."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__
        _by_kind[cls.kind] = cls


# --- agent -> hub ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Hello(Message):
    """The first message of a member. ``member`` is unique for the process; ``facts`` is RankFacts."""

    member: str = ""
    job: str = ""
    pid: int = 0
    ppid: int = 0
    host: str = ""
    python: str = ""
    name: str = ""
    parent: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    cwd: str = ""
    roots: list[str] = field(default_factory=list)
    ray: dict[str, Any] = field(default_factory=dict)
    waits: bool = False


@dataclass(slots=True)
class Identity(Message):
    """The member's facts became better known (provisional → final, idle → rank).

    With a non-zero ``ask`` the member waits for the :class:`Settled` that answers it.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    roots: list[str] = field(default_factory=list)
    ray: dict[str, Any] = field(default_factory=dict)
    ask: int = 0


@dataclass(slots=True)
class Created(Message):
    """This member has asked Ray for an actor of the class ``label``; the order of creation is a provisional rank."""

    actor: str = ""
    label: str = ""


@dataclass(slots=True)
class Dismissed(Message):
    """This member ends a Ray actor on purpose, or (``actor`` is empty) leaves its cluster, whose workers end then."""

    actor: str = ""


@dataclass(slots=True)
class Armed(Message):
    """debugpy is connected to the agent, or ``error`` says why not. It proves itself by ``token``."""

    token: str = ""
    error: str = ""


@dataclass(slots=True)
class Disarmed(Message):
    """The debugger connection is closed and tracing is off. ``reason`` is empty when asked for."""

    reason: str = ""


@dataclass(slots=True)
class Reply(Message):
    """Answer to :class:`Ask` number ``ask``."""

    ask: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(slots=True)
class Notice(Message):
    """Something a person should read. ``level`` is ``info``, ``warning`` or ``error``."""

    level: str = "info"
    text: str = ""


@dataclass(slots=True)
class ArmMe(Message):
    """The member itself wants the debugger (``breakpoint()``, a child whose file has a breakpoint)."""

    why: str = ""
    ask: int = 0


@dataclass(slots=True)
class Failed(Message):
    """An exception has ended some work of this member ``age`` seconds ago; it waits for a :class:`Verdict`.

    ``about``: ``type``, ``message``, ``text``, ``path``, ``line``, ``name``, ``how``, ``isEcho``, ``wantsPause``.
    """

    ask: int = 0
    age: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class FailedDump(Message):
    """What is kept of the failure ``ask``: see :mod:`rankscope.postmortem.dump`."""

    ask: int = 0
    dump: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Leaving(Message):
    """The process is about to end by itself; ``why`` is the exception that nothing caught, or empty."""

    why: str = ""


# --- hub -> agent ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Welcome(Message):
    """Answer to :class:`Hello`: how this job is run.

    ``will_arm``: an :class:`Arm` follows, so a member that waits goes on waiting.
    ``files``: member paths that have breakpoints (a dormant child watches for them).
    ``keeps_failures``: a failure is dumped for the record.
    ``prepares``: an idle worker loads its debugger now, since what it becomes may need it.
    """

    will_arm: bool = False
    prepares: bool = False
    keeps_failures: bool = True
    raise_timeouts: bool = True
    rank: int | None = None
    node: int | None = None
    files: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Settled(Message):
    """Answer to the :class:`Identity` or :class:`ArmMe` of number ``answers``; 0: only news of the files watched."""

    answers: int = 0
    will_arm: bool = False
    rank: int | None = None
    files: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Arm(Message):
    """Connect debugpy and relay it."""


@dataclass(slots=True)
class Ready(Message):
    """The debugger is configured (breakpoints are set): a waiting start goes on."""


@dataclass(slots=True)
class Disarm(Message):
    """Drop the debugger and its tracing."""


@dataclass(slots=True)
class Ask(Message):
    """A question the agent's thread answers: ``stacks``, ``top``, ``paths``, ``timeouts``, ``compiled``, ``dump``."""

    ask: int = 0
    what: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Verdict(Message):
    """Answer to :class:`Failed`: the others are kept; with ``will_hold`` the failing thread stops in the debugger."""

    ask: int = 0
    will_hold: bool = False


@dataclass(slots=True)
class End(Message):
    """The job is being ended: leave, politely first, after ``grace`` seconds at once."""

    grace: float = 3.0


# --- both ways ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Dap(Message):
    """One DAP message between debugpy and the hub, as its JSON bytes."""

    data: bytes = b""


def encode(message: Message) -> dict[str, Any]:
    """The msgpack-ready map of a message."""
    return {"t": message.kind, **asdict(message)}


def decode(raw: dict[str, Any]) -> Message | None:
    """The message in a map; ``None`` when its kind is unknown. Raises ``TypeError`` on a wrong shape."""
    made = _by_kind.get(raw.get("t", ""))
    if made is None:
        return None
    known = {f.name for f in fields(made)}
    values = {name: value for name, value in raw.items() if name in known}
    message = made(**values)
    for f in fields(made):
        default = getattr(_defaults(made), f.name)
        value = getattr(message, f.name)
        if default is not None and not isinstance(value, (float, int) if isinstance(default, float) else type(default)):
            raise TypeError(f"{made.kind}.{f.name} is a {type(value).__name__}")
    return message


_default_of: dict[type[Message], Message] = {}


def _defaults(made: type[Message]) -> Message:
    if made not in _default_of:
        _default_of[made] = made()
    return _default_of[made]
