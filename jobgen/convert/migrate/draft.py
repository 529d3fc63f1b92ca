"""A spec on its way to another kind, and the account of what became of each field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jobgen.convert.importing.common_fields import shorten_resources
from jobgen.convert.migrate.tables import WHY
from jobgen.model.data import Data
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge

Path = tuple[str, ...]


class MigrationNote(NamedTuple):
    """One line of the account: the field of the spec, what became of it, and why."""

    field: Path
    fate: str
    why: str

    def __str__(self) -> str:
        return f"{self.fate}: `{'.'.join(self.field)}`: {self.why}"


@dataclass(slots=True)
class Draft:
    """The spec as far as it has got; steps change it and say what they did."""

    spec: dict[str, Data]
    name: str
    framework: str
    source: Kind
    target: Kind
    entries: list[MigrationNote] = field(default_factory=list)

    def say(self, path: Path, fate: str, why: str) -> None:
        """Put a line into the account."""
        entry = MigrationNote(path, fate, why)
        if entry not in self.entries:
            self.entries.append(entry)

    def lose(self, path: Path, why: str = "") -> None:
        """Take a field out and say so."""
        pop(self.spec, path)
        self.say(path, "lost", why or self.why(path))

    def why(self, path: Path) -> str:
        """Why the target has no place for a field; fields of a role are looked up by their own name."""
        own = ".".join(path[2:] if path[0] == "roles" else path)
        known = WHY.get(self.target.platform, {})
        parts = own.split(".")
        for length in range(len(parts), 0, -1):
            if ".".join(parts[:length]) in known:
                return known[".".join(parts[:length])]
        return f"{self.target.name} has no place for it"

    def holders(self) -> Iterator[tuple[Path, dict[str, Data]]]:
        """The job's fields, and those of each role."""
        yield (), self.spec
        for name, role in list((self.spec.get("roles") or {}).items()):
            if isinstance(role, dict):
                yield ("roles", name), role


def say_of_all(draft: Draft, role: Path, field: str, value: Data) -> None:
    """A role's word as the job's: laid over what the job says, as layers are."""
    common = draft.spec.get(field)
    if value is None:
        if field in draft.spec:
            draft.lose((field,), f"`{role[-1]}` unsays it")
    elif field == "resources" and isinstance(common, dict) and isinstance(value, dict):
        draft.spec[field] = shorten_resources(merge(_sides(common), _sides(value), []), "")
    else:
        draft.spec = merge(draft.spec, {field: value}, [])
    draft.say((*role, field), "moved", "it is said of all nodes")


def _sides(resources: dict[str, Data]) -> dict[str, Data]:
    """Amounts that are said once, on both sides; so one can be laid on the other."""
    flat = {key: value for key, value in resources.items() if key not in ("limits", "requests", "claims")}
    sides = {side: {**flat, **(resources.get(side) or {})} for side in ("limits", "requests")}
    kept = {side: amounts for side, amounts in sides.items() if amounts}
    return {**kept, "claims": resources["claims"]} if "claims" in resources else kept


def at(tree: Data, path: Path) -> Data:
    """What stands at a path, or None."""
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(step)
    return tree


def pop(tree: dict[str, Data], path: Path) -> Data:
    """Take out what stands at a path, and the maps that held nothing else; a role stays, for it is a role."""
    holder = at(tree, path[:-1])
    if not isinstance(holder, dict) or path[-1] not in holder:
        return None
    value = holder.pop(path[-1])
    if not holder and len(path) > 1 and not (len(path) == 3 and path[0] == "roles"):
        pop(tree, path[:-1])
    return value


def put(tree: dict[str, Data], path: Path, value: Data) -> None:
    """Set what stands at a path."""
    for step in path[:-1]:
        if not isinstance(tree.get(step), dict):
            tree[step] = {}
        tree = tree[step]
    tree[path[-1]] = value


def iter_leaves(tree: Data, path: Path = ()) -> Iterator[tuple[Path, Data]]:
    """All scalars, lists and empty maps of a spec, with their paths."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from iter_leaves(value, (*path, str(key)))
    else:
        yield path, tree
