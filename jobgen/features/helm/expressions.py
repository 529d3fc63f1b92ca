"""The expressions in the actions of templates: values, texts, and calls of functions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_TOKEN = lazy_pattern(
    r"(?P<blank>\s+)|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`)|(?P<open>\()|\)(?P<close>(?:\.\w+)*)|(?P<pipe>\|)"
    r"|(?P<start>\$\w*)?(?P<steps>(?:\.\w+)+|\.|(?<=[$\w]))|(?P<word>[\w.+-]+)|(?P<other>.)",
    re.DOTALL,
)
_MAX_DEPTH = 20


class Text(NamedTuple):
    """A text in quotes."""

    text: str


class Lookup(NamedTuple):
    """A value: the current one, or that of a variable, and the fields that lead to a part of it."""

    start: str
    """The variable, with its `$`; empty for the current value."""
    steps: tuple[str, ...]


class Call(NamedTuple):
    """What a function returns for its arguments, and the fields that lead to a part of that."""

    name: str
    """Empty for a number, and for what is not known."""
    arguments: tuple[Expression, ...]
    steps: tuple[str, ...] = ()


Expression: TypeAlias = "Text | Lookup | Call"


@lru_cache(maxsize=1024)
def read_expression(code: str) -> Expression:
    """Read the code of an action, without a keyword; each command gets the one before it as its last argument."""
    return _Reader(code).read_pipeline(0)


class _Reader:
    def __init__(self, code: str) -> None:
        self.tokens = [match for match in _TOKEN.finditer(code) if match.lastgroup != "blank"]
        self.at = 0
        self.steps: tuple[str, ...] = ()
        """The fields after the parenthesis that was closed last."""

    def read_pipeline(self, depth: int) -> Expression:
        """Read up to the end, or to the parenthesis that ends it."""
        operands: list[Expression] = []
        before: list[Expression] = []
        self.steps = ()
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token["close"] is not None:
                self.steps = _split(token["close"])
                break
            if token["pipe"]:
                operands, before = [], [_call([*operands, *before])]
            elif token["open"]:
                inner = self.read_pipeline(depth + 1) if depth < _MAX_DEPTH else Call("", ())
                operands.append(_select(inner, self.steps))
            elif token["text"]:
                operands.append(Text(token["text"][1:-1]))
            elif token["word"]:
                operands.append(Call(token["word"], ()))
            elif token["start"] or token["steps"]:
                operands.append(Lookup(token["start"] or "", _split(token["steps"] or "")))
        return _call([*operands, *before])


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(".")))


def _call(operands: list[Expression]) -> Expression:
    """Return what a command says: its first word is the function, and a value alone is itself."""
    if not operands:
        return Call("", ())
    first = operands[0]
    if isinstance(first, Call) and not first.arguments and not first.steps:
        return Call(first.name, tuple(operands[1:]))
    return first if len(operands) == 1 else Call("", tuple(operands))


def _select(expression: Expression, steps: tuple[str, ...]) -> Expression:
    if isinstance(expression, Text) or not steps:
        return expression
    return expression._replace(steps=(*expression.steps, *steps))
