"""The tensors of models and optimizers by family, under the names that people know them by."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rankscope.checks import replicas

WHAT = ("parameters", "buffers", "gradients", "optimizer", "rng")
_WRAPPERS = ("DistributedDataParallel", "DataParallel")


class Sources:
    """Modules and optimizers to take tensors from. ``others`` is compared as it is, in the family ``tensors``.

    With ``is_partial``, of the parameters only those that are frozen or that the optimizers step.
    """

    def __init__(
        self,
        modules: Mapping[str, Any],
        optimizers: Sequence[Any] = (),
        others: Any = None,
        *,
        is_partial: bool = False,
    ) -> None:
        self._is_partial = is_partial
        self.modules = dict(modules)
        self.optimizers = list(optimizers)
        self.others = others

    @classmethod
    def of(cls, given: Any) -> Sources:
        """From what a person gives: a module, an optimizer, tensors, or a list of modules and optimizers."""
        torch: Any = sys.modules["torch"]
        items = list(given) if isinstance(given, (list, tuple)) else [given]
        modules = [each for each in items if isinstance(each, torch.nn.Module)]
        optimizers = [each for each in items if isinstance(each, torch.optim.Optimizer)]
        if len(modules) + len(optimizers) < len(items):
            return cls({}, others=given)
        return cls(_titles(modules), optimizers)

    @classmethod
    def of_optimizer(cls, optimizer: Any) -> Sources:
        """An optimizer, and the modules whose parameters it steps; looks through all objects of the process."""
        return cls(_titles(_modules_of(optimizer)), [optimizer], is_partial=True)

    def group(self) -> Any:
        """The process group that DDP replicates over; ``None`` where there is no DDP."""
        return next((each.process_group for each in self.modules.values() if _is_ddp(each)), None)

    def families(self, what: Iterable[str]) -> dict[str, dict[str, Any]]:
        """By family, tensors by name. What is not there yet (a gradient, a state) is left out."""
        wanted = set(what)
        found: dict[str, dict[str, Any]] = {}
        names: dict[int, str] = {}
        stepped = {id(parameter) for optimizer in self.optimizers for parameter in _parameters(optimizer)}
        for title, module in self.modules.items():
            replicas.learn_module(module)
            ignored = getattr(_inner(module), "_ddp_params_and_buffers_to_ignore", ()) or ()
            for name, parameter in _inner(module).named_parameters():
                names.setdefault(id(parameter), title + _plain(name))
                is_other = self._is_partial and parameter.requires_grad and id(parameter) not in stepped
                if name not in ignored and not is_other:
                    self._add_parameter(found, title + _plain(name), parameter, wanted)
            for name, buffer in _inner(module).named_buffers():
                if "buffers" in wanted and name not in ignored:
                    found.setdefault("buffers", {})[title + _plain(name)] = buffer
        for at, optimizer in enumerate(self.optimizers):
            self._add_optimizer(found, f"{at}." if len(self.optimizers) > 1 else "", optimizer, names, wanted)
        if "rng" in wanted:
            found |= {f"rng.{name}": {f"rng.{name}": state} for name, state in rng_states()}
        if self.others is not None:
            found["tensors"] = {"": self.others}
        return found

    @staticmethod
    def _add_parameter(found: dict[str, dict[str, Any]], name: str, parameter: Any, wanted: set[str]) -> None:
        if "parameters" in wanted:
            found.setdefault("parameters", {})[name] = parameter
        gradient = parameter.grad if "gradients" in wanted else None
        if gradient is not None:
            replicas.inherit(parameter, [gradient])
            found.setdefault("gradients", {})[f"{name}.grad"] = gradient

    def _add_optimizer(
        self, found: dict[str, dict[str, Any]], title: str, optimizer: Any, names: dict[int, str], wanted: set[str]
    ) -> None:
        number = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = names.get(id(parameter))
                if name is None:
                    name = f"{title}parameter {number}"
                    self._add_parameter(found, name, parameter, wanted)
                number += 1
                state = optimizer.state.get(parameter, {}) if "optimizer" in wanted else {}
                replicas.inherit(parameter, state.values())
                for key, value in state.items():
                    found.setdefault("optimizer", {})[f"{name}.{key}"] = value
        if "optimizer" in wanted:
            for at, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if isinstance(value, (int, float)):
                        found.setdefault("optimizer", {})[f"{title}param_groups.{at}.{key}"] = value


def rng_states() -> Iterator[tuple[str, Any]]:
    """The states of the random generators that are in use."""
    torch: Any = sys.modules["torch"]
    yield "torch", torch.get_rng_state()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        yield "cuda", torch.cuda.get_rng_state()
    yield "python", _number(torch, random.getstate())
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        yield "numpy", _number(torch, (kind, keys.tobytes(), rest))


def _number(torch: Any, state: Any) -> Any:
    """A state as one number, equal where the state is."""
    digest = hashlib.blake2b(repr(state).encode(), digest_size=8).digest()
    return torch.tensor(int.from_bytes(digest, "little", signed=True))


def _modules_of(optimizer: Any) -> list[Any]:
    """The outermost modules that hold a parameter of the optimizer, in order of their first one."""
    torch: Any = sys.modules["torch"]
    order = {id(parameter): at for at, parameter in enumerate(_parameters(optimizer))}
    holders: dict[int, tuple[int, Any]] = {}
    children: set[int] = set()
    for each in gc.get_objects():
        if not issubclass(type(each), torch.nn.Module):
            continue
        with contextlib.suppress(Exception):  # one that is not yet made
            first = min((order.get(id(one), len(order)) for one in each.parameters()), default=len(order))
            if first < len(order):
                holders[id(each)] = (first, each)
                children.update(id(child) for child in each.modules() if child is not each)
    outermost = [pair for key, pair in holders.items() if key not in children]
    return [module for _, module in sorted(outermost, key=lambda pair: pair[0])]


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _titles(modules: Sequence[Any]) -> dict[str, Any]:
    """Prefixes that tell several modules apart; none for one alone."""
    if len(modules) == 1:
        return {"": modules[0]}
    titles: dict[str, Any] = {}
    for module in modules:
        name = type(_inner(module)).__name__
        count = sum(1 for title in titles if title.rstrip(".0123456789") == name)
        titles[f"{name}{count + 1 if count else ''}."] = module
    return titles


def _inner(module: Any) -> Any:
    return module.module if type(module).__name__ in _WRAPPERS else module


def _is_ddp(module: Any) -> bool:
    return type(module).__name__ == _WRAPPERS[0] and hasattr(module, "process_group")


def _plain(name: str) -> str:
    return name.replace("_fsdp_wrapped_module.", "").replace("_orig_mod.", "")
