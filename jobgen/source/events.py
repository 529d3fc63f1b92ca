"""The exact reader: libyaml's events built into data as Go's decoder builds them, with places on request.

This module alone knows PyYAML. libyaml is the parser that Go's YAML library was translated from.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import yaml
from yaml._yaml import CParser

from jobgen.model import Data, Finding, Items, Key, Leaf, Mark, Related, Severity
from jobgen.source.limits import MAX_DEPTH, MAX_NODES, alias_share_allowed
from jobgen.source.scalars import as_json_key, resolve, through_json

_CORE = "tag:yaml.org,2002:"
_COLLECTION_TAGS = frozenset(_CORE + name for name in ("map", "seq", "set", "omap", "pairs", "str", "binary"))
_MERGE = object()


class _RefusedError(Exception):
    """Kubernetes would refuse the document; carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class _Open:
    """A mapping or sequence whose end has not come yet."""

    __slots__ = ("anchor", "items", "key", "key_event", "kind", "mark", "nodes", "seen")

    def __init__(self, kind: str, mark: Mark, anchor: str | None) -> None:
        self.kind = kind
        self.mark = mark
        self.anchor = anchor
        self.items: Any = {} if kind == "map" else []
        self.key: Any = None
        self.key_event: Any = None
        self.nodes = 1
        self.seen: dict[str, Mark] = {}


def compose(text: bytes, file: str, first_line: int, *, marked: bool) -> tuple[Data, list[Finding]]:
    """The first document of `text`, and what is wrong with it; the data is None if it cannot be used."""
    builder = _Builder(file, first_line, marked=marked)
    try:
        return builder.build(text), builder.findings
    except _RefusedError as refused:
        return None, [*builder.findings, refused.finding]
    except yaml.YAMLError as error:
        return None, [*builder.findings, _syntax(error, text, file, first_line)]


class _Builder:
    """One document under construction; nesting is kept in a list, so depth costs no Python stack."""

    def __init__(self, file: str, first_line: int, *, marked: bool) -> None:
        self.file = file
        self.offset = first_line
        self.marked = marked
        self.findings: list[Finding] = []
        self.anchors: dict[str, tuple[Data, int]] = {}
        self.unfinished: set[str] = set()
        self.decoded = 1
        self.aliased = 0

    def build(self, text: bytes) -> Data:
        root: Data = None
        stack: list[_Open] = []
        documents = 0
        for event in _events(text):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.refuse(
                        "second-document",
                        event,
                        "Kubernetes reads only the first of two documents here; separate them with a line `---`",
                    )
                continue
            if isinstance(event, yaml.ScalarEvent):
                done = self.scalar(event, is_key=_wants_key(stack))
            elif isinstance(event, yaml.AliasEvent):
                done = self.alias(event)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                stack.append(self.open(event, stack))
                continue
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                done = self.close(stack.pop())
            else:
                continue
            if stack:
                self.add(stack[-1], done, event)
            else:
                root = done[0]
        return root

    def mark(self, event: Any) -> Mark:
        start, end = event.start_mark, event.end_mark
        return Mark(self.file, start.line + self.offset, start.column + 1, end.line + self.offset, end.column + 1)

    def refuse(self, rule: str, event: Any, message: str) -> None:
        raise _RefusedError(Finding(rule, "yaml", Severity.ERROR, message, self.mark(event)))

    def scalar(self, event: Any, *, is_key: bool) -> tuple[Data, int]:
        """A scalar and the one node that it counts for."""
        if is_key and event.value == "<<" and (event.implicit[0] or event.tag == _CORE + "merge"):
            return _MERGE, 0
        value = self.value(event)
        if not is_key:
            if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
                self.refuse(
                    "non-finite-number",
                    event,
                    f"`{event.value}` is not a number that JSON can carry; quote it if it is text",
                )
            value = through_json(value)
        self.count(1)
        done = (Leaf(value, self.mark(event)) if self.marked and not is_key else value, 1)
        if event.anchor:
            self.anchors[event.anchor] = done
        return done

    def value(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag is None:
            return resolve(text) if event.implicit[0] else text
        if tag in ("!", _CORE + "str"):
            return text
        if tag == _CORE + "binary":
            return self.binary(event)
        if not tag.startswith(_CORE) or tag[len(_CORE) :] not in _RESOLVED:
            self.unknown_tag(event)
            return text
        return self.tagged(event, tag[len(_CORE) :])

    def binary(self, event: Any) -> str:
        try:
            return base64.b64decode("".join(event.value.split()), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            self.refuse("unreadable-tag", event, f"`{event.value}` is tagged !!binary but is not base64")
            raise AssertionError("refuse raises") from None

    def tagged(self, event: Any, wanted: str) -> Any:
        value = resolve(event.value)
        found = _RESOLVED_TYPES.get(type(value).__name__, "str")
        if wanted == "timestamp" and found == "str":
            return value
        if wanted == "float" and found == "int":
            return float(value)
        if wanted != found:
            self.refuse("unreadable-tag", event, f"`{event.value}` is tagged !!{wanted} but reads as {found}")
        return value

    def unknown_tag(self, event: Any) -> None:
        message = f"`{event.tag}` is a tag that Kubernetes does not know: it drops the tag; remove it"
        self.findings.append(Finding("unknown-tag", "yaml", Severity.ERROR, message, self.mark(event)))

    def alias(self, event: Any) -> tuple[Data, int]:
        """The anchored value again, counted as often as it is repeated: that is what a bomb is made of."""
        if event.anchor in self.unfinished:
            self.refuse("excessive-aliases", event, f"`*{event.anchor}` stands inside its own anchor, so it has no end")
        if event.anchor not in self.anchors:
            self.refuse("unknown-anchor", event, f"`*{event.anchor}` refers to an anchor that is not in this document")
        value, nodes = self.anchors[event.anchor]
        self.count(nodes + 1)
        self.aliased += nodes
        share = self.aliased / self.decoded
        if self.aliased > 100 and self.decoded > 1000 and share > alias_share_allowed(self.decoded):
            self.refuse(
                "excessive-aliases",
                event,
                f"the document is mostly aliases ({self.aliased} of {self.decoded} nodes); Kubernetes refuses it",
            )
        if self.decoded > MAX_NODES:
            self.refuse("excessive-aliases", event, f"aliases expand the document to more than {MAX_NODES} nodes")
        return value, nodes + 1

    def count(self, nodes: int) -> None:
        self.decoded += nodes

    def open(self, event: Any, stack: list[_Open]) -> _Open:
        if len(stack) >= MAX_DEPTH:
            self.refuse("nesting-too-deep", event, f"more than {MAX_DEPTH} levels of nesting")
        if event.tag and event.tag not in _COLLECTION_TAGS and event.tag != "!":
            self.unknown_tag(event)
        self.count(1)
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
        if event.anchor:
            self.unfinished.add(event.anchor)
        return _Open(kind, self.mark(event), event.anchor)

    def close(self, done: _Open) -> tuple[Data, int]:
        items: Data = done.items
        if self.marked and done.kind == "list":
            items = Items(items, done.mark)
        if done.anchor:
            self.unfinished.discard(done.anchor)
            self.anchors[done.anchor] = (items, done.nodes)
        return items, done.nodes

    def add(self, parent: _Open, done: tuple[Data, int], event: Any) -> None:
        value, nodes = done
        parent.nodes += nodes
        if parent.kind == "list":
            parent.items.append(value)
        elif parent.key_event is None:
            parent.key, parent.key_event = value, event
        else:
            key, key_event = parent.key, parent.key_event
            parent.key_event = None
            if key is _MERGE:
                self.merge(parent, value, event)
            else:
                self.put(parent, key, key_event, value)

    def put(self, parent: _Open, key: Any, key_event: Any, value: Data) -> None:
        if isinstance(key, Leaf):
            # An alias in the place of a key brings the marked scalar it stands for.
            key = key.value
        if isinstance(key, (dict, list)):
            self.refuse("invalid-key", key_event, "a mapping or list cannot be a key")
        text = as_json_key(key)
        if text is None:
            shown = "null" if key is None else str(int(key))
            self.refuse("invalid-key", key_event, f"`{shown}` cannot be a key in Kubernetes; quote it")
        assert text is not None
        mark = self.mark(key_event)
        if text in parent.seen:
            message = f"`{text}` is set twice in one mapping; Kubernetes would keep only this one"
            self.findings.append(
                Finding(
                    "duplicate-key",
                    "yaml",
                    Severity.ERROR,
                    message,
                    mark,
                    related=(Related(parent.seen[text], "first set here"),),
                )
            )
        parent.seen[text] = mark
        parent.items.pop(text, None)
        parent.items[Key.at(text, mark) if self.marked else text] = value

    def merge(self, parent: _Open, value: Data, event: Any) -> None:
        """`<<`: Go lays the mapping down where the key stands, so it beats the keys above it."""
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self.refuse("invalid-merge-key", event, "`<<` takes a mapping or a list of mappings")
        for source in reversed(sources):
            for key, child in source.items():
                parent.items.pop(key, None)
                parent.items[key] = child


_RESOLVED = frozenset(("null", "bool", "int", "float", "timestamp", "merge"))
_RESOLVED_TYPES = {"NoneType": "null", "bool": "bool", "int": "int", "float": "float", "Wide": "int"}


def _wants_key(stack: list[_Open]) -> bool:
    return bool(stack) and stack[-1].kind == "map" and stack[-1].key_event is None


def _events(text: bytes) -> Iterator[Any]:
    parser = CParser(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()


def _syntax(error: yaml.YAMLError, text: bytes, file: str, first_line: int) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    line, column = (mark.line, mark.column) if mark else _position(text, getattr(error, "position", 0))
    place = Mark(file, line + first_line, column + 1)
    context = getattr(error, "context", None)
    message = f"not YAML: {problem}" + (f" {context}" if context else "")
    lines = text.splitlines()
    if line < len(lines) and b"\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]:
        message = "a tab indents this line; YAML takes only spaces there"
    return Finding("yaml-syntax", "yaml", Severity.ERROR, message, place)


def _position(text: bytes, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count(b"\n"), len(before) - (before.rfind(b"\n") + 1)
