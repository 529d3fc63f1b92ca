"""What a schema says of a value beyond its type: bounds, lengths, patterns, words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jobgen.mends import NOTHING, as_quantity, spelt
from jobgen.model import Data, Problem, plain
from jobgen.schema import nearest, shown, to_blame

Check = Callable[[Data, str, Data, list[Problem]], None]

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


def limits(schema: dict[str, Any]) -> Iterator[Check]:
    """The checks that a schema node asks for besides its type."""
    if "enum" in schema:
        yield _enum(schema["enum"])
    if "pattern" in schema:
        yield _pattern(schema["pattern"], is_quantity="x-kubernetes-int-or-string" in schema)
    for word, types, holds, must in _BOUNDS:
        if word in schema:
            strict = schema.get(f"exclusive{word.capitalize()}") is True
            yield _bound(schema[word], types, holds, must, strict=strict)


def _bound(bound: Any, types: tuple[type, ...], holds: Callable[[Any, Any], bool], must: str, *, strict: bool) -> Check:
    expected = must.format(bound).replace("at least", "more than" if strict else "at least")
    expected = expected.replace("at most", "less than" if strict else "at most")

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = plain(value)
        if not isinstance(found, types) or isinstance(found, bool):
            return
        if not holds(found, bound) or (strict and found == bound):
            message = f"`{name}` is {shown(value)}, and must be {expected}"
            problems.append(Problem("out-of-range", message, to_blame(value, blame), category="schema"))

    return check


def _pattern(pattern: str, *, is_quantity: bool) -> Check:
    matcher = re.compile(pattern.replace("$", r"\Z"))

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = plain(value)
        if not isinstance(found, str) or matcher.search(found):
            return
        rule, must = ("invalid-quantity", "be a quantity like `500m` or `4Gi`") if is_quantity else ("", "")
        message = f"`{name}` is {shown(value)}, and must {must or f'match `{pattern}`'}"
        mend, safe = as_quantity(value) if is_quantity else NOTHING
        problems.append(
            Problem(rule or "invalid-value", message, to_blame(value, blame), category="schema", mend=mend, safe=safe)
        )

    return check


def _enum(allowed: list[Any]) -> Check:
    words = [str(word) for word in allowed if word is not None]

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        found = plain(value)
        if found not in allowed:
            hint = nearest(str(found), words) if len(words) > 1 and isinstance(found, str) else ""
            expected = " or ".join(f"`{word}`" for word in words)
            message = f"`{name}` is {shown(value)}, and must be {expected}{hint}"
            mend, safe = spelt(value, words)
            problems.append(
                Problem("invalid-value", message, to_blame(value, blame), category="schema", mend=mend, safe=safe)
            )

    return check
