"""Checks the constraints of a schema besides the type: bounds, lengths, patterns, enums and alternatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.data import Plain, untraced
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_FINDINGS
from jobgen.model.place import Derived, Entry, at_item, at_scalar, at_value
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import (
    ask_for,
    describe_quantities,
    find_closest,
    list_alternatives,
    suggest_quantity,
    suggest_value,
)
from jobgen.model.times import is_time
from jobgen.schema.own_formats import Check, format_value
from jobgen.schema.types_of_release import QUANTITY

_BASE64 = lazy_pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DURATION = lazy_pattern(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_SIX_DECIMALS = lazy_pattern(r"[.,][0-9]{6}(?![0-9])")


_FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    # Line breaks are ignored.
    "base64": (
        lambda text: _BASE64.fullmatch(text.replace("\n", "").replace("\r", "")),
        "be base64, such as `aGVsbG8=`; write plain text in `stringData`",
    ),
    "duration": (lambda text: _DURATION.fullmatch(text) is not None, "be a duration, such as `1h30m`"),
    "micro-time": (
        lambda text: is_time(text) and _SIX_DECIMALS.search(text),
        "be a time with six decimals, such as `2026-01-31T12:00:00.000000Z`",
    ),
    "quantity": (lambda text: to_milli(text) is not None, "be a quantity"),
    "time": (is_time, "be a time, such as `2026-01-31T12:00:00Z`"),
}

_MAX_LISTED = 200
_MAX_SAFE_INTEGER = 2**53 - 1
_MAX_RELATIVE_ERROR = 1e-9


def _is_multiple(found: float, factor: float) -> bool:
    """Return True if a number is a multiple to the API server, which allows for the rounding of floats."""
    if isinstance(found, int):
        return factor > 0 and found % factor == 0
    quotient = found * (1 / factor) if factor < 1 else found / factor
    if abs(quotient) > _MAX_SAFE_INTEGER:
        return False
    nearest = float(int(quotient))
    return quotient == nearest or (
        quotient > 0 and nearest > 0 and (quotient - nearest) / (quotient + nearest) < _MAX_RELATIVE_ERROR
    )


_NUMBER, _SIZED = (int, float), (str, list, dict)
_BOUNDS: tuple[tuple[str, tuple[type, ...], Callable[[Any, Any], bool], str], ...] = (
    ("minimum", _NUMBER, lambda found, bound: found >= bound, "at least {}"),
    ("maximum", _NUMBER, lambda found, bound: found <= bound, "at most {}"),
    ("minLength", (str,), lambda found, bound: len(found) >= bound, "at least {} characters long"),
    ("maxLength", (str,), lambda found, bound: len(found) <= bound, "at most {} characters long"),
    ("minItems", (list,), lambda found, bound: len(found) >= bound, "a list of at least {}"),
    ("maxItems", (list,), lambda found, bound: len(found) <= bound, "a list of at most {}"),
    ("minProperties", (dict,), lambda found, bound: _count_set(found) >= bound, "a mapping of at least {}"),
    ("maxProperties", (dict,), lambda found, bound: _count_set(found) <= bound, "a mapping of at most {}"),
    ("multipleOf", _NUMBER, _is_multiple, "a multiple of {}"),
)


def _count_set(fields: dict[str, Any]) -> int:
    """Count the fields that are not null: the API server drops null before it counts."""
    return sum(value is not None for value in fields.values())


class BadPatternError(Exception):
    """A text that is not a valid pattern to the API server."""


def compile_constraints(
    schema: dict[str, Any], *, needs_re2: bool = False, release: Release = NEWEST_RELEASE
) -> Iterator[Check]:
    """The checks of a schema node besides its type; RE2 matches patterns as Go does, in linear time."""
    if schema.get("enum"):
        yield _enum(schema["enum"])
    if "format" in schema and "string" in schema.get("type", "string"):
        yield from _compile_format(schema["format"], release, is_typed="type" in schema)
    if "pattern" in schema:
        # The pattern of quantities in every CRD is the only one of an untrusted schema that is known to be fast.
        known = not needs_re2 or schema["pattern"] == QUANTITY
        matches = _match_with_python(schema["pattern"]) if known else _match_with_re2(schema["pattern"])
        is_quantity = "x-kubernetes-int-or-string" in schema
        must = _PATTERNS.get(schema["pattern"], f"match `{schema['pattern']}`")
        yield _text(matches, must, is_quantity=is_quantity)
    if "x-jobgen-form" in schema:
        yield _text(*_FORMS[schema["x-jobgen-form"]], is_quantity=schema["x-jobgen-form"] == "quantity")
    for word, types, holds, must in _BOUNDS:
        if word in schema:
            strict = schema.get(f"exclusive{word.capitalize()}") is True
            yield _bound(schema[word], types, holds, must, strict=strict)


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PATTERNS = {
    f"^{_LABEL}$": "be lower-case letters, digits and `-`, with a letter or digit at both ends",
    rf"^{_LABEL}(\.{_LABEL})*$": "be lower-case letters, digits, `-` and `.`, with a letter or digit at both ends",
}
"""What the patterns of names say."""


def report_value(rule: str, message: Words, value: Plain, entry: Entry) -> Problem:
    """Report a value: a scalar itself, a mapping or list by its key, at which it is shown unless it is an item."""
    return Problem(rule, message, at_scalar(value, entry), category="schema", at=at_item(value, entry))


def _bound(bound: Any, types: tuple[type, ...], holds: Callable[[Any, Any], bool], must: str, *, strict: bool) -> Check:
    expected = must.format(bound).replace("at least", "more than" if strict else "at least")
    expected = expected.replace("at most", "less than" if strict else "at most")

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        if not isinstance(value, types) or isinstance(value, bool):
            return
        # The API server compares integers with integers.
        limit = int(bound) if type(value) is int else bound
        if not holds(value, limit) or (strict and value == limit):
            message = Sentence("`{}` is {}, and must be {}", name, format_value(value), expected)
            problems.append(report_value("out-of-range", message, value, entry))

    return check


def _compile_format(name: str, release: Release, *, is_typed: bool) -> Iterator[Check]:
    # Imported late, because few objects have values with a format.
    from jobgen.check.schema.formats import find_format

    form = find_format(name, release)
    if form is None:
        return

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        # Without a type, the format stands for one.
        is_refused = not form.is_valid(value) if type(value) is str else not (is_typed or isinstance(value, list))
        if is_refused and value is not None:
            message = Sentence(
                "`{}` is {}, and must be {} such as `{}`", name, format_value(value), form.noun, form.example
            )
            problems.append(report_value("invalid-value", message, value, entry))

    yield check


def _match_with_python(pattern: str) -> Callable[[str], object]:
    """Match with Python, for patterns of trusted schemas."""
    flags = re.ASCII
    if "(?i)" in pattern:
        # RE2 accepts a flag anywhere.
        pattern, flags = pattern.replace("(?i)", ""), flags | re.IGNORECASE
    return re.compile(pattern.replace("$", r"\Z"), flags).search


def _match_with_re2(pattern: str) -> Callable[[str], object]:
    """Match with RE2, as the API server does: its time is linear in the text."""
    # Imported late, because it needs CEL, and most repositories have no schemas of their own.
    from jobgen.check.cel import available
    from jobgen.check.cel.text_format import fault, matches

    if available():
        return lambda _: True
    wrong = fault(pattern)
    if wrong:
        raise BadPatternError(f"`{pattern}` is not a pattern: {wrong}")
    return lambda text: matches(text, pattern)


def _text(is_valid: Callable[[str], object], expected: str, *, is_quantity: bool) -> Check:
    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        if type(value) is not str or is_valid(value):
            return
        head, place = f"`{name}` is {format_value(value)}, and must", at_value(value, entry)
        if is_quantity:
            message = Sentence("{} be {}", head, describe_quantities(name, place))
            fix_steps, safe = suggest_quantity(place, name)
            problem = Problem("invalid-quantity", message, place, category="schema", fix_steps=fix_steps, safe=safe)
        else:
            problem = Problem("invalid-value", Sentence("{} {}", head, expected), place, category="schema")
        problems.append(problem)

    return check


def _enum(allowed: list[Any]) -> Check:
    words = [str(word) for word in allowed[:_MAX_LISTED] if word is not None]
    left = len(allowed) - _MAX_LISTED
    more = f" or one of {left} more" if left > 0 else ""
    texts = frozenset(word for word in allowed if type(word) is str)

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        found = value if type(value) is str else untraced(value)
        if type(found) is str and found in texts:
            return
        if not any(_is_enum_value(found, each) for each in allowed):
            meant = find_closest(str(found), words) if len(words) > 1 and isinstance(found, str) else ""
            expected = list_alternatives(f"`{word}`" for word in words) + more
            message = Sentence("`{}` is {}, and must be {}{}", name, format_value(value), expected, ask_for(meant))
            fix_steps, safe = suggest_value(at_value(value, entry), words)
            problem = report_value("invalid-value", message, value, entry)
            problems.append(problem._replace(fix_steps=fix_steps, safe=safe, meant=meant))

    return check


def _is_enum_value(found: Any, allowed: Any) -> bool:
    """True if a value is one of an enum to the API server, which converts numbers to the type of the enum's value."""
    if type(found) is type(allowed):
        return _is_identical(found, allowed)
    if type(found) is float and type(allowed) is int:
        return isfinite(found) and int(found) == allowed
    if type(found) is int and type(allowed) is str:
        # Go converts an integer to the character of that number.
        return len(allowed) == 1 and found == ord(allowed)
    return type(found) is int and type(allowed) is float and found == allowed


def _is_identical(found: Any, allowed: Any) -> bool:
    """Return True if two values are equal and of the same types."""
    if type(found) is not type(allowed):
        return False
    if isinstance(found, list):
        return len(found) == len(allowed) and all(map(_is_identical, found, allowed))
    if isinstance(found, dict):
        return found.keys() == allowed.keys() and all(_is_identical(found[key], allowed[key]) for key in found)
    return bool(found == allowed)


def compile_alternatives(word: str, options: list[Check], defaults: Mapping[str, Any] | None = None) -> Check:
    """Check `anyOf`, `oneOf`, `allOf` or `not`, of a mapping with the defaults of its fields."""

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        fitting = 0
        if defaults and isinstance(value, dict):
            added = {key: default for key, default in defaults.items() if (value.get(key) is None)}
            value = Derived({**value, **added}, value) if added else value
        for option in options:
            # What one alternative finds may be as long as the value, so it is not kept.
            found: list[Problem] = []
            option(value, name, entry, found)
            fitting += not found
            if word == "allOf":
                problems.extend(found)
                if len(problems) > MAX_FINDINGS:
                    break
        if word != "allOf" and not _COUNTS[word](fitting):
            message = Sentence("`{}` has {}", name, _FORM_MESSAGES[word])
            problems.append(report_value("invalid-form", message, value, entry))

    return check


_COUNTS: dict[str, Callable[[int], bool]] = {
    "anyOf": lambda fitting: fitting > 0,
    "oneOf": lambda fitting: fitting == 1,
    "not": lambda fitting: fitting == 0,
}
_FORM_MESSAGES = {
    "anyOf": "none of the alternatives that its schema allows",
    "oneOf": "not exactly one of the alternatives that its schema allows",
    "not": "a form that its schema forbids",
}
