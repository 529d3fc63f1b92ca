"""Migrate one job spec to another kind. Every field that changes has a note."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.invert import sort_fields
from jobgen.features.convert.importing.pod_fields import Fields, with_types
from jobgen.features.convert.importing.verify import render_objects, render_spec, renderer_for
from jobgen.features.convert.migrate.draft import (
    NO_SURROUNDINGS,
    Draft,
    MigrationNote,
    Surroundings,
    iter_leaves,
    overlaps,
)
from jobgen.features.convert.migrate.steps import STEPS, convert_mxnet_to_pytorch
from jobgen.k8s.shell_script import split_text
from jobgen.model.data import Plain, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import canonicalize_quantity
from jobgen.rendering.network import CONNECTING
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import count_pods, find_template, get_at
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


class Workload(NamedTuple):
    """What a job runs, independent of its kind."""

    images: frozenset[str]
    commands: frozenset[str]
    env: frozenset[str]
    resources: frozenset[str]
    nodes: frozenset[str]
    processes: frozenset[str]


def describe_workload(obj: Mapping[str, Plain], kind: Kind, framework: str, spec: Plain) -> Workload:
    """Describe what an object runs; `spec` is what it was rendered from."""
    replicas = list(_list_replicas(obj, kind))
    containers = [container for _, _, each in replicas for container in each if isinstance(container, dict)]
    # Launchers start processes on the nodes, but are not nodes.
    count = sum(number for launches, number, _ in replicas if not launches and isinstance(number, int))
    return Workload(
        images=frozenset(str(each["image"]) for each in containers if "image" in each),
        commands=frozenset(map(_to_json, (*map(_list_command, containers), _list_entrypoint(obj, kind)))) - {"[]"},
        env=frozenset(
            _describe_variable(item) for each in containers for item in _list_own_variables(each, kind, spec)
        ),
        resources=frozenset(_describe_resources(each["resources"]) for each in containers if each.get("resources")),
        nodes=frozenset([str(count)]),
        processes=frozenset([str(_count_processes(obj, kind, framework, spec))]),
    )


def compare_workloads(before: Workload, after: Workload) -> Iterator[str]:
    """Describe each difference in one line."""
    for aspect, one, other in zip(Workload._fields, before, after, strict=True):
        only_before, only_after = sorted(one - other), sorted(other - one)
        if only_before or only_after:
            old = ", ".join(f"`{each}`" for each in only_before) or "nothing"
            new = ", ".join(f"`{each}`" for each in only_after) or "nothing"
            yield f"{aspect} differ: {old} before, {new} after"


def _list_replicas(obj: Mapping[str, Plain], kind: Kind) -> Iterator[tuple[bool, int, list[Fields]]]:
    """The roles of an object: whether they are launchers, their number of pods, and all their containers."""
    if kind.template is not None:
        container = {field: value for field, path in kind.template.container.items() if (value := get_at(obj, path))}
        yield False, get_at(obj, kind.replicas_at) or 1, [container]
        return
    layout = kind.replicas
    for item in kind.list_items(obj):
        role = next((each for each in kind.roles.values() if value_of(each.spelling) == item.key), kind.any_role)
        template = find_template(item.data, layout)
        containers = get_at(template, ("spec", "containers"))
        if role is not None and isinstance(containers, list) and containers:
            init = get_at(template, ("spec", "initContainers"))
            every = [*containers, *(init if isinstance(init, list) else ())]
            # A role at a place of its own leads others, and is not a node.
            yield role.launches or bool(role.at), count_pods(item.data, layout, role.omitted), every


def _list_own_variables(container: Fields, kind: Kind, spec: Plain) -> Iterator[Any]:
    """Yield the variables of a container, without those by which jobgen connects pods."""
    written = {name for name, _ in _list_names(spec)} if kind.network else set()
    for item in _list_items(container, "env"):
        if not kind.network or item.get("name") not in CONNECTING or item.get("name") in written:
            yield item


def _list_names(spec: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables that a spec sets, for all roles or one."""
    for holder in (spec, *(get_at(spec, ("roles",)) or {}).values()):
        env = get_at(holder, ("env",))
        yield from (
            env.items() if isinstance(env, dict) else ((str(get_at(item, ("name",))), item) for item in env or ())
        )


def _count_processes(obj: Mapping[str, Plain], kind: Kind, framework: str, spec: Plain) -> Plain:
    """Processes on each node; `auto` if the operator decides. Ray runs a program once, for all nodes."""
    if kind.code == "ray-job":
        return "1, on the head"
    for field in (f"{framework}.nprocPerNode", f"{framework}.slotsPerWorker"):
        if field in kind.fields:
            at = kind.fields[field].at
            value: Plain = get_at(obj, at) if at[0] != "network" else get_at(spec, tuple(field.split(".")))
            value = str(value) if field.endswith("nprocPerNode") and isinstance(value, int) else value
            return value if value is not None else ("auto" if field.endswith("nprocPerNode") else 1)
    return "auto"


def _list_entrypoint(obj: Mapping[str, Plain], kind: Kind) -> list[str]:
    """The words of the command that an object has outside of its containers."""
    text = get_at(obj, ("spec", "entrypoint")) if kind.code == "ray-job" else None
    if not isinstance(text, str) or not text:
        return []
    words = split_text(text) or []
    return words if shlex.join(words) == text else ["sh", "-c", text]


def _list_command(container: Fields) -> list[Any]:
    return [*_list_items(container, "command"), *_list_items(container, "args")]


def _list_items(container: Fields, name: str) -> list[Any]:
    found = container.get(name)
    return found if isinstance(found, list) else []


def _describe_variable(item: Any) -> str:
    if not isinstance(item, dict):
        return _to_json(item)
    return f"{item.get('name')}={item['value']}" if "value" in item else _to_json(item)


def _describe_resources(resources: Any) -> str:
    if not isinstance(resources, dict):
        return _to_json(resources)
    sides = {
        side: {name: canonicalize_quantity(str(value)) or value for name, value in amounts.items()}
        for side, amounts in resources.items()
        if isinstance(amounts, dict)
    }
    return _to_json({**resources, **sides})


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


_ARCHIVED, _SUCCESSOR = "mxnet", "pytorch"


class MigratedJob(NamedTuple):
    """A spec for the other kind, the notes, how the workloads differ, and the problems that prevent rendering it."""

    document: dict[str, Plain]
    notes: tuple[MigrationNote, ...]
    differences: tuple[str, ...]
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
    return MigratedJob(after, tuple(draft.notes), differences, tuple(problems), new_object, made[1:], old_object)


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
    differences = tuple(dict.fromkeys(line for member in members for line in member.differences))
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
