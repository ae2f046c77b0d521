"""How agents get into Ray's workers, with no edit of the driver.

In the driver: ``runtime_env_hook`` adds the workers' setup hook to the job's runtime_env,
and ``ray.init`` and the Ray Client are wrapped for what Ray's own hook variable does not
cover. In a worker: ``worker_setup_hook`` joins as idle; :mod:`ray_worker` makes it a rank.
The secret never stands in a runtime_env: Ray writes that to its logs.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.agent import imports
from rankscope.agent.ray_worker import CHAIN_VARIABLE, is_internal, kv_key, worker_setup_hook
from rankscope.ranks import DRIVER
from rankscope.wire.link import JOB_FILE_VARIABLE, JOB_VARIABLE, Endpoint
from rankscope.wire.messages import Created, Dismissed

HOOK = "rankscope.agent.ray_hook.worker_setup_hook"
HOOK_CHAIN_VARIABLE = "RANKSCOPE_RAY_HOOK_CHAIN"
_RAY_SETUP_VARIABLE = "__RAY_WORKER_PROCESS_SETUP_HOOK_ENV_VAR"
_SHIPPED = ("rankscope", "msgpack", "debugpy")
_HERE = os.path.dirname(os.path.abspath(__file__))
_PYTHON_PATH = os.pathsep.join((os.path.join(_HERE, "site"), os.path.dirname(os.path.dirname(_HERE))))

_is_remote = False
_starts_cluster = False

__all__ = ["install", "runtime_env_hook", "with_agent", "worker_setup_hook"]


def runtime_env_hook(runtime_env: Any) -> Any:
    """What ``RAY_RUNTIME_ENV_HOOK`` names. Calls the person's own hook first, whose errors stay theirs."""
    chained = os.environ.get(HOOK_CHAIN_VARIABLE)
    if chained and chained != f"{__name__}.runtime_env_hook":
        runtime_env = load(chained)(runtime_env)
    return with_agent(runtime_env)


def with_agent(runtime_env: Any, *, is_client: bool = False) -> Any:
    """A copy of a runtime_env that brings the agent into its workers; as it came when that fails. Idempotent.

    With a Ray Client, Ray does not turn a setup hook into the variable that its workers read: we set that ourselves.
    """
    try:
        made = _with_agent(runtime_env)
        if is_client and made is not runtime_env and made["worker_process_setup_hook"] == HOOK:
            made["env_vars"][_RAY_SETUP_VARIABLE] = made.pop("worker_process_setup_hook")
        return made
    except Exception as e:
        _notice(f"Ray's workers will not be seen: their runtime_env could not be extended ({e!r})")
        return runtime_env


def load(name: str) -> Callable[..., Any]:
    """The function a dotted name means. Raises ``ImportError`` or ``AttributeError``."""
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def install() -> None:
    """Cover ``uv run``, Ray Client and the key-value store as soon as Ray is imported."""
    imports.after_import("ray._private.worker", _wrap_worker)
    imports.after_import("ray.client_builder", _wrap_client_builder)
    imports.after_import("ray.util.client", _wrap_client_context)
    imports.after_import("ray", _wrap_init)
    imports.after_import("ray.actor", _wrap_actor_class)


def _with_agent(runtime_env: Any) -> Any:
    job = os.environ.get(JOB_VARIABLE)
    job_file = os.environ.get(JOB_FILE_VARIABLE)
    if not job or not job_file:
        return runtime_env
    made: dict[str, Any] = dict(runtime_env or {})
    variables = dict(made.get("env_vars") or {})
    if variables.get(JOB_VARIABLE) == job or (_starts_cluster and _is_inherited(made, variables)):
        return runtime_env
    variables[JOB_VARIABLE] = job
    variables[JOB_FILE_VARIABLE] = job_file
    variables["PYTHONPATH"] = os.pathsep.join((_PYTHON_PATH, variables.get("PYTHONPATH") or "${PYTHONPATH}"))
    previous = variables.pop(_RAY_SETUP_VARIABLE, None) or made.get("worker_process_setup_hook")
    if callable(previous):
        made["worker_process_setup_hook"] = _both(previous)
    else:
        if previous:
            variables[CHAIN_VARIABLE] = previous
        made["worker_process_setup_hook"] = HOOK
    made["env_vars"] = variables
    if _is_remote:
        made["py_modules"] = [*(made.get("py_modules") or ()), *_package_folders()]
    return made


def _is_inherited(runtime_env: dict[str, Any], variables: dict[str, Any]) -> bool:
    """Whether workers of a cluster that this driver starts find the agent by what they inherit.

    They do where nothing but variables is asked for. It spares them a runtime_env of their own, whose
    making costs the first worker about a second.
    """
    return not set(runtime_env) - {"env_vars"} and not set(variables) & {"PYTHONPATH", _RAY_SETUP_VARIABLE}


def _will_start_cluster(address: str | None, temp_dir: str | None) -> bool:
    """Whether ``ray.init`` will find no cluster to connect to. Ray's own reading of it, which is private."""
    try:
        services = importlib.import_module("ray._private.services")
        return services.canonicalize_bootstrap_address(address, temp_dir) is None
    except Exception:
        return False


def _both(previous: Callable[[], Any]) -> Callable[[], None]:
    """Our setup hook, then the person's own."""

    def worker_process_setup_hook() -> None:
        worker_setup_hook()
        previous()

    return worker_process_setup_hook


def _package_folders() -> list[str]:
    """The packages that a node without RankScope needs."""
    folders = []
    for name in _SHIPPED:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            folders.append(os.path.dirname(spec.origin))
    return folders


def _wrap_worker(module: ModuleType) -> None:
    """Under ``uv run`` Ray calls its own hook instead of ours: extend what comes out of either."""
    _say_before(module, "disconnect")
    own = getattr(module, "_maybe_modify_runtime_env", None)
    if own is None:
        return

    @functools.wraps(own)
    def _maybe_modify_runtime_env(*args: Any, **kwargs: Any) -> Any:
        return with_agent(own(*args, **kwargs))

    module._maybe_modify_runtime_env = _maybe_modify_runtime_env  # type: ignore[attr-defined]


def _wrap_client_context(module: ModuleType) -> None:
    _say_before(module._ClientContext, "disconnect")


def _say_before(owner: Any, name: str) -> None:
    """The driver leaves its cluster: what Ray ends then has not crashed."""
    own = getattr(owner, name, None)
    if own is None:
        return

    @functools.wraps(own)
    def disconnect(*args: Any, **kwargs: Any) -> Any:
        agent: Any = getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
        with contextlib.suppress(Exception):
            if agent is not None and agent.facts.role == DRIVER:
                agent.send(Dismissed())
        return own(*args, **kwargs)

    setattr(owner, name, disconnect)


def _wrap_client_builder(module: ModuleType) -> None:
    builder: Any = module.ClientBuilder
    own = builder.connect

    @functools.wraps(own)
    def connect(self: Any) -> Any:
        global _is_remote, _starts_cluster
        _is_remote, _starts_cluster = True, False
        with contextlib.suppress(Exception):
            fill = getattr(self, "_fill_defaults_from_env", None)
            if fill is not None:
                fill()
            self.env(with_agent(self._job_config.runtime_env, is_client=True))
        made = own(self)
        _after_init()
        return made

    builder.connect = connect


def _wrap_init(module: ModuleType) -> None:
    own = module.init

    @functools.wraps(own)
    def init(address: str | None = None, *args: Any, **kwargs: Any) -> Any:
        global _is_remote, _starts_cluster
        _starts_cluster = _will_start_cluster(address, kwargs.get("_temp_dir"))
        where = address or os.environ.get("RAY_ADDRESS")
        _is_remote = bool(where) and where != "local"
        config = kwargs.get("job_config")
        if config is not None and kwargs.get("runtime_env") is None and getattr(config, "runtime_env", None):
            kwargs["runtime_env"] = config.runtime_env  # Ray would replace it by what the hook makes of nothing
        made = own(address, *args, **kwargs)
        _after_init()
        return made

    module.init = init  # type: ignore[attr-defined]
    _wrap_kill(module)


def _wrap_kill(module: ModuleType) -> None:
    """An actor that is ended on purpose has not crashed."""
    own = module.kill

    @functools.wraps(own)
    def kill(actor: Any, *args: Any, **kwargs: Any) -> Any:
        agent: Any = getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
        with contextlib.suppress(Exception):
            if agent is not None:
                agent.send(Dismissed(actor=actor._actor_id.hex()))
        return own(actor, *args, **kwargs)

    module.kill = kill  # type: ignore[attr-defined]


def _wrap_actor_class(module: ModuleType) -> None:
    """Workers join in any order; only who creates actors knows theirs."""
    own = module.ActorClass._remote

    @functools.wraps(own)
    def _remote(self: Any, *args: Any, **kwargs: Any) -> Any:
        handle = own(self, *args, **kwargs)
        agent: Any = getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
        with contextlib.suppress(Exception):
            made = self.__ray_metadata__
            if not is_internal(made.modified_class.__module__, made.class_name):
                agent.send(Created(actor=handle._actor_id.hex(), label=made.class_name))
        return handle

    module.ActorClass._remote = _remote


def _after_init() -> None:
    """Ray is up: workers on other nodes can fetch the job file's content, until the driver ends."""
    where = Endpoint.load()
    if where is None:
        return
    try:
        store = importlib.import_module("ray.experimental.internal_kv")
        store._internal_kv_put(kv_key(where.job), where.dump().encode(), overwrite=True)
        atexit.unregister(_forget_secret)
        atexit.register(_forget_secret)
    except Exception as e:
        if _is_remote:
            _notice(f"Ray workers on other nodes will not be seen: Ray's key-value store refused the job file ({e!r})")


def _forget_secret() -> None:
    where = Endpoint.load()
    ray: Any = sys.modules.get("ray")
    with contextlib.suppress(Exception):
        if where is not None and ray.is_initialized():
            store = importlib.import_module("ray.experimental.internal_kv")
            store._internal_kv_del(kv_key(where.job))


def _notice(text: str) -> None:
    agent = getattr(sys.modules.get("rankscope.agent.agent"), "current", None)
    if agent is not None:
        agent.notice("warning", text)
