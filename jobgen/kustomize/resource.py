"""An object on its way through a build: its data, the names that it had, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.field_specs import KNOWN_TYPES
from jobgen.kustomize.kustomization import text_of
from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedMapping, TracedScalar, value_of, with_value
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read import read
from jobgen.yamlio.read.exact import compose

_UNREADABLE = frozenset(("yaml-syntax", "template-text", "not-a-mapping", "unknown-anchor", "excessive-aliases"))
# The start of a block of text, after its tag and its anchor.
_BLOCK = lazy_pattern(r"(?:[!&]\S*+[ \t]++)*[|>]")
NO_NAMESPACE = "_non_namespaceable_"
"""In place of the namespace, for objects of the cluster."""


class Id(NamedTuple):
    """What identifies an object in a build."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str
    """`default` for objects without one, and a value that no namespace has for those of the cluster."""

    def __str__(self) -> str:
        where = "" if self.namespace in ("default", NO_NAMESPACE) else f"{self.namespace}/"
        return f"{self.kind} {where}{self.name}"


@dataclass(slots=True, eq=False)
class Resource:
    """An object of a build. Transformers change its mappings and lists in place; leaves are shared, never changed."""

    node: dict[str, Any]
    file: str
    position: int
    location: Location
    previous: list[tuple[str, str, str]] = field(default_factory=list)
    """The namespaces, names and kinds that it had."""
    prefixes: list[str] = field(default_factory=list)
    suffixes: list[str] = field(default_factory=list)
    behavior: str = ""
    needs_hash: bool = False

    @property
    def group_version(self) -> tuple[str, str]:
        """The API group, and the version in it."""
        group, _, version = text_of(self.node.get("apiVersion")).rpartition("/")
        return group, version

    @property
    def kind(self) -> str:
        """The kind as it is now."""
        return text_of(self.node.get("kind"))

    @property
    def metadata(self) -> Any:
        """The metadata, if they are a mapping."""
        return as_mapping(self.node.get("metadata"))

    @property
    def name(self) -> str:
        """The name as it is now."""
        return text_of(self.metadata.get("name"))

    @property
    def namespace(self) -> str:
        """The namespace as it is now; empty if none is set."""
        return text_of(self.metadata.get("namespace"))

    @property
    def id(self) -> Id:
        """The identity as it is now."""
        return identify(self.node)

    @property
    def previous_ids(self) -> list[Id]:
        """The identities that it had, the first one first."""
        group, version = self.group_version
        return [Id(group, version, kind, name, namespace) for namespace, name, kind in self.previous]

    @property
    def original_id(self) -> Id:
        """The identity that it had in its file."""
        return next(iter(self.previous_ids), self.id)

    def store_id(self) -> None:
        """Remember the identity, because a transformer changes it."""
        found = self.id
        self.previous.append((found.namespace, found.name, found.kind))


def identify(node: Node) -> Id:
    """Return the identity of an object."""
    data = as_mapping(node)
    metadata = as_mapping(data.get("metadata"))
    api_version, kind = text_of(data.get("apiVersion")), text_of(data.get("kind"))
    group, _, version = api_version.rpartition("/")
    namespace = NO_NAMESPACE if is_of_cluster(api_version, kind) else text_of(metadata.get("namespace")) or "default"
    return Id(group, version, kind, text_of(metadata.get("name")), namespace)


def is_of_cluster(api_version: str, kind: str) -> bool:
    """Return True if kustomize knows that objects of a type have no namespace."""
    return KNOWN_TYPES.get((api_version, kind), False)


class Documents(NamedTuple):
    """The documents of a file, which must not be changed."""

    data: tuple[Any, ...]
    findings: tuple[Finding, ...]
    """Empty if all of them can be read."""
    locations: tuple[Location, ...]
    """Where they begin; empty for a JSON patch."""
    is_whole: bool = True
    """False if more documents are in the file, which have errors."""


class _LastDocuments:
    """The documents of the last files: many kustomizations can share a base of many files."""

    MAX_BYTES = 16 * 1024 * 1024

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, str, str], Documents] = {}
        self._size = 0

    def read(self, content: bytes, file: str, layer: str) -> Documents:
        key = (content, file, layer)
        found = self._kept.get(key)
        if found is None:
            if self._size + len(content) > self.MAX_BYTES:
                self._kept.clear()
                self._size = 0
            self._size += len(content)
            found = self._kept[key] = _read_documents(content, file, layer)
        return found


_LAST = _LastDocuments()


def read_documents(content: bytes, file: str, layer: str) -> Documents:
    """Return the documents of a file; each is read once, unless there are too many."""
    return _LAST.read(content, file, layer)


def _read_documents(content: bytes, file: str, layer: str) -> Documents:
    source = read(content, file, traced=True)
    documents: list[Any] = [each.data for each in source.documents]
    findings: tuple[Finding, ...] = source.findings
    if not documents and all(each.rule == "not-a-mapping" for each in findings):
        # JSON patches are lists.
        data, found, _ = compose(content.decode("utf-8", "replace"), file, 1, traced=True)
        documents, findings = ([], tuple(found)) if value_of(data) is None else ([data], ())
    is_valid = not any(each.rule in _UNREADABLE for each in findings)
    rebuilt = tuple(_rebuild(each, lambda location: location, layer) for each in documents)
    if rebuilt and not content.endswith(b"\n"):
        _end_text(rebuilt[-1], content)
    locations = tuple(each.location for each in source.documents)
    return Documents(rebuilt, () if is_valid and documents else findings, locations, not source.repaired)


def _end_text(document: Any, content: bytes) -> None:
    """Remove the newline after a block of text that ends its file without one: kubectl adds it, kustomize does not."""
    parent, key, node = document, None, document
    while isinstance(node, (dict, list)) and node:
        parent, key = node, next(reversed(node)) if isinstance(node, dict) else len(node) - 1
        node = node[key]
    if key is None or type(node) is not TracedScalar or not isinstance(node.value, str):
        return
    lines = content.decode("utf-8", "replace").split("\n")
    start = lines[node.location.line - 1][node.location.column - 1 :] if node.location.line <= len(lines) else ""
    last = lines[-1].strip()
    if _BLOCK.match(start) and last and node.value.endswith(f"{last}\n"):
        parent[key] = with_value(node, node.value[:-1])


def read_inline(node: TracedScalar, lines: list[str], layer: str) -> tuple[list[Any], tuple[Finding, ...]]:
    """Return the documents of a text that is a value of a YAML file; those of a literal block keep their lines."""
    # Imported late: few kustomizations have objects in their text.
    from jobgen.yamlio.inner_text import measure_text

    start = node.location
    text = str(node.value)
    read_text = read_documents(text.encode("utf-8", "surrogatepass"), start.file, layer)
    move = measure_text(node, lines)
    moved = [_rebuild(document, move, layer) for document in read_text.data]
    return moved, tuple(finding._replace(location=move(finding.location)) for finding in read_text.findings)


def _rebuild(node: Any, move: Callable[[Location], Location], layer: str) -> Any:
    """Return a tree with its layer named, with other locations, and with the texts that kustomize reads."""
    if type(node) is TracedMapping and not node:
        return TracedMapping(move(node.location), layer)
    if isinstance(node, dict):
        return {
            _rebuild(key, move, layer) if type(key) is TracedKey else key: _rebuild(value, move, layer)
            for key, value in node.items()
        }
    if type(node) is TracedKey:
        is_word = node in ("true", "false") and node.written.lower() not in ("", "true", "false")
        return TracedKey.at(node.written if is_word else str(node), move(node.location), layer)
    if type(node) is TracedList:
        items = [_rebuild(item, move, layer) for item in node]
        return TracedList(items, move(node.location), layer, item_locations=map(move, node.item_locations))
    if type(node) is TracedScalar:
        is_word = isinstance(node.value, bool) and node.written.lower() not in ("", "true", "false")
        value = node.written if is_word else node.value
        return TracedScalar(value, move(node.location), layer, None, "" if is_word else node.written)
    return node
