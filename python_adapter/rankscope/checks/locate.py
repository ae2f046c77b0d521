"""Where two ranks' tensors differ, and by how much: pieces of one are sent, only those whose bits are not the same.

No more than a piece is held beside the tensor (a tensor that is not contiguous is copied once, piece by piece else).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankscope.checks.exchange import Exchange
from rankscope.checks.plan import Suspect
from rankscope.checks.structure import Entry
from rankscope.errors import UserError
from rankscope.tensors.digest import digests_of_pieces
from rankscope.tensors.kinds import untouched

_PIECE = 1 << 20
_DIGEST = 16
_ATTEMPTS = 3

Found = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """When values count as equal: |Δ| ≤ ``tolerance`` + ``rtol`` · |reference|; NaN and NaN with ``equal_nan``."""

    tolerance: float = 0.0
    rtol: float = 0.0
    equal_nan: bool = True


@dataclass
class Located:
    """A suspect compared with the rank ``reference``; ``found`` by the first rank of each other group of its."""

    suspect: Suspect
    reference: int
    found: dict[int, Found]

    @property
    def deviating(self) -> list[int]:
        """Ranks beyond what the rules allow."""
        return sorted(rank for group in self.suspect.groups if self._deviates(group[0]) for rank in group)

    @property
    def members(self) -> list[int]:
        """All ranks that ought to be alike."""
        return sorted(rank for group in self.suspect.groups for rank in group)

    def _deviates(self, rank: int) -> bool:
        return rank in self.found and bool(self.found[rank]["beyond"]) and not self.found[rank]["changed"]


def locate(
    exchange: Exchange, entries: Mapping[str, Entry], suspects: Sequence[Suspect], rules: Rules, what: str
) -> list[Located]:
    """Compare each suspect with a rank of its majority; called on all ranks with the same suspects.

    Where most deviate from the reference, the bits alone gave no majority: another is tried.
    Raises :class:`UserError` when a rank is gone meanwhile.
    """
    best: list[Located | None] = [None] * len(suspects)
    references = {at: suspect.groups[0][0] for at, suspect in enumerate(suspects)}
    try:
        exchange.open_data()
        for attempt in range(_ATTEMPTS):
            mine = {
                at: _meet(exchange, entries, suspects[at], reference, rules) for at, reference in references.items()
            }
            posts = exchange.round({at: found for at, found in mine.items() if found}, lambda each: each, what)
            next_references: dict[int, int] = {}
            for at, reference in references.items():
                found = {rank: post[at] for rank, post in enumerate(posts) if at in post}
                located = Located(suspects[at], reference, found)
                before = best[at]
                if before is None or len(located.deviating) < len(before.deviating):
                    best[at] = located
                deviating = located.deviating
                if attempt + 1 < _ATTEMPTS and 2 * len(deviating) > len(located.members):
                    next_references[at] = deviating[0]
            references = next_references
            if not references:
                break
    except RuntimeError as e:  # of gloo
        text = f"A rank has gone while {what} compared values: {str(e).splitlines()[0]}."
        raise UserError("rank-missing", text, "Has it ended?") from e
    finally:
        exchange.close_data()
    return [each for each in best if each is not None]


def _meet(
    exchange: Exchange, entries: Mapping[str, Entry], suspect: Suspect, reference: int, rules: Rules
) -> Found | None:
    """This rank's part: give to the others, or take from the reference and compare; ``None`` where it has none."""
    others = [group[0] for group in suspect.groups if reference not in group]
    entry = entries.get(suspect.name)
    if entry is None or (exchange.rank != reference and exchange.rank not in others):
        return None
    torch: Any = sys.modules["torch"]
    with untouched(torch):
        flats = [part.contiguous().reshape(-1) for part in entry.parts]
        digests = b"".join(digests_of_pieces(flat, _count(flat)) for flat in flats)
        if exchange.rank != reference:
            return _placed(_take(torch, exchange, reference, flats, digests, rules), entry)
        for other in others:
            _give(torch, exchange, other, flats, digests)
        return None


def _count(flat: Any) -> int:
    return max(1, _PIECE // int(flat.element_size()))


def _bits(torch: Any, piece: Any) -> Any:
    return (torch.view_as_real(piece).reshape(-1) if piece.is_complex() else piece).view(torch.uint8)


def _values(torch: Any, bits: Any, like: Any) -> Any:
    if not like.is_complex():
        return bits.view(like.dtype)
    return torch.view_as_complex(bits.view(torch.view_as_real(like).dtype).view(-1, 2))


def _give(torch: Any, exchange: Exchange, other: int, flats: Sequence[Any], digests: bytes) -> None:
    exchange.send(_as_tensor(torch, digests), other)
    wanted = exchange.receive(torch.empty(max(1, len(digests) // _DIGEST), dtype=torch.uint8), other)
    number = 0
    for flat in flats:
        for start in range(0, flat.numel(), _count(flat)):
            if wanted[number]:
                exchange.send(_bits(torch, flat[start : start + _count(flat)].cpu()), other)
            number += 1


def _take(torch: Any, exchange: Exchange, reference: int, flats: Sequence[Any], digests: bytes, rules: Rules) -> Found:
    count = len(digests) // _DIGEST
    theirs = bytes(exchange.receive(torch.empty(len(digests) or 1, dtype=torch.uint8), reference).tolist())
    wanted = [
        digests[at * _DIGEST : (at + 1) * _DIGEST] != theirs[at * _DIGEST : (at + 1) * _DIGEST] for at in range(count)
    ]
    exchange.send(torch.tensor(wanted or [False], dtype=torch.uint8), reference)
    found = _nothing(is_changed=not any(wanted))
    number = 0
    for part, flat in enumerate(flats):
        for start in range(0, flat.numel(), _count(flat)):
            if wanted[number]:
                piece = flat[start : start + _count(flat)].cpu()
                raw = exchange.receive(torch.empty(piece.numel() * piece.element_size(), dtype=torch.uint8), reference)
                _add(found, difference(torch, piece, _values(torch, raw, piece), rules), part, start)
            number += 1
    return found


def _as_tensor(torch: Any, data: bytes) -> Any:
    return torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)


def _placed(found: Found, entry: Entry) -> Found:
    """With the indices, the count of elements and of parts that this rank's share is of."""
    shape = entry.shape if entry.local is None else entry.local
    return {
        **found,
        "firstIndex": _index(found["firstAt"], entry),
        "maxIndex": _index(found["maxAt"], entry),
        "count": entry.parts[found["maxAt"][0]].numel() if found["maxAt"] else math.prod(shape),
        "parts": len(entry.parts),
    }


def _index(at: Sequence[int] | None, entry: Entry) -> list[int] | None:
    """A place in the whole tensor; where its parts are not its elements, the place in the part."""
    if at is None:
        return None
    part, flat = at
    index = []
    for length in reversed(entry.parts[part].shape):
        flat, here = divmod(flat, length)
        index.append(int(here))
    index.reverse()
    if len(entry.offset) == len(index):
        index = [here + begin for here, begin in zip(index, entry.offset, strict=True)]
    return index


# --- arithmetic -------------------------------------------------------------------------------------------------


def _nothing(*, is_changed: bool) -> Found:
    return {
        "max": 0.0,
        "maxAt": None,
        "firstAt": None,
        "differing": 0,
        "beyond": 0,
        "nan": 0,
        "first": None,
        "most": None,
        "changed": is_changed,
    }


def _add(found: Found, more: Found, part: int, start: int) -> None:
    for count in ("differing", "beyond", "nan"):
        found[count] += more[count]
    if more["firstAt"] is not None and found["firstAt"] is None:
        found |= {"firstAt": [part, start + more["firstAt"]], "first": more["first"]}
    if more["maxAt"] is not None and (found["maxAt"] is None or more["max"] > found["max"]):
        found |= {"max": more["max"], "maxAt": [part, start + more["maxAt"]], "most": more["most"]}


def difference(torch: Any, mine: Any, theirs: Any, rules: Rules) -> Found:
    """How two flat tensors of one dtype differ.

    ``max`` |Δ| and its place ``maxAt``; ``differing`` elements, those ``beyond`` the rules, and the place of the first
    of these, ``firstAt``; ``nan``, places where only one is NaN. ``first`` and ``most`` are pairs of values there.
    Equal infinities, and −0.0 and 0.0, differ by 0.
    """
    wide = torch.complex128 if mine.is_complex() else torch.float64
    try:
        x, y = mine.to(wide), theirs.to(wide)
    except RuntimeError:  # a dtype that is only bits
        mine, theirs = mine.view(torch.uint8), theirs.view(torch.uint8)
        x, y = mine.to(wide), theirs.to(wide)
    is_wide = mine.dtype in (torch.int64, getattr(torch, "uint64", None))  # a float64 would lose digits
    same = (mine == theirs) if is_wide else (x == y)
    nan_x, nan_y = torch.isnan(x), torch.isnan(y)
    if rules.equal_nan:
        same = same | (nan_x & nan_y)
    gap = (x - y).abs()
    gap[same] = 0.0
    gap[torch.isnan(gap)] = math.inf  # a number against NaN
    beyond = ~same & ~(gap <= rules.tolerance + rules.rtol * y.abs())
    count = int(beyond.sum())
    found: Found = {
        "max": 0.0,
        "maxAt": None,
        "firstAt": None,
        "first": None,
        "most": None,
        "differing": int((~same).sum()),
        "beyond": count,
        "nan": int((nan_x != nan_y).sum()),
    }
    if found["differing"]:
        most = int(gap.argmax())
        found |= {"max": float(gap[most]), "maxAt": most, "most": _pair(mine, theirs, most)}
    if count:
        first = int(beyond.to(torch.uint8).argmax())
        found |= {"firstAt": first, "first": _pair(mine, theirs, first)}
    return found


def _pair(mine: Any, theirs: Any, at: int) -> list[Any]:
    pair = (mine[at].item(), theirs[at].item())
    return [str(each) if isinstance(each, complex) else each for each in pair]
