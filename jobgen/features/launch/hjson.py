"""What Hjson accepts, in which DeepSpeed reads its config files, which is JSON with comments and fewer signs.

Source: hjson 3.1, decoder.py.
"""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_MAX_DEPTH = 60
_SPACE = lazy_pattern(r"[ \t\r\n]+")
_COMMENT = lazy_pattern(r"(?:#|//)[^\r\n]*|/\*(?s:.*?)\*/")
_STRING = lazy_pattern(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_KEY = lazy_pattern(r"[^\s{}\[\],:]+\s*(?=:)")
_END = r"[ \t]*(?=[,}\]#\r\n]|//|/\*|\Z)"
_WORD = lazy_pattern(rf"(?:null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?){_END}")
# Other text has no quotation marks, and everything up to the end of its line.
_TEXT = lazy_pattern(r"[^\r\n]+")


class Reading(NamedTuple):
    """What Hjson makes of a text."""

    is_refused: bool
    """True if Hjson certainly refuses the text."""
    uncommented: str
    """The text, with spaces in place of the comments."""


class _Unclear(Exception):  # noqa: N818 -- it is not an error
    """A text has parts that versions of Hjson read in different ways."""


class _Refused(Exception):  # noqa: N818 -- it is not an error
    """Hjson refuses a text."""


def read_hjson(text: str) -> Reading:
    """Read a text as Hjson, as far as it is an object in braces."""
    reader, is_refused = _Reader(text), False
    try:
        if reader.skip() == "{":
            reader.read_value("{", 0)
            reader.skip()
    except _Refused:
        is_refused = True
    except _Unclear:
        pass
    return Reading(is_refused, reader.blank_comments())


class _Reader:
    """Reads a text from a position on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.comments: list[tuple[int, int]] = []

    def blank_comments(self) -> str:
        parts, last = [], 0
        for start, end in self.comments:
            blank = "".join(sign if sign in "\r\n" else " " for sign in self.text[start:end])
            parts += [self.text[last:start], blank]
            last = end
        return "".join((*parts, self.text[last:]))

    def skip(self) -> str:
        """Skip spaces and comments, and return the sign behind them; an empty string at the end."""
        while True:
            if space := _SPACE.match(self.text, self.at):
                self.at = space.end()
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return self.text[self.at : self.at + 1]
            self.comments.append(comment.span())
            self.at = comment.end()

    def skip_separator(self) -> str:
        """Skip what separates two items, where the comma can be left out."""
        sign = self.skip()
        if sign == ",":
            self.at += 1
            return self.skip()
        return sign

    def read_value(self, sign: str, depth: int) -> None:
        """Read the value that starts with a sign."""
        if depth > _MAX_DEPTH or sign == "'" or (sign and sign in "}],:"):
            raise _Unclear
        if sign in ("{", "["):
            self.at += 1
            read, close = (self.read_pair, "}") if sign == "{" else (self.read_value, "]")
            sign = self.skip()
            while sign != close:
                read(sign, depth + 1)
                sign = self.skip_separator()
            self.at += 1
            return
        patterns = (_STRING,) if sign == '"' else (_WORD, _TEXT)
        found = next((match for each in patterns if (match := each.match(self.text, self.at))), None)
        if found is None:
            raise _Refused
        self.at = found.end()

    def read_pair(self, sign: str, depth: int) -> None:
        """Read a key with its value."""
        if sign == "'":
            raise _Unclear
        key = (_STRING if sign == '"' else _KEY).match(self.text, self.at)
        if key is None:
            raise _Refused
        self.at = key.end()
        if self.skip() != ":":
            raise _Refused
        self.at += 1
        self.read_value(self.skip(), depth)
