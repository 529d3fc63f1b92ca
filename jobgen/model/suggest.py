"""What would mend a fault: the changes for slips that people make again and again.

A mend is `(changes, safe)`; without changes nobody knows better than who wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from jobgen.model.data import Data, TracedScalar, value_of
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import canonicalize_quantity

SuggestedFix: TypeAlias = tuple[tuple[FixStep, ...], bool]

NO_FIX: SuggestedFix = ((), True)
# A hint may be wrong; what is written down in its place must be more than near.
_ALMOST = 0.8
_JOINTS = lazy_pattern(r"[-_. ]")
_AMOUNT = lazy_pattern(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*\Z")
_SUFFIXES = {"": "", "k": "k", **{letter.lower(): letter for letter in "MGTPE"}}
_SUFFIXES |= {f"{letter.lower()}i": f"{letter}i" for letter in "KMGTPE"}


def find_key(mapping: Mapping[str, Data], name: str) -> Data:
    """The key itself, which knows its place; None if it is not there."""
    return next((key for key in mapping if key == name), None)


def find_closest(word: str, known: list[str], cutoff: float = 0.6) -> str:
    """The known word that is closest to this one; nothing if none is close."""
    from difflib import get_close_matches

    folded = {other.lower(): other for other in known}
    close = get_close_matches(word.lower(), list(folded), n=1, cutoff=cutoff)
    return folded[close[0]] if close else ""


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean …?` if some known word is close, else nothing."""
    close = find_closest(word, known)
    return f"; did you mean `{close}`?" if close else ""


def is_same_name(one: str, other: str) -> bool:
    """Whether two words differ in case, dashes and underscores alone."""
    return _JOINTS.sub("", one).lower() == _JOINTS.sub("", other).lower()


def suggest_value(node: Data, known: list[str]) -> SuggestedFix:
    """Another word in the place of one that nobody knows; safe where it is the same but for case and dashes."""
    found = value_of(node)
    meant = find_closest(found, known, _ALMOST) if isinstance(found, str) else ""
    return (((FixStep("set", node, meant),), is_same_name(found, meant))) if meant else NO_FIX


def suggest_rename(key: str, known: list[str], taken: Mapping[str, Data]) -> SuggestedFix:
    """The nearest name that a mapping may have and has not got."""
    meant = find_closest(key, known, _ALMOST)
    return (((FixStep("rename", key, meant),), is_same_name(key, meant))) if meant and meant not in taken else NO_FIX


def suggest_move(
    key: str, value: Data, holder: Mapping[str, Data], name: str, beside: Mapping[str, Data]
) -> SuggestedFix:
    """An entry moved to the mapping `name` of `beside`, which is opened if there is none; comments inside would go."""
    home = beside.get(name)
    sibling = _sibling(home, key) if isinstance(home, dict) else None
    if not isinstance(value, TracedScalar) or holder is home or (isinstance(home, dict) and key in home):
        return NO_FIX
    if sibling is not None:
        return (FixStep("remove", key), FixStep("add", sibling, value, str(key))), True
    # The mapping that is left might be empty, and go: then nothing can stand behind it.
    sibling = next((other for other in beside if other is not key and beside[other] is not holder), None)
    if sibling is None or name in beside:
        return NO_FIX
    return (FixStep("remove", key), FixStep("add", sibling, {str(key): value}, name)), True


def suggest_entry(name: str, value: Data, holder: Mapping[str, Data]) -> tuple[FixStep, ...]:
    """An entry put into a mapping that has none of this name."""
    sibling = None if name in holder else _sibling(holder, name)
    return (FixStep("add", sibling, value, name),) if sibling is not None else ()


def _sibling(mapping: Mapping[str, Data], but: str) -> Data:
    """Behind what a new entry is put: the last that is short, or else the last."""
    others = [key for key in mapping if key is not but]
    short = [key for key in others if isinstance(mapping[key], TracedScalar)]
    return next(reversed(short or others), None)


def suggest_type(node: Data, wanted: str) -> SuggestedFix:
    """The scalar as the type that its field takes: what is written, in quotes; or what the quotes hold."""
    found = value_of(node)
    if wanted == "a string" and isinstance(found, (bool, int, float)):
        return (FixStep("quote", node),), True
    if wanted == "a whole number" and isinstance(found, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", found):
        return (FixStep("set", node, int(found)),), True
    if wanted == "true or false" and found in ("true", "false"):
        return (FixStep("set", node, found == "true"),), True
    return NO_FIX


def suggest_quantity(node: Data) -> SuggestedFix:
    """The quantity that was meant by `16GB` or `4 gi`; never safe, for nobody knows which unit was meant."""
    found = value_of(node)
    parts = _AMOUNT.match(found) if isinstance(found, str) else None
    if parts is None:
        return NO_FIX
    suffix = parts[2] if parts[2].lower() in _SUFFIXES else parts[2].lower().removesuffix("b")
    meant = f"{parts[1]}{_SUFFIXES.get(suffix.lower(), '?')}"
    return ((FixStep("set", node, meant),), False) if canonicalize_quantity(meant) else NO_FIX
