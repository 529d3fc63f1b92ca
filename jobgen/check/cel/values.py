"""Values of Kubernetes types in CEL, such as quantities, as bytes with a tag; and errors, and text positions."""

from __future__ import annotations

import re

from jobgen.model.budget import MAX_RUN_STEPS
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_OBJECT_STEPS
from jobgen.model.named_tuple import NamedTuple

NO_OVERLOAD = "no such overload"
OFFLINE = "cannot be evaluated offline"
AS_RESULT = f"an optional as result {OFFLINE}"
THAN_ALLOWED = "than the API server allows"
"""Part of the messages of all failures that only show that an evaluation takes too long or too much memory."""
USED_UP = f"the expressions for this object took more than {MAX_OBJECT_STEPS} steps together before"
RUN_USED_UP = f"the expressions for all objects took more than {MAX_RUN_STEPS} steps together"
LIMITS = frozenset((USED_UP, RUN_USED_UP))
"""Why an expression is not evaluated, whatever the policy says of failures."""
# No text in UTF-8 begins with it, and it is not the zero byte, at which the library stops reading.
_MARK = b"\xff"
_MAX_PARENTHESES = 200
STRING = r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\""""
_STRING_OR_COMMENT = lazy_pattern(rf"[rRbB]{{0,2}}(?:{STRING})|//[^\n]*", re.DOTALL)
_OPERATOR_OR_END = lazy_pattern(
    r"(?P<relation>[=!<>]=|[<>]|\bin\b)|(?P<sum>[-+*/%])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>&&|\|\||[,?:])"
)
_MOST_LEVELS = 249
"""How many comparisons, or additions and multiplications, the API server reads in a row, and how many parentheses."""


def tagged(tag: str, text: str) -> bytes:
    """A value of a Kubernetes type."""
    return _MARK + f"{tag} {text}".encode()


def untagged(value: object, tag: str) -> str:
    """The text of a value, which must have the tag."""
    if tag_of(value) != tag:
        raise TypeError(NO_OVERLOAD)
    assert isinstance(value, (bytes, bytearray)), "it has a tag"
    return value[len(tag) + 2 :].decode()


def tag_of(value: object) -> str:
    """The tag of a value; empty if it has none."""
    if isinstance(value, (bytes, bytearray)) and value[:1] == _MARK:
        return bytes(value[1:]).partition(b" ")[0].decode("latin-1")
    return ""


def strings(*values: object) -> tuple[str, ...]:
    """The arguments, which must be strings."""
    found = tuple(value for value in values if type(value) is str)
    if len(found) != len(values):
        raise TypeError(NO_OVERLOAD)
    return found


class CompileError(NamedTuple):
    """Why the API server would refuse the text of an expression, and where in it."""

    message: str
    line: int = 1
    column: int = 1

    @property
    def is_offline(self) -> bool:
        """True if only the API server can tell: the expression is not refused."""
        return OFFLINE in self.message

    @property
    def is_about_result(self) -> bool:
        """True if the expression is an optional, which has no value here."""
        return AS_RESULT in self.message


class Failed(NamedTuple):
    """Why an expression has no value for some data. The CEL library says it in words only."""

    message: str

    @property
    def is_offline(self) -> bool:
        """True if only the API server can evaluate it."""
        return OFFLINE in self.message

    @property
    def is_limit(self) -> bool:
        """True if the expressions together have used up their steps."""
        return self.message in LIMITS

    @property
    def is_costly(self) -> bool:
        """True if it only takes more time or memory than the API server allows."""
        return THAN_ALLOWED in self.message

    def is_due_to(self, *reasons: str) -> bool:
        """Return True if it failed for one of some reasons, in the words of the library."""
        return any(reason in self.message for reason in reasons)


def blank_strings(text: str) -> str:
    """The text of an expression with blanks in the place of strings and comments."""
    return _STRING_OR_COMMENT.sub(lambda found: " " * len(found[0]), text)


def drop_repeated_parentheses(text: str) -> str:
    """The text with blanks in the place of parentheses around parentheses, up to the depth that the server allows."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for index, char in enumerate(blank_strings(text)):
        if char == "(":
            opened.append(index)
        elif char == ")" and opened:
            pairs[opened.pop()] = index
    if len(pairs) > _MAX_PARENTHESES:
        return text
    dropped = {place for start, end in pairs.items() if pairs.get(start - 1) == end + 1 for place in (start, end)}
    return "".join(" " if index in dropped else char for index, char in enumerate(text))


def is_too_deep(text: str) -> bool:
    """Return True if the API server does not read an expression: too many operators in a row, or parentheses."""
    relations, sums = [0], [0]
    for token in _OPERATOR_OR_END.finditer(blank_strings(text)):
        kind = token.lastgroup
        if kind == "open":
            relations.append(0)
            sums.append(0)
        elif kind == "close":
            relations, sums = relations[:-1] or [0], sums[:-1] or [0]
        else:
            relations[-1] = 0 if kind == "end" else relations[-1] + (kind == "relation")
            sums[-1] = sums[-1] + 1 if kind == "sum" else 0
        if max(relations[-1], sums[-1], len(relations) - 1) > _MOST_LEVELS:
            return True
    return False


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset in a text, counted from 1."""
    before = text[: max(offset, 0)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
