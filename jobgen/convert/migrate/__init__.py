"""The same job for another kind; nothing is dropped without a line in the account."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.convert.importing.hoisting import typed
from jobgen.convert.importing.inverting import ordered
from jobgen.convert.importing.proving import bench_for, rendered
from jobgen.convert.migrate.draft import Draft, Entry, Path, at, leaves
from jobgen.convert.migrate.equivalence import footprint, unequal
from jobgen.convert.migrate.skeleton import skeleton
from jobgen.convert.migrate.steps import STEPS
from jobgen.model.data import Data
from jobgen.spec.kinds import Kind

_SKELETON_OF, _SKELETON = "mxnet", "pytorch"


class Migrated(NamedTuple):
    """A spec for the other kind, the account, what both objects do not have in common, and what stands in the way."""

    document: dict[str, Data]
    entries: tuple[Entry, ...]
    unequal: tuple[str, ...]
    problems: tuple[str, ...]
    made: Data


def served(framework: str, kind: Kind) -> str:
    """The framework under which a kind takes a job; nothing if it does not."""
    if framework in kind.frameworks:
        return framework
    return _SKELETON if framework == _SKELETON_OF and _SKELETON in kind.frameworks else ""


def migrated(document: dict[str, Data], source: Kind, target: Kind, framework: str, kinds: Sequence[Kind]) -> Migrated:
    """A job spec for another kind."""
    spec = {"framework": framework, **copy.deepcopy(document["spec"])}
    draft = Draft(spec, str(document["metadata"]["name"]), framework, source, target)
    if framework not in target.frameworks:
        skeleton(draft)
    for step in STEPS:
        step(draft)
    _account(document["spec"], draft)
    roles = draft.spec.get("roles")
    if isinstance(roles, dict):
        draft.spec["roles"] = {name: ordered(role) if isinstance(role, dict) else role for name, role in roles.items()}
    new = {**document, "spec": draft.spec}
    made, problems = rendered(new, bench_for(target.platform, kinds), alone=False)
    before = {**document, "spec": {"framework": framework, **document["spec"]}}
    old, _ = rendered(before, bench_for(source.platform, kinds), alone=False)
    differ: tuple[str, ...] = ()
    if isinstance(made, dict) and isinstance(old, dict):
        differ = tuple(unequal(footprint(old, source, framework), footprint(made, target, draft.framework)))
    return Migrated(new, tuple(draft.entries), differ, tuple(problems), made)


def _account(before: dict[str, Data], draft: Draft) -> None:
    """The law of this package: a value that is not where it was has a line that says so."""
    after = dict(leaves(draft.spec))
    for path, value in leaves(before):
        if (path in after and typed(after[path]) == typed(value)) or (value == {} and at(draft.spec, path) is not None):
            continue
        if not any(entry.fate != "check" and _covers(entry.field, path) for entry in draft.entries):
            draft.say(path, "lost", "it is not carried over")


def _covers(field: Path, path: Path) -> bool:
    return path[: len(field)] == field or field[: len(path)] == path
