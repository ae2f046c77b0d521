"""Whether tensors are the same on all ranks of a group, and if not: which, on which ranks, where and by how much."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankscope.checks import in_flight, plan, tell
from rankscope.checks.exchange import Exchange
from rankscope.checks.fingerprint import line, whole
from rankscope.checks.locate import Rules, locate
from rankscope.checks.report import SyncReport, TensorDifference, TensorsDiffer, differences
from rankscope.checks.structure import Entry, entries
from rankscope.errors import UserError
from rankscope.record import ignored_tensors

MISMATCH = ("report", "raise", "break")
Place = tuple[str, int, str]


def verify_distributed_tensors(
    tensor_dict: Any,
    tolerance: float = 1e-6,
    operation_name: str = "",
    group: Any = None,
    on_mismatch: str = "report",
    *,
    rtol: float = 0.0,
    equal_nan: bool = True,
    timeout: float = 60.0,
) -> SyncReport:
    """Compare tensors over the ranks of ``group`` (all by default); every rank of it has to call this.

    ``tensor_dict`` is a tensor, array, module, optimizer, TensorDict, verl's DataProto, or mappings and sequences of
    these. Values are equal when |Δ| ≤ ``tolerance`` + ``rtol`` · |majority's value|, and NaN equals NaN with
    ``equal_nan``. Shards (DTensor, FSDP) are compared with their replicas only.

    On a mismatch the report says so; with ``on_mismatch="raise"`` :class:`TensorsDiffer` is raised on every rank, with
    ``"break"`` the deviating ranks stop here in the editor. Where RankScope runs the job, it is a finding at this line.

    Raises :class:`UserError`: ``bad-check`` (arguments), ``not-tensors``, ``no-group``, ``rank-missing`` when a rank
    has not called within ``timeout`` seconds, ``checks-differ`` when one is at another check.
    """
    frame = sys._getframe(1)
    place = (str(Path(frame.f_code.co_filename).absolute()), frame.f_lineno, frame.f_code.co_name)
    in_flight.watch()
    exchange = Exchange(group, timeout if _is_number(timeout) and timeout > 0 else 60.0)
    name = str(operation_name)
    tag = f"verify_distributed_tensors '{name}'" if name else f"verify_distributed_tensors at {place[0]}:{place[1]}"
    rules = Rules(tolerance, rtol, bool(equal_nan))
    error: UserError | None = None
    given: list[Entry] = []
    try:
        check_arguments(rules, on_mismatch, timeout)
        given = entries(tensor_dict)
    except UserError as e:
        error = e
    report = compare(exchange, given, rules, tag, name, place, error=error)
    if not report.ok:
        tell.divergence(report, place)
        act(report, on_mismatch, frame, "verify_distributed_tensors()")
    return report


def check_arguments(rules: Rules, on_mismatch: str, timeout: float) -> None:
    """Raises :class:`UserError` ``bad-check`` for what no check can be made with."""
    for name, value in (("tolerance", rules.tolerance), ("rtol", rules.rtol)):
        if not _is_number(value) or not 0 <= value < math.inf:
            raise UserError("bad-check", f"{name} is {value!r}.", "Give a number of at least 0.")
    if not _is_number(timeout) or not 0 < timeout < math.inf:
        raise UserError("bad-check", f"timeout is {timeout!r}.", "Give seconds.")
    if on_mismatch not in MISMATCH:
        raise UserError("bad-check", f"on_mismatch is {on_mismatch!r}.", f"It is one of {', '.join(MISMATCH)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def compare(
    exchange: Exchange,
    given: Sequence[Entry],
    rules: Rules,
    tag: str,
    name: str,
    place: Place,
    *,
    error: UserError | None = None,
    known: Mapping[str, TensorDifference] | None = None,
) -> SyncReport:
    """One check among the ranks of an exchange; ``tag`` says which, and must be the same on all of them.

    Of tensors whose difference is ``known`` from before only the digests are compared. Raises what is wrong, ``error``
    of any rank included, on every rank.
    """
    began = time.monotonic()
    in_flight.settle(given)
    post: dict[str, Any] = {"tag": tag}
    if error is None:
        try:
            post |= line(given)
        except RuntimeError as e:  # a device, or memory, gave out
            error = UserError("bad-check", f"The tensors cannot be read: {e}.")
    if error is not None:
        post["error"] = [error.code, error.message, error.hint]
    try:
        are_equal = exchange.round(post, lambda posts: _first_look(posts, exchange.ranks), tag)
    except UserError:
        if error is not None:
            raise error from None
        raise
    report = SyncReport(
        name,
        exchange.ranks[exchange.rank],
        tuple(exchange.ranks),
        skipped={entry.name: entry.note for entry in given if entry.note},
        compared=sum(1 for entry in given if entry.is_read and entry.peers != "alone"),
        alone=sum(1 for entry in given if entry.is_read and entry.peers == "alone"),
        bytes=sum(entry.bytes for entry in given),
        digest=" ".join(root for _, root in sorted(post.get("roots", {}).items())),
    )
    if not are_equal:
        report = _look(exchange, given, rules, tag, place, report, known or {})
    object.__setattr__(report, "seconds", time.monotonic() - began)
    return report


def _first_look(posts: Sequence[Mapping[str, Any]], ranks: Sequence[int]) -> bool:
    for rank, post in zip(ranks, posts, strict=True):
        if "error" in post:
            code, message, hint = post["error"]
            raise UserError(code, f"On rank {rank}: {message}", hint)
    tags = {post["tag"]: rank for rank, post in reversed(list(zip(ranks, posts, strict=True)))}
    if len(tags) > 1:
        texts = ", ".join(f"rank {rank} is at {tag}" for tag, rank in tags.items())
        raise UserError("checks-differ", f"The ranks are not at the same check: {texts}.", "Give checks a name each.")
    return plan.are_equal(posts)


def _look(
    exchange: Exchange,
    given: Sequence[Entry],
    rules: Rules,
    tag: str,
    place: Place,
    report: SyncReport,
    known: Mapping[str, TensorDifference],
) -> SyncReport:
    """Something is not the same: what, and where."""
    post = {"entries": whole(given), "place": list(place)}

    def decide(posts: list[Any]) -> dict[str, Any]:
        made = plan.made([each["entries"] for each in posts], ignored_names())
        return {"plan": made.packed(), "places": [each["place"] for each in posts]}

    answer = exchange.round(post, decide, tag)
    made = plan.Plan.unpacked(answer["plan"])
    by_name = {entry.name: entry for entry in given}
    suspects = [suspect for suspect in made.suspects if suspect.name not in known]
    located = locate(exchange, by_name, suspects, rules, tag) if suspects else []
    found = differences(made, located, exchange.ranks)
    found += [known[suspect.name] for suspect in made.suspects if suspect.name in known]
    skipped = {name: _why(why, ranks, exchange) for name, (why, ranks) in made.skipped.items()}
    changed = "it changed while it was compared"
    skipped |= {each.suspect.name: changed for each in located if any(one["changed"] for one in each.found.values())}
    return SyncReport(
        report.operation_name,
        report.rank,
        report.group,
        tuple(found),
        skipped,
        made.compared - sum(1 for each in found if each.what == "values"),
        made.alone,
        report.bytes,
        report.digest,
        is_bitwise=not made.suspects and not made.misfits,
        places={exchange.ranks[at]: (path, row, name) for at, (path, row, name) in enumerate(answer["places"])},
    )


def _why(why: str, ranks: Sequence[int], exchange: Exchange) -> str:
    return why if len(ranks) == exchange.size else f"{why}, on rank {exchange.ranks[ranks[0]]}"


@functools.cache
def ignored_names() -> tuple[str, ...]:
    """The tensors of which a person wants to hear no more: by the hub's word, else as kept below the working folder."""
    endpoint = getattr(sys.modules.get("rankscope.agent.bootstrap"), "endpoint", None)
    return ignored_tensors(Path()) if endpoint is None else tuple(endpoint.sync.get("ignored", ()))


def act(report: SyncReport, on_mismatch: str, frame: Any, what: str) -> None:
    """Do what was asked for in case of a mismatch."""
    if on_mismatch == "raise":
        raise TensorsDiffer(report)
    if on_mismatch == "break" and report.is_deviating:
        from rankscope.agent import breaks

        breaks.stop(frame, what)
