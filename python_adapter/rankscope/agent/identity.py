"""Which rank this process is: from its environment, its actor, its spawn index or ``init_process_group``."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from rankscope.agent import ending, imports
from rankscope.ranks import DRIVER, RankFacts
from rankscope.wire.link import PARENT_VARIABLE

TASKS = "tasks"

# (rank, world size, local rank) as the launchers write them. Slurm's and PMI's numbers are left out: they
# count the tasks of a step, which are often one torchrun per node.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)
# verl names its actors {prefix}{Class}_{node}:{local rank}.
_VERL_ACTOR = re.compile(r"_\d+:(\d+)$")


@dataclass(frozen=True)
class Parent:
    """The member that started this process."""

    member: str
    facts: RankFacts


def read_parent(environ: Mapping[str, str]) -> Parent | None:
    """The parent named in the environment; ``None`` when there is none to read."""
    try:
        raw = json.loads(environ[PARENT_VARIABLE])
        return Parent(str(raw["member"]), RankFacts(**raw["facts"]))
    except (KeyError, TypeError, ValueError):
        return None


member = ""


def publish(facts: RankFacts) -> None:
    """Tell processes started from now on who their parent is: this member."""
    os.environ[PARENT_VARIABLE] = json.dumps({"member": member, "facts": asdict(facts)})


def of_process(environ: Mapping[str, str], parent: Parent | None) -> RankFacts:
    """The facts of a process that is no Ray worker."""
    rank, world_size, local_rank = _from_launcher(environ)
    if parent is None:
        if rank is None:
            return RankFacts(role=DRIVER)
    elif rank is None or not _is_new_rank(rank, environ, parent.facts):
        return parent.facts.with_changes(role="child")
    return RankFacts(
        role="rank",
        group=_group(environ),
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        is_final=True,
    )


def of_actor(environ: Mapping[str, str], class_name: str, actor_name: str) -> RankFacts:
    """The facts of a Ray actor's process: its rank from verl's or the user's environment, else still open."""
    if class_name == "TaskRunner":
        return RankFacts(role=DRIVER)  # verl's own driver
    rank = _number(environ.get("RANK"))
    local_rank = _number(environ.get("LOCAL_RANK"))
    place = _VERL_ACTOR.search(actor_name)
    if place and "WG_PREFIX" in environ:
        local_rank = int(place.group(1))  # LOCAL_RANK is 0 in every verl worker
    return RankFacts(
        role="rank",
        group=environ.get("WG_PREFIX") or class_name,
        rank=rank,
        world_size=_number(environ.get("WORLD_SIZE")),
        local_rank=local_rank,
        is_final=rank is not None,
    )


def of_task_worker() -> RankFacts:
    """The facts of a Ray worker that runs tasks."""
    return RankFacts(role="rank", group=TASKS)


def process_name(argv: list[str]) -> str:
    """What a person calls this process: its script's base name or its module."""
    for at, word in enumerate(argv[1:], 1):
        if word == "-m" and at + 1 < len(argv):
            return argv[at + 1]
        if word == "-c":
            return "spawned" if any("spawn_main" in other for other in argv) else "python -c"
    return os.path.basename(script(argv)) or "python"


def script(argv: list[str]) -> str:
    """The script that an argv runs; empty where it runs none."""
    for at, word in enumerate(argv[1:], 1):
        if word in ("-m", "-c"):
            break
        if not word.startswith("-") and argv[at - 1] not in ("-X", "-W"):
            return word
    return ""


def install() -> None:
    """Learn the rank from ``torch.multiprocessing.spawn`` and ``init_process_group`` as well."""
    imports.after_import("torch.multiprocessing.spawn", _wrap_spawn)
    imports.after_import("torch.distributed.distributed_c10d", _wrap_init)


def identify(facts: RankFacts, *, waits: bool, **more: Any) -> None:
    """Tell the hub, and children to come, who this process is now. With ``waits``, breakpoints bind first."""
    agent = _agent()
    if agent is None:
        return
    publish(facts)
    agent.identify(facts, waits=waits, **more)


def _agent() -> Any:
    return getattr(sys.modules.get("rankscope.agent.agent"), "current", None)


def _from_launcher(environ: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    for rank_name, size_name, local_name in _LAUNCHERS:
        rank = _number(environ.get(rank_name))
        if rank is not None:
            return rank, _number(environ.get(size_name)), _number(environ.get(local_name))
    return None, None, None


def _is_new_rank(rank: int, environ: Mapping[str, str], parent: RankFacts) -> bool:
    """Whether a number in the environment was given to this process, or merely inherited from its parent."""
    if "RANK" not in environ:
        return False  # mpirun starts its processes itself: a member's child inherits
    if parent.role == DRIVER:
        return True
    return parent.is_final and parent.rank != rank


def _group(environ: Mapping[str, str]) -> str:
    if environ.get("WG_PREFIX"):
        return environ["WG_PREFIX"]
    role = environ.get("ROLE_NAME", "default")
    return "world" if role in ("", "default") else role


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


def _wrap_spawn(module: ModuleType) -> None:
    """The spawn index is the rank. The wrapper keeps its name and place, so it is pickled by reference."""
    own = getattr(module, "_wrap", None)
    if own is None:
        return

    @functools.wraps(own)
    def _wrap(fn: Any, i: int, *rest: Any) -> Any:
        agent = _agent()
        if agent is not None and agent.facts.role == "child":
            identify(RankFacts(role="rank", group="spawn", rank=i, local_rank=i, is_final=True), waits=True)
        try:
            return own(fn, i, *rest)
        except SystemExit as e:
            ending.note(e.__context__)  # torch has told the parent of it, and leaves
            raise

    module._wrap = _wrap  # type: ignore[attr-defined]


def _wrap_init(module: ModuleType) -> None:
    own = module.init_process_group

    @functools.wraps(own)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        made = own(*args, **kwargs)
        try:
            _on_world(module.get_rank(), module.get_world_size())
        except Exception as e:
            agent = _agent()
            if agent is not None:
                agent.notice("warning", f"the rank could not be read after init_process_group: {e!r}")
        return made

    module.init_process_group = init_process_group  # type: ignore[attr-defined]


def _on_world(rank: int, world_size: int) -> None:
    """The default process group exists: the truth about the rank, unless the environment said it already."""
    agent = _agent()
    if agent is None:
        return
    facts: RankFacts = agent.facts
    is_spawned = facts.group == "spawn"
    if facts.role == "rank":
        if not facts.is_final or (is_spawned and (facts.rank, facts.world_size) != (rank, world_size)):
            identify(facts.with_changes(rank=rank, world_size=world_size, is_final=True), waits=False)
        return
    is_lone_driver = facts.role == DRIVER and (world_size == 1 or "ray" in sys.modules)
    is_child_of_rank = facts.role == "child" and facts.group != ""
    if not is_lone_driver and not is_child_of_rank:
        local_rank = _number(os.environ.get("LOCAL_RANK"))
        world = RankFacts("rank", "world", rank, world_size, local_rank, is_final=True)
        identify(world, waits=True)
