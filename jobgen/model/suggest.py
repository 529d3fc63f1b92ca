"""Suggest fixes for common mistakes: misspelled names and values, misplaced entries, wrong types and units."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from jobgen.model.budget import RUN
from jobgen.model.data import Node, value_of
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_COMPARED, MAX_SUGGESTIONS
from jobgen.model.place import At, Place, node_at
from jobgen.model.quantity import canonicalize_quantity

SuggestedFix: TypeAlias = tuple[tuple[FixStep, ...], bool]
"""The steps of a fix, and whether it is safe."""
NO_FIX: SuggestedFix = ((), True)
# A fix must be closer to the original than a hint, which may be wrong.
_FIX_CUTOFF = 0.8
# Words that share letters are not always near each other.
_CANDIDATES = 4
_SHORTEST = 3
_MOST_NAMED = 8
"""How many names a message lists."""
# `h1oo` is meant as `h100`.
_LOOK_ALIKES = str.maketrans("oil", "011")
_MAX_REPEATED = 20
"""How often a letter can be in a name that is compared."""
_AMOUNT = lazy_pattern(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*\Z")
_SUFFIXES = {"": "", "k": "k", **{letter.lower(): letter for letter in "MGTPE"}}
_CORES = ("core", "cores", "cpu", "cpus", "vcpu", "vcpus")
_SUFFIXES |= {f"{letter.lower()}i": f"{letter}i" for letter in "KMGTPE"}


def find_key(mapping: Mapping[str, Node], name: str) -> str | None:
    """The key of that name in the mapping, with its location; None if it is missing."""
    return next((key for key in mapping if key == name), None)


def find_closest(word: str, known: list[str], cutoff: float = 0.6) -> str:
    """The known word that is closest to this one; an empty string if none is close."""
    # A misspelled name is about as long as the right one; comparing long texts takes long.
    return _find_closest(word, tuple(known), cutoff) if len(word) <= MAX_COMPARED else ""


def _is_cheap(word: str, known: tuple[str, ...]) -> bool:
    """Return True if comparing a name with others takes few steps: those of texts that repeat themselves grow fast."""
    letters, every = set(word), "".join(known)
    pairs = sum([word.count(letter) * every.count(letter) for letter in letters])
    is_repetitive = max(map(word.count, letters), default=0) > _MAX_REPEATED
    return not is_repetitive and RUN.allows_advice(4 * len(known) + len(word) * pairs // 16)


@lru_cache(maxsize=1024)
def _find_closest(word: str, known: tuple[str, ...], cutoff: float) -> str:
    if not _is_cheap(word, known):
        return ""
    # Imported late: most names are right.
    from difflib import get_close_matches

    from jobgen.model.meant import find_meant, is_near

    folded = {other.lower(): other for other in known[:MAX_SUGGESTIONS] if len(other) <= MAX_COMPARED}
    alike = word.lower().translate(_LOOK_ALIKES)
    same = [other for other in folded if other.translate(_LOOK_ALIKES) == alike]
    meant = "" if same else find_meant(word, known)
    alike_words = get_close_matches(word.lower(), list(folded), n=_CANDIDATES, cutoff=cutoff)
    close = same or [other for other in alike_words if is_near(word, folded[other])]
    end = len(word)
    longer = (
        each for other, each in folded.items() if other.startswith(word.lower()) and not each[end : end + 1].islower()
    )
    if close and not same and len(list(longer)) > 1:
        # `Restart` begins `RestartJob` and `RestartJobSet`, which do different things.
        return meant
    return meant or (folded[close[0]] if close else "")


def list_alternatives(words: Iterable[str]) -> str:
    """Return words as alternatives: `a`, `b` or `c`."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def list_jobs(names: list[str]) -> str:
    """Return the first names of all jobs, as advice for one that does not exist."""
    if not names:
        return "there are no jobs; `jobgen new NAME` writes one"
    if len(names) == 1:
        return f"the only job is `{names[0]}`"
    *others, last = [f"`{name}`" for name in names[:_MOST_NAMED]]
    rest = len(names) - _MOST_NAMED
    shown = f"{', '.join(others)}, {last} and {rest} more" if rest > 0 else f"{', '.join(others)} and {last}"
    return f"the jobs are {shown}"


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean …?` if another known word is close, else an empty string."""
    meant = find_closest(word, known)
    return ask_for(meant) if meant != word else ""


def ask_for(meant: str) -> str:
    """`; did you mean …?` for a name that was probably meant; empty without one."""
    return f"; did you mean `{meant}`?" if meant else ""


def suggest_or(word: str, known: list[str], advice: str) -> str:
    """`; did you mean …?` for a word of a command line; what to do instead if no known one is close."""
    return did_you_mean(word, known) or _ask_for_short(word, known) or f"; {advice}"


def _ask_for_short(word: str, known: list[str]) -> str:
    """Return `; did you mean …?` for the long form of one known name: `production` of `prod`."""
    short = [other for other in known if len(other) >= _SHORTEST and word.lower().startswith(other.lower())]
    return f"; did you mean `{short[0]}`?" if len(short) == 1 else ""


def suggest_name(word: str, known: list[str]) -> str:
    """`; did you mean …?` for the name of one of few things, or else all of them if there are few.

    A name may be the long form of a known one: `production` of `prod`.
    """
    hint = did_you_mean(word, known) or _ask_for_short(word, known)
    if hint or not 0 < len(known) <= _MOST_NAMED:
        return hint
    *others, last = [f"`{name}`" for name in sorted(known)]
    return f"; there are {', '.join(others)} and {last}" if others else f"; there is {last}"


def suggest_value(place: Place, known: list[str], *, is_refused: bool = True) -> SuggestedFix:
    """Replace an unknown value with the closest known one; safe if it is certain.

    A value that is accepted has an effect, so only case and separators can be corrected without a change of meaning.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant, is_same_name

    found = value_of(node_at(place))
    meant = find_closest(found, known, _FIX_CUTOFF) if isinstance(found, str) else ""
    if not meant:
        return NO_FIX
    is_safe = find_meant(found, known) == meant if is_refused else is_same_name(found, meant)
    return (FixStep("set", place, meant),), is_safe


def takes_any_name(_: str) -> bool:
    """Return True for every name: all entries of the mapping have the same type."""
    return True


def suggest_rename(
    place: Place, known: list[str], taken: Mapping[str, Node], fits: Callable[[str], bool] | None = None
) -> SuggestedFix:
    """Rename a key to the closest name that the mapping may have and does not have yet; safe if it is certain.

    `fits` says whether the field of a name takes the value. Without it, only case and separators are corrected safely.
    """
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant, is_same_name, may_mean

    key = str(node_at(place))
    meant = find_closest(key, known, _FIX_CUTOFF)
    if not meant or meant in taken:
        return NO_FIX
    others = (other for other in taken if other != key and may_mean(other, meant) and other not in known)
    is_certain = fits is not None and find_meant(key, known) == meant and fits(meant)
    is_safe = is_same_name(key, meant) or (is_certain and all(find_meant(other, known) != meant for other in others))
    return (FixStep("rename", place, meant),), is_safe


def suggest_move(key: str, holder: Mapping[str, Node], name: str, beside: Mapping[str, Node]) -> SuggestedFix:
    """Move a scalar entry of a mapping to the mapping `name` of `beside`, which is added if it is missing."""
    value, target = holder[key], beside.get(name)
    removal = FixStep("remove", At(holder, key, is_key=True))
    sibling = _find_sibling(target, key) if isinstance(target, dict) else None
    if isinstance(value, (dict, list)) or holder is target or (isinstance(target, dict) and key in target):
        return NO_FIX
    if sibling is not None:
        return (removal, FixStep("add", sibling, value, str(key))), True
    # The mapping that the entry leaves may become empty and be removed, so nothing can be added after it.
    others = (other for other in beside if not (beside is holder and other == key) and beside[other] is not holder)
    after = next(others, None)
    if after is None or name in beside:
        return NO_FIX
    return (removal, FixStep("add", At(beside, after, is_key=True), {str(key): value}, name)), True


def suggest_blocks(key: str, holder: Mapping[str, Node], path: tuple[str, ...]) -> SuggestedFix:
    """Write an entry with a dotted key, such as `a.b: 1`, as `a: {b: 1}`."""
    first, *rest = path
    value, target, keys = holder[key], holder.get(first), list(holder)
    at = keys.index(key)
    other = next(iter([*reversed(keys[:at]), *keys[at + 1 :]]), None)
    sibling = None if other is None else At(holder, other, is_key=True)
    if isinstance(target, dict):
        sibling = _find_sibling(target, rest[0]) if rest[0] not in target else None
        first, *rest = rest
    elif first in holder:
        sibling = None
    if isinstance(value, (dict, list)) or sibling is None:
        return NO_FIX
    block: Node = value
    for name in reversed(rest):
        block = {name: block}
    return (FixStep("remove", At(holder, key, is_key=True)), FixStep("add", sibling, block, first)), True


def suggest_entry(name: str, value: Node, holder: Mapping[str, Node]) -> tuple[FixStep, ...]:
    """Add an entry to a mapping that has none of this name."""
    sibling = None if name in holder else _find_sibling(holder, name)
    return (FixStep("add", sibling, value, name),) if sibling is not None else ()


def _find_sibling(mapping: Mapping[str, Node], moved: str) -> At | None:
    """The place of the key after which a new entry is added: the last one of a scalar, or else the last."""
    others = [key for key in mapping if key != moved]
    short = [key for key in others if not isinstance(mapping[key], (dict, list))]
    key = next(reversed(short or others), None)
    return None if key is None else At(mapping, key, is_key=True)


def suggest_type(place: Place, wanted: str) -> SuggestedFix:
    """Write the scalar as the type that its field has: with quotes, or without them."""
    found = value_of(node_at(place))
    if wanted == "a string" and isinstance(found, (bool, int, float)):
        return (FixStep("quote", place),), True
    if wanted == "a whole number" and isinstance(found, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,8}", found):
        return (FixStep("set", place, int(found)),), True
    if wanted == "true or false" and found in ("true", "false"):
        return (FixStep("set", place, found == "true"),), True
    return NO_FIX


def describe_unquoting(place: Place, fix_steps: tuple[FixStep, ...]) -> str:
    """Say that a string is right without quotes, if `suggest_type` writes it so; a message shows both the same."""
    return "; remove the quotes" if fix_steps and isinstance(value_of(node_at(place)), str) else ""


def suggest_quantity(place: Place, name: str = "") -> SuggestedFix:
    """Write `16GB` or `4 gi` as a quantity; safe if the unit can mean only one: `gi` and `GiB`, not `g` and `GB`.

    No amount of CPU has such a unit.
    """
    found = value_of(node_at(place))
    parts = _AMOUNT.match(found) if isinstance(found, str) else None
    if parts is None:
        return NO_FIX
    unit = parts[2].lower()
    if unit in _CORES and name == "cpu":
        return (FixStep("set", place, int(parts[1]) if parts[1].isdecimal() else parts[1]),), True
    suffix = unit if unit in _SUFFIXES else unit.removesuffix("b")
    is_written = parts[2] in ("m", *_SUFFIXES.values())
    meant = f"{parts[1]}{parts[2] if is_written else _SUFFIXES.get(suffix, '?')}"
    is_safe = is_written or (suffix.endswith("i") and name != "cpu")
    return ((FixStep("set", place, meant),), is_safe) if canonicalize_quantity(meant) else NO_FIX


# `a100:4` of Slurm, `4xA100`, `4 GPUs` and `x4`.
_DEVICES = lazy_pattern(
    r"(?:(?P<model>[A-Za-z][\w.-]*):|x)?(?P<count>\d{1,3})(?:\s*[xX×]\s*(?P<other>[A-Za-z][\w-]*)|\s*[A-Za-z]+|\s*[xX])?"
)


def _describe_devices(name: str, written: str) -> str:
    """Say what a number of devices looks like; a model of them is selected by the labels of nodes."""
    found = _DEVICES.fullmatch(written.strip())
    if found is None:
        return "a whole number such as `1`"
    is_model = name.startswith("nvidia.com/") and (found["model"] or found["other"])
    model = "; select the model by `nodeSelector`, such as `nvidia.com/gpu.product`" if is_model else ""
    return f"a whole number such as `{found['count']}`{model}"


def describe_quantities(name: str, place: Place) -> str:
    """Say what amounts of a resource look like: devices are whole numbers, only CPUs are divided into thousandths."""
    steps, _ = suggest_quantity(place, name)
    meant = str(steps[0].value) if steps else ""
    if "/" in name:
        return _describe_devices(name, str(value_of(node_at(place))))
    if name == "cpu" and meant.isdigit():
        return f"a quantity such as `{meant}`"
    if meant and meant[-1] in "kMGTPE":
        return f"a quantity such as `{meant}` or `{meant.replace('k', 'K')}i`"
    if meant.endswith("i"):
        return f"a quantity such as `{meant}`"
    return "a quantity such as `500m` or `4`" if name == "cpu" else "a quantity such as `500Mi` or `4Gi`"


def quantity_evidence(name: str, found: object) -> tuple[str, ...]:
    """Return the values of the message about a quantity in the first release."""
    return (name, str(found), "500m", "4Gi")
