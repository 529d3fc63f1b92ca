"""What would mend a fault: the changes for slips that people make again and again.

A mend is `(changes, safe)`; without changes nobody knows better than who wrote it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from jobgen.model.data import Change, Data, Leaf, bare
from jobgen.model.lazy_re import pattern
from jobgen.model.quantity import canonical

Mend: TypeAlias = tuple[tuple[Change, ...], bool]

NOTHING: Mend = ((), True)
# A hint may be wrong; what is written down in its place must be more than near.
_ALMOST = 0.8
_JOINTS = pattern(r"[-_. ]")
_AMOUNT = pattern(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*\Z")
_SUFFIXES = {"": "", "k": "k", **{letter.lower(): letter for letter in "MGTPE"}}
_SUFFIXES |= {f"{letter.lower()}i": f"{letter}i" for letter in "KMGTPE"}


def key_in(mapping: dict[str, Data], name: str) -> Data:
    """The key itself, which knows its place; None if it is not there."""
    return next((key for key in mapping if key == name), None)


def closest(word: str, known: list[str], cutoff: float = 0.6) -> str:
    """The known word that is closest to this one; nothing if none is close."""
    from difflib import get_close_matches

    folded = {other.lower(): other for other in known}
    close = get_close_matches(word.lower(), list(folded), n=1, cutoff=cutoff)
    return folded[close[0]] if close else ""


def nearest(word: str, known: list[str]) -> str:
    """`; did you mean …?` if some known word is close, else nothing."""
    close = closest(word, known)
    return f"; did you mean `{close}`?" if close else ""


def is_same_word(one: str, other: str) -> bool:
    """Whether two words differ in case, dashes and underscores alone."""
    return _JOINTS.sub("", one).lower() == _JOINTS.sub("", other).lower()


def spelt(node: Data, known: list[str]) -> Mend:
    """Another word in the place of one that nobody knows; safe where it is the same but for case and dashes."""
    found = bare(node)
    meant = closest(found, known, _ALMOST) if isinstance(found, str) else ""
    return (((Change("set", node, meant),), is_same_word(found, meant))) if meant else NOTHING


def renamed(key: str, known: list[str], taken: dict[str, Data]) -> Mend:
    """The nearest name that a mapping may have and has not got."""
    meant = closest(key, known, _ALMOST)
    return (((Change("rename", key, meant),), is_same_word(key, meant))) if meant and meant not in taken else NOTHING


def moved(key: str, value: Data, holder: dict[str, Data], name: str, beside: dict[str, Data]) -> Mend:
    """An entry moved to the mapping `name` of `beside`, which is opened if there is none; comments inside would go."""
    home = beside.get(name)
    sibling = _sibling(home, key) if isinstance(home, dict) else None
    if not isinstance(value, Leaf) or holder is home or (isinstance(home, dict) and key in home):
        return NOTHING
    if sibling is not None:
        return (Change("remove", key), Change("add", sibling, value, str(key))), True
    # The mapping that is left might be empty, and go: then nothing can stand behind it.
    sibling = next((other for other in beside if other is not key and beside[other] is not holder), None)
    if sibling is None or name in beside:
        return NOTHING
    return (Change("remove", key), Change("add", sibling, {str(key): value}, name)), True


def added(name: str, value: Data, holder: dict[str, Data]) -> tuple[Change, ...]:
    """An entry put into a mapping that has none of this name."""
    sibling = None if name in holder else _sibling(holder, name)
    return (Change("add", sibling, value, name),) if sibling is not None else ()


def _sibling(mapping: dict[str, Data], but: str) -> Data:
    """Behind what a new entry is put: the last that is short, or else the last."""
    others = [key for key in mapping if key is not but]
    short = [key for key in others if isinstance(mapping[key], Leaf)]
    return next(reversed(short or others), None)


def retyped(node: Data, wanted: str) -> Mend:
    """The scalar as the type that its field takes: what is written, in quotes; or what the quotes hold."""
    found = bare(node)
    if wanted == "a string" and isinstance(found, (bool, int, float)):
        return (Change("quote", node),), True
    if wanted == "a whole number" and isinstance(found, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", found):
        return (Change("set", node, int(found)),), True
    if wanted == "true or false" and found in ("true", "false"):
        return (Change("set", node, found == "true"),), True
    return NOTHING


def as_quantity(node: Data) -> Mend:
    """The quantity that was meant by `16GB` or `4 gi`; never safe, for nobody knows which unit was meant."""
    found = bare(node)
    parts = _AMOUNT.match(found) if isinstance(found, str) else None
    if parts is None:
        return NOTHING
    suffix = parts[2] if parts[2].lower() in _SUFFIXES else parts[2].lower().removesuffix("b")
    meant = f"{parts[1]}{_SUFFIXES.get(suffix.lower(), '?')}"
    return ((Change("set", node, meant),), False) if canonical(meant) else NOTHING
