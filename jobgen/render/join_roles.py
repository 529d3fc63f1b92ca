"""Join roles that a kind has one pod template for: their replicas add up, and their templates must be equal."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Node, ValidFields, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.path import Step, format_dotted
from jobgen.render.expand import JobSpec, RoleSpec


def join_roles(job: JobSpec, templates: dict[str, Any], problems: list[Problem]) -> tuple[JobSpec, dict[str, Any]]:
    """Join roles that the kind counts to another role. Roles that differ stay apart, if the kind has several items."""
    known = job.kind.frameworks[job.framework].roles
    targets = {name: role.joins for name in templates if (role := job.kind.find_role(name)) and role.joins in known}
    if not targets:
        return job, templates
    must_join = job.kind.shape == "item"
    roles, kept = dict(job.roles), dict(templates)
    for target in dict.fromkeys(targets.values()):
        names = [name for name in templates if name == target or targets.get(name) == target]
        if not must_join and (len(names) == 1 or _differ(job, templates, names)):
            continue
        merged = merge_templates(job, {name: templates[name] for name in names}, names, problems)
        _check_replicas(job, names, problems)
        for name in names:
            del roles[name], kept[name]
        roles[target] = _add_up(job, names)
        kept[target] = merged
    order = [name for name in job.kind.roles if name in kept]
    order += [name for name in kept if name not in order]
    return job._replace(roles={name: roles[name] for name in order}), {name: kept[name] for name in order}


def _differ(job: JobSpec, templates: dict[str, Any], names: list[str]) -> bool:
    first = names[0]
    return any(
        untraced(templates[name]) != untraced(templates[first]) or _other_fields(job, name) != _other_fields(job, first)
        for name in names[1:]
    )


def _other_fields(job: JobSpec, name: str) -> Any:
    role = job.roles[name]
    replica = {key: value for key, value in role.replica.items() if key not in ("replicas", "platforms")}
    return untraced(replica), untraced(list(role.manifests))


def _check_replicas(job: JobSpec, names: list[str], problems: list[Problem]) -> None:
    """Report fields of replicas in which the roles differ: they have one place."""
    first = job.roles[names[0]].replica
    for name in names[1:]:
        for field, value in job.roles[name].replica.items():
            if field not in ("replicas", "platforms") and value_of(first.get(field)) != value_of(value):
                both = f"`{names[0]}` and `{name}` differ in `{field}`"
                message = f"{job.kind.name} has one template for all pods, but {both}; make them equal"
                problems.append(Problem("unsupported-by-kind", message, value))


def _add_up(job: JobSpec, names: list[str]) -> RoleSpec:
    first, counts = job.roles[names[0]], [job.roles[name].replica.get("replicas") for name in names]
    known = [count for count in counts if value_of(count) is not None]
    if not known:
        return first
    total = sum(int(str(value_of(count))) for count in known)
    # The last count is that of the workers, which overlays change.
    count = known[-1] if len(known) == 1 else with_value(known[-1], total)
    return first._replace(replica={**first.replica, "replicas": count})


def merge_templates(job: JobSpec, templates: dict[str, Any], nodes: list[str], problems: list[Problem]) -> ValidFields:
    """The template of all roles, with the launcher's command if there is one: nodes only wait for it."""
    template = templates[nodes[0]]
    for name, other in templates.items():
        launches = job.kind.roles[name].launches
        wanted = _add_command(template, other) if launches else template
        path = _find_difference(untraced(wanted), untraced(other))
        if path:
            both = f"`{nodes[0]}` and `{name}` differ in `{format_dotted(path)}`"
            message = f"{job.kind.name} has one template for all nodes, but {both}; make them equal"
            problems.append(Problem("unsupported-by-kind", message, _node_at(other, path) or _node_at(template, path)))
    launchers = [name for name in templates if job.kind.roles[name].launches]
    return _add_command(template, templates[launchers[0]]) if launchers else template


def _add_command(template: ValidFields, launcher: ValidFields) -> dict[str, Any]:
    """The template with the launcher's command, unless it has one itself."""
    command = {key: value for key, value in launcher["spec"]["containers"][0].items() if key in _COMMAND}
    first, *rest = template["spec"]["containers"]
    return {**template, "spec": {**template["spec"], "containers": [{**command, **first}, *rest]}}


_COMMAND = ("command", "args")


def _find_difference(one: Any, other: Any, path: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    """The path of the first difference between two templates; empty if they are equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            found = _find_difference(one.get(key), other.get(key), (*path, key))
            if found:
                return found
        return ()
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_find_difference(a, b, (*path, i)) for i, (a, b) in pairs)), ())
    return () if one == other else path


def _node_at(tree: Node, path: tuple[Step, ...]) -> Node:
    """The node at a path; None if there is none."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(str(step))
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree
