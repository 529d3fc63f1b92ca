"""Compare this version of jobgen with the `required-version` of the settings, as ruff does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from jobgen import __version__
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern

FIELD = "required-version"
_CONDITION = lazy_pattern(r"\s*(==|!=|>=|<=|~=|>|<)\s*(\d{1,6}(?:\.\d{1,6}){0,3})(\.\*)?\s*", re.ASCII)
Version = tuple[int, ...]


def find_version_problem(settings: Mapping[Any, Node]) -> Iterator[Problem]:
    """Report a `required-version` that this version does not meet, or that cannot be read."""
    required = value_of(settings.get(FIELD))
    if not isinstance(required, str):
        return  # Absent, or an error of the schema.
    met = is_met(required, __version__)
    if met is None:
        message = f"`{FIELD}` is `{required}`, which is not a list of conditions; write one such as `>=0.2,<0.3`"
        yield Problem("invalid-value", message, settings[FIELD])
    elif not met:
        message = (
            f"this is jobgen `{__version__}`, and the repository requires `{required}`; install such a version, "
            f"for example with `pip install 'jobgen{required}'`"
        )
        yield Problem("wrong-jobgen-version", message, settings[FIELD], category="meta")


def is_met(conditions: str, version: str) -> bool | None:
    """Whether a version meets all conditions of a list; None if one of them is not a condition."""
    met = [_meets(part, version) for part in conditions.split(",")]
    return None if None in met else all(met)


def _meets(condition: str, version: str) -> bool | None:
    """Whether a version meets a condition; None if it is not a condition."""
    found = _CONDITION.fullmatch(condition)
    if not found:
        return None
    operator, number, any_patch = found.groups()
    length = number.count(".") + 1
    ours, theirs = _align(_parse(version), _parse(number))
    if operator == "~=":
        # `~=0.2.1` is `>=0.2.1,==0.2.*`; with a single number nothing would be fixed.
        fixed = length - 1
        return None if not fixed or any_patch else ours >= theirs and ours[:fixed] == theirs[:fixed]
    if any_patch:
        is_equal = ours[:length] == theirs[:length]
        return {"==": is_equal, "!=": not is_equal}.get(operator)
    return _COMPARE[operator](ours, theirs)


_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "==": lambda ours, theirs: ours == theirs,
    "!=": lambda ours, theirs: ours != theirs,
    ">=": lambda ours, theirs: ours >= theirs,
    "<=": lambda ours, theirs: ours <= theirs,
    ">": lambda ours, theirs: ours > theirs,
    "<": lambda ours, theirs: ours < theirs,
}


def _align(ours: Version, theirs: Version) -> tuple[Version, Version]:
    """Fill the shorter version with zeros, because `0.2` is `0.2.0`."""
    pairs = list(zip_longest(ours, theirs, fillvalue=0))
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _parse(version: str) -> Version:
    """Return the numbers of a release; what follows them, as in `0.2.0.dev1`, does not count."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()
