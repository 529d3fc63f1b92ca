"""What a schema says of a value beyond its type: bounds, lengths, patterns, words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jobgen.check.schema.own_formats import shown, to_blame
from jobgen.model.data import Data, untraced
from jobgen.model.finding import Problem
from jobgen.model.suggest import NO_FIX, did_you_mean, suggest_quantity, suggest_value

Check = Callable[[Data, str, Data, list[Problem]], None]

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""What every CRD says of quantities: the only pattern of a stranger that is known to take little time."""
_MOST_WORDS = 200
_NUMBER, _SIZED = (int, float), (str, list, dict)
_BOUNDS: tuple[tuple[str, tuple[type, ...], Callable[[Any, Any], bool], str], ...] = (
    ("minimum", _NUMBER, lambda found, bound: found >= bound, "at least {}"),
    ("maximum", _NUMBER, lambda found, bound: found <= bound, "at most {}"),
    ("minLength", (str,), lambda found, bound: len(found) >= bound, "at least {} characters long"),
    ("maxLength", (str,), lambda found, bound: len(found) <= bound, "at most {} characters long"),
    ("minItems", (list,), lambda found, bound: len(found) >= bound, "a list of at least {}"),
    ("maxItems", (list,), lambda found, bound: len(found) <= bound, "a list of at most {}"),
    ("minProperties", (dict,), lambda found, bound: len(found) >= bound, "a mapping of at least {}"),
    ("maxProperties", (dict,), lambda found, bound: len(found) <= bound, "a mapping of at most {}"),
    ("multipleOf", _NUMBER, lambda found, bound: found % bound == 0, "a multiple of {}"),
)


class BadPatternError(Exception):
    """A text that is no pattern to the API server."""


def limits(schema: dict[str, Any], *, foreign: bool = False) -> Iterator[Check]:
    """The checks that a schema node asks for besides its type; patterns of strangers are matched as Go matches them."""
    if "enum" in schema:
        yield _enum(schema["enum"])
    if "pattern" in schema:
        known = not foreign or schema["pattern"] == _QUANTITY
        fits = _fits(schema["pattern"]) if known else _fits_safely(schema["pattern"])
        yield _pattern(schema["pattern"], fits, is_quantity="x-kubernetes-int-or-string" in schema)
    for word, types, holds, must in _BOUNDS:
        if word in schema:
            strict = schema.get(f"exclusive{word.capitalize()}") is True
            yield _bound(schema[word], types, holds, must, strict=strict)


def _bound(bound: Any, types: tuple[type, ...], holds: Callable[[Any, Any], bool], must: str, *, strict: bool) -> Check:
    expected = must.format(bound).replace("at least", "more than" if strict else "at least")
    expected = expected.replace("at most", "less than" if strict else "at most")

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = untraced(value)
        if not isinstance(found, types) or isinstance(found, bool):
            return
        if not holds(found, bound) or (strict and found == bound):
            message = f"`{name}` is {shown(value)}, and must be {expected}"
            problems.append(Problem("out-of-range", message, to_blame(value, blame), category="schema"))

    return check


def _fits(pattern: str) -> Callable[[str], object]:
    """Python's own way, for patterns that are known to be harmless."""
    return re.compile(pattern.replace("$", r"\Z")).search


def _fits_safely(pattern: str) -> Callable[[str], object]:
    """RE2's way, which is that of the API server, and takes no more time than a text is long."""
    # Late, because it needs CEL, and most repositories have no schemas of their own.
    from jobgen.check.cel import available
    from jobgen.check.cel.patterns import fault, matches

    if available():
        return lambda _: True
    wrong = fault(pattern)
    if wrong:
        raise BadPatternError(f"`{pattern}` is not a pattern: {wrong}")
    return lambda text: matches(text, pattern)


def _pattern(pattern: str, fits: Callable[[str], object], *, is_quantity: bool) -> Check:
    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = untraced(value)
        if not isinstance(found, str) or fits(found):
            return
        rule, must = ("invalid-quantity", "be a quantity like `500m` or `4Gi`") if is_quantity else ("", "")
        message = f"`{name}` is {shown(value)}, and must {must or f'match `{pattern}`'}"
        fix_steps, safe = suggest_quantity(value) if is_quantity else NO_FIX
        problems.append(
            Problem(
                rule or "invalid-value",
                message,
                to_blame(value, blame),
                category="schema",
                fix_steps=fix_steps,
                safe=safe,
            )
        )

    return check


def _enum(allowed: list[Any]) -> Check:
    words = [str(word) for word in allowed[:_MOST_WORDS] if word is not None]
    left = len(allowed) - _MOST_WORDS
    more = f" or one of {left} more" if left > 0 else ""

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = untraced(value)
        if found not in allowed:
            hint = did_you_mean(str(found), words) if len(words) > 1 and isinstance(found, str) else ""
            expected = " or ".join(f"`{word}`" for word in words) + more
            message = f"`{name}` is {shown(value)}, and must be {expected}{hint}"
            fix_steps, safe = suggest_value(value, words)
            problems.append(
                Problem(
                    "invalid-value", message, to_blame(value, blame), category="schema", fix_steps=fix_steps, safe=safe
                )
            )

    return check


def forms(word: str, options: list[Check]) -> Check:
    """A value that must have some of several forms, one of them, all, or not this one."""

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        faults: list[list[Problem]] = [[] for _ in options]
        for option, found in zip(options, faults, strict=True):
            option(value, name, blame, found)
        if word == "allOf":
            problems.extend(problem for found in faults for problem in found)
        elif not FORMS[word](sum(not found for found in faults)):
            message = f"`{name}` has {_FORM_WORDS[word]}"
            problems.append(Problem("invalid-form", message, to_blame(value, blame), category="schema"))

    return check


FORMS: dict[str, Callable[[int], bool]] = {
    "anyOf": lambda fitting: fitting > 0,
    "oneOf": lambda fitting: fitting == 1,
    "allOf": bool,
    "not": lambda fitting: fitting == 0,
}
_FORM_WORDS = {
    "anyOf": "none of the forms that its schema allows",
    "oneOf": "not exactly one of the forms that its schema allows",
    "not": "a form that its schema forbids",
}
