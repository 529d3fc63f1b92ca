"""Render kinds without pod templates: a number of equal nodes, and their overrides of a runtime."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Node, ValidFields, location_of, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.original_messages import original_message
from jobgen.model.path import NamedItem
from jobgen.render.expand import JobSpec
from jobgen.render.join_roles import merge_templates
from jobgen.render.set_path import set_path
from jobgen.spec.kinds import TemplateShape


def render_nodes(job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], problems: list[Problem]) -> None:
    """Kubeflow Trainer v2: a number of equal nodes, and their overrides of the runtime."""
    kind = job.kind
    assert kind.template is not None, "schemas/kind.json ties the shape `one` to a template"
    for name, role in job.roles.items():
        if "restartPolicy" in role.replica:
            from jobgen.render.unsupported import suggest_block

            node = role.replica["restartPolicy"]
            start = f"{kind.name} does not support `restartPolicy` of role `{name}`"
            hint = suggest_block(node, job) or "; remove it"
            problems.append(
                Problem("unsupported-by-kind", f"{start}{hint}", node, evidence=("restartPolicy", str(name)))
            )
    nodes = [name for name in templates if not kind.roles[name].launches]
    if not nodes:
        message = f"{kind.name} needs a role besides `{next(iter(templates))}`, which only launches"
        problems.append(Problem("unsupported-by-kind", message, job.metadata["name"]))
        return
    template = merge_templates(job, templates, nodes, problems)
    counts = [job.roles[name].replica["replicas"] for name in nodes if "replicas" in job.roles[name].replica]
    if counts:
        set_path(resource, kind.replicas_at, with_value(counts[-1], sum(map(value_of, counts))))
    if "runtimeRef" not in resource["spec"]:
        message = f"{kind.name} has no default runtime for `{job.framework}`; set `{job.framework}.runtime`"
        problems.append(Problem("missing-field", message, job.metadata["name"]))
    _render_parts(job, template, resource, problems)


def _render_parts(job: JobSpec, template: ValidFields, resource: dict[str, Any], problems: list[Problem]) -> None:
    """Set the parts of a pod template where the kind takes them; report the parts that it does not support."""
    spec, (first, *others) = template["spec"], template["spec"]["containers"]
    parts = _select_parts(job)
    override: dict[str, Any] = {}
    _render_container(job, first, parts, resource, override, problems)
    for other in others:
        problems.append(_unsupported_part(job, f"a second container `{value_of(other.get('name', ''))}`", other))
    for field, value in spec.items():
        if field in parts.pod_fields:
            set_path(override, (*parts.spec, field), value)
        elif field != "containers":
            problems.append(_unsupported_part(job, f"`{field}` of a pod", field if location_of(field) else value))
    if "metadata" in template and parts.metadata is not None:
        set_path(override, parts.metadata, template["metadata"])
    elif "metadata" in template:
        problems.append(_unsupported_part(job, "labels and annotations of pods", template["metadata"]))
    if override:
        set_path(resource, parts.at, [{**parts.item, **override}])


def _select_parts(job: JobSpec) -> TemplateShape:
    """The mapping for the declared operator version; the newest, which is the last, if none is declared."""
    assert job.kind.template is not None, "checked by render_nodes"
    return [shape for shape in job.kind.template.shapes if shape.versions.contains(_declared_version(job))][-1]


def _render_container(
    job: JobSpec,
    container: ValidFields,
    parts: TemplateShape,
    resource: dict[str, Any],
    override: dict[str, Any],
    problems: list[Problem],
) -> None:
    assert job.kind.template is not None, "checked by render_nodes"
    own = job.kind.template.container
    for field, value in container.items():
        if field in own:
            set_path(resource, own[field], value)
        elif field in parts.container_fields:
            set_path(override, (*parts.spec, "containers", NamedItem("name", container["name"]), field), value)
        elif field != "name":
            problems.append(_unsupported_part(job, f"`{field}` of a container", field if location_of(field) else value))


def _declared_version(job: JobSpec) -> str:
    return job.cluster.find_version(job.kind.operator)


def _unsupported_part(job: JobSpec, what: str, node: Node) -> Problem:
    version = f" of {job.kind.operator} {_declared_version(job)}" if _declared_version(job) else ""
    kind = f"{job.kind.name}{version}"
    evidence = None if "`" in what else original_message("unsupported-by-kind", kind, what)
    return Problem(
        "unsupported-by-kind", f"{kind} does not support {what}; set it in the runtime", node, evidence=evidence
    )
