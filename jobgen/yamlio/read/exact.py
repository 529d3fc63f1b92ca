"""The exact reader: libyaml's events built into data as Go's decoder builds them, with places on request."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Data, Location, TracedKey, TracedList, TracedScalar
from jobgen.model.finding import Finding, Related, Severity
from jobgen.model.limits import MAX_DEPTH, MAX_FINDINGS, MAX_NODES, TOO_MANY_FINDINGS, allowed_alias_share
from jobgen.yamlio.read import events as libyaml
from jobgen.yamlio.read.nodes import Open, Scalar, Unfit, first_unfit, wants_key
from jobgen.yamlio.read.scalars import as_json_key, from_base64, quote, resolve, resolve_as, through_json
from jobgen.yamlio.read.templates import blaming_template

_CORE = "tag:yaml.org,2002:"
_COLLECTION_TAGS = frozenset(_CORE + name for name in ("map", "seq", "set", "omap", "pairs", "str", "binary"))
_SCALAR_TAGS = frozenset(_CORE + name for name in ("null", "bool", "int", "float", "timestamp"))
_MERGE = object()


class _RefusedError(Exception):
    """Kubernetes would refuse the document; carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def compose(
    text: str, file: str, first_line: int, first_column: int = 0, *, marked: bool
) -> tuple[Data, list[Finding]]:
    """The first document of `text`, and what is wrong with it; the data is None if it cannot be used."""
    source = libyaml.Text(text, first_column)
    while True:
        builder = _Builder(source, file, first_line, marked=marked)
        try:
            return builder.build(), builder.findings
        except libyaml.RespeltError:
            continue
        except _RefusedError as refused:
            return None, [*builder.findings, builder.template_aside(refused.finding)]
        except libyaml.NotYamlError as error:
            fault = builder.finding(error.rule, builder.span(error.at, error.at), error.reason)
            return None, [*builder.findings, builder.template_aside(fault)]


class _Builder:
    """One document under construction; nesting is kept in a list, so depth costs no Python stack."""

    def __init__(self, source: libyaml.Text, file: str, first_line: int, *, marked: bool) -> None:
        self.source = source
        self.file = file
        self.offset = first_line
        self.marked = marked
        self.findings: list[Finding] = []
        # What an anchor stands for: a scalar, a collection with its nodes counted, or one that is still open.
        self.anchors: dict[str, Any] = {}
        self.decoded = 1
        self.aliased = 0
        self.has_unfit = False

    def build(self) -> Data:
        root: Data = None
        stack: list[Open] = []
        events = self.source.events()
        for event in events:
            if isinstance(event, libyaml.ScalarEvent):
                done = self.scalar(event, stack)
            elif isinstance(event, libyaml.AliasEvent):
                done = self.alias(event, stack)
            elif isinstance(event, libyaml.CollectionStartEvent):
                stack.append(self.open(event, stack))
                continue
            elif isinstance(event, libyaml.CollectionEndEvent):
                opened = stack.pop()
                done, event = self.close(opened), opened.event  # noqa: PLW2901
            elif isinstance(event, libyaml.DocumentEndEvent):
                self.end(events)
                break
            else:
                continue
            if stack:
                self.add(stack[-1], done, event)
            else:
                root = done[0]
        unfit = first_unfit(root) if self.has_unfit else None
        if unfit:
            raise _RefusedError(unfit.finding)
        return root

    def end(self, events: Any) -> None:
        """Kubernetes stops at the end of the first document, and never looks at what stands behind it."""
        try:
            following = next(events)
        except libyaml.NotYamlError as error:
            location = self.span(error.at, error.at)
        else:
            if isinstance(following, libyaml.StreamEndEvent):
                return
            location = self.location(following)
        message = "Kubernetes reads nothing behind the end of a document; put a line `---` between two"
        self.findings.append(self.finding("second-document", location, message))

    def location(self, event: Any) -> Location:
        start, end = event.start_mark, event.end_mark
        if not self.source.places_hold:
            return self.span(start.index, end.index)
        return Location(self.file, start.line + self.offset, start.column + 1, end.line + self.offset, end.column + 1)

    def span(self, start: int, end: int) -> Location:
        line, column = self.source.place(start)
        end_line, end_column = self.source.place(end)
        return Location(self.file, line + self.offset, column + 1, end_line + self.offset, end_column + 1)

    def finding(self, rule: str, location: Location, message: str) -> Finding:
        return Finding(rule, "yaml", Severity.ERROR, message, location)

    def template_aside(self, fault: Finding) -> Finding:
        """What ends the reading, told of the template text on its line if there is any."""
        return blaming_template(fault, *self.source.line(fault.location.line - self.offset))

    def refuse(self, rule: str, event: Any, message: str) -> _RefusedError:
        return _RefusedError(self.finding(rule, self.location(event), message))

    def unfit(self, rule: str, event: Any, message: str) -> Unfit:
        self.has_unfit = True
        return Unfit(self.finding(rule, self.location(event), message))

    def scalar(self, event: Any, stack: list[Open]) -> tuple[Data, int]:
        """A scalar and the one node that it counts for."""
        parent = stack[-1] if stack else None
        if event.style or event.tag or parent:
            self.check(event, parent)
        if event.value == "<<" and wants_key(stack) and (event.implicit[0] or event.tag == _CORE + "merge"):
            if event.anchor:
                self.anchors[event.anchor] = Scalar("<<", event)
            return _MERGE, 0
        value = self.value(event)
        if event.anchor:
            self.anchors[event.anchor] = Scalar(value, event)
        self.count(1, event)
        return self.settled(value, event, event, stack), 1

    def settled(self, value: Any, event: Any, written: Any, stack: list[Open]) -> Data:
        """A scalar in its place: as it is for a key, as JSON carries it for a value, marked where it was written."""
        if wants_key(stack):
            return value
        if isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                message = f"`{written.value}` is not a number that JSON can carry; quote it if it is text"
                value = self.unfit("non-finite-number", event, message)
            else:
                value = through_json(value)
        return TracedScalar(value, self.location(written)) if self.marked else value

    def check(self, event: Any, parent: Open | None) -> None:
        rule, reason = self.source.refusal(event, in_flow=parent is not None and parent.flow)
        if rule:
            raise self.refuse(rule, event, reason)

    def value(self, event: Any) -> Any:
        tag, text = event.tag, self.source.value(event)
        if tag is None:
            return resolve(text) if event.implicit[0] else text
        if tag in ("!", _CORE + "str"):
            return text
        if tag == _CORE + "binary":
            decoded = from_base64(text)
            if decoded is None:
                raise self.refuse("unreadable-tag", event, f"{quote(text)} is tagged `!!binary` but is not base64")
            return decoded
        if tag in _SCALAR_TAGS:
            wanted = tag[len(_CORE) :]
            value, found = resolve_as(text, wanted)
            if wanted != found:
                raise self.refuse("unreadable-tag", event, f"{quote(text)} is tagged `!!{wanted}` but reads as {found}")
            return value
        self.unknown_tag(event)
        return text

    def unknown_tag(self, event: Any) -> None:
        tag = "!!" + event.tag[len(_CORE) :] if event.tag.startswith(_CORE) else event.tag
        message = f"{quote(tag)} is a tag that Kubernetes does not know here: it drops the tag; remove it"
        self.findings.append(self.finding(libyaml.UNKNOWN_TAG, self.location(event), message))

    def alias(self, event: Any, stack: list[Open]) -> tuple[Data, int]:
        """The anchored value again, counted as often as it is repeated: that is what a bomb is made of."""
        name = f"`*{event.anchor}`"
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise self.refuse("unknown-anchor", event, f"{name} refers to an anchor that is not in this document")
        if isinstance(anchored, Open):
            raise self.refuse("excessive-aliases", event, f"{name} stands inside its own anchor, so it has no end")
        value, nodes = (anchored.value, 1) if isinstance(anchored, Scalar) else anchored
        self.aliased += nodes
        self.count(nodes + 1, event)
        if self.decoded > MAX_NODES:
            message = f"{name} and other aliases expand the document to more than {MAX_NODES} nodes"
            raise self.refuse("excessive-aliases", event, message)
        if isinstance(anchored, Scalar):
            value = self.settled(value, event, anchored.event, stack)
        return value, nodes + 1

    def count(self, nodes: int, event: Any) -> None:
        self.decoded += nodes
        if self.decoded > MAX_NODES and nodes == 1:
            message = f"the document has more than `{MAX_NODES}` nodes; no object is that large"
            raise self.refuse("too-many-nodes", event, message)
        if self.aliased > 100 and self.decoded > 1000:
            share = self.aliased / self.decoded
            if share > allowed_alias_share(self.decoded):
                message = f"`{share:.1%}` of the document's nodes are aliases; Kubernetes refuses so many"
                raise self.refuse("excessive-aliases", event, message)

    def open(self, event: Any, stack: list[Open]) -> Open:
        if len(stack) >= MAX_DEPTH:
            raise self.refuse("nesting-too-deep", event, f"this is nested more than `{MAX_DEPTH}` levels deep")
        if event.tag:
            self.check(event, stack[-1] if stack else None)
            if event.tag not in _COLLECTION_TAGS and event.tag != "!":
                self.unknown_tag(event)
        self.count(1, event)
        kind = "map" if isinstance(event, libyaml.MappingStartEvent) else "list"
        opened = Open(kind, event)
        if event.anchor:
            self.anchors[event.anchor] = opened
        return opened

    def close(self, done: Open) -> tuple[Data, int]:
        items: Data = done.items
        if self.marked and done.kind == "list":
            items = TracedList(items, self.location(done.event))
            items.item_locations = done.places
        # An anchor of the same name further in may have taken the name over.
        if done.event.anchor and self.anchors[done.event.anchor] is done:
            self.anchors[done.event.anchor] = (items, done.nodes)
        return items, done.nodes

    def add(self, parent: Open, done: tuple[Data, int], event: Any) -> None:
        value, nodes = done
        parent.nodes += nodes
        if parent.kind == "list":
            parent.items.append(value)
            if self.marked:
                parent.places.append(self.location(event))
        elif parent.key_event is None:
            parent.key, parent.key_event = value, event
        else:
            key, key_event = parent.key, parent.key_event
            parent.key_event = None
            if key is _MERGE:
                self.merge(parent, value, key_event, is_alias=isinstance(event, libyaml.AliasEvent))
            else:
                self.put(parent, key, key_event, value)

    def put(self, parent: Open, key: Any, key_event: Any, value: Data) -> None:
        if isinstance(key, (dict, list)):
            shape = "a mapping" if isinstance(key, dict) else "a list"
            raise self.refuse("invalid-key", key_event, f"{shape} cannot be a key")
        text = as_json_key(key)
        if text is None:
            shape = "null" if key is None else str(int(key))
            unfit = self.unfit("invalid-key", key_event, f"`{shape}` cannot be a key in Kubernetes; quote it")
            parent.items[unfit] = value
            return
        if text in parent.seen:
            message = f"{quote(text)} is set twice in one mapping; Kubernetes would keep only this one"
            related = (Related(self.location(parent.seen[text]), "first set here"),)
            location = self.location(key_event)
            if len(self.findings) >= MAX_FINDINGS:
                raise self.refuse("too-many-faults", key_event, TOO_MANY_FINDINGS)
            self.findings.append(Finding("duplicate-key", "yaml", Severity.ERROR, message, location, related=related))
        parent.seen[text] = key_event
        parent.items.pop(text, None)
        parent.items[TracedKey.at(text, self.location(key_event)) if self.marked else text] = value

    def merge(self, parent: Open, value: Data, key_event: Any, *, is_alias: bool) -> None:
        """`<<`: Go lays the mapping down where the key stands, so it beats the keys above it."""
        sources = value if isinstance(value, list) and not is_alias else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self.refuse("invalid-merge-key", key_event, "`<<` takes a mapping or a list of mappings")
        for source in reversed(sources):
            for key, child in source.items():
                parent.items.pop(key, None)
                parent.items[key] = child
