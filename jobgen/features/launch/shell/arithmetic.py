"""Evaluate the arithmetic of a shell, with variables that are not known."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from jobgen.model.lazy_re import lazy_pattern

_TOKEN = lazy_pattern(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+#\w+|\d+)|([A-Za-z_]\w*)|(<<=|>>=|\*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!~&|^?:,()]))"
)
_MAX_TOKENS = 200
_MAX_BITS = 64


class _Failed(Exception):  # noqa: N818 -- it is not an error
    """An expression that a shell refuses, or whose value is not known."""


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise _Failed
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _raise(left: int, right: int) -> int:
    if not 0 <= right < _MAX_BITS:
        raise _Failed
    return int(left**right)


def _shift_left(left: int, right: int) -> int:
    if not 0 <= right < _MAX_BITS:
        raise _Failed
    return left << right


_BINARY: Mapping[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda left, right: int(bool(left) or bool(right))),
    "&&": (2, lambda left, right: int(bool(left) and bool(right))),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    ">": (7, operator.gt),
    "<=": (7, operator.le),
    ">=": (7, operator.ge),
    "<<": (8, _shift_left),
    ">>": (8, lambda left, right: left >> min(max(right, 0), _MAX_BITS)),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, lambda left, right: left - right * _divide(left, right)),
    "**": (11, _raise),
}
_LAZY = 2
"""The highest rank of the operators that need not compute their right side."""
_ASSIGNING = frozenset("= += -= *= /= %= <<= >>= &= ^= |=".split())


def evaluate(
    text: str, read: Callable[[str], str | None], write: Callable[[str, str | None], None], depth: int = 0
) -> int | None:
    """Return the value of an expression; None if it is not known, or no expression.

    `read` returns the text of a variable, or None if it is not known; `write` sets it.
    """
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None or len(tokens) > _MAX_TOKENS:
            return None
        tokens.append(found[0].strip())
        at = found.end()
    if not tokens:
        return 0
    expression = _Expression(tokens, read, write, depth)
    try:
        value = expression.read_comma()
    except _Failed:
        return None
    return value if expression.at == len(tokens) and value.bit_length() < _MAX_BITS else None


class _Expression:
    """The tokens of an expression, and the position of the next one."""

    def __init__(
        self,
        tokens: list[str],
        read: Callable[[str], str | None],
        write: Callable[[str, str | None], None],
        depth: int,
    ) -> None:
        self.tokens, self.at, self.depth = tokens, 0, depth
        self.read, self.write = read, write

    def take(self, *wanted: str) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def read_comma(self) -> int:
        value = self.read_assignment()
        while self.take(","):
            value = self.read_assignment()
        return value

    def read_assignment(self) -> int:
        name = self.tokens[self.at] if self.at < len(self.tokens) else ""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if after not in _ASSIGNING or not name.isidentifier():
            return self.read_choice()
        self.at += 2
        value = self.read_assignment()
        if after != "=":
            value = int(_BINARY[after[:-1]][1](self.find(name), value))
        self.write(name, str(value))
        return value

    def read_choice(self) -> int:
        condition = self.read_binary(1)
        if not self.take("?"):
            return condition
        self.forbid_assignments()
        first = self.read_assignment()
        if not self.take(":"):
            raise _Failed
        second = self.read_choice()
        return first if condition else second

    def forbid_assignments(self) -> None:
        """Both sides are computed, not only one; a side that assigns is rare enough to be left unknown."""
        if any(token in _ASSIGNING or token in ("++", "--") for token in self.tokens[self.at :]):
            raise _Failed

    def read_binary(self, least: int) -> int:
        value = self.read_unary()
        while self.at < len(self.tokens) and (found := _BINARY.get(self.tokens[self.at])) and found[0] >= least:
            self.at += 1
            rank, compute = found
            if rank <= _LAZY:
                self.forbid_assignments()
            value = int(compute(value, self.read_binary(rank if rank == _BINARY["**"][0] else rank + 1)))
            if value.bit_length() >= _MAX_BITS:
                raise _Failed
        return value

    def read_unary(self) -> int:
        sign = self.take("+", "-", "!", "~", "++", "--")
        if sign in ("++", "--"):
            return self.step(1 if sign == "++" else -1)
        if sign:
            self.depth += 1
            if self.depth > _MAX_BITS:
                raise _Failed
            value = self.read_unary()
            return {"+": value, "-": -value, "!": int(not value), "~": ~value}[sign]
        return self.read_primary()

    def step(self, by: int) -> int:
        if self.at >= len(self.tokens) or not self.tokens[self.at].isidentifier():
            raise _Failed
        name = self.tokens[self.at]
        self.at += 1
        value = self.find(name) + by
        self.write(name, str(value))
        return value

    def read_primary(self) -> int:
        if self.take("("):
            self.depth += 1
            if self.depth > _MAX_BITS:
                raise _Failed
            value = self.read_comma()
            if not self.take(")"):
                raise _Failed
            return value
        if self.at >= len(self.tokens):
            raise _Failed
        token = self.tokens[self.at]
        self.at += 1
        if token.isidentifier():
            value = self.find(token)
            if sign := self.take("++", "--"):
                self.write(token, str(value + (1 if sign == "++" else -1)))
            return value
        return _parse_number(token)

    def find(self, name: str) -> int:
        text = self.read(name)
        if text is None or self.depth > _MAX_BITS or len(text) > _MAX_TOKENS:
            raise _Failed
        value = evaluate(text, self.read, self.write, self.depth + 8)
        if value is None:
            raise _Failed
        return value


def _parse_number(token: str) -> int:
    try:
        if "#" in token:
            base, _, digits = token.partition("#")
            return int(digits, int(base))
        if token[:2] in ("0x", "0X"):
            return int(token, 16)
        return int(token, 8) if len(token) > 1 and token[0] == "0" else int(token[:_MAX_BITS])
    except ValueError as error:
        raise _Failed from error
