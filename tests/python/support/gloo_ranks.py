"""Gloo ranks that stay: each runs functions of a test file, in step, and gives their results back."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

_SECONDS = 100.0


class RankFailed(Exception):
    """What a function raised on a rank, as text."""


class GlooRanks:
    """Owns the processes. ``call(function, *arguments)`` runs ``function(ranks, *arguments)`` on all of them.

    ``ranks`` there is the group: the whole world, or with ``count`` the first so many. Each call begins with one seed.
    """

    def __init__(self, world: int) -> None:
        self.world = world
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for rank in range(world):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, world, port, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def call(self, function: Any, *arguments: Any, count: int | None = None) -> list[Any]:
        """The results by rank. Raises :class:`RankFailed`."""
        used = self._pipes[: count or self.world]
        for pipe in self._pipes:
            pipe.send((function.__code__.co_filename, function.__name__, count or self.world, arguments))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(_SECONDS), f"rank {rank} does not answer"
            answers.append(pipe.recv())
        for rank, (is_good, answer) in enumerate(answers):
            if not is_good:
                raise RankFailed(f"on rank {rank}: {answer}")
        return [answer for _, answer in answers[: len(used)]]

    def close(self) -> None:
        """End them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(10)
            process.kill()


@contextmanager
def gloo_ranks(world: int) -> Iterator[GlooRanks]:
    """Ranks for as long as the block."""
    ranks = GlooRanks(world)
    try:
        yield ranks
    finally:
        ranks.close()


def _serve(rank: int, world: int, port: int, pipe: Connection) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {world: dist.group.WORLD}
    modules: dict[str, ModuleType] = {}
    while True:
        try:
            path, name, count, arguments = pipe.recv()
        except EOFError:
            return
        if count not in groups:
            groups[count] = dist.new_group(list(range(count)))
        if rank >= count:
            pipe.send((True, None))
            continue
        torch.manual_seed(0)  # whatever was called before
        try:
            pipe.send((True, getattr(_module(path, modules), name)(groups[count], *arguments)))
        except Exception:
            pipe.send((False, traceback.format_exc()))


def _module(path: str, modules: dict[str, ModuleType]) -> ModuleType:
    if path not in modules:
        spec = importlib.util.spec_from_file_location("under_test", path)
        assert spec is not None and spec.loader is not None
        modules[path] = importlib.util.module_from_spec(spec)
        sys.modules["under_test"] = modules[path]
        spec.loader.exec_module(modules[path])
    return modules[path]
