"""How checks are put together: tables from a field's name to its check, so that only what is there is looked at."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from marshal import dumps
from typing import NamedTuple, TypeAlias

from jobgen.model.data import Data, TracedScalar, value_of
from jobgen.model.finding import Problem
from jobgen.model.suggest import NO_FIX, SuggestedFix, did_you_mean, suggest_value


class PodCheck(NamedTuple):
    """The pod under judgement: what checks of one part need to know of the others, and what they found."""

    metadata: dict[str, Data]
    spec: dict[str, Data]
    volumes: dict[str, dict[str, Data]]
    restart_policy: Data
    name: str
    problems: list[Problem]

    def report(self, rule: str, message: str, node: Data, fix_steps: SuggestedFix = NO_FIX) -> None:
        """Note a fault that the API server will refuse the pod for, and what would mend it."""
        self.problems.append(Problem(rule, message, node, category="pod", fix_steps=fix_steps[0], safe=fix_steps[1]))

    def says(self, field: str) -> bool:
        """Whether a flag of the pod is true."""
        return value_of(self.spec.get(field)) is True

    def containers(self, *fields: str) -> Iterator[dict[str, Data]]:
        """The containers in the given lists of the pod."""
        for field in fields:
            yield from mappings(self.spec.get(field))


Check: TypeAlias = Callable[[str, Data, Data, PodCheck], None]
"""Judges a field: its key, its value, the mapping or list that holds it, the pod."""

Table: TypeAlias = Mapping[str, Check]

_REMEMBERED = 2048


def judge(mapping: dict[str, Data], table: Table, pod: PodCheck) -> None:
    """Every field of the mapping that the table knows."""
    for key, value in mapping.items():
        check = table.get(key)
        if check is not None:
            check(key, value, mapping, pod)


def mapping_of(table: Table, *needed: str) -> Check:
    """A check for a mapping: its fields by the table, and those that it needs."""

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        if isinstance(value, dict):
            judge(value, table, pod)
            require(f"`{key}`", value, needed, key, pod)

    return check


def each(item_check: Check) -> Check:
    """A check for a list: one and the same for every item."""

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        if isinstance(value, list):
            for item in value:
                item_check(key, item, value, pod)

    return check


def alone(check: Check, *unless: str) -> Check:
    """A check that looks at nothing but the value; one that it found good is known again, and not looked at.

    A value that mentions a word of `unless` is looked at every time: there the check needs to know more of the pod.
    """
    good: set[bytes] = set()
    words = [one.encode() for one in unless]

    def remember(suggest_value: bytes) -> None:
        if len(good) == _REMEMBERED:
            good.clear()
        if len(suggest_value) < _REMEMBERED and not any(one in suggest_value for one in words):
            good.add(suggest_value)

    def known(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        try:
            # No two values are written alike; that one may be written in two ways only costs a second look.
            suggest_value = dumps(value)
        except ValueError:
            # A value with places in it is walked for what it says, not for speed.
            check(key, value, owner, pod)
            return
        if suggest_value not in good:
            before = len(pod.problems)
            check(key, value, owner, pod)
            if len(pod.problems) == before:
                remember(suggest_value)

    return known


def both(*checks: Check) -> Check:
    """Several checks of one value."""

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        for one in checks:
            one(key, value, owner, pod)

    return check


def word(*words: str) -> Check:
    """A check for a word; an empty one is listed where Kubernetes fills it in."""
    known = frozenset(words)

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        found = value_of(value)
        if type(found) is str and found not in known:
            unsupported(key, value, words, pod)

    return check


def unsupported(key: str, value: Data, words: tuple[str, ...], pod: PodCheck) -> None:
    """Report a word that Kubernetes does not know, with the nearest that it does."""
    found = value_of(value)
    known = [one for one in words if one]
    listed = ", ".join(f"`{one}`" for one in known)
    message = f"`{key}` is `{found}`, not one of {listed}{did_you_mean(found, known)}"
    pod.report("unsupported-value", message, value, suggest_value(value, known))


def text(rule: str, noun: str, fits: Callable[[str], bool], hint: str, *, empty: bool = False) -> Check:
    """A check for a string; where `empty`, an empty one is judged too and not taken as left out."""

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        found = value_of(value)
        if type(found) is str and (found or empty) and not fits(found):
            pod.report(rule, f"`{found}` is not {noun}; {hint}", value)

    return check


def number(low: int, high: int | None = None, *, zero: bool = False, rule: str = "out-of-range") -> Check:
    """A check for a whole number; where `zero`, 0 stands for left out."""
    bounds = f"{low} or more" if high is None else f"from {low} to {high}" if low < high else str(low)

    def check(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
        found = value_of(value)
        if type(found) is not int or (zero and found == 0):
            return
        if found < low or (high is not None and found > high):
            pod.report(rule, f"`{key}` is `{found}`; it must be {bounds}", value)

    return check


def require(what: str, owner: dict[str, Data], names: tuple[str, ...], around: Data, pod: PodCheck) -> None:
    """Report fields that are left out, null or empty."""
    for name in names:
        if is_empty(owner.get(name)):
            missing(what, owner, name, around, pod)


def missing(what: str, owner: dict[str, Data], name: str, around: Data, pod: PodCheck) -> None:
    """Report one field that is left out, on the empty value if there is one."""
    value = owner.get(name)
    # An empty mapping has no place of its own.
    node = owner or around if value is None or value == {} else value
    pod.report("missing-pod-field", f"{what} needs `{name}`", node)


def is_empty(value: Data) -> bool:
    """Whether Kubernetes takes a value as left out; 0 and false count as values."""
    found = value_of(value)
    return found is None or found in ("", [], {})


def written(owner: dict[str, Data], names: Container[str]) -> list[str]:
    """Those of the names that the mapping has, as keys with their places."""
    return [key for key, value in owner.items() if key in names and is_set(value)]


def is_set(value: Data) -> bool:
    """Whether a value is there and not null."""
    return value is not None and not (type(value) is TracedScalar and value.value is None)


def string(value: Data) -> str:
    """The string that a value is, or an empty one."""
    found = value_of(value)
    return found if type(found) is str else ""


def mappings(value: Data) -> Iterator[dict[str, Data]]:
    """The mappings in a list."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def strings(value: Data) -> Iterator[tuple[str, Data]]:
    """The strings in a list, each with its node."""
    if isinstance(value, list):
        for item in value:
            found = value_of(item)
            if type(found) is str:
                yield found, item
