"""A Ray worker as a member: idle from its start, a rank from its first task or actor on."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from rankscope.agent import agent as agents
from rankscope.agent import children, faults, identity, imports, stacks
from rankscope.ranks import RankFacts
from rankscope.wire.link import JOB_FILE_VARIABLE, JOB_VARIABLE, Endpoint

CHAIN_VARIABLE = "RANKSCOPE_SETUP_HOOK_CHAIN"
_KV_SECONDS = 5.0
_KV_EVERY_SECONDS = 0.1
_RAY_FUNCTION_KEY = "ray_runtime_env_func::"

# Ray's own helper actors run no code of the person's; its train and data workers do.
_RAY_INTERNALS = ("ray._", "ray.air.", "ray.dashboard.", "ray.data.", "ray.train.", "ray.util.")

_lock = threading.RLock()
_known_as = ""


def worker_setup_hook() -> None:
    """Ray's ``worker_process_setup_hook``: join as idle, then run the person's own hook.

    Raises nothing of its own (that would kill the worker); what the person's hook raises, it raises.
    """
    try:
        _join()
    except Exception as e:
        _complain(e)
    chained = os.environ.get(CHAIN_VARIABLE)
    if chained:
        _run_chained(chained)


def join_inherited() -> None:
    """Join as idle at the start of a worker that inherited its place in the job from the driver's own cluster."""
    where = Endpoint.load()
    if where is not None:
        _join_at(where)


def kv_key(job: str) -> bytes:
    """Where the driver puts the job file's content in Ray's internal key-value store."""
    return f"rankscope:{job}".encode()


def _join() -> None:
    where = Endpoint.load() or _fetch_endpoint()
    if where is not None:
        _join_at(where)


def _join_at(where: Endpoint) -> None:
    """Idempotent: a worker may be reached by what it inherits and by the setup hook as well."""
    if agents.current is not None:
        return
    _extend_python_path()
    from rankscope.agent import bootstrap

    bootstrap.start_ray_worker(where)
    imports.after_import("ray._private.function_manager", _wrap_function_manager)


def _fetch_endpoint() -> Endpoint | None:
    """From Ray's store, within a bound; children of this worker then read it from a file of ours."""
    job = os.environ.get(JOB_VARIABLE)
    if not job:
        return None
    store: Any = importlib.import_module("ray.experimental.internal_kv")
    deadline = time.monotonic() + _KV_SECONDS
    while True:
        raw = store._internal_kv_get(kv_key(job))
        if raw:
            break
        if time.monotonic() > deadline:
            return None
        time.sleep(_KV_EVERY_SECONDS)
    where = Endpoint.parse(raw)
    with contextlib.suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix="rankscope-"))
        where.save(folder / "job.json")
        os.environ[JOB_FILE_VARIABLE] = str(folder / "job.json")
        atexit.register(_remove, folder, os.getpid())
    return where


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            (folder / "job.json").unlink()
            folder.rmdir()


def _extend_python_path() -> None:
    """Children of this worker find the agent where this worker found it, on whatever node it is."""
    here = os.path.dirname(os.path.abspath(__file__))
    ours = [os.path.join(here, "site"), os.path.dirname(os.path.dirname(here))]
    rest = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part not in ours]
    os.environ["PYTHONPATH"] = os.pathsep.join(ours + rest)


def _wrap_function_manager(module: ModuleType) -> None:
    """The first actor class or function that Ray loads makes this worker a rank, before it is unpickled."""
    manager: Any = module.FunctionActorManager
    load_class, load_function = manager.load_actor_class, manager.get_execution_info

    @functools.wraps(load_class)
    def load_actor_class(self: Any, job_id: Any, descriptor: Any, *args: Any, **kwargs: Any) -> Any:
        _become(descriptor)
        return load_class(self, job_id, descriptor, *args, **kwargs)

    @functools.wraps(load_function)
    def get_execution_info(self: Any, job_id: Any, descriptor: Any, *args: Any, **kwargs: Any) -> Any:
        _become(descriptor)
        return load_function(self, job_id, descriptor, *args, **kwargs)

    manager.load_actor_class = load_actor_class
    manager.get_execution_info = get_execution_info


def _become(descriptor: Any) -> None:
    """Be known by the actor's class, or as one that runs tasks; a task worker may become an actor, once."""
    global _known_as
    name = descriptor.class_name or identity.TASKS
    if _known_as and (_known_as != identity.TASKS or name == identity.TASKS):
        return
    with _lock:
        if _known_as == name:
            return
        _known_as = name
        faults.point_to_theirs()  # by now Ray has given it its log
        try:
            if name == identity.TASKS:
                identity.identify(identity.of_task_worker(), name=identity.TASKS, roots=stacks.roots(), waits=True)
                return
            if is_internal(descriptor.module_name, name):
                children.watch_execution()
                identity.identify(RankFacts(role="child", group=name), name=name, waits=False)
                return
            place = _actor_place(name)
            facts = identity.of_actor(os.environ, name, place["actor_name"])
            shown = place["actor_name"] or name
            identity.identify(facts, name=shown, roots=stacks.roots(), ray=place, waits=True)
        except Exception as e:
            _complain(e)


def is_internal(module: str, class_name: str) -> bool:
    """Whether a class is one of Ray's own helper actors."""
    return module.startswith(_RAY_INTERNALS) and "Worker" not in class_name


def _actor_place(class_name: str) -> dict[str, str]:
    """The actor's ids as Ray knows them; empty where it does not."""
    import ray

    context: Any = ray.get_runtime_context()
    ask: dict[str, Callable[[], Any]] = {
        "actor_id": context.get_actor_id,
        "actor_name": context.get_actor_name,
        "node_id": context.get_node_id,
        "namespace": lambda: context.namespace,
    }
    place = {"class": class_name}
    for key, read in ask.items():
        try:
            place[key] = str(read() or "")
        except Exception:
            place[key] = ""
    return place


def _run_chained(hook: str) -> None:
    """The person's own setup hook, by dotted name or by Ray's key of an exported function."""
    if hook.startswith(_RAY_FUNCTION_KEY):
        setup: Any = importlib.import_module("ray._private.runtime_env.setup_hook")
        error = setup.load_and_execute_setup_hook(hook)
        if error is not None:
            raise RuntimeError(error)
        return
    module, _, function = hook.rpartition(".")
    getattr(importlib.import_module(module), function)()


def _complain(error: Exception) -> None:
    agent = getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
    if agent is not None:
        agent.notice("warning", f"this Ray worker is not seen as a rank: {error!r}")
    elif os.environ.get("RANKSCOPE_DEBUG"):
        os.write(2, f"rankscope: the Ray worker {os.getpid()} could not join: {error!r}\n".encode())
