"""Render a JobSpec as the custom resource of its kind. Its kind description says where everything goes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from jobgen.model.data import (
    Node,
    TracedKey,
    TracedScalar,
    ValidFields,
    location_of,
    untraced,
    value_of,
    with_tree,
    with_value,
)
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import NamedItem, Step, format_dotted
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.rendering.expand import JobSpec, RoleSpec
from jobgen.rendering.kinds.main_container import set_path
from jobgen.rendering.pod import build_pod_template
from jobgen.spec.kinds import FieldMapping, Kind, TemplateShape
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.normalize import NOT_RENDERED
from jobgen.spec.replicas import get_at


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


def render_nodes(job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], problems: list[Problem]) -> None:
    """Kubeflow Trainer v2: a number of equal nodes, and their overrides of the runtime."""
    kind = job.kind
    assert kind.template is not None, "schemas/kind.json ties the shape `one` to a template"
    for name, role in job.roles.items():
        if "restartPolicy" in role.replica:
            node = role.replica["restartPolicy"]
            start = f"{kind.name} does not support `restartPolicy` of role `{name}`"
            hint = suggest_block(node, job) or "; remove it"
            problems.append(Problem("unsupported-by-kind", f"{start}{hint}", node))
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
    return Problem("unsupported-by-kind", f"{kind} does not support {what}; set it in the runtime", node)


# The module of each code; it has a function `prepare`, and perhaps `finish`. Imported late: most repositories use one.
_MODULES = {
    "job": "jobgen.rendering.kinds.job",
    "jobset": "jobgen.rendering.kinds.jobset",
    "ray-job": "jobgen.rendering.kinds.ray_job",
    "volcano-job": "jobgen.rendering.kinds.volcano_job",
    "generic-job": "jobgen.rendering.kinds.generic_job",
    "deepspeed-job": "jobgen.rendering.kinds.deepspeed_job",
    "launched-job": "jobgen.rendering.kinds.launched_job",
}


def prepare(
    job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], problems: list[Problem]
) -> dict[str, Any]:
    """Set fields of the object that depend on several fields of the job; return the pod templates to render."""
    if not job.kind.code:
        return templates
    module = import_module(_MODULES[job.kind.code])
    prepared: dict[str, Any] = module.prepare(job, templates, resource, problems)
    return prepared


def finish(job: JobSpec, resource: dict[str, Any], problems: list[Problem]) -> None:
    """Complete an object with the items of its roles, before `manifest` is merged into it."""
    if job.kind.code:
        module = import_module(_MODULES[job.kind.code])
        if hasattr(module, "finish"):
            module.finish(job, resource, problems)


def complete_item(job: JobSpec, name: str, item: dict[str, Any]) -> None:
    """Set fields in the item of a role that depend on several fields of the job, if the kind has such fields."""
    complete = getattr(import_module(_MODULES[job.kind.code]), "complete_item", None) if job.kind.code else None
    if complete is not None:
        complete(job, name, item)


EXIT_CODE = "ExitCode"
# Kubeflow's operator restarts what a signal ended, which has a higher code.
_PERMANENT = range(1, 128)


def replace_exit_codes(job: JobSpec, templates: dict[str, Any]) -> JobSpec:
    """Replace `restartPolicy: ExitCode` by `Never` and a policy that fails the job at codes that are permanent."""
    roles = {
        name: _replace_policy(job, role, templates[name])
        if value_of(role.replica.get("restartPolicy")) == EXIT_CODE
        else role
        for name, role in job.roles.items()
    }
    return job._replace(roles=roles)


def _replace_policy(job: JobSpec, role: RoleSpec, template: Any) -> RoleSpec:
    node, layout = role.replica["restartPolicy"], job.kind.replicas
    replica = {**role.replica, "restartPolicy": with_value(node, "Never")}
    if get_at(layout.item, layout.pod_failure_policy) is not None:
        return role._replace(replica=replica)
    main = value_of(template["spec"]["containers"][0].get("name"))
    codes = {"containerName": main, "operator": "In", "values": list(_PERMANENT)}
    policy = with_tree(node, {"rules": [{"action": "FailJob", "onExitCodes": codes}]})
    item: dict[str, Any] = {}
    set_path(item, layout.pod_failure_policy, policy)
    return role._replace(replica=replica, manifests=(item, *role.manifests))


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
        advice = kind.unsupported.get(path)
        similar = did_you_mean(path, _list_siblings(path, kind)) if "." in path else ""
        start, block = f"{kind.name} does not support `{path}`", suggest_block(key, job)
        hint = block or (f"; {advice}" if advice else similar)
        return Problem("unsupported-by-kind", f"{start}{hint}", key)
    declared = job.cluster.find_version(kind.operator)
    shown = path if field.at[0] == "item" else format_dotted(field.at)
    message = f"{kind.operator} {declared} does not support `{shown}`: it {field.versions}"
    return Problem("unsupported-by-kind", message, key)


def _list_siblings(path: str, kind: Kind) -> list[str]:
    """The fields that can be meant instead of an unknown one; a common block does not make names similar."""
    name = path.rpartition(".")[2]
    return [known for known in kind.fields if find_closest(name, [known.rpartition(".")[2]])]


def _is_for_other_platform(path: str, job: JobSpec) -> bool:
    """True if a field is in the block of a platform that is not the job's, so that it does not concern this object."""
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
            problems.append(Problem("unsupported-by-kind", message, value))
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
        from jobgen.rendering.sources import add_sources

        template = add_sources(template, role.pod, job, problems)
    if "initContainers" in role.pod or "sidecars" in role.pod:
        from jobgen.rendering.pod import add_init_containers

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


_DEFAULTS = "defaults of "


def suggest_block(node: Node, job: JobSpec) -> str:
    """Return how to set a value of the defaults of an overlay or a team for other jobs only; empty for other layers."""
    layer = _find_layer(node)
    if not layer.startswith(_DEFAULTS):
        return ""
    match = f"`match: {{exclude: {{kinds: [{job.kind.name}]}}}}`"
    return f"; it is among the {layer}: set it in {_name_block(layer)} with {match} instead"


def _name_block(layer: str) -> str:
    # Defaults of a team have no `match`.
    is_team = layer.startswith(f"{_DEFAULTS}team ")
    return "a block of the `defaults` of an overlay" if is_team else "a block of `defaults`"


def _find_layer(node: Node) -> str:
    return node.layer if isinstance(node, (TracedKey, TracedScalar)) else ""
