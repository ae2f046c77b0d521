"""First on PYTHONPATH of a job: decides within a millisecond whether this process is a member.

Then runs the ``sitecustomize`` that this one hides, and lets the process join. Nothing
of ours ever reaches the user's process as an exception.
"""

import os
import sys

_TOOL_SCRIPTS = (
    "/ray/_private/workers/",
    "/ray/_private/runtime_env/",
    "/ray/_private/log_monitor.py",
    "/ray/autoscaler/_private/",
    "/ray/dashboard/",
    "/ray/_private/process_watcher.py",
    "/torch/_inductor/compile_worker",
    "/debugpy/adapter",
    "/debugpy/launcher",
)
_TOOL_MODULES = (
    "rankscope",
    "debugpy",
    "pip",
    "ninja",
    "venv",
    "ensurepip",
    "torch._inductor.compile_worker",
    "ray.util.client.server",
)
_TOOL_COMMANDS = ("pip", "pip3", "ninja", "cmake", "ray", "uv", "uvx", "rankscope")
_OPTIONS_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")


def is_member(argv):
    """Whether the process started by ``argv`` belongs to the job as driver, rank or child."""
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        option = argv[at]
        if option in _OPTIONS_WITH_VALUE:
            at += 2
        elif option.startswith("--") or option.startswith(_OPTIONS_WITH_VALUE):
            at += 1
        elif "c" in option:
            code = option.partition("c")[2] or (argv[at + 1] if at + 1 < len(argv) else "")
            return "multiprocessing.spawn import spawn_main" in code
        elif "m" in option:
            module = option.partition("m")[2] or (argv[at + 1] if at + 1 < len(argv) else "")
            return not any(module == tool or module.startswith(tool + ".") for tool in _TOOL_MODULES)
        else:
            at += 1
    if at >= len(argv):
        return False  # an interactive interpreter
    script = argv[at]
    if os.path.basename(script) in _TOOL_COMMANDS:
        return False
    return not any(tool in script for tool in _TOOL_SCRIPTS)


def is_ray_worker(argv):
    """Whether this is a Ray process that runs tasks and actors, not one that only moves objects."""
    return any(word.endswith("/ray/_private/workers/default_worker.py") for word in argv[1:4]) and not any(
        word.startswith("--worker-type=") and word != "--worker-type=WORKER" for word in argv
    )


def is_fork_server(argv):
    """Whether this process only forks others, which are members."""
    return any("multiprocessing.forkserver" in word for word in argv)


def _complain(where):
    """Tell the hub, by a file beside the job's: it reads it, says so once, and nothing stands in the job's output."""
    error = sys.exc_info()[1]
    line = "%s: %s: %s\n" % (sys.executable, type(error).__name__, error)
    try:
        with open(os.path.join(os.path.dirname(os.environ["RANKSCOPE_JOB_FILE"]), "could-not-join"), "a") as file:
            file.write(line)
    except OSError:
        pass
    if os.environ.get("RANKSCOPE_DEBUG"):
        os.write(2, ("rankscope: %s in process %d: %s" % (where, os.getpid(), line)).encode())


def _run_hidden():
    """Run the next ``sitecustomize`` on the path, as Python would have without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [folder for folder in sys.path if os.path.abspath(folder) != here]
    if not any(
        os.path.isfile(os.path.join(folder, "sitecustomize.py")) or os.path.isdir(os.path.join(folder, "sitecustomize"))
        for folder in folders
    ):
        return
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", folders)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _join():
    """Join the job; ours stays silent unless asked."""
    try:
        argv = getattr(sys, "orig_argv", sys.argv)
        if is_member(argv):
            from rankscope.agent.bootstrap import start_process

            start_process()
        elif is_ray_worker(argv):
            from rankscope.agent.ray_worker import join_inherited

            join_inherited()
        elif is_fork_server(argv):
            from rankscope.agent.children import watch_fork_server

            watch_fork_server()
    except Exception:
        _complain("could not join the job")


try:
    _run_hidden()
finally:
    if os.environ.get("RANKSCOPE_JOB_FILE"):
        _join()
