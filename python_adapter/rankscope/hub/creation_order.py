"""In which order the job's Ray actors were asked for: a rank that nothing says otherwise."""

from __future__ import annotations


class CreationOrder:
    """Numbers the actors of each class as they were created; the number of one that has ended is given again."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[str, int]] = {}

    def note(self, actor: str, label: str) -> None:
        """An actor was asked for; nothing when it is known (a named one that was there already)."""
        if actor not in self._numbers:
            taken = {number for known, number in self._numbers.values() if known == label}
            free = next(number for number in range(len(taken) + 1) if number not in taken)
            self._numbers[actor] = (label, free)

    def number(self, actor: str) -> int | None:
        """Its place among those of its class; ``None`` when nobody of the job said to have created it."""
        return self._numbers[actor][1] if actor in self._numbers else None

    def awaited(self) -> set[str]:
        """The actors that were asked for and have not ended."""
        return set(self._numbers)

    def forget(self, actor: str) -> None:
        """It has ended."""
        self._numbers.pop(actor, None)
