"""The part of an object that policies say they look at: what is alike there was judged before.

A policy may say so in its annotation `jobgen.dev/looks-at`: one path a line, `*` for any key or item. It is a promise
of whoever wrote the policy, and only saves time: an object that does not pass is always judged whole.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from jobgen.model.data import Data

LOOKS_AT = "jobgen.dev/looks-at"
_WHOLE: dict[str, Any] = {}
_WITH_DOTTED_KEYS = frozenset("annotations labels matchLabels nodeSelector limits requests data selector".split())

Sight = dict[str, Any]
"""Steps to look along, each with those behind it; nothing behind a step means all that is there."""


def sight_of(paths: str) -> Sight | None:
    """The paths of an annotation as a tree of steps; None if they lead everywhere."""
    sights = [_along(path) for path in paths.split()]
    return reduce(joined, sights) if sights and all(sights) else None


def _along(path: str) -> Sight:
    steps = [step for step in path.split(".") if step]
    # The keys of these may have dots themselves: whoever names one looks at all of them.
    ends = next((number for number, step in enumerate(steps, 1) if step in _WITH_DOTTED_KEYS), len(steps))
    return reduce(lambda below, step: {step: below}, reversed(steps[:ends]), _WHOLE)


def joined(one: Sight, other: Sight) -> Sight:
    """All that either of two looks at."""
    both = {step: joined(below, other[step]) if step in other else below for step, below in one.items()}
    merged = {**both, **{step: below for step, below in other.items() if step not in one}}
    # Whoever looks at all of a thing sees more than whoever looks at parts of it.
    return {step: _WHOLE if _is_whole(step, one, other) else below for step, below in merged.items()}


def _is_whole(step: str, *trees: Sight) -> bool:
    return any(step in tree and not tree[step] for tree in trees)


def seen(value: Data, sight: Sight) -> Data:
    """What of a value is seen."""
    if not sight:
        return value
    if isinstance(value, dict):
        wanted: Sight = {}
        for step, below in sight.items():
            if step[0] != "*":
                if step in value:
                    _want(step, below, wanted)
            else:
                for key in value:
                    if key.endswith(step[1:]):
                        _want(key, below, wanted)
        return {key: seen(value[key], below) for key, below in wanted.items()}
    if isinstance(value, list) and [*sight] == ["*"]:
        return [seen(child, sight["*"]) for child in value]
    return value


def _want(key: str, below: Sight, wanted: Sight) -> None:
    """Look behind a key, at all that any step which means it looks at."""
    known = wanted.get(key)
    wanted[key] = below if known is None else joined(known, below) if known and below else _WHOLE
