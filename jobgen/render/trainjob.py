"""The shape of kinds without pod templates: a number of nodes, alike, and what they override of a runtime."""

from __future__ import annotations

from jobgen.model.data import Data, location_of, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.path import Named, Step, dotted
from jobgen.render.expand import JobSpec
from jobgen.render.set_path import set_path
from jobgen.spec.kinds import PodParts


def render_nodes(job: JobSpec, templates: dict[str, Data], resource: dict[str, Data], problems: list[Problem]) -> None:
    """Kubeflow Trainer v2: a number of nodes, alike, and what they override of their runtime."""
    kind = job.kind
    assert kind.template is not None, "schemas/kind.json ties the shape `one` to a template"
    for name, role in job.roles.items():
        if "restartPolicy" in role.replica:
            problems.append(
                Problem(
                    "not-expressible",
                    f"{kind.name} has no place for `restartPolicy` of role `{name}`",
                    role.replica["restartPolicy"],
                )
            )
    nodes = [name for name in templates if not kind.roles[name].launches]
    if not nodes:
        message = f"{kind.name} needs a role that does the work, not only `{next(iter(templates))}`"
        problems.append(Problem("not-expressible", message, job.metadata["name"]))
        return
    template = _one_template(job, templates, nodes, problems)
    counts = [job.roles[name].replica["replicas"] for name in nodes if "replicas" in job.roles[name].replica]
    if counts:
        set_path(resource, kind.replicas_at, with_value(counts[-1], sum(map(value_of, counts))))
    if "runtimeRef" not in resource["spec"]:
        message = f"{kind.name} has no runtime of its own for `{job.framework}`; set `{job.framework}.runtime`"
        problems.append(Problem("missing-field", message, job.metadata["name"]))
    _place_parts(job, template, resource, problems)


def _one_template(job: JobSpec, templates: dict[str, Data], nodes: list[str], problems: list[Problem]) -> Data:
    """The template that all roles share; a launcher lends it the command, for the nodes only wait for it."""
    template = templates[nodes[0]]
    for name, other in templates.items():
        launches = job.kind.roles[name].launches
        wanted = _with_command(template, other) if launches else template
        path = _difference(untraced(wanted), untraced(other))
        if path:
            both = f"`{nodes[0]}` and `{name}` differ in `{dotted(path)}`"
            message = f"{job.kind.name} has one template for all nodes, but {both}"
            problems.append(Problem("not-expressible", message, _found(other, path) or _found(template, path)))
    launchers = [name for name in templates if job.kind.roles[name].launches]
    return _with_command(template, templates[launchers[0]]) if launchers else template


def _with_command(template: Data, launcher: Data) -> Data:
    """The template with the launcher's command, unless it has one of its own."""
    command = {key: value for key, value in launcher["spec"]["containers"][0].items() if key in _COMMAND}
    first, *rest = template["spec"]["containers"]
    return {**template, "spec": {**template["spec"], "containers": [{**command, **first}, *rest]}}


_COMMAND = ("command", "args")


def _difference(one: Data, other: Data, path: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    """The first place where two templates differ, or nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            found = _difference(one.get(key), other.get(key), (*path, key))
            if found:
                return found
        return ()
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_difference(a, b, (*path, i)) for i, (a, b) in pairs)), ())
    return () if one == other else path


def _found(tree: Data, path: tuple[Step, ...]) -> Data:
    """What stands at a path, if anything does."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(str(step))
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


def _place_parts(job: JobSpec, template: Data, resource: dict[str, Data], problems: list[Problem]) -> None:
    """The parts of a pod template, each where the kind takes it; the rest it cannot say."""
    spec, (first, *others) = template["spec"], template["spec"]["containers"]
    parts = _parts(job)
    override: dict[str, Data] = {}
    _place_container(job, first, parts, resource, override, problems)
    for other in others:
        problems.append(_no_part(job, f"a second container `{value_of(other.get('name', ''))}`", other))
    for field, value in spec.items():
        if field in parts.pod_fields:
            set_path(override, (*parts.spec, field), value)
        elif field != "containers":
            problems.append(_no_part(job, f"`{field}` of a pod", field if location_of(field) else value))
    if "metadata" in template and parts.metadata is not None:
        set_path(override, parts.metadata, template["metadata"])
    elif "metadata" in template:
        problems.append(_no_part(job, "labels and annotations of pods", template["metadata"]))
    if override:
        set_path(resource, parts.at, [{**parts.item, **override}])


def _parts(job: JobSpec) -> PodParts:
    """The shape of the declared operator version; without one the newest is meant, and that is the last."""
    assert job.kind.template is not None, "checked by as_one"
    return [shape for shape in job.kind.template.shapes if shape.span.holds(_declared(job))][-1]


def _place_container(
    job: JobSpec,
    container: Data,
    parts: PodParts,
    resource: dict[str, Data],
    override: dict[str, Data],
    problems: list[Problem],
) -> None:
    assert job.kind.template is not None, "checked by as_one"
    own = job.kind.template.container
    for field, value in container.items():
        if field in own:
            set_path(resource, own[field], value)
        elif field in parts.container_fields:
            set_path(override, (*parts.spec, "containers", Named("name", container["name"]), field), value)
        elif field != "name":
            problems.append(_no_part(job, f"`{field}` of a container", field if location_of(field) else value))


def _declared(job: JobSpec) -> str:
    return job.cluster.operators.get(job.kind.operator, "")


def _no_part(job: JobSpec, what: str, node: Data) -> Problem:
    version = f" of {job.kind.operator} {_declared(job)}" if _declared(job) else ""
    message = f"{job.kind.name}{version} has no place for {what}; it comes from the runtime"
    return Problem("not-expressible", message, node)
