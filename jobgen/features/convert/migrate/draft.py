"""A spec during migration, and the notes on what happens to each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from jobgen.features.convert.importing.collect import find_bounds, rewrite_document
from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.pod_fields import Fields, shorten_resources
from jobgen.model.data import Plain, TracedKey, TracedScalar, location_of, untraced
from jobgen.model.finding import TextEdit
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File
from jobgen.repo.shipped import read_data
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge
from jobgen.spec.replicas import get_at
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

Change = Literal["moved", "changed", "lost", "check"]


class MigrationNote(NamedTuple):
    """What happens to a field of the spec, and why."""

    field: KeyPath
    change: Change
    reason: str

    def __str__(self) -> str:
        return f"{self.change}: `{'.'.join(self.field)}`: {self.reason}"


def list_lost_fields(notes: Iterable[MigrationNote]) -> tuple[str, ...]:
    """Return the paths of the fields that the other kind does not have."""
    return tuple(dict.fromkeys(".".join(map(str, note.field)) for note in notes if note.change == "lost"))


class BuiltRuntime(NamedTuple):
    """The spec of a runtime, and what a job needs besides it."""

    spec: Fields
    env: tuple[Fields, ...]
    """Variables that depend on the number of nodes, so that they belong in the job."""
    injected: frozenset[str]
    """Variables that the old operator set, whatever the job had set."""
    roles_differ: bool
    """True if the job runs the master alone, because the runtime has the workers."""
    has_resources: bool
    """True if the runtime has the resources of the nodes: a TrainJob cannot claim devices."""
    notes: tuple[MigrationNote, ...]
    name: str = ""
    volumes: frozenset[str] = frozenset()
    """The volumes that the runtime has, with all their mounts, because a container of the runtime mounts them."""


class Surroundings(NamedTuple):
    """What overlays say about a job: its restart policies today, by role, and the operator that it is migrated to."""

    policies: Mapping[str, str] = MappingProxyType({})
    env: str = ""
    target_version: str = ""
    runtime: BuiltRuntime | None = None
    """The runtime that takes the fields that the other kind does not have."""
    preferred: str = ""
    """The platform that the cluster chooses for the new job if the job names none, though it has the new one too."""
    absorbed: frozenset[KeyPath] = frozenset()
    """The fields of the spec that come from overlays, which users did not write into the job."""


NO_SURROUNDINGS = Surroundings()


@dataclass(slots=True)
class Draft:
    """The spec so far; each step changes it and notes what it did."""

    spec: Fields
    name: str
    framework: str
    source: Kind
    target: Kind
    notes: list[MigrationNote] = field(default_factory=list)
    surroundings: Surroundings = NO_SURROUNDINGS
    is_spread: bool = False
    """True if the spec had no roles, only a number of pods, and got the roles that it stands for."""

    def note(self, path: KeyPath, change: Change, reason: str) -> None:
        """Add a note, unless it exists."""
        note = MigrationNote(path, change, reason)
        if note not in self.notes:
            self.notes.append(note)

    def drop(self, path: KeyPath, reason: str = "") -> None:
        """Remove a field and note that it is lost."""
        pop_path(self.spec, path)
        runtime = self.surroundings.runtime
        if runtime is None:
            self.note(path, "lost", reason or self._find_reason(path))
        elif not any(overlaps(path, note.field) for note in runtime.notes if note.change != "check"):
            self.note(path, "moved", f"it is in the runtime `{runtime.name}` now")

    def _find_reason(self, path: KeyPath) -> str:
        """Why the target does not support a field: the reason for the longest known prefix of its path."""
        steps = path[2:] if path[0] == "roles" else path
        reasons = read_data("migrations.yaml")["reasons"]
        known = {**reasons["*"], **reasons.get(self.target.platform, {})}
        prefixes = (".".join(steps[:length]) for length in range(len(steps), 0, -1))
        return next(
            (known[prefix] for prefix in prefixes if prefix in known), f"{self.target.name} does not support it"
        )

    def holders(self) -> Iterator[tuple[KeyPath, Fields]]:
        """The fields of the job, and those of each role, with their paths."""
        yield (), self.spec
        for name, role in list((self.spec.get("roles") or {}).items()):
            if isinstance(role, dict):
                yield ("roles", name), role

    def move_to_job(self, role: KeyPath, name: str, value: Any, reason: str = "it applies to all nodes now") -> None:
        """Merge a field of a role into the field of the job."""
        common = self.spec.get(name)
        if value is None:
            if name in self.spec:
                self.drop((name,), f"`{role[-1]}` sets it to null")
        elif name == "resources" and isinstance(common, dict) and isinstance(value, dict):
            self.spec[name] = shorten_resources(merge(_expand_resources(common), _expand_resources(value), []), "")
        else:
            self.spec = merge(self.spec, {name: value}, [])
        self.note((*role, name), "moved", reason)


def _expand_resources(resources: Fields) -> Fields:
    """Resources with limits and requests instead of the short form, so that they can be merged."""
    short = {key: value for key, value in resources.items() if key not in ("limits", "requests", "claims")}
    sides = {side: {**short, **(resources.get(side) or {})} for side in ("limits", "requests")}
    kept = {side: amounts for side, amounts in sides.items() if amounts}
    return {**kept, "claims": resources["claims"]} if "claims" in resources else kept


def overlaps(one: KeyPath, other: KeyPath) -> bool:
    """Return True if one path leads to the other, or is the same."""
    return other[: len(one)] == one or one[: len(other)] == other


def pop_path(tree: Fields, path: KeyPath) -> None:
    """Remove the value at a path, and the maps that are then empty; an empty role stays."""
    parent = get_at(tree, path[:-1])
    if not isinstance(parent, dict) or path[-1] not in parent:
        return
    del parent[path[-1]]
    if not parent and len(path) > 1 and not (len(path) == 3 and path[0] == "roles"):
        pop_path(tree, path[:-1])


def put_at(tree: Fields, path: KeyPath, value: Any) -> None:
    """Set the value at a path."""
    for step in path[:-1]:
        if not isinstance(tree.get(step), dict):
            tree[step] = {}
        tree = tree[step]
    tree[path[-1]] = value


def iter_leaves(tree: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """All scalars, lists and empty maps of a spec, with their paths."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from iter_leaves(value, (*path, str(key)))
    else:
        yield path, tree


def replace_documents(file: File, documents: Mapping[int, Mapping[str, Plain] | str]) -> str:
    """The text of a file with some of its documents changed; one that is a text is replaced as a whole."""
    lines = _split_lines(file)
    for position in sorted(documents, reverse=True):
        new = documents[position]
        first, last = _find_lines(lines, file, position)
        text = new if isinstance(new, str) else rewrite_job(file, position, new)
        lines[first - 1 : last] = text.removesuffix("\n").split("\n")
    return "\n".join(lines).rstrip("\n") + "\n"


def _split_lines(file: File) -> list[str]:
    return file.content.decode("utf-8").replace("\r\n", "\n").split("\n")


def _find_lines(lines: list[str], file: File, position: int) -> tuple[int, int]:
    """The first and the last line of a document, without empty lines at its end."""
    first, last = find_bounds(lines, read(file.content, file.path, traced=True).documents[position].location.line)
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


def rewrite_job(file: File, position: int, document: Mapping[str, Plain]) -> str:
    """The text of one document of a file, changed into another document."""
    lines = _split_lines(file)
    first, last = _find_lines(lines, file, position)
    old_text = "\n".join(lines[first - 1 : last]) + "\n"
    [traced] = [each.data for each in read(old_text.encode(), file.path, traced=True).documents]
    try:
        text = apply_edits(old_text.encode(), file.path, list(_list_edits(traced, document))).decode()
        if [each.data for each in read(text.encode(), "").documents] == [document]:
            return text
    except EditRefusedError:
        pass
    return rewrite_document(old_text, document)


def _list_edits(traced: Any, after: Mapping[str, Any]) -> Iterator[TextEdit]:
    """The edits that turn one map into another."""
    anchor: TracedKey | None = None
    for key, value in traced.items():
        if key not in after:
            yield TextEdit("remove", key.location)
            continue
        anchor = key
        if untraced(value) == after[key] and type(untraced(value)) is type(after[key]):
            continue
        if isinstance(value, dict) and value and isinstance(after[key], dict) and after[key]:
            yield from _list_edits(value, after[key])
        elif isinstance(value, TracedScalar) and not isinstance(after[key], (dict, list)):
            yield TextEdit("set", value.location, after[key])
        else:
            raise EditRefusedError("a list or a map changed as a whole")
    added = [(key, value) for key, value in after.items() if key not in traced]
    if added and anchor is None:
        raise EditRefusedError("there is no entry to add another one after")
    # Each entry is added directly after the anchor, so the last one comes first.
    for key, value in reversed(added):
        assert anchor is not None, "checked above"
        yield TextEdit("add", anchor.location, value, key)


def find_line(traced: Any, field: Sequence[str | int], start: int) -> int:
    """The line of a field in a traced spec, or of its nearest parent, or where the document starts."""
    node, line = traced, start
    for step in field:
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            node = node[step]
            continue
        key = next((key for key in node if key == step), None) if isinstance(node, dict) else None
        location = location_of(key) if key is not None else None
        if key is None or location is None:
            break
        line, node = location.line, node[key]
    return line
