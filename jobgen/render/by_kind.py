"""A JobSpec to the custom resource of its kind; one function for each shape of replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobgen.model.data import Data, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.path import dotted
from jobgen.model.suggest import did_you_mean
from jobgen.render.expand import JobSpec, RoleSpec
from jobgen.render.pod import build_pod_template
from jobgen.render.set_path import set_path
from jobgen.render.trainjob import render_nodes
from jobgen.spec.kinds import FieldMapping, Kind
from jobgen.spec.merge import Deletion, merge

TOTAL_ANNOTATION = "jobgen.dev/replicas"
# Fields that are not spelt anywhere: the roles add up to the one, and the other names the object once it is done.
_UNSPELT = frozenset(("replicas", "run"))


def render_spec(job: JobSpec, problems: list[Problem], deletions: list[Deletion]) -> Data:
    """The object, spelt as its kind spells it; what the kind cannot say is a problem."""
    kind = job.kind
    resource: dict[str, Data] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": dict(job.metadata),
        "spec": {},
    }
    shared: dict[str, Data] = {}
    for path, value in _leaves(job.fields, kind):
        _place_field(job, path, value, resource, shared, problems)
    templates = _templates(job, shared, problems, deletions)
    _declare_total(job, resource, problems)
    _SHAPES[kind.shape](job, templates, resource, problems)
    for manifest in job.manifests:
        resource = merge(resource, manifest, deletions)
    return resource


def _leaves(fields: Mapping[str, Data], kind: Kind, prefix: str = "") -> list[tuple[tuple[str, Data], Data]]:
    """Our fields, each as deep as the kind has a place for it: its path with its key, and its value."""
    found: list[tuple[tuple[str, Data], Data]] = []
    for key, value in fields.items():
        path = f"{prefix}{key}"
        if path in kind.branches and isinstance(value, dict) and (value or path not in kind.fields):
            found += _leaves(value, kind, f"{path}.")
        else:
            found.append(((path, key), value))
    return found


def _place_field(
    job: JobSpec,
    where: tuple[str, Data],
    value: Data,
    resource: dict[str, Data],
    shared: dict[str, Data],
    problems: list[Problem],
) -> None:
    (path, key), kind = where, job.kind
    if path in _UNSPELT:
        return
    field = kind.fields.get(path) or _inherited(path, kind.fields)
    if field is None:
        hint = did_you_mean(path, list(kind.fields)) if "." in path else ""
        problems.append(Problem("not-expressible", f"{kind.name} has no place for `{path}`{hint}", key))
        return
    declared = job.cluster.operators.get(kind.operator, "")
    if not field.span.holds(declared):
        problems.append(
            Problem("not-expressible", f"{kind.operator} {declared} has no `{dotted(field.at)}`: it {field.span}", key)
        )
        return
    spelt = _spelt(value, field, path, job, problems)
    if field.at[0] == "template":
        set_path(shared, field.at[1:], spelt)
    else:
        set_path(resource, field.at, spelt)


def _inherited(path: str, known: Mapping[str, FieldMapping]) -> FieldMapping | None:
    """The place inside that of the map which holds the field, for a field of which nothing more is known."""
    holder, _, name = path.rpartition(".")
    return FieldMapping((*known[holder].at, name), span=known[holder].span) if holder in known else None


def _spelt(value: Data, field: FieldMapping, path: str, job: JobSpec, problems: list[Problem]) -> Data:
    found = value_of(value)
    if field.values is not None:
        if found not in field.values:
            allowed = ", ".join(f"`{word}`" for word in field.values)
            problems.append(
                Problem("not-expressible", f"{job.kind.name} takes {allowed} for `{path}`, not `{found}`", value)
            )
            return value
        return with_value(value, field.values[found])
    if field.as_type == "string" and not isinstance(found, str):
        return with_value(value, str(found))
    if field.as_type == "int" and isinstance(found, str):
        if not found.isdigit():
            problems.append(
                Problem("not-expressible", f"{job.kind.name} takes a number for `{path}`, not `{found}`", value)
            )
            return value
        return with_value(value, int(found))
    return value


def _templates(
    job: JobSpec, shared: dict[str, Data], problems: list[Problem], deletions: list[Deletion]
) -> dict[str, Data]:
    """The pod template of each role; roles that share their fields share the template."""
    made: dict[tuple[int, int], Data] = {}
    templates: dict[str, Data] = {}
    for name, role in job.roles.items():
        key = (id(role.pod), id(role.templates))
        if key not in made:
            made[key] = _template(job, role, shared, problems, deletions)
        templates[name] = made[key]
    return templates


def _template(
    job: JobSpec, role: RoleSpec, shared: dict[str, Data], problems: list[Problem], deletions: list[Deletion]
) -> Data:
    named = value_of(job.kind.container)
    container = job.metadata["name"] if named == "{job}" else job.kind.container
    template: Data = build_pod_template(role.pod, container, problems)
    if shared:
        template = merge(template, shared, deletions)
    for extra in role.templates:
        template = merge(template, extra, deletions)
    return template


def _declare_total(job: JobSpec, resource: dict[str, Data], problems: list[Problem]) -> None:
    """Hold the declared total against the roles; where an engine applies the object, a policy there can do so too."""
    declared = job.fields.get("replicas")
    if declared is None:
        return
    if job.cluster.gitops:
        set_path(resource, ("metadata", "annotations", TOTAL_ANNOTATION), with_value(declared, str(value_of(declared))))
    counts = {
        name: value_of(role.replica["replicas"]) for name, role in job.roles.items() if "replicas" in role.replica
    }
    if sum(counts.values()) != value_of(declared):
        listed = " + ".join(f"{name} {count}" for name, count in counts.items())
        message = f"`replicas` declares {value_of(declared)}, but the roles make {sum(counts.values())} ({listed})"
        problems.append(Problem("replica-totals", message, declared, category="policy"))


def _replica(job: JobSpec, name: str, template: Data) -> dict[str, Data]:
    return {**job.roles[name].replica, "template": template}


def _as_map(job: JobSpec, templates: dict[str, Data], resource: dict[str, Data], problems: list[Problem]) -> None:
    """Kubeflow v1: `{Master: {…}, Worker: {…}}`."""
    replicas = {
        str(value_of(job.kind.roles[name].spelling)): _replica(job, name, templates[name]) for name in templates
    }
    set_path(resource, job.kind.replicas_at, replicas)


def _as_list(job: JobSpec, templates: dict[str, Data], resource: dict[str, Data], problems: list[Problem]) -> None:
    """TensorStack: `[{type: chief, …}, {type: worker, …}]`."""
    replicas = [{"type": job.kind.roles[name].spelling, **_replica(job, name, templates[name])} for name in templates]
    set_path(resource, job.kind.replicas_at, replicas)


_SHAPES: dict[str, Callable[[JobSpec, dict[str, Data], dict[str, Data], list[Problem]], None]] = {
    "map": _as_map,
    "list": _as_list,
    "one": render_nodes,
}
