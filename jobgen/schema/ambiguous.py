"""Finds keys and values that YAML reads as something else than the text that was written: `0755`, `yes`, `1.10`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from jobgen.model.data import TracedKey, TracedScalar
from jobgen.model.finding import FixStep, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.sentence import Sentence

RULE = "ambiguous-scalar"

# A plain scalar at the place of a key or a value that may not be shown as it is written: numbers in their shortest form
# are, and `true` and `false`. The pattern only has to find every file that has one. Spaces are not given
# back, and one character decides whether such a scalar, or an anchor, can follow: that leaves few places to look at.
_SUSPECT = rb"""[:?\-\[{,\n](?:(?<=[\[{,\n])|[ \t])[ \t]*+(?=[&~yYnNoOTF0-9.+-])(?:&\S+\s+)?
    (?:[yYnN~]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF|True|TRUE|False|FALSE
    |(?!(?:0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,6})\.(?!0000)[0-9]{0,7}[1-9])[ \t]*(?:[]},:\#\r\n]|\Z))
    [-+]?\.?[0-9][-+._0-9a-fA-FoOxX]*)
    [ \t]*(?:[]},:\#\r\n]|\Z)"""
_EXPONENT = lazy_pattern(r"[-+]?[0-9.]+[eE][-+]?[0-9]+\Z")


# A file of many documents is searched once, not for each of them.
@functools.lru_cache(maxsize=1)
def may_be_ambiguous(content: bytes) -> bool:
    """Return True if a file may have an ambiguous scalar; then it is read again with locations."""
    # A pattern that begins with a set of characters is searched for faster than one that may begin with a line.
    return _suspect_pattern().search(b"\n" + content) is not None


@functools.cache
def _suspect_pattern() -> re.Pattern[bytes]:
    return re.compile(_SUSPECT, re.VERBOSE)


def find_ambiguous_keys(tree: Any) -> Iterator[Problem]:
    """Report the keys of a tree with locations that YAML reads as another text."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if type(key) is TracedKey and key.written:
                message = Sentence("the key `{}` is read as `{}` by YAML; quote it", key.written, key)
                yield Problem(RULE, message, key, category="yaml", fix_steps=(FixStep("rename", key, key.written),))
            yield from find_ambiguous_keys(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from find_ambiguous_keys(value)


def check_text(value: TracedScalar, name: str, types: list[str]) -> Problem | None:
    """Report a value that is not the text that was written, in a field that takes strings and these other types."""
    if not value.written or _is_same(value.written, value.value, types):
        return None
    shown = str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
    read_as = f"`{name}` is `{value.written}`, which YAML reads as `{shown}`"
    if "boolean" not in types:
        # A quantity: in quotes, it would not be the number that YAML reads.
        steps = (FixStep("set", value, value.value),)
        message = Sentence("{}; write `{}`", read_as, shown)
        problem = Problem(RULE, message, value, category="yaml", fix_steps=steps, safe=False, expected="a number")
        return problem._replace(about=name)
    steps = (FixStep("quote", value),)
    problem = Problem(
        RULE, Sentence("{}; quote it", read_as), value, category="yaml", fix_steps=steps, expected="a string"
    )
    return problem._replace(about=name)


def _is_same(written: str, value: Any, types: list[str]) -> bool:
    """Return True if a field means the same by a value as by its text."""
    if isinstance(value, bool) or ("number" not in types and "boolean" in types):
        # The value becomes text.
        return False
    if "boolean" in types:
        # A variable of a matrix becomes text or a number. `1e-5` is a number in any notation; `1.10` may be a version.
        return any(_EXPONENT.match(text) for text in (written, str(value)))
    try:
        return bool(float(written) == value)
    except ValueError:
        return False
