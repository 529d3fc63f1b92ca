"""The same job for another kind; nothing is dropped without a line in the account."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.convert.importing.common_fields import with_types
from jobgen.convert.importing.invert import sort_fields
from jobgen.convert.importing.verify import render_spec, renderer_for
from jobgen.convert.migrate.compare import compare_workloads, describe_workload
from jobgen.convert.migrate.draft import Draft, MigrationNote, Path, at, iter_leaves
from jobgen.convert.migrate.steps import STEPS, skeleton
from jobgen.model.data import Data
from jobgen.spec.kinds import Kind

_SKELETON_OF, _SKELETON = "mxnet", "pytorch"


class MigratedJob(NamedTuple):
    """A spec for the other kind, the account, what both objects do not have in common, and what stands in the way."""

    document: dict[str, Data]
    entries: tuple[MigrationNote, ...]
    differences: tuple[str, ...]
    problems: tuple[str, ...]
    made: Data


def target_framework(framework: str, kind: Kind) -> str:
    """The framework under which a kind takes a job; nothing if it does not."""
    if framework in kind.frameworks:
        return framework
    return _SKELETON if framework == _SKELETON_OF and _SKELETON in kind.frameworks else ""


def migrate_job(
    document: dict[str, Data], source: Kind, target: Kind, framework: str, kinds: Sequence[Kind]
) -> MigratedJob:
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
        draft.spec["roles"] = {
            name: sort_fields(role) if isinstance(role, dict) else role for name, role in roles.items()
        }
    new = {**document, "spec": draft.spec}
    made, problems = render_spec(new, renderer_for(target.platform, kinds), alone=False)
    before = {**document, "spec": {"framework": framework, **document["spec"]}}
    old, _ = render_spec(before, renderer_for(source.platform, kinds), alone=False)
    differ: tuple[str, ...] = ()
    if isinstance(made, dict) and isinstance(old, dict):
        differ = tuple(
            compare_workloads(
                describe_workload(old, source, framework), describe_workload(made, target, draft.framework)
            )
        )
    return MigratedJob(new, tuple(draft.entries), differ, tuple(problems), made)


def _account(before: dict[str, Data], draft: Draft) -> None:
    """The law of this package: a value that is not where it was has a line that says so."""
    after = dict(iter_leaves(draft.spec))
    for path, value in iter_leaves(before):
        if (path in after and with_types(after[path]) == with_types(value)) or (
            value == {} and at(draft.spec, path) is not None
        ):
            continue
        if not any(entry.fate != "check" and _covers(entry.field, path) for entry in draft.entries):
            draft.say(path, "lost", "it is not carried over")


def _covers(field: Path, path: Path) -> bool:
    return path[: len(field)] == field or field[: len(path)] == path
