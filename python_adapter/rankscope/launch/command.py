"""From launch settings to the argv and the environment of a job."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import rankscope
from rankscope.errors import UserError
from rankscope.wire.link import JOB_FILE_VARIABLE, JOB_VARIABLE, PARENT_VARIABLE

RAY_HOOK = "rankscope.agent.ray_hook.runtime_env_hook"
RAY_HOOK_VARIABLE = "RAY_RUNTIME_ENV_HOOK"
RAY_HOOK_CHAIN_VARIABLE = "RANKSCOPE_RAY_HOOK_CHAIN"

_PACKAGE = Path(rankscope.__file__).resolve().parent
_SITE = _PACKAGE / "agent" / "site"
# On PYTHONPATH these would come before the standard library and could shadow it; a Python that has them finds us there.
_INSTALLED = ("site-packages", "dist-packages")
# Anything a shell would act on; a command without them is started without a shell.
_SHELL_SYNTAX = re.compile(r"[|&;<>()$`\n*?\[\]#~{}!]|(?:^|\s)\w+=")


class Startable(Protocol):
    """What is started: one of ``command``, ``module`` and ``program``."""

    @property
    def program(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def command(self) -> str | Sequence[str]: ...
    @property
    def args(self) -> Sequence[str]: ...
    @property
    def python(self) -> str | Sequence[str]: ...


def job_argv(settings: Startable) -> list[str]:
    """The driver's argv. A command written as one string is split as a shell does, and run by one if it must be.

    Raises :class:`UserError` when nothing, or an unreadable command, is given.
    """
    arguments = list(settings.args)
    if settings.command:
        return _command_argv(settings.command) + arguments
    python = [settings.python] if isinstance(settings.python, str) else list(settings.python)
    python = [part for part in python if part] or [sys.executable]
    if settings.module:
        return [*python, "-m", settings.module, *arguments]
    if settings.program:
        return [*python, settings.program, *arguments]
    raise UserError("nothing-to-run", "There is nothing to run.", "Give a program, a module or a command.")


def _command_argv(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    if _SHELL_SYNTAX.search(command):
        return ["/bin/sh", "-c", command]
    try:
        argv = shlex.split(command)
    except ValueError as e:
        raise UserError("bad-command", f"The command '{command}' cannot be read: {e}.", "Mend its quotes.") from e
    if not argv:
        raise UserError("nothing-to-run", "The command is empty.", "Write the command as you type it in a shell.")
    return argv


def job_environment(job_id: str, job_file: str | os.PathLike[str], base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with what lets agents into the job's processes. What was there is extended, never replaced."""
    environment = package_path(base)
    _put_first(environment, str(_SITE))
    environment[JOB_VARIABLE] = job_id
    environment[JOB_FILE_VARIABLE] = os.fspath(job_file)
    # Silences a warning that debugpy otherwise prints in every process (frozen modules).
    environment.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    # A job inside a job is not a member of the outer one.
    environment.pop(PARENT_VARIABLE, None)
    hook = environment.get(RAY_HOOK_VARIABLE)
    if hook and hook != RAY_HOOK:
        environment[RAY_HOOK_CHAIN_VARIABLE] = hook
    environment[RAY_HOOK_VARIABLE] = RAY_HOOK
    return environment


def plain_environment(job_id: str, base: Mapping[str, str]) -> dict[str, str]:
    """``base`` for a job that is not debugged: no agent, only the mark by which its processes are found and ended."""
    return {**base, JOB_VARIABLE: job_id}


def package_path(base: Mapping[str, str]) -> dict[str, str]:
    """``base`` with this package's folder on ``PYTHONPATH``, unless that is an installed one."""
    environment = dict(base)
    if _PACKAGE.parent.name not in _INSTALLED:
        _put_first(environment, str(_PACKAGE.parent))
    return environment


def _put_first(environment: dict[str, str], folder: str) -> None:
    existing = environment.get("PYTHONPATH", "")
    kept = [part for part in existing.split(os.pathsep) if part != folder] if existing else []
    environment["PYTHONPATH"] = os.pathsep.join([folder, *kept])
