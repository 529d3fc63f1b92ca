"""Regular expressions, matched from the start of a text: their time grows with the text, not with its square."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from itertools import permutations, product
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from growth import takes_the_square_of_time

import jobgen
from jobgen.model.lazy_re import lazy_pattern, let_give_back

LENGTH = 1_000


def find_patterns() -> dict[str, re.Pattern[str]]:
    """Every regular expression that a module of jobgen holds, by its name there."""
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(jobgen.__path__, "jobgen."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                found |= patterns_in(value, f"{module.name}.{name}")
    return {name: _as_text(pattern) for name, pattern in found.items()}


def _as_text(pattern: re.Pattern[Any]) -> re.Pattern[str]:
    """The same expression for text instead of bytes."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags)


def patterns_in(value: Any, name: str) -> dict[str, re.Pattern[str]]:
    if isinstance(value, (re.Pattern, type(lazy_pattern("")))):
        return {name: re.compile(value.pattern, value.flags)}
    children = value.items() if type(value) is dict else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {
        found: pattern for key, child in children for found, pattern in patterns_in(child, f"{name}[{key}]").items()
    }


def list_literals(parsed: Any) -> Iterator[str]:
    """A character of each class and literal of a parsed expression, and the text of each sequence of literals."""
    text = ""
    for operation, argument in parsed:
        code = str(operation)
        if code == "LITERAL":
            text += chr(argument)
            continue
        if text:
            yield from (text, *text[:3])
        text = ""
        if code == "IN":
            yield from (text_of(part) for part in argument)
        elif isinstance(argument, (list, tuple)) or hasattr(argument, "data"):
            yield from list_branches(argument)
    if text:
        yield from (text, *text[:3])


def list_branches(argument: Any) -> Iterator[str]:
    """The literals of all expressions inside an operation."""
    if hasattr(argument, "data"):
        yield from list_literals(argument)
    elif isinstance(argument, (list, tuple)):
        for part in argument:
            yield from list_branches(part)


def text_of(part: tuple[Any, Any]) -> str:
    code, argument = str(part[0]), part[1]
    if code == "RANGE":
        return chr(argument[0])
    return (
        chr(argument) if code == "LITERAL" else {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}.get(str(argument), "a")
    )


def adversarial_texts(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """What a pattern may start with, and what of it to repeat."""
    pieces = dict.fromkeys((*list_literals(_parser.parse(pattern.pattern, pattern.flags)), " ", "-", "1", "a"))
    start = "".join(pieces)
    for piece in (*pieces, *(first + second for first, second in permutations(list(pieces)[:6], 2))):
        yield from (("", piece), (start, piece))


def list_unique_patterns() -> dict[str, re.Pattern[str]]:
    unique = {(pattern.pattern, pattern.flags): name for name, pattern in find_patterns().items()}
    return {name: re.compile(*key) for key, name in unique.items()}


def is_slow(pattern: re.Pattern[str], start: str, piece: str) -> bool:
    """Return True if the time to match many pieces, with an end to fail at, grows with the square of their number."""

    def prepare(length: int) -> Callable[[], object]:
        text = f"{start}{piece * (length // len(piece))}\x00"
        return lambda: (pattern.match(text), pattern.fullmatch(text))

    return takes_the_square_of_time(prepare, LENGTH)


def test_no_pattern_takes_long_for_long_text() -> None:
    patterns = list_unique_patterns()
    slow = [name for name, pattern in patterns.items() if any(is_slow(pattern, *t) for t in adversarial_texts(pattern))]

    assert slow == []
    assert {name.split(".")[1] for name in patterns} >= {"check", "k8s", "model", "rendering", "reports", "yamlio"}
    assert len(patterns) > 60


def test_a_time_that_grows_with_the_square_is_noticed() -> None:
    pattern = re.compile("a*(?=a*b)")

    assert any(is_slow(pattern, *text) for text in adversarial_texts(pattern))


POSSESSIVE = {
    "jobgen.yamlio.read.fast": ("_LINE", "_BLOCK_HEADER", "_FLOW_HEADER", "_TOKEN"),
    "jobgen.yamlio.read.json_text": ("_TOKEN",),
    "jobgen.features.editor.cursor": ("_SPACE", "_SINGLE", "_DOUBLE"),
    "jobgen.features.editor.completion.cel": ("_STRING",),
}
"""Patterns with possessive groups, which Python before 3.11.5 matches at wrong places."""
FRAGMENTS = ["a", ":", ": ", " ", "- ", "#", "'", '"', "\\", "[", "}", ",", "|", "\n"]


def test_possessive_patterns_match_the_same_if_groups_give_back() -> None:
    texts = ["".join(parts) for parts in product(FRAGMENTS, repeat=4)]
    texts += ["a: b # c", "- http://x", "- b:c", "a: b  #c", "  # c\n   a: b", "a: [b, 'c d', e:f] # g"]
    for module, names in POSSESSIVE.items():
        for name in names:
            pattern = getattr(importlib.import_module(module), name)
            assert re.search(r"\)[*?+]\+", pattern.pattern)
            other = re.compile(let_give_back(pattern.pattern), pattern.flags)
            assert not re.search(r"\)[*?+]\+", other.pattern)
            for text in texts:
                one, two = pattern.match(text), other.match(text)
                assert (one and (one.span(), one.groups())) == (two and (two.span(), two.groups())), (name, text)


def test_no_other_pattern_has_a_possessive_group_that_may_fail_after_a_part() -> None:
    """A group around a look-ahead or another repetition; texts such as `$&'()*+,` in sets are no groups."""
    listed = {f"{module}.{name}" for module, names in POSSESSIVE.items() for name in names}
    possessive = {
        name
        for name, pattern in find_patterns().items()
        if "POSSESSIVE_REPEAT" in str(_parser.parse(pattern.pattern, pattern.flags).data)
        and re.search(r"\)[*?+]\+", re.sub(r"\[(?:\\.|[^\]\\])*\]", "", pattern.pattern))
    }
    assert possessive <= listed
