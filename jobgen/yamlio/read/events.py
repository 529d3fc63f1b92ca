"""libyaml's events, read the way Go's YAML library reads them; this module alone knows PyYAML.

Go's library was translated from an early libyaml, and libyaml has moved on since. Where they differ, Go is right:
that is what Kubernetes runs. Text that Go takes and libyaml does not is respelt, character for character so that
places hold, and parsed again; text that libyaml takes and Go does not is refused by `refusal`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import yaml
from yaml._yaml import CParser

from jobgen.model.lazy_re import lazy_pattern
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

# Characters that stand in for what libyaml would trip over. No text has them; one that does is not respelt.
_COLON, _QUOTE, _MARK = "\U0010fffd", "\U0010fffc", "\U0010fffb"
_STAND_INS = lazy_pattern(f"[{_COLON}{_QUOTE}{_MARK}]")
_ESCAPE = lazy_pattern(r"\\.", re.DOTALL)
# What Go takes and libyaml does not, by libyaml's complaint: a colon before a bracket, `\'` and the rest of its string.
_RESPELT = {
    "found unexpected ':'": lazy_pattern(":"),
    "found unknown escape character": lazy_pattern(r"\\'(?:[^\\\"]|\\.)*", re.DOTALL),
}
# How many characters may be parsed again and again for the sake of such spellings.
_PATIENCE = 2_000_000

_TAG = lazy_pattern(r"(?:&[-\w]+\s+)?(!(?:<[^>]*>|[-\w;/?:@&=+$.!~*'()%]*),)")
_DIRECTIVE = lazy_pattern(r"^%\S+", re.MULTILINE)
_SLASH_ESCAPE = lazy_pattern(r"(?<!\\)(?:\\\\)*\\/")
_ODD_BREAK = lazy_pattern("[\r\x85\u2028\u2029]")
_NO_DOCUMENT = "did not find expected <document start>"
_BEGINNINGS = ("while scanning a simple key", "while scanning a quoted scalar")


class NotYamlError(Exception):
    """The text is not YAML: why, and from which character on."""

    def __init__(self, reason: str, at: int, rule: str = SYNTAX) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.at = at


class Text:
    """One text to parse, and the spelling of it that libyaml reads as Go reads the text.

    Its first line may begin somewhere in a line of its file.
    """

    __slots__ = ("_first_column", "_line_starts", "_parses", "places_hold", "respelt", "spelling", "text")

    def __init__(self, text: str, first_column: int = 0) -> None:
        self.text = text
        # Go skips a byte order mark at the beginning only; libyaml, at the beginning of every line.
        self.respelt = "\ufeff" in text and not _STAND_INS.search(text)
        self.spelling = text.replace("\ufeff", _MARK) if self.respelt else text
        # libyaml ends lines at characters that editors do not count.
        self.places_hold = not first_column and _ODD_BREAK.search(text) is None
        self._first_column = first_column
        self._line_starts: list[int] = []
        self._parses = 0

    def events(self) -> Iterator[Any]:
        """The events of the text; `RespeltError` if a new spelling must be parsed from the start."""
        self._parses += 1
        parser = CParser(self.spelling)
        try:
            while parser.check_event():
                yield parser.get_event()
        except yaml.YAMLError as error:
            if not self._respell(error):
                raise self._not_yaml(error) from None
            raise RespeltError from None
        finally:
            parser.dispose()

    def _respell(self, error: yaml.YAMLError) -> bool:
        """Whether the text that libyaml trips over is fine for Go, and now has a spelling that suits both."""
        problem, location = getattr(error, "problem", ""), getattr(error, "problem_mark", None)
        part = _RESPELT[problem].match(self.spelling, location.index) if location and problem in _RESPELT else None
        if part is None or _STAND_INS.search(self.text) or self._parses * len(self.text) > _PATIENCE:
            return False
        respelt = _ESCAPE.sub(_without_quote, part[0]) if part[0] != ":" else _COLON
        self.spelling = self.spelling[: part.start()] + respelt + self.spelling[part.end() :]
        self.respelt = True
        return True

    def value(self, event: Any) -> str:
        """The text of a scalar, as it was spelt in the first place."""
        value: str = event.value
        if self.respelt:
            value = value.replace(_COLON, ":").replace(_QUOTE + _QUOTE, "'").replace(_MARK, "\ufeff")
        return value

    def refusal(self, event: Any, *, in_flow: bool) -> tuple[str, str]:
        """The rule and reason why Go refuses a scalar or collection that libyaml takes, or nothing."""
        if in_flow and event.tag:
            tag = _TAG.match(self.text, event.start_mark.index)
            if tag:
                return UNKNOWN_TAG, f"the comma of {quote(tag[1])} belongs to the tag; leave a space before it"
        if type(event) is not ScalarEvent:
            return "", ""
        if in_flow and not event.style and "?" in event.value:
            return SYNTAX, f"the `?` in {quote(event.value)} ends it inside brackets and braces; quote it"
        if event.style == '"' and "/" in event.value and self._has_slash_escape(event):
            return SYNTAX, f"`\\/` in {quote(event.value)} is no escape of YAML's; a slash needs none"
        return "", ""

    def _has_slash_escape(self, event: Any) -> bool:
        return bool(_SLASH_ESCAPE.search(self.text[event.start_mark.index : event.end_mark.index]))

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a character, counted from 0 and as editors count them."""
        if not self._line_starts:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._line_starts, at) - 1
        return line, at - self._line_starts[line] + (0 if line else self._first_column)

    def line(self, number: int) -> tuple[str, int]:
        """A line, counted from 0, and the column of its file in which it begins."""
        return self.text.split("\n")[number], 0 if number else self._first_column

    def _not_yaml(self, error: yaml.YAMLError) -> NotYamlError:
        if isinstance(error, yaml.reader.ReaderError):
            at = len(self.spelling.encode()[: error.position].decode("utf-8", "ignore"))
            shape = f"`U+{ord(self.text[at]):04X}`"
            return NotYamlError(f"{shape} is a control character; YAML holds it only as an escape in quotes", at)
        assert isinstance(error, yaml.MarkedYAMLError)
        directive = _DIRECTIVE.search(self.text) if error.problem == _NO_DOCUMENT else None
        if directive:
            message = f"{quote(directive[0])} is a directive; Kubernetes reads a document without any"
            return NotYamlError(message, directive.start())
        return self._not_yaml_at(error, self._fault(error))

    def _fault(self, error: yaml.MarkedYAMLError) -> int:
        """Of two places that libyaml knows, the beginning of what has no end says more than where it gave up."""
        first, last = error.context_mark, error.problem_mark or error.context_mark
        assert last is not None
        if first and (error.context in _BEGINNINGS or not self.text[last.index :].strip()):
            return int(first.index)
        return int(last.index)

    def _not_yaml_at(self, error: yaml.MarkedYAMLError, at: int) -> NotYamlError:
        rest = self.text[at:].partition("\n")[0].rstrip()
        if rest.startswith("\t") and not self.text[:at].rpartition("\n")[2].strip():
            return NotYamlError("a tab indents this line; YAML takes only spaces there", at)
        if error.context == "while scanning a tag" and rest.startswith((",", "[", "]")):
            # Go reads these as part of the tag, which makes it one that nobody knows.
            return NotYamlError(f"{quote(rest)} touches a tag; leave a space between them", at, UNKNOWN_TAG)
        found = f" at {quote(rest)}" if rest else ""
        context = f" {error.context}" if error.context else ""
        return NotYamlError(f"not YAML{found}: {error.problem}{context}", at)


def _without_quote(escape: re.Match[str]) -> str:
    return _QUOTE * 2 if escape[0] == "\\'" else escape[0]


class RespeltError(Exception):
    """The text has a new spelling; its events must be asked for again."""
