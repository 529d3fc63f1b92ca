"""Render a JobSpec as the custom resource of its kind. Its kind description says where everything goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.data import Node, TracedScalar, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import format_dotted
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.render.exit_codes import replace_exit_codes
from jobgen.render.expand import JobSpec, RoleSpec
from jobgen.render.join_roles import join_roles
from jobgen.render.pod import build_pod_template
from jobgen.render.prepare import complete_item, finish, prepare
from jobgen.render.set_path import set_path
from jobgen.render.trainjob import render_nodes
from jobgen.spec.kinds import FieldMapping, Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.normalize import NOT_RENDERED
from jobgen.spec.replicas import get_at

TOTAL_ANNOTATION = "jobgen.dev/replicas"
_PLATFORM_BLOCKS = frozenset(("jobset", "kubernetes", "ray", "tensorstack", "trainer", "volcano"))
# Paths of fields that the code of a kind reads: `network` is what pods are connected with.
_READ_BY_CODE = frozenset(("code", "network"))
# Fields that are false wherever a kind or a version does not have them: a job that cannot be suspended runs.
_OFF_IF_UNSUPPORTED = frozenset(("suspend", "runPolicy.suspend"))
_WHOLE_NUMBER = lazy_pattern("[0-9]{1,18}")


def render_spec(job: JobSpec, problems: list[Problem], deletions: list[Deletion]) -> dict[str, Any]:
    """Render the object. A field that the kind does not support is a problem."""
    kind = job.kind
    resource: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": dict(job.metadata),
        "spec": {},
    }
    shared: dict[str, Any] = {}
    for path, value in _list_fields(job.fields, kind):
        _render_field(job, path, value, resource, shared, problems)
    templates = _render_templates(job, shared.get("template", {}), problems, deletions)
    if "item" in shared:
        layout = kind.replicas._replace(item=merge(kind.replicas.item, shared["item"], deletions))
        job = job._replace(kind=kind.with_parts(replicas=layout))
    _declare_total(job, resource, problems)
    # Without templates, no role of the job exists in the kind, which is a problem.
    if templates and kind.shape == "one":
        render_nodes(job, templates, resource, problems)
    elif templates:
        job, templates = join_roles(job, templates, problems)
        templates = prepare(job, templates, resource, problems)
        if kind.replicas.pod_failure_policy:
            job = replace_exit_codes(job, templates)
        _render_items(job, templates, resource, problems, deletions)
        finish(job, resource, problems)
    for manifest in job.manifests:
        resource = merge(resource, manifest, deletions)
    return resource


def _list_fields(fields: Mapping[str, Any], kind: Kind, prefix: str = "") -> list[tuple[tuple[str, Any], Node]]:
    """The fields of a job, as deep as the kind maps them: path, key and value."""
    found: list[tuple[tuple[str, Any], Node]] = []
    for key, value in fields.items():
        path = f"{prefix}{key}"
        if path in kind.branches and isinstance(value, dict) and (value or path not in kind.fields):
            found += _list_fields(value, kind, f"{path}.")
        else:
            found.append(((path, key), value))
    return found


def _render_field(
    job: JobSpec,
    where: tuple[str, Any],
    value: Node,
    resource: dict[str, Any],
    shared: dict[str, Any],
    problems: list[Problem],
) -> None:
    path, kind = where[0], job.kind
    if path in NOT_RENDERED or _is_for_other_platform(path, job):
        return
    field = kind.fields.get(path) or _field_below(path, kind.fields)
    if field is None or not field.versions.contains(job.cluster.find_version(kind.operator)):
        if path not in _OFF_IF_UNSUPPORTED or value_of(value) is not False:
            problems.append(_report_unsupported(where, field, job))
        return
    converted = _convert_value(value, field, where, job, problems)
    if field.at[0] in ("template", "item"):
        # What all pod templates or all items have.
        set_path(shared, field.at, converted)
    elif field.at[0] not in _READ_BY_CODE:
        set_path(resource, field.at, converted)


def _report_unsupported(where: tuple[str, Any], field: FieldMapping | None, job: JobSpec) -> Problem:
    """Report a field that the kind does not have, or that the declared version of its operator does not have."""
    (path, key), kind = where, job.kind
    if field is None:
        from jobgen.render.unsupported import evidence_of_block, suggest_block

        advice = kind.unsupported.get(path)
        similar = did_you_mean(path, _list_siblings(path, kind)) if "." in path else ""
        start, block = f"{kind.name} does not support `{path}`", suggest_block(key, job)
        hint = block or (f"; {advice}" if advice else similar)
        evidence = evidence_of_block(start, key) if block else None
        return Problem("unsupported-by-kind", f"{start}{hint}", key, evidence=evidence)
    declared = job.cluster.find_version(kind.operator)
    shown = path if field.at[0] == "item" else format_dotted(field.at)
    message = f"{kind.operator} {declared} does not support `{shown}`: it {field.versions}"
    return Problem("unsupported-by-kind", message, key)


def _list_siblings(path: str, kind: Kind) -> list[str]:
    """The fields that can be meant instead of an unknown one; a common block does not make names similar."""
    name = path.rpartition(".")[2]
    return [known for known in kind.fields if find_closest(name, [known.rpartition(".")[2]])]


def _is_for_other_platform(path: str, job: JobSpec) -> bool:
    """Whether a field is in the block of a platform that is not the job's, so that it does not concern this object."""
    block = path.partition(".")[0]
    return block in _PLATFORM_BLOCKS and block not in (job.kind.platform, job.framework)


def _field_below(path: str, known: Mapping[str, FieldMapping]) -> FieldMapping | None:
    """The mapping of an undescribed field inside a mapped field."""
    holder, _, name = path.rpartition(".")
    return FieldMapping((*known[holder].at, name), versions=known[holder].versions) if holder in known else None


def _convert_value(
    value: Node, field: FieldMapping, where: tuple[str, Any], job: JobSpec, problems: list[Problem]
) -> Node:
    (path, key), found = where, value_of(value)
    if (field.values is not None or field.as_type) and isinstance(found, (dict, list)):
        shown = "a mapping" if isinstance(found, dict) else "a list"
        message = f"`{path}` is {shown}; {job.kind.name} supports only {_describe_values(field)}"
        problems.append(Problem("unsupported-by-kind", message, key))
        return value
    if field.values is not None:
        if found not in field.values:
            message = f"`{path}` is `{found}`; {job.kind.name} supports {_describe_values(field)}"
            evidence = (*map(str, field.values), path, str(found))
            problems.append(Problem("unsupported-by-kind", message, value, evidence=evidence))
            return value
        return with_value(value, field.values[found])
    if field.as_type == "string" and not isinstance(found, str):
        return with_value(value, str(found))
    if field.as_type == "int" and isinstance(found, str):
        # Python converts other digits than these, and refuses very many of them.
        if not _WHOLE_NUMBER.fullmatch(found):
            problems.append(
                Problem("unsupported-by-kind", f"`{path}` is `{found}`; {job.kind.name} supports only a number", value)
            )
            return value
        return with_value(value, int(found))
    return value


def _describe_values(field: FieldMapping) -> str:
    if field.values is not None:
        return ", ".join(f"`{word}`" for word in field.values)
    return "a number" if field.as_type == "int" else "text"


def _render_templates(
    job: JobSpec, shared: dict[str, Any], problems: list[Problem], deletions: list[Deletion]
) -> dict[str, Any]:
    """The pod template of each role. Roles that share their fields share the template."""
    made: dict[tuple[int, int, str], Node] = {}
    templates: dict[str, Any] = {}
    for name, role in job.roles.items():
        container = job.kind.name_container(name)
        key = (id(role.pod), id(role.templates), str(value_of(container)))
        if key not in made:
            made[key] = _render_template(job, role, container, shared, problems, deletions)
        templates[name] = made[key]
    return templates


def _render_template(
    job: JobSpec,
    role: RoleSpec,
    container: Node,
    shared: dict[str, Any],
    problems: list[Problem],
    deletions: list[Deletion],
) -> Node:
    name = job.metadata["name"] if value_of(container) == "{job}" else container
    template = build_pod_template(role.pod, name, problems)
    if "secrets" in role.pod or "configs" in role.pod:
        from jobgen.render.sources import add_sources

        template = add_sources(template, role.pod, job, problems)
    if "initContainers" in role.pod or "sidecars" in role.pod:
        from jobgen.render.init_containers import add_init_containers

        template = add_init_containers(template, role.pod, job, problems)
    if shared:
        template = merge(template, shared, deletions)
    for extra in role.templates:
        template = merge(template, extra, deletions)
    return template


def _declare_total(job: JobSpec, resource: dict[str, Any], problems: list[Problem]) -> None:
    """Compare the declared total with the roles, and annotate it where a policy in the cluster can compare it again."""
    declared = job.fields.get("replicas")
    if declared is None:
        return
    if job.cluster.gitops:
        set_path(resource, ("metadata", "annotations", TOTAL_ANNOTATION), with_value(declared, str(value_of(declared))))
    # A role with a place of its own, such as the head of a Ray cluster, has no replicas to count.
    counts = {
        name: value_of(role.replica["replicas"])
        for name, role in job.roles.items()
        if "replicas" in role.replica and not ((described := job.kind.find_role(name)) and described.at)
    }
    if sum(counts.values()) != value_of(declared):
        listed = " + ".join(f"{name} {count}" for name, count in counts.items())
        message = f"`replicas` is {value_of(declared)}, but the roles add up to {sum(counts.values())} ({listed})"
        nodes = ((name, role.replica.get("replicas")) for name, role in job.roles.items())
        related = tuple(
            (node, f"{name} has {value_of(node)}, set by {_layer_of(node)}") for name, node in nodes if _layer_of(node)
        )
        problems.append(Problem("replica-totals", message, declared, related, category="policy"))


def _layer_of(node: Node) -> str:
    """The overlay's layer that set a scalar; empty if the job or its kind did."""
    layer = node.layer if isinstance(node, TracedScalar) else ""
    return "" if layer == "job" or layer.startswith("kind ") else layer


def _render_items(
    job: JobSpec,
    templates: dict[str, Any],
    resource: dict[str, Any],
    problems: list[Problem],
    deletions: list[Deletion],
) -> None:
    """Set the item of each role where the kind has it."""
    kind = job.kind
    made: dict[str, Any] = {}
    for name, template in templates.items():
        role = kind.find_role(name)
        assert role is not None, "expand reports roles that the kind does not have"
        item = _render_item(job, name, template, problems, deletions, has_count=not role.at)
        if role.at:
            set_path(resource, role.at, item)
        else:
            made[name] = (role.spelling, item)
    layout = kind.replicas
    if layout.shape == "map":
        set_path(resource, layout.at, {str(value_of(spelling)): item for spelling, item in made.values()})
    elif layout.shape == "list" and (made or not any(role.at for role in kind.roles.values())):
        set_path(resource, layout.at, [{layout.key: spelling, **item} for spelling, item in made.values()])
    elif made:
        [(_, item)] = made.values()
        set_path(resource, layout.at, item)


_REPLICA_PATHS = {"minReplicas": "least", "maxReplicas": "most", "restartPolicy": "restart_policy"}


def _render_item(
    job: JobSpec,
    name: str,
    template: Node,
    problems: list[Problem],
    deletions: list[Deletion],
    *,
    has_count: bool,
) -> dict[str, Any]:
    """The item of a role: its numbers and its restart policy, its pod template, and what its `manifest` adds."""
    layout, role = job.kind.replicas, job.roles[name]
    item: dict[str, Any] = dict(layout.item) if has_count else {}
    if layout.keeps_restart_policy:
        set_path(item, layout.template, template)
    for field, value in role.replica.items():
        if field == "platforms":
            continue
        if field == "replicas" and (has_count or value_of(value) == 1):
            for path in layout.counts if has_count else ():
                if get_at(item, path) is None:
                    set_path(item, path, value)
            continue
        path = getattr(layout, _REPLICA_PATHS[field]) if has_count or field == "restartPolicy" else ()
        if path:
            set_path(item, path, value)
        else:
            message = f"{job.kind.name} does not support `{field}` of role `{name}`; remove it"
            problems.append(Problem("unsupported-by-kind", message, value))
    if not layout.keeps_restart_policy:
        set_path(item, layout.template, template)
    complete_item(job, name, item)
    for manifest in role.manifests:
        item = merge(item, manifest, deletions)
    return item
