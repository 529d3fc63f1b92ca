"""libyaml's events, read the way Go's YAML library reads them; this module alone knows PyYAML.

Go's library was translated from an early libyaml, and libyaml has moved on since. Where they differ, Go is right:
that is what Kubernetes runs. Text that Go takes and libyaml does not is respelt, character for character so that
places hold, and parsed again; text that libyaml takes and Go does not is refused by `refusal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from yaml._yaml import CParser

from jobgen.source.scalars import shown

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
_STAND_INS = re.compile(f"[{_COLON}{_QUOTE}{_MARK}]")
_RESPELLINGS = 100

_TAG = re.compile(r"(?:&[-\w]+\s+)?(!(?:<[^>]*>|[-\w;/?:@&=+$.!~*'()%]*),)")
_SLASH_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\/")
# Of two places the scanner knows, the beginning of what it could not end says more than where it gave up.
_BEGINNINGS = ("while scanning a simple key", "while scanning a quoted scalar")


class NotYamlError(Exception):
    """The text is not YAML: why, and where in it, counted from 0."""

    def __init__(self, reason: str, line: int, column: int, rule: str = SYNTAX) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.line = line
        self.column = column


class Text:
    """One text to parse, and the spelling of it that libyaml reads as Go reads the text."""

    __slots__ = ("respelt", "spelling", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Go skips a byte order mark at the beginning only; libyaml, at the beginning of every line.
        self.respelt = "\ufeff" in text
        self.spelling = text.replace("\ufeff", _MARK)

    def events(self) -> Iterator[Any]:
        """The events of the text; `RespeltError` if a new spelling must be parsed from the start."""
        parser = CParser(self.spelling)
        try:
            while parser.check_event():
                yield parser.get_event()
        except yaml.YAMLError as error:
            if not self._respell(error):
                raise _not_yaml(error, self.text) from None
            raise RespeltError from None
        finally:
            parser.dispose()

    def _respell(self, error: yaml.YAMLError) -> bool:
        """Whether the text that libyaml trips over is fine for Go, and now has a spelling that suits both."""
        problem, mark = getattr(error, "problem", ""), getattr(error, "problem_mark", None)
        old, new = _RESPELT.get(problem, ("", ""))
        if not old or mark is None or not self.spelling.startswith(old, mark.index) or _STAND_INS.search(self.text):
            return False
        self.spelling = self.spelling[: mark.index] + new + self.spelling[mark.index + len(old) :]
        self.respelt = True
        return self.spelling.count(_COLON) + self.spelling.count(_QUOTE) < _RESPELLINGS

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
                return UNKNOWN_TAG, f"the comma of {shown(tag[1])} belongs to the tag; leave a space before it"
        if type(event) is not ScalarEvent:
            return "", ""
        if in_flow and not event.style and "?" in event.value:
            return SYNTAX, f"the `?` in {shown(event.value)} ends it inside brackets and braces; quote it"
        if event.style == '"' and "/" in event.value and self._has_slash_escape(event):
            return SYNTAX, f"`\\/` in {shown(event.value)} is no escape of YAML's; a slash needs none"
        return "", ""

    def _has_slash_escape(self, event: Any) -> bool:
        return bool(_SLASH_ESCAPE.search(self.text[event.start_mark.index : event.end_mark.index]))


_RESPELT = {
    "found unexpected ':'": (":", _COLON),
    "found unknown escape character": ("\\'", _QUOTE * 2),
}


class RespeltError(Exception):
    """The text has a new spelling; its events must be asked for again."""


def _not_yaml(error: yaml.YAMLError, text: str) -> NotYamlError:
    if isinstance(error, yaml.reader.ReaderError):
        return _unreadable(error, text)
    assert isinstance(error, yaml.MarkedYAMLError)
    mark = error.problem_mark or error.context_mark
    if error.context in _BEGINNINGS and error.context_mark:
        mark = error.context_mark
    assert mark is not None
    rest = _rest_of_line(text, mark)
    if rest.startswith("\t") and not text[: mark.index].rpartition("\n")[2].strip():
        return NotYamlError("a tab indents this line; YAML takes only spaces there", mark.line, mark.column)
    if error.context == "while scanning a tag" and rest.startswith((",", "[", "]")):
        # Go reads these as part of the tag, which makes it one that nobody knows.
        return NotYamlError(
            f"{shown(rest)} touches a tag; leave a space between them", mark.line, mark.column, UNKNOWN_TAG
        )
    at = f" at {shown(rest)}" if rest else ""
    context = f" {error.context}" if error.context else ""
    return NotYamlError(f"not YAML{at}: {error.problem}{context}", mark.line, mark.column)


def _rest_of_line(text: str, mark: Any) -> str:
    return text[mark.index :].partition("\n")[0].rstrip()


def _unreadable(error: yaml.reader.ReaderError, text: str) -> NotYamlError:
    """A character that no YAML may hold."""
    before = text.encode()[: error.position].decode("utf-8", "ignore")
    line = before.count("\n")
    message = f"`U+{ord(text[len(before)]):04X}` is a control character; YAML holds it only as an escape in quotes"
    return NotYamlError(message, line, len(before) - (before.rfind("\n") + 1))
