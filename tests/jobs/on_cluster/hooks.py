"""Hooks that a person may have already, for a driver and for its workers."""

import os


def runtime_env_hook(runtime_env):
    """For RAY_RUNTIME_ENV_HOOK."""
    made = dict(runtime_env or {})
    made["env_vars"] = {**(made.get("env_vars") or {}), "FROM_OWN_HOOK": "yes"}
    return made


def setup():
    """For worker_process_setup_hook."""
    os.environ["FROM_OWN_SETUP"] = "yes"
