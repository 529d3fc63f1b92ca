"""The sentence of a problem: words, the values that they name, and what to write instead.

A stage that finds something gives both, and the text is filled in when it is shown. In the words, the places of the
values that the sentence is about stand in backticks, and what to write instead follows a semicolon.
"""

from __future__ import annotations

from typing import TypeAlias

from jobgen.model.lazy_re import lazy_pattern

_QUOTED = lazy_pattern(r"`([^`]*)`")


class Sentence:
    """Words with a `{}` for each of their values, which may be sentences, too; nothing but `str` makes a text of it."""

    __slots__ = ("values", "words")

    def __init__(self, words: str, *values: object) -> None:
        self.words = words
        self.values = values

    def __bool__(self) -> bool:
        return bool(str(self))

    def __str__(self) -> str:
        return self.words.format(*self.values)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (Sentence, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __add__(self, more: Words) -> Sentence:
        return Sentence("{}{}", self, more)

    def __repr__(self) -> str:
        return f"Sentence({str(self)!r})"


Words: TypeAlias = "str | Sentence"
"""A sentence; one without values may be a text."""


def replace_words(words: Words, text: str, other: str) -> str:
    """Return a sentence with another text where one comes first in it."""
    return str(words).replace(text, other, 1)


def name_value(words: Words, value: str, name: str) -> Words:
    """Return a sentence with another name for one of its values."""
    return replace_words(words, f"`{value}`", f"`{name}`")


def fault_of(words: Words) -> str:
    """Return what a sentence says is wrong."""
    return str(words).partition("; ")[0]


def advice_of(words: Words) -> str:
    """Return what a sentence says to write instead; empty if it does not say."""
    return str(words).partition("; ")[2]


def values_of(words: Words) -> tuple[str, ...]:
    """Return the values that a sentence is about; without any, the sentence itself."""
    text = str(words)
    return tuple(_QUOTED.findall(text)) or (text,)


def values_at_fault(words: Words) -> tuple[str, ...]:
    """Return the values of what a sentence says is wrong, without those of what it says to write instead."""
    # Values of signs alone, such as `: `, describe the syntax.
    return tuple(value for value in _QUOTED.findall(fault_of(words)) if any(map(str.isalnum, value)))
