"""Migrate one job spec to another kind. Every field that changes has a note."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen.features.convert.importing.invert import sort_fields
from jobgen.features.convert.importing.pod_fields import Fields, with_types
from jobgen.features.convert.importing.verify import render_objects, render_spec, renderer_for
from jobgen.features.convert.migrate.compare_jobs import Rendered
from jobgen.features.convert.migrate.differences import NamedDifference, find_differences
from jobgen.features.convert.migrate.draft import (
    NO_SURROUNDINGS,
    BuiltRuntime,
    Draft,
    MigrationNote,
    Surroundings,
    iter_leaves,
    overlaps,
)
from jobgen.features.convert.migrate.keep_starts import keep_starts, let_pods_fail
from jobgen.features.convert.migrate.runtime import KIND, RUNTIME_VERSION, refer_to_runtime
from jobgen.features.convert.migrate.steps import STEPS, convert_mxnet_to_pytorch
from jobgen.features.convert.migrate.totals import spread_replicas
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster
from jobgen.spec.replicas import get_at
from jobgen.spec.sweeps import expand_member


def take_platforms(draft: Draft) -> Fields:
    """Remove the names of platforms, and the roles that do not exist on the old platform; return what was removed."""
    taken: Fields = {"platform": draft.spec.pop("platform", None), "roles": {}}
    roles = draft.spec.get("roles")
    for name, role in list(roles.items()) if isinstance(roles, dict) else ():
        if isinstance(role, dict) and isinstance(role.get("platforms"), list):
            taken["roles"][name] = role
            kept = {key: value for key, value in role.items() if key != "platforms"}
            draft.spec["roles"][name] = kept
            if draft.source.platform not in role["platforms"]:
                del draft.spec["roles"][name]
    if roles == {} and taken["roles"]:
        del draft.spec["roles"]
    return taken


def restore_platforms(draft: Draft, taken: Fields) -> None:
    """Add what was removed, with the new platform instead of the old one."""
    old, new = draft.source.platform, draft.target.platform
    if taken["platform"] is not None:
        draft.spec["platform"] = new
        draft.note(("platform",), "changed", f"the job is for `{new}` now")
    elif preferred := draft.surroundings.preferred:
        draft.spec["platform"] = new
        draft.note(("platform",), "changed", f"the job is for `{new}` now; without it, the cluster uses `{preferred}`")
    for name, role in taken["roles"].items():
        roles: dict[str, Any] = draft.spec.get("roles") or {}
        if old not in role["platforms"]:
            draft.spec["roles"] = {**roles, name: roles.get(name, role)}
            continue
        if isinstance(roles.get(name), dict):
            platforms = list(dict.fromkeys(new if platform == old else platform for platform in role["platforms"]))
            draft.spec["roles"] = {**roles, name: {**roles[name], "platforms": platforms}}
        draft.note(("roles", name, "platforms"), "changed", f"`{new}` takes the place of `{old}`")


_ARCHIVED, _SUCCESSOR = "mxnet", "pytorch"


class MigratedJob(NamedTuple):
    """A spec for the other kind, the notes, what it does differently, and the problems that prevent rendering it."""

    document: dict[str, Plain]
    notes: tuple[MigrationNote, ...]
    differences: tuple[NamedDifference, ...]
    problems: tuple[str, ...]
    rendered: dict[str, Plain] | None
    companions: tuple[dict[str, Plain], ...] = ()
    old: dict[str, Plain] | None = None
    """What the spec was rendered to before."""


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
    spread_replicas(draft)
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
    render = partial(render_objects, renderer=renderer_for(target.platform, kinds, versions), alone=False)
    renderer = renderer_for(source.platform, kinds)
    old_object, faults = render_spec(_add_policies(before, surroundings.policies), renderer, alone=False)
    made, problems = render(after)
    if old_object is None:
        problems += [f"it cannot be rendered today: {fault}" for fault in faults]
    if not made or old_object is None:
        return MigratedJob(after, tuple(draft.notes), (), tuple(problems), next(iter(made), None), made[1:], old_object)
    rendered = Rendered(old_object, source, framework)
    cluster = Cluster(operators=versions)

    def describe(objects: Sequence[dict[str, Plain]]) -> Rendered:
        return _refer(Rendered(objects[0], target, draft.framework, cluster), surroundings.runtime)

    def try_spec(spec: Fields) -> Rendered | None:
        objects, faults = render({**document, "spec": spec})
        return describe(objects) if objects and not faults else None

    steps = () if problems else (keep_starts, let_pods_fail)
    is_changed = [step(draft, rendered, try_spec) for step in steps]
    if any(is_changed):
        after = {**document, "spec": draft.spec}
        made, problems = render(after)
    differences = find_differences(rendered, describe(made), draft.notes)
    return MigratedJob(after, tuple(draft.notes), tuple(differences), tuple(problems), made[0], made[1:], old_object)


def _refer(side: Rendered, runtime: BuiltRuntime | None) -> Rendered:
    """Return a rendered object with the runtime that was built for it."""
    if runtime is None:
        return side
    manifest: Fields = {"apiVersion": RUNTIME_VERSION, "kind": KIND, "metadata": {"name": runtime.name}}
    return side._replace(object=refer_to_runtime(side.object), runtimes=({**manifest, "spec": runtime.spec},))


def _add_policies(document: dict[str, Plain], policies: Mapping[str, str]) -> dict[str, Plain]:
    """Return a spec with the restart policies that overlays set for its roles."""
    spec: Any = document["spec"]
    if not policies:
        return document
    roles = spec.get("roles")
    if isinstance(roles, dict) and roles:
        own = {
            name: {**(role or {}), "restartPolicy": policies[name]} for name, role in roles.items() if name in policies
        }
        added = {name: {"restartPolicy": policy} for name, policy in policies.items() if name not in roles}
        return {**document, "spec": {**spec, "roles": {**added, **roles, **own}}}
    return {**document, "spec": {**spec, "restartPolicy": next(iter(policies.values()))}}


def _note_lost_fields(old_spec: Fields, draft: Draft) -> None:
    """Note every value that is neither unchanged nor covered by another note."""
    after = dict(iter_leaves(draft.spec))
    for path, value in iter_leaves(old_spec):
        is_unchanged = path in after and with_types(after[path]) == with_types(value)
        if is_unchanged or (value == {} and get_at(draft.spec, path) is not None):
            continue
        if not any(note.change != "check" and overlaps(note.field, path) for note in draft.notes):
            draft.note(path, "lost", "it is not carried over")


_EXPRESSION = "${{"
# Fields that a migration adds up or distributes to other roles.
_COUNTED = frozenset(("replicas", "nprocPerNode", "slotsPerWorker"))


def migrate_sweep(
    document: dict[str, Plain],
    count: int,
    migrate: Callable[[dict[str, Plain]], MigratedJob],
    *,
    keeps_counts: bool = False,
) -> MigratedJob | str:
    """Migrate the document of a sweep with this number of members; a text says why that is impossible.

    Every member of the new sweep must be the job that the old member is migrated to. With `keeps_counts`, numbers of
    replicas stay where they are, so that they may be variables.
    """
    data: Any = document
    counted = "" if keeps_counts else next(_find_counted(_without_matrix(data)["spec"]), "")
    if counted:
        return f"`{counted}` is a variable of the matrix, which the other kind distributes; write a number"
    members = [migrate(_without_matrix(expand_member(data, index))) for index in range(count)]
    template = migrate(_without_matrix(data))
    sweep = _add_matrix(template.document, data)
    for index, member in enumerate(members):
        if _without_matrix(expand_member(sweep, index)) != member.document:
            return "its members would be migrated in different ways; write them as jobs of their own"
    problems = tuple(dict.fromkeys(problem for member in members for problem in member.problems))
    differences = tuple(dict.fromkeys(each for member in members for each in member.differences))
    notes = tuple(dict.fromkeys(note for member in members for note in member.notes))
    return MigratedJob(sweep, notes, differences, problems, None)


def _find_counted(spec: Any) -> Iterator[str]:
    for path, value in iter_leaves(spec):
        if path and path[-1] in _COUNTED and _EXPRESSION in str(value):
            yield ".".join(path)


def _without_matrix(document: Any) -> dict[str, Any]:
    return {**document, "spec": {key: value for key, value in document["spec"].items() if key != "matrix"}}


def _add_matrix(document: Any, old: Any) -> dict[str, Any]:
    """The new document with the matrix of the old one, where it was written."""
    spec = {**document["spec"], "matrix": old["spec"]["matrix"]}
    order = [*(key for key in old["spec"] if key in spec), *spec]
    return {**document, "spec": {key: spec[key] for key in dict.fromkeys(order)}}
