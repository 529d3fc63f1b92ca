"""Migrate one job spec to another kind. Every field that changes has a note."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields, with_types
from jobgen.features.convert.importing.invert import sort_fields
from jobgen.features.convert.importing.verify import render_objects, render_spec, renderer_for
from jobgen.features.convert.migrate.compare import compare_workloads, describe_workload
from jobgen.features.convert.migrate.draft import (
    NO_SURROUNDINGS,
    Draft,
    MigrationNote,
    Surroundings,
    get_at,
    iter_leaves,
    overlaps,
)
from jobgen.features.convert.migrate.platforms import restore_platforms, take_platforms
from jobgen.features.convert.migrate.steps import STEPS, convert_mxnet_to_pytorch
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind

_ARCHIVED, _SUCCESSOR = "mxnet", "pytorch"


class MigratedJob(NamedTuple):
    """A spec for the other kind, the notes, how the workloads differ, and the problems that prevent rendering it."""

    document: dict[str, Plain]
    notes: tuple[MigrationNote, ...]
    differences: tuple[str, ...]
    problems: tuple[str, ...]
    rendered: dict[str, Plain] | None
    companions: tuple[dict[str, Plain], ...] = ()


def target_framework(framework: str, kind: Kind) -> str:
    """The framework under which a kind can run a job; empty if it cannot."""
    if framework in kind.frameworks:
        return framework
    return _SUCCESSOR if framework == _ARCHIVED and _SUCCESSOR in kind.frameworks else ""


def migrate_job(
    document: dict[str, Plain],
    source: Kind,
    target: Kind,
    framework: str,
    kinds: Sequence[Kind],
    surroundings: Surroundings = NO_SURROUNDINGS,
) -> MigratedJob:
    """Migrate a job spec from one kind to another."""
    old: Any = document
    # An overlay may have chosen another platform than the job.
    own = {key: value for key, value in old["spec"].items() if key != "platform"}
    before: dict[str, Plain] = {**document, "spec": {"framework": framework, **own}}
    spec: Fields = {"framework": framework, **copy.deepcopy(old["spec"])}
    draft = Draft(spec, str(old["metadata"]["name"]), framework, source, target, surroundings=surroundings)
    if surroundings.runtime:
        draft.notes += surroundings.runtime.notes
    if framework not in target.frameworks:
        convert_mxnet_to_pytorch(draft)
    platforms = take_platforms(draft)
    for step in STEPS:
        step(draft)
    restore_platforms(draft, platforms)
    _note_lost_fields(old["spec"], draft)
    roles = draft.spec.get("roles")
    if isinstance(roles, dict):
        draft.spec["roles"] = {
            name: sort_fields(role) if isinstance(role, dict) else role for name, role in roles.items()
        }
    after: dict[str, Plain] = {**document, "spec": draft.spec}
    versions = {target.operator: surroundings.target_version} if surroundings.target_version else {}
    made, problems = render_objects(after, renderer_for(target.platform, kinds, versions), alone=False)
    new_object = next(iter(made), None)
    old_object, _ = render_spec(before, renderer_for(source.platform, kinds), alone=False)
    differences: tuple[str, ...] = ()
    if new_object is not None and old_object is not None:
        old_workload = describe_workload(old_object, source, framework, before["spec"])
        new_workload = describe_workload(new_object, target, draft.framework, draft.spec)
        differences = tuple(compare_workloads(old_workload, new_workload))
    return MigratedJob(after, tuple(draft.notes), differences, tuple(problems), new_object, made[1:])


def _note_lost_fields(old_spec: Fields, draft: Draft) -> None:
    """Note every value that is neither unchanged nor covered by another note."""
    after = dict(iter_leaves(draft.spec))
    for path, value in iter_leaves(old_spec):
        is_unchanged = path in after and with_types(after[path]) == with_types(value)
        if is_unchanged or (value == {} and get_at(draft.spec, path) is not None):
            continue
        if not any(note.change != "check" and overlaps(note.field, path) for note in draft.notes):
            draft.note(path, "lost", "it is not carried over")
