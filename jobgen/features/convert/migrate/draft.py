"""A spec during migration, and the notes on what happens to each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from jobgen.features.convert.importing.common_fields import Fields, shorten_resources
from jobgen.features.convert.importing.format_yaml import KeyPath
from jobgen.features.convert.migrate.tables import REASONS
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge

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
    """Whether the job runs the master alone, because the runtime has the workers."""
    has_resources: bool
    """Whether the runtime has the resources of the nodes: a TrainJob cannot claim devices."""
    notes: tuple[MigrationNote, ...]
    name: str = ""


class Surroundings(NamedTuple):
    """What overlays say about a job: its restart policies today, by role, and the operator that it is migrated to."""

    policies: Mapping[str, str] = MappingProxyType({})
    env: str = ""
    target_version: str = ""
    runtime: BuiltRuntime | None = None
    """The runtime that takes the fields that the other kind does not have."""
    preferred: str = ""
    """The platform that the cluster chooses for the new job if the job names none, though it has the new one too."""


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
        known = {**REASONS["*"], **REASONS.get(self.target.platform, {})}
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
    """Whether one path leads to the other, or is the same."""
    return other[: len(one)] == one or one[: len(other)] == other


def get_at(tree: Any, path: KeyPath) -> Any:
    """The value at a path, or None."""
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree


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
