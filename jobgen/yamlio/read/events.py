"""libyaml's events as Go's YAML library reads them. Only this module uses PyYAML.

Go's library is a port of an early libyaml, and they differ since. Kubernetes uses Go's, so Go is right. Text that Go
accepts and libyaml rejects is rewritten, character by character so that locations stay valid, and parsed again. Text
that libyaml accepts and Go rejects is found by `find_rejection`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import yaml
from yaml._yaml import CParser

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read.scalars import quote

SYNTAX = "yaml-syntax"
UNKNOWN_TAG = "unknown-tag"

AliasEvent = yaml.AliasEvent
CollectionEndEvent = yaml.CollectionEndEvent
CollectionStartEvent = yaml.CollectionStartEvent
DocumentEndEvent = yaml.DocumentEndEvent
MappingStartEvent = yaml.MappingStartEvent
ScalarEvent = yaml.ScalarEvent
StreamEndEvent = yaml.StreamEndEvent

# Characters that replace those that libyaml rejects. A text that already contains one of them is not rewritten.
_COLON, _QUOTE, _MARK = "\U0010fffd", "\U0010fffc", "\U0010fffb"
_REPLACEMENTS = lazy_pattern(f"[{_COLON}{_QUOTE}{_MARK}]")
_ESCAPE = lazy_pattern(r"\\.", re.DOTALL)
# What Go accepts and libyaml rejects, by libyaml's message: a colon before a bracket, `\'` and the rest of its string.
_REWRITTEN = {
    "found unexpected ':'": lazy_pattern(":"),
    "found unknown escape character": lazy_pattern(r"\\'(?:[^\\\"]|\\.)*", re.DOTALL),
}
# The total number of characters that may be parsed again because of rewriting.
_MAX_REPARSED = 2_000_000

_TAG = lazy_pattern(r"(?:&[-\w]+\s+)?(!(?:<[^>]*>|[-\w;/?:@&=+$.!~*'()%]*),)")
_DIRECTIVE = lazy_pattern(r"^%\S+", re.MULTILINE)
_SLASH_ESCAPE = lazy_pattern(r"(?<!\\)(?:\\\\)*\\/")
_ODD_BREAK = lazy_pattern("[\r\x85\u2028\u2029]")
_NO_DOCUMENT = "did not find expected <document start>"
_BEGINNINGS = ("while scanning a simple key", "while scanning a quoted scalar")


class NotYamlError(Exception):
    """The text is not YAML: why, and from which character on."""

    def __init__(self, reason: str, at: int, rule: str = SYNTAX, error: yaml.MarkedYAMLError | None = None) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.at = at
        self.error: Any = error
        """libyaml's error, if its message does not say what to do."""

    @property
    def fault(self) -> Fault | None:
        """Where libyaml stopped."""
        return _locate_fault(self.error) if self.error else None


class Fault(NamedTuple):
    """Where a text stops being YAML: the line of the error, and that of the node which cannot be read, from 0."""

    line: int
    start: int


def list_events(text: str) -> Iterator[Any]:
    """Yield libyaml's events of a text."""
    parser = CParser(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()


def spans_lines(event: Any) -> bool:
    """Return True if the text of an event continues on another line."""
    return bool(event.start_mark.line != event.end_mark.line)


def find_fault(text: str) -> Fault | None:
    """Return where a text stops being YAML; None if it does not."""
    try:
        for _ in list_events(text):
            pass
    except yaml.MarkedYAMLError as error:
        return _locate_fault(error)
    except yaml.YAMLError:
        return Fault(0, 0)
    return None


def _locate_fault(error: yaml.MarkedYAMLError) -> Fault:
    last = error.problem_mark or error.context_mark
    first = error.context_mark or last
    assert first is not None
    assert last is not None
    return Fault(last.line, first.line)


class YamlText:
    """A text to parse, and the version of it that libyaml reads as Go reads the text.

    Its first line may begin in the middle of a line of its file.
    """

    __slots__ = ("_first_column", "_line_starts", "_parses", "has_plain_lines", "is_rewritten", "rewritten", "text")

    def __init__(self, text: str, first_column: int = 0) -> None:
        self.text = text
        # Go skips a byte order mark at the beginning only; libyaml, at the beginning of every line.
        self.is_rewritten = "\ufeff" in text and not _REPLACEMENTS.search(text)
        self.rewritten = text.replace("\ufeff", _MARK) if self.is_rewritten else text
        # libyaml ends lines at characters that editors do not treat as line breaks.
        self.has_plain_lines = not first_column and _ODD_BREAK.search(text) is None
        self._first_column = first_column
        self._line_starts: list[int] = []
        self._parses = 0

    def events(self) -> Iterator[Any]:
        """Yield the events of the text; raise `RewrittenError` if it was rewritten and must be parsed again."""
        self._parses += 1
        parser = CParser(self.rewritten)
        try:
            while parser.check_event():
                yield parser.get_event()
        except yaml.YAMLError as error:
            if not self._rewrite(error):
                raise self._not_yaml(error) from None
            raise RewrittenError from None
        finally:
            parser.dispose()

    def _rewrite(self, error: yaml.YAMLError) -> bool:
        """Rewrite the text that libyaml rejects if Go accepts it; return whether it was rewritten."""
        problem, location = getattr(error, "problem", ""), getattr(error, "problem_mark", None)
        part = _REWRITTEN[problem].match(self.rewritten, location.index) if location and problem in _REWRITTEN else None
        if part is None or _REPLACEMENTS.search(self.text) or self._parses * len(self.text) > _MAX_REPARSED:
            return False
        replaced = _COLON
        if part[0] != ":":
            replaced = _ESCAPE.sub(lambda escape: _QUOTE * 2 if escape[0] == "\\'" else escape[0], part[0])
        self.rewritten = self.rewritten[: part.start()] + replaced + self.rewritten[part.end() :]
        self.is_rewritten = True
        return True

    def value(self, event: Any) -> str:
        """The text of a scalar, as in the original text."""
        value: str = event.value
        if self.is_rewritten:
            value = value.replace(_COLON, ":").replace(_QUOTE + _QUOTE, "'").replace(_MARK, "\ufeff")
        return value

    def find_rejection(self, event: Any, *, in_flow: bool) -> tuple[str, str]:
        """The rule and the reason for which Go rejects a node that libyaml accepts, or two empty strings."""
        start, end = event.start_mark.index, event.end_mark.index
        if in_flow and event.tag:
            tag = _TAG.match(self.text, start)
            if tag:
                return UNKNOWN_TAG, f"the comma in {quote(tag[1])} is part of the tag; put a space before it"
        if type(event) is not ScalarEvent:
            return "", ""
        if in_flow and not event.style and "?" in event.value:
            return SYNTAX, f"a `?` ends {quote(event.value)} inside brackets and braces; quote it"
        if event.style == '"' and "/" in event.value and _SLASH_ESCAPE.search(self.text[start:end]):
            return SYNTAX, f"`\\/` in {quote(event.value)} is not an escape sequence of YAML; a slash needs none"
        return "", ""

    def place(self, at: int) -> tuple[int, int]:
        """The line and column of a character, from 0, as editors count them."""
        if not self._line_starts:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._line_starts, at) - 1
        return line, at - self._line_starts[line] + (0 if line else self._first_column)

    def line(self, number: int) -> tuple[str, int]:
        """A line, counted from 0, and the column of its file at which it begins."""
        return self.text.split("\n")[number], 0 if number else self._first_column

    def _not_yaml(self, error: yaml.YAMLError) -> NotYamlError:
        if isinstance(error, yaml.reader.ReaderError):
            at = len(self.rewritten.encode()[: error.position].decode("utf-8", "ignore"))
            shape = f"`U+{ord(self.text[at]):04X}`"
            return NotYamlError(f"{shape} is a control character; write it as an escape sequence in double quotes", at)
        assert isinstance(error, yaml.MarkedYAMLError)
        directive = _DIRECTIVE.search(self.text) if error.problem == _NO_DOCUMENT else None
        if directive:
            message = f"{quote(directive[0])} is a directive, which Kubernetes does not support; remove it"
            return NotYamlError(message, directive.start())
        # The more helpful of libyaml's two positions: where an unfinished node begins, or where parsing stopped.
        first, last = error.context_mark, error.problem_mark or error.context_mark
        assert last is not None
        is_unfinished = error.context in _BEGINNINGS or not self.text[last.index :].strip()
        at = int(first.index if first and is_unfinished else last.index)
        rest = self.text[at:].partition("\n")[0].rstrip()
        if rest.startswith("\t") and not self.text[:at].rpartition("\n")[2].strip():
            return NotYamlError("a tab indents this line; YAML takes only spaces there", at, error=error)
        if error.context == "while scanning a tag" and rest.startswith((",", "[", "]")):
            # Go reads these characters as part of the tag, which makes it unknown.
            return NotYamlError(f"{quote(rest)} touches a tag; put a space between them", at, UNKNOWN_TAG)
        found = f" at {quote(rest)}" if rest else ""
        context = f" {error.context}" if error.context else ""
        return NotYamlError(f"not YAML{found}: {error.problem}{context}", at, error=error)


class RewrittenError(Exception):
    """The text was rewritten; it must be parsed again."""
