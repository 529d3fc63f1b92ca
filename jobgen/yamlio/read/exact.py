"""The exact reader: builds data from libyaml's events as Go's decoder does, with locations on request."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedMapping, TracedScalar, value_of
from jobgen.model.finding import Finding, Fix, Related, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES, MAX_DEPTH, MAX_FINDINGS, MAX_NODES, TOO_MANY_FINDINGS, allowed_alias_share
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read import events as libyaml
from jobgen.yamlio.read.scalars import decode_base64, normalize_number, quote, resolve, resolve_as, to_json_key, to_text

_CORE = "tag:yaml.org,2002:"
_COLLECTION_TAGS = frozenset(_CORE + name for name in ("map", "seq", "set", "omap", "pairs", "str", "binary"))
_SCALAR_TAGS = frozenset(_CORE + name for name in ("null", "bool", "int", "float", "timestamp"))
_MERGE = object()

# The errors that template text of Helm or Jinja causes.
_TEMPLATE_ERRORS = frozenset(("yaml-syntax", "invalid-key"))
# The variables of a sweep are jobgen's own: what is wrong around them is a slip as around any other text.
_TEMPLATE = lazy_pattern(r"\{\{(?!(?<=\$\{\{) *matrix\.)(?:.*?\}\}|[^}]*\Z)|\{%(?:.*?%\}|[^}]*\Z)")
_MATRIX = lazy_pattern(r"\{\{ *matrix\.[\w-]+ *\}\}")
# Only the beginning of a line is searched: a line may be as long as a file.
_SEARCHED_LENGTH = 1000
_LISTS = frozenset(("args", "command"))
_ITEM_WITHOUT_SPACE = lazy_pattern(r"-(?:[^\s-]|--\w)")
# Template text in quotes and comments does not break YAML; quotes inside a template are part of it.
_QUOTES_AND_COMMENTS = lazy_pattern(r""""(?:[^"\\]|\\.)*"|'[^']*'|(?:\A|(?<=\s))#.*""")


class _OpenCollection:
    """A mapping or sequence that has not ended yet."""

    __slots__ = ("event", "flow", "item_locations", "items", "key", "key_event", "kind", "nodes", "seen")

    def __init__(self, kind: str, event: Any) -> None:
        self.kind = kind
        self.event = event
        self.flow = event.flow_style
        self.items: Any = {} if kind == "map" else []
        self.key: Any = None
        self.key_event: Any = None
        self.nodes = 1
        self.seen: dict[str, tuple[Any, Any]] = {}
        self.item_locations: list[Location] = []


class _Unrepresentable:
    """A key or number that JSON cannot represent. It becomes text if it is still there at the end, and is reported."""

    __slots__ = ("at", "finding", "text")

    def __init__(self, finding: Finding, text: str, at: int) -> None:
        self.finding = finding
        self.text = text
        self.at = at
        """Where it is written, also if an alias repeats it."""


class _AnchoredScalar(NamedTuple):
    """An anchored scalar before its conversion to JSON: an alias may use it as a key or as a value."""

    value: Any
    event: Any


class _RejectedError(Exception):
    """Kubernetes would reject the document; carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Composed(NamedTuple):
    """The data of a document, None if it cannot be used, and what is wrong with its text."""

    data: Node
    findings: list[Finding]
    is_repaired: bool = False
    """True if the data is what the author of a text with syntax errors probably meant."""


def compose(text: str, file: str, first_line: int, first_column: int = 0, *, traced: bool) -> Composed:
    """Read the first document of `text`."""
    source = libyaml.YamlText(text, first_column)
    while True:
        builder = _Builder(source, file, first_line, traced=traced)
        try:
            data, found = builder.build()
            return Composed(data, [*builder.findings, *found], is_repaired=bool(found))
        except libyaml.RewrittenError:
            continue
        except _RejectedError as rejected:
            return Composed(None, [*builder.findings, builder.explain_template(rejected.finding)])
        except libyaml.NotYamlError as error:
            found, repaired = builder.explain_syntax(error)
            data = compose(repaired, file, first_line, first_column, traced=traced).data if repaired else None
            lines = {each.location[:2] for each in found}
            kept = (each for each in builder.findings if each.location[:2] not in lines)
            return Composed(data, [*kept, *found], is_repaired=data is not None)


class _Builder:
    """Builds one document. Open collections are kept in a list, so nesting does not use Python's stack."""

    def __init__(self, source: libyaml.YamlText, file: str, first_line: int, *, traced: bool) -> None:
        self.source = source
        self.file = file
        self.offset = first_line
        self.traced = traced
        self.findings: list[Finding] = []
        # The anchored nodes: a scalar, a collection with its number of nodes, or a collection that is still open.
        self.anchors: dict[str, Any] = {}
        self.decoded = 1
        self.aliased = 0
        self.expanded = 0
        self.has_unrepresentable = False

    def build(self) -> tuple[Any, list[Finding]]:
        """Return the data, and what it has that JSON cannot represent."""
        root: Any = None
        stack: list[_OpenCollection] = []
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
        found = _replace_unrepresentable(root) if self.has_unrepresentable else []
        if found and (not isinstance(root, (dict, list)) or self.explain_template(found[0]) is not found[0]):
            raise _RejectedError(found[0])
        return root, found

    def end(self, events: Any) -> None:
        """Warn of text after the end of the document, which Kubernetes ignores."""
        try:
            following = next(events)
        except libyaml.NotYamlError as error:
            location = self.span(error.at, error.at)
        else:
            if isinstance(following, libyaml.StreamEndEvent):
                return
            location = self.location(following)
        message = "Kubernetes ignores all text after the end of a document; separate documents with a line `---`"
        self.findings.append(self.finding("ignored-document", location, message, Severity.WARNING))

    def location(self, event: Any) -> Location:
        start, end = event.start_mark, event.end_mark
        if not self.source.has_plain_lines:
            return self.span(start.index, end.index)
        return Location(self.file, start.line + self.offset, start.column + 1, end.line + self.offset, end.column + 1)

    def span(self, start: int, end: int) -> Location:
        line, column = self.source.place(start)
        end_line, end_column = self.source.place(end)
        return Location(self.file, line + self.offset, column + 1, end_line + self.offset, end_column + 1)

    def finding(self, rule: str, location: Location, message: str, severity: Severity = Severity.ERROR) -> Finding:
        return Finding(rule, "yaml", severity, message, location)

    def explain_template(self, finding: Finding) -> Finding:
        """The finding; if template text on its line causes it, a finding about that."""
        file, number = finding.location[:2]
        line, first_column = self.source.line(number - self.offset)
        span = _find_template(line[:_SEARCHED_LENGTH]) if finding.rule in _TEMPLATE_ERRORS else None
        if span is None:
            return finding
        start, end = span
        text = line[start:end]
        message = f"this is template text ({quote(text)}); render it first, or quote it"
        if _MATRIX.match(text):
            message = f"{quote(text)} is not a variable; write {quote(f'${text}')}, and quotes around the value"
        location = Location(file, number, first_column + start + 1, number, first_column + end + 1)
        return finding._replace(rule="template-text", message=message, location=location)

    def explain_syntax(self, error: libyaml.NotYamlError) -> tuple[list[Finding], str]:
        """Return the findings of a syntax error, and the text as it was probably meant; empty if that is not clear."""
        # Imported late: most texts are YAML.
        from jobgen.yamlio.read.slips import find_slips
        from jobgen.yamlio.read.syntax_advice import advise, find_conflict, find_foreign_text

        finding = self.finding(error.rule, self.span(error.at, error.at), error.reason)
        explained = self.explain_template(finding)
        if explained is not finding or error.fault is None:
            return [explained], ""
        advice = find_conflict(self.source.text, error.at)
        if advice is None and not self.source.is_rewritten:
            slips, repaired = find_slips(self.source.text, error.fault)
            foreign = find_foreign_text(error.error, self.source.text, error.at)
            # Several lines with such characters hide where the next one is.
            if slips and (foreign is None or any(not slip.old.isascii() for slip in slips)):
                places = [self.line_span(slip.line, slip.column) for slip in slips]
                shown = zip(places, slips, strict=True)
                return [self.finding(error.rule, place, slip.message) for place, slip in shown], repaired
        advice = advice or find_foreign_text(error.error, self.source.text, error.at)
        advice = advice or advise(error.error, self.source.text, error.at)
        if advice is None:
            return [finding], ""
        message, at = advice
        return [finding._replace(message=message, location=self.span(at, at))], ""

    def line_span(self, number: int, column: int) -> Location:
        """The location of the rest of a line. Lines and columns are counted from 0."""
        line, first_column = self.source.line(number)
        start = first_column + column + 1
        end = max(first_column + len(line.rstrip()) + 1, start)
        return Location(self.file, self.offset + number, start, self.offset + number, end)

    def reject(self, rule: str, event: Any, message: str) -> _RejectedError:
        return _RejectedError(self.finding(rule, self.location(event), message))

    def unrepresentable(self, rule: str, event: Any, message: str, written: tuple[str, Any]) -> _Unrepresentable:
        self.has_unrepresentable = True
        finding = self.finding(rule, self.location(event), message)
        return _Unrepresentable(finding, written[0], written[1].start_mark.index)

    def scalar(self, event: Any, stack: list[_OpenCollection]) -> tuple[Any, int]:
        """Build a scalar; it counts as one node."""
        parent = stack[-1] if stack else None
        if event.style or event.tag or parent:
            self.check(event, parent)
        if parent and not parent.flow and event.style != "|" and libyaml.spans_lines(event):
            if event.implicit[0]:
                self.find_folded_item(event, parent)
            self.find_joined_commands(event, parent)
        if event.value == "<<" and _expects_key(stack) and (event.implicit[0] or event.tag == _CORE + "merge"):
            if event.anchor:
                self.anchors[event.anchor] = _AnchoredScalar("<<", event)
            return _MERGE, 0
        value = self.value(event)
        if event.anchor:
            self.anchors[event.anchor] = _AnchoredScalar(value, event)
        self.count(1, event)
        return self.convert_scalar(value, event, event, stack), 1

    def convert_scalar(self, value: Any, event: Any, written: Any, stack: list[_OpenCollection]) -> Any:
        """Convert a scalar that is a value to JSON, with the location where it is written; leave a key unchanged."""
        if _expects_key(stack):
            return value
        if isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                message = f"`{written.value}` is not a number in JSON; quote it if it is text"
                value = self.unrepresentable("non-finite-number", event, message, (written.value, written))
            else:
                value = normalize_number(value)
        if not self.traced:
            return value
        # The text of a plain number or boolean, if its value is shown as another text.
        is_plain = written.implicit[0] and not written.tag and value is not None and not isinstance(value, str)
        text = written.value if is_plain and to_text(value) != written.value else ""
        return TracedScalar(value, self.location(written), written=text)

    def check(self, event: Any, parent: _OpenCollection | None) -> None:
        rule, reason = self.source.find_rejection(event, in_flow=parent is not None and parent.flow)
        if rule:
            raise self.reject(rule, event, reason)

    def find_folded_item(self, event: Any, parent: _OpenCollection) -> None:
        """Warn of a line that looks like an item of a list, and is read as the rest of a text."""
        first, *lines = self.source.text[event.start_mark.index : event.end_mark.index].split("\n")
        at = next((at for at, line in enumerate(lines, 1) if line.lstrip(" ").startswith("- ")), 0)
        if at:
            line, number = lines[at - 1], event.start_mark.line + at
            hint = "put each item below its key, or write `|` after the colon to keep the lines"
            if parent.kind != "map":
                hint = f"indent it by {parent.event.start_mark.column} spaces, as the item above"
            message = f"{quote(line.strip())} is read as the rest of the text {quote(first)}; {hint}"
            if parent.kind == "map" and _ITEM_WITHOUT_SPACE.match(first):
                message = f"{quote(first)} has no space after its dash; write {quote(f'- {first[1:]}')}"
                line, number = first, event.start_mark.line
                place = self.line_span(number, event.start_mark.column)
                self.findings.append(self.finding("folded-item", place, message, Severity.WARNING))
                return
            place = self.line_span(number, len(line) - len(line.lstrip(" ")))
            self.findings.append(self.finding("folded-item", place, message, Severity.WARNING))

    def find_joined_commands(self, event: Any, parent: _OpenCollection) -> None:
        """Warn of commands of a script that become one, because YAML joins their lines."""
        # Imported late: few texts are on several lines.
        from jobgen.yamlio.read.script_lines import find_joined

        start = event.start_mark
        first, *lines = self.source.text[start.index : event.end_mark.index].strip("\"'\n").split("\n")
        command, below = find_joined(lines if event.style == ">" else [first, *lines])
        if not command or (parent.kind == "map" and parent.key in _LISTS):
            # What must be a list is reported as such.
            return
        number = start.line
        line = self.source.line(number)[0]
        header = line[: start.column]
        while number and (not header.strip() or header.lstrip().startswith("#")):
            # The text begins in a line below its key.
            number -= 1
            header = line = self.source.line(number)[0].rstrip()
        mark, also = (f"`{first.strip()}` joins", "") if event.style == ">" else ("without `|`, YAML joins", "")
        if number == start.line and event.style != ">":
            also = ", and the text below it"
        message = f"{mark} the lines of this script: {quote(below)} becomes a part of {quote(command)}"
        advice = f"write `{header.strip()} |`{also}"
        if command[0] == "#":
            message = f"{mark} the lines of this script: {quote(below)} becomes a part of the comment {quote(command)}"
            # The arguments of a program without any follow in the next lines, and `|` would end the command there.
            advice = "remove the comment" if below.isalnum() else f"{advice}, or remove the comment"
        place = self.line_span(number, len(line) - len(line.lstrip(" ")))
        message = f"{message}; {advice}"
        self.findings.append(self.finding("folded-item", place, message, Severity.WARNING))

    def value(self, event: Any) -> Any:
        tag, text = event.tag, self.source.value(event)
        if tag is None:
            return resolve(text) if event.implicit[0] else text
        if tag in ("!", _CORE + "str"):
            return text
        if tag == _CORE + "binary":
            decoded = decode_base64(text)
            if decoded is None:
                message = f"{quote(text)} is tagged `!!binary` but is not base64; remove the tag, or encode the text"
                raise self.reject("unreadable-tag", event, message)
            return decoded
        if tag in _SCALAR_TAGS:
            wanted = tag[len(_CORE) :]
            value, found = resolve_as(text, wanted)
            if wanted != found:
                message = f"{quote(text)} is tagged `!!{wanted}` but reads as {found}; remove the tag"
                raise self.reject("unreadable-tag", event, message)
            return value
        self.unknown_tag(event)
        return text

    def unknown_tag(self, event: Any) -> None:
        tag = "!!" + event.tag[len(_CORE) :] if event.tag.startswith(_CORE) else event.tag
        message = f"{quote(tag)} is a tag that Kubernetes does not know and ignores; remove it"
        self.findings.append(self.finding(libyaml.UNKNOWN_TAG, self.location(event), message, Severity.WARNING))

    def alias(self, event: Any, stack: list[_OpenCollection]) -> tuple[Any, int]:
        """Expand an alias. Its nodes are counted every time, which detects alias bombs."""
        name = f"`*{event.anchor}`"
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            message = f"{name} refers to an anchor that is not in this document; write the value, because anchors"
            raise self.reject("unknown-anchor", event, f"{message} are known only in their own document")
        if isinstance(anchored, _OpenCollection):
            raise self.reject("excessive-aliases", event, f"{name} is inside its own anchor, so it has no end")
        value, nodes = (anchored.value, 1) if isinstance(anchored, _AnchoredScalar) else anchored
        self.aliased += nodes
        self.count(nodes + 1, event)
        self.expanded += _count_characters(value)
        if self.decoded > MAX_NODES or self.expanded > MAX_BYTES:
            limit = f"{MAX_NODES} nodes" if self.decoded > MAX_NODES else f"{MAX_BYTES} characters"
            message = f"{name} and other aliases expand the document to more than {limit}"
            raise self.reject("excessive-aliases", event, message)
        if isinstance(anchored, _AnchoredScalar):
            value = self.convert_scalar(value, event, anchored.event, stack)
        return value, nodes + 1

    def count(self, nodes: int, event: Any) -> None:
        self.decoded += nodes
        if self.decoded > MAX_NODES and nodes == 1:
            message = f"the document has more than `{MAX_NODES}` nodes; split it into several files"
            raise self.reject("too-many-nodes", event, message)
        if self.aliased > 100 and self.decoded > 1000:
            share = self.aliased / self.decoded
            if share > allowed_alias_share(self.decoded):
                message = f"`{share:.1%}` of the document's nodes come from aliases; Kubernetes rejects so many"
                raise self.reject("excessive-aliases", event, message)

    def open(self, event: Any, stack: list[_OpenCollection]) -> _OpenCollection:
        if len(stack) >= MAX_DEPTH:
            raise self.reject("nesting-too-deep", event, f"this is nested more than `{MAX_DEPTH}` levels deep")
        if event.tag:
            self.check(event, stack[-1] if stack else None)
            if event.tag not in _COLLECTION_TAGS and event.tag != "!":
                self.unknown_tag(event)
        self.count(1, event)
        kind = "map" if isinstance(event, libyaml.MappingStartEvent) else "list"
        opened = _OpenCollection(kind, event)
        if event.anchor:
            self.anchors[event.anchor] = opened
        return opened

    def close(self, done: _OpenCollection) -> tuple[Any, int]:
        items: Any = done.items
        if self.traced and done.kind == "map" and not items:
            items = TracedMapping(self.location(done.event))
        elif self.traced and done.kind == "list":
            items = TracedList(items, self.location(done.event))
            items.item_locations = done.item_locations
        # A nested anchor of the same name may have replaced this one.
        if done.event.anchor and self.anchors[done.event.anchor] is done:
            self.anchors[done.event.anchor] = (items, done.nodes)
        return items, done.nodes

    def add(self, parent: _OpenCollection, done: tuple[Any, int], event: Any) -> None:
        value, nodes = done
        parent.nodes += nodes
        if parent.kind == "list":
            parent.items.append(value)
            if self.traced:
                parent.item_locations.append(self.location(event))
        elif parent.key_event is None:
            parent.key, parent.key_event = value, event
        else:
            key, key_event = parent.key, parent.key_event
            parent.key_event = None
            if key is _MERGE:
                self.merge(parent, value, key_event, is_alias=isinstance(event, libyaml.AliasEvent))
            else:
                self.put(parent, key, key_event, value)

    def put(self, parent: _OpenCollection, key: Any, key_event: Any, value: Any) -> None:
        if isinstance(key, (dict, list)):
            shape = "a mapping" if isinstance(key, dict) else "a list"
            raise self.reject("invalid-key", key_event, f"{shape} cannot be a key")
        text = to_json_key(key)
        if text is None:
            shape = "null" if key is None else str(int(key))
            message = f"`{shape}` cannot be a key in Kubernetes; quote it"
            parent.items[self.unrepresentable("invalid-key", key_event, message, (shape, key_event))] = value
            return
        is_plain = isinstance(key_event, libyaml.ScalarEvent) and key_event.implicit[0] and not key_event.tag
        written = key_event.value if is_plain and key_event.value != text else ""
        if text in parent.seen:
            self.duplicate_key(parent, key, text, key_event)
        elif written:
            self.misread_key(text, written, key_event)
        parent.seen[text] = key, key_event
        parent.items.pop(text, None)
        if self.traced:
            text = TracedKey.at(text, self.location(key_event), written=written)
        parent.items[text] = value

    def misread_key(self, text: str, written: str, key_event: Any) -> None:
        """Report a key that is another text in JSON: `ON` is `true`."""
        if len(self.findings) >= MAX_FINDINGS:
            raise self.reject("too-many-errors", key_event, TOO_MANY_FINDINGS)
        location = self.location(key_event)
        fix = Fix((TextEdit("rename", location, written, was=text),), True)
        message = f"the key {quote(written)} is read as {quote(text)} by YAML; quote it"
        self.findings.append(Finding("ambiguous-scalar", "yaml", Severity.WARNING, message, location, fix=fix))

    def duplicate_key(self, parent: _OpenCollection, key: Any, text: str, key_event: Any) -> None:
        """Report a key that is set twice. Go accepts a number and a text that are the same key in JSON."""
        first_key, first_event = parent.seen[text]
        advice = "remove one, or join them" if isinstance(parent.items.get(text), (dict, list)) else "remove one"
        message = f"{quote(text)} is set twice in one mapping; Kubernetes keeps only the last one; {advice}"
        severity = Severity.ERROR
        texts = [each.value for each in (first_event, key_event) if isinstance(each, libyaml.ScalarEvent)]
        if type(key) is bool and len({*texts, text}) == 3:
            both = " and ".join(map(quote, texts))
            message = f"{both} are both the key {quote(text)} in YAML; Kubernetes keeps only the last one; quote them"
        if type(first_key) is not type(key):
            severity = Severity.WARNING
            message = f"{quote(text)} is set twice in one mapping, with and without quotes; Kubernetes keeps either one"
        related = (Related(self.location(first_event), "first set here"),)
        if len(self.findings) >= MAX_FINDINGS:
            raise self.reject("too-many-errors", key_event, TOO_MANY_FINDINGS)
        location = self.location(key_event)
        self.findings.append(Finding("duplicate-key", "yaml", severity, message, location, related=related))

    def merge(self, parent: _OpenCollection, value: Any, key_event: Any, *, is_alias: bool) -> None:
        """Apply `<<`. Go merges the mapping at the position of the key, so it overrides the keys above it."""
        sources = value if isinstance(value, list) and not is_alias else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self.reject("invalid-merge-key", key_event, "`<<` takes a mapping or a list of mappings")
        for source in reversed(sources):
            for key, child in source.items():
                parent.items.pop(key, None)
                parent.items[key] = child


def _count_characters(tree: Any) -> int:
    """The text of a value; its nodes are limited before."""
    if isinstance(tree, dict):
        return sum(map(_count_characters, tree)) + sum(map(_count_characters, tree.values()))
    if isinstance(tree, list):
        return sum(map(_count_characters, tree))
    found = value_of(tree)
    return len(found) if isinstance(found, str) else 1


def _replace_unrepresentable(root: Any) -> list[Finding]:
    """Replace keys and numbers of a tree that JSON cannot represent by their text, and return what is wrong with them.

    What an alias repeats is reported once.
    """
    nodes, seen = [root], set()
    found: dict[int, _Unrepresentable] = {}
    while nodes:
        node = nodes.pop()
        if isinstance(part := _value_of(node), _Unrepresentable):
            found.setdefault(part.at, part)
        # An alias repeats the same collection.
        elif isinstance(node, (dict, list)) and id(node) not in seen:
            seen.add(id(node))
            nodes += reversed([each for pair in node.items() for each in pair] if isinstance(node, dict) else node)
            _replace_entries(node)
    return [each.finding for each in [*found.values()][:MAX_FINDINGS]]


def _value_of(node: Any) -> Any:
    return node.value if type(node) is TracedScalar else node


def _replace_entries(node: Any) -> None:
    if isinstance(node, list):
        node[:] = map(_to_text, node)
        return
    entries = [(_to_text(key), _to_text(value)) for key, value in node.items()]
    node.clear()
    for key, value in entries:
        node.setdefault(key, value)


def _to_text(node: Any) -> Any:
    part = _value_of(node)
    if not isinstance(part, _Unrepresentable):
        return node
    return TracedScalar(part.text, node.location) if type(node) is TracedScalar else part.text


def _expects_key(stack: list[_OpenCollection]) -> bool:
    """Return True if the next node is a key of the innermost mapping."""
    return bool(stack) and stack[-1].kind == "map" and stack[-1].key_event is None


def _find_template(line: str) -> tuple[int, int] | None:
    """The start and end of the first template text of a line."""
    at = 0
    while template := _TEMPLATE.search(line, at):
        parts = _QUOTES_AND_COMMENTS.finditer(line, at)
        skipped = next((part for part in parts if part.end() > template.start()), None)
        if skipped is None or skipped.start() > template.start():
            return template.span()
        at = skipped.end()
    return None
