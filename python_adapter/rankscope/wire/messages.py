"""Every message that crosses the link between an agent and the hub.

Declared once, typed, and read by both ends. An unknown field is ignored; an
unknown message makes :func:`decode` return ``None`` and is refused by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
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
class Waits(Message):
    """What this member waits in: one entry a group, send or receive; empty when nothing holds it up any more.

    ``world`` tells its process groups' world from others of the job, ``rank`` is its global rank in it. An entry has
    ``group``, ``desc``, ``ranks`` (a rank set), ``op``, ``seq``, ``sizes``, ``dtypes``, ``peer`` (global rank, -1: any;
    ``None``: a collective), ``tag`` and ``age`` (seconds).
    """

    world: str = ""
    rank: int = -1
    waits: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Diverged(Message):
    """A tensor is not the same on ranks that ought to have it alike; told by the first rank of the group.

    ``about``: ``path``, ``line``, ``name``, ``text``, ``at`` (Unix time), ``ranks`` (deviating, of the teller's world),
    ``places`` (``rank``, ``path``, ``line``), ``details`` with ``tensor`` and ``step``.
    """

    about: dict[str, Any] = field(default_factory=dict)


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
    """The msgpack-ready map of a message. Holds the message's own values, which must not change any more."""
    return {"t": message.kind, **{name: getattr(message, name) for name in _shape(type(message))}}


def decode(raw: dict[str, Any]) -> Message | None:
    """The message in a map; ``None`` when its kind is unknown. Raises ``TypeError`` on a wrong shape."""
    made = _by_kind.get(raw.get("t", ""))
    if made is None:
        return None
    shape = _shape(made)
    values = {name: value for name, value in raw.items() if name in shape}
    for name, value in values.items():
        kinds = shape[name]
        if kinds and not isinstance(value, kinds):
            raise TypeError(f"{made.kind}.{name} is a {type(value).__name__}")
    return made(**values)


_Kinds = tuple[type, ...]
_shapes: dict[type[Message], dict[str, _Kinds]] = {}


def _shape(made: type[Message]) -> dict[str, _Kinds]:
    """Its fields, and what each may be: as its default is; anything where that is ``None``."""
    if made not in _shapes:
        default = made()
        values = {f.name: getattr(default, f.name) for f in fields(made)}
        _shapes[made] = {
            name: () if value is None else (float, int) if isinstance(value, float) else (type(value),)
            for name, value in values.items()
        }
    return _shapes[made]
