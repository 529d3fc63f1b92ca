"""Objects that resemble one that was fine: only those are asked again who read something that differs.

What a check says depends on what it reads and on nothing else. One object is judged with leaves that tell who reads
them; of another that differs from it in some leaves alone, all who read none of these would say the same once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobgen.model.data import Data, Location, TracedScalar, Watch, untraced

EVERYBODY = -1
"""Checks are numbered, and a set of them is a number with these bits; this one has them all."""

Checks = Sequence[Callable[[Data], object]]
"""Each says something of an object that is not fine, and nothing of one that is."""

_NOWHERE = Location("")
_REMEMBERED = 4
# To find out who reads what takes as long as judging a hundred objects.
_WORTH_A_SURVEY = 30


class Models:
    """Objects that were fine, the last few of each kind."""

    def __init__(self) -> None:
        self._of_kind: dict[Any, list[_Model]] = {}

    def asked(self, kind: Any, made: Data, checks: Callable[[], Checks]) -> int:
        """Who must be asked about an object, as bits; `checks` are all there are."""
        models = self._of_kind.get(kind, ())
        for place, model in enumerate(models):
            asked = model.asked(made, checks)
            if asked is not None:
                if place:
                    self._of_kind[kind] = [model, *(other for other in models if other is not model)]
                return asked
        return EVERYBODY

    def note(self, kind: Any, made: Data) -> None:
        """Keep an object that was fine, and about which everybody was asked, unless one like it is known."""
        models = self._of_kind.get(kind, [])
        if all(model.differing(made) is None for model in models):
            self._of_kind[kind] = [_Model(made), *models[: _REMEMBERED - 1]]


class _Model:
    """An object that was fine; once enough others resembled it, also who read which of its leaves."""

    __slots__ = ("_object", "_readers", "_resembled")

    def __init__(self, made: Data) -> None:
        self._object = made
        self._readers: Data = None
        self._resembled = 0

    def asked(self, made: Data, checks: Callable[[], Checks]) -> int | None:
        asked = self.differing(made)
        if asked is None or self._readers is not None:
            return asked
        self._resembled += 1
        if self._resembled < _WORTH_A_SURVEY:
            return EVERYBODY
        self._readers = _survey(self._object, checks())
        return self.differing(made)

    def differing(self, made: Data) -> int | None:
        """Who read the leaves in which an object differs from this one; None if it differs in more than leaves."""
        return _differing(self._object, made, self._readers)


def _differing(known: Data, made: Data, readers: Data) -> int | None:
    """Who read what differs between two mappings, or two lists; None if not only leaves of the same types do."""
    if type(made) is not type(known) or len(made) != len(known):
        return None
    is_mapping = type(known) is dict
    if is_mapping and [*known] != [*made]:
        return None
    asked = 0
    for key in known if is_mapping else range(len(known)):
        old, new = known[key], made[key]
        if old is new:
            continue
        sort = type(old)
        if sort is dict or sort is list:
            below = _differing(old, new, readers and readers[key])
            if below is None:
                return None
            asked |= below
        elif type(new) is not sort:
            return None
        elif old != new:
            asked |= readers[key] if readers else EVERYBODY
    return asked


def _survey(made: Data, checks: Checks) -> Data:
    """Who reads which leaf: the object with bits in the place of its leaves."""
    asking = [0]
    watched, readers = _watched(made, asking)
    for number, check in enumerate(checks):
        asking[0] = 1 << number
        if check(watched):
            # Of a fine object it should say nothing; whatever broke it off, it may have wanted to read all.
            untraced(watched)
    return readers


def _watched(node: Data, asking: list[int]) -> tuple[Data, Data]:
    """A tree whose leaves note who asks for them, and the tree of these notes."""
    watched: Any = {} if isinstance(node, dict) else [None] * len(node)
    readers: Any = watched.copy()
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(child, (dict, list)):
            watched[key], readers[key] = _watched(child, asking)
        else:
            readers[key] = 0
            watched[key] = TracedScalar.watched(Watch(child, _noter(readers, key, asking)), _NOWHERE)
    return watched, readers


def _noter(readers: Any, key: Any, asking: list[int]) -> Callable[[], None]:
    def note() -> None:
        readers[key] |= asking[0]

    return note
