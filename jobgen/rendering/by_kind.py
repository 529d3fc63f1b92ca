"""Render a JobSpec as the custom resource of its kind. Its kind description says where everything goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from jobgen.k8s.nodes import find_nodes
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
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, find_closest
from jobgen.rendering.expand import JobSpec, RoleSpec
from jobgen.rendering.kinds.main_container import set_path
from jobgen.rendering.launch_line import write_launch_lines
from jobgen.rendering.pod import add_init_containers, build_pod_template
from jobgen.spec.kinds import FieldMapping, Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.normalize import NOT_RENDERED
from jobgen.spec.replicas import get_at


def join_roles(job: JobSpec, templates: dict[str, Any], problems: list[Problem]) -> tuple[JobSpec, dict[str, Any]]:
    """Join roles that the kind counts to another role. Roles that differ stay apart, if the kind has several items."""
    known = job.kind.frameworks[job.framework].roles
    targets = {name: role.joins for name in templates if (role := job.kind.find_role(name)) and role.joins in known}
    if not targets:
        return job, templates

    def compared(name: str) -> Any:
        role = job.roles[name]
        replica = {key: value for key, value in role.replica.items() if key not in _OWN_FIELDS}
        return untraced(templates[name]), untraced(replica), untraced(list(role.manifests))

    must_join = job.kind.shape == "item"
    roles, kept = dict(job.roles), dict(templates)
    for target in dict.fromkeys(targets.values()):
        names = [name for name in templates if name == target or targets.get(name) == target]
        first, *others = names
        if not must_join and (not others or any(compared(name) != compared(first) for name in others)):
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


# Fields of a replica in which roles with one place may differ.
_OWN_FIELDS = ("replicas", "platforms")


def _check_replicas(job: JobSpec, names: list[str], problems: list[Problem]) -> None:
    """Report fields of replicas in which the roles differ: they have one place."""
    first = job.roles[names[0]].replica
    for name in names[1:]:
        for field, value in job.roles[name].replica.items():
            if field not in _OWN_FIELDS and value_of(first.get(field)) != value_of(value):
                both = f"`{names[0]}` and `{name}` differ in `{field}`"
                message = Sentence("{} has one template for all pods, but {}; make them equal", job.kind.name, both)
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
            message = Sentence("{} has one template for all nodes, but {}; make them equal", job.kind.name, both)
            node = next(find_nodes(other, path), None) or next(find_nodes(template, path), None)
            problems.append(Problem("unsupported-by-kind", message, node))
    launchers = [name for name in templates if job.kind.roles[name].launches]
    return _add_command(template, templates[launchers[0]]) if launchers else template


def _add_command(template: ValidFields, launcher: ValidFields) -> dict[str, Any]:
    """The template with the launcher's command, unless it has one itself."""
    command = {key: value for key, value in launcher["spec"]["containers"][0].items() if key in ("command", "args")}
    first, *rest = template["spec"]["containers"]
    return {**template, "spec": {**template["spec"], "containers": [{**command, **first}, *rest]}}


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


def render_nodes(job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], problems: list[Problem]) -> None:
    """Kubeflow Trainer v2: a number of equal nodes, and their overrides of the runtime."""
    kind = job.kind
    assert kind.template is not None, "schemas/kind.json ties the shape `one` to a template"
    for name, role in job.roles.items():
        if "restartPolicy" in role.replica:
            node = role.replica["restartPolicy"]
            start = Sentence("{} does not support `restartPolicy` of role `{}`", kind.name, name)
            hint = suggest_block(node, job) or "; remove it"
            problems.append(Problem("unsupported-by-kind", Sentence("{}{}", start, hint), node))
    nodes = [name for name in templates if not kind.roles[name].launches]
    if not nodes:
        message = Sentence("{} needs a role besides `{}`, which only launches", kind.name, next(iter(templates)))
        problems.append(Problem("unsupported-by-kind", message, job.metadata["name"]))
        return
    template = merge_templates(job, templates, nodes, problems)
    counts = [job.roles[name].replica["replicas"] for name in nodes if "replicas" in job.roles[name].replica]
    if counts:
        set_path(resource, kind.replicas_at, with_value(counts[-1], sum(map(value_of, counts))))
    if "runtimeRef" not in resource["spec"]:
        message = Sentence(
            "{} has no default runtime for `{}`; set `{}.runtime`", kind.name, job.framework, job.framework
        )
        problems.append(Problem("missing-field", message, job.metadata["name"]))
    _render_parts(job, template, resource, problems)


def _render_parts(job: JobSpec, template: ValidFields, resource: dict[str, Any], problems: list[Problem]) -> None:
    """Set the parts of a pod template where the kind takes them; report the parts that it does not support."""
    kind, declared = job.kind, job.cluster.find_version(job.kind.operator)
    assert kind.template is not None, "checked by render_nodes"
    # The newest mapping is the last.
    parts = [shape for shape in kind.template.shapes if shape.versions.contains(declared)][-1]
    override: dict[str, Any] = {}
    unsupported: list[tuple[str, Node]] = []
    first, *others = template["spec"]["containers"]
    for field, value in first.items():
        if field in kind.template.container:
            set_path(resource, kind.template.container[field], value)
        elif field in parts.container_fields:
            set_path(override, (*parts.spec, "containers", NamedItem("name", first["name"]), field), value)
        elif field != "name":
            unsupported.append((f"`{field}` of a container", field if location_of(field) else value))
    unsupported += ((f"a second container `{value_of(other.get('name', ''))}`", other) for other in others)
    pod = {field: value for field, value in template["spec"].items() if field != "containers"}
    for field, value in pod.items():
        if field in parts.pod_fields:
            set_path(override, (*parts.spec, field), value)
        else:
            unsupported.append((f"`{field}` of a pod", field if location_of(field) else value))
    if "metadata" in template and parts.metadata is not None:
        set_path(override, parts.metadata, template["metadata"])
    elif "metadata" in template:
        unsupported.append(("labels and annotations of pods", template["metadata"]))
    if override:
        set_path(resource, parts.at, [{**parts.item, **override}])
    shown = f"{kind.name} of {kind.operator} {declared}" if declared else kind.name
    problems += [
        Problem("unsupported-by-kind", Sentence("{} does not support {}; set it in the runtime", shown, what), node)
        for what, node in unsupported
    ]


def _find_hook(kind: Kind, name: str) -> Callable[..., Any] | None:
    """A function of the module for the kind's code: each has `prepare`, some have `finish` or `complete_item`."""
    # Imported late: most repositories use one.
    module = import_module(f"jobgen.rendering.kinds.{kind.code.replace('-', '_')}") if kind.code else None
    return getattr(module, name, None)


EXIT_CODE = "ExitCode"
# Kubeflow's operator restarts what a signal ended, which has a higher code.
_PERMANENT = range(1, 128)


def replace_exit_codes(job: JobSpec, templates: dict[str, Any]) -> JobSpec:
    """Replace `restartPolicy: ExitCode` by `Never` and a policy that fails the job at codes that are permanent."""
    layout, roles = job.kind.replicas, dict(job.roles)
    for name, role in job.roles.items():
        node = role.replica.get("restartPolicy")
        if value_of(node) != EXIT_CODE:
            continue
        roles[name] = role._replace(replica={**role.replica, "restartPolicy": with_value(node, "Never")})
        if get_at(layout.item, layout.pod_failure_policy) is None:
            main = value_of(templates[name]["spec"]["containers"][0].get("name"))
            codes = {"containerName": main, "operator": "In", "values": list(_PERMANENT)}
            item: dict[str, Any] = {}
            policy = with_tree(node, {"rules": [{"action": "FailJob", "onExitCodes": codes}]})
            set_path(item, layout.pod_failure_policy, policy)
            roles[name] = roles[name]._replace(manifests=(item, *role.manifests))
    return job._replace(roles=roles)


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
    resource: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind}
    resource |= {"metadata": dict(job.metadata), "spec": {}}
    shared: dict[str, Any] = {}
    for path, value in _list_fields(job.fields, kind):
        _render_field(job, path, value, resource, shared, problems)
    templates = _render_templates(job, shared.get("template", {}), problems, deletions)
    if "item" in shared:
        layout = kind.replicas._replace(item=merge(kind.replicas.item, shared["item"], deletions))
        job = job._replace(kind=kind.with_parts(replicas=layout))
    _declare_total(job, resource, problems)
    templates = write_launch_lines(job, templates, problems)
    # Without templates, no role of the job exists in the kind, which is a problem.
    if templates and kind.shape == "one":
        render_nodes(job, templates, resource, problems)
    elif templates:
        job, templates = join_roles(job, templates, problems)
        if prepare := _find_hook(kind, "prepare"):
            templates = prepare(job, templates, resource, problems)
        if kind.replicas.pod_failure_policy:
            job = replace_exit_codes(job, templates)
        _render_items(job, templates, resource, problems, deletions)
        if finish := _find_hook(kind, "finish"):
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
    job: JobSpec, where: tuple[str, Any], value: Node, made: ValidFields, shared: ValidFields, problems: list[Problem]
) -> None:
    path, kind = where[0], job.kind
    block, (holder, _, name) = path.partition(".")[0], path.rpartition(".")
    is_for_other_platform = block in _PLATFORM_BLOCKS and block not in (kind.platform, job.framework)
    if path in NOT_RENDERED or is_for_other_platform:
        return
    field = kind.fields.get(path)
    if field is None and holder in kind.fields:
        # A field that is not described, inside one that is.
        field = FieldMapping((*kind.fields[holder].at, name), versions=kind.fields[holder].versions)
    if field is None or not field.versions.contains(job.cluster.find_version(kind.operator)):
        if path not in _OFF_IF_UNSUPPORTED or value_of(value) is not False:
            problems.append(_report_unsupported(where, field, job))
        return
    converted = _convert_value(value, field, where, job, problems)
    if field.at[0] in ("template", "item"):
        # What all pod templates or all items have.
        set_path(shared, field.at, converted)
    elif field.at[0] not in _READ_BY_CODE:
        set_path(made, field.at, converted)


def _report_unsupported(where: tuple[str, Any], field: FieldMapping | None, job: JobSpec) -> Problem:
    """Report a field that the kind does not have, or that the declared version of its operator does not have."""
    (path, key), kind = where, job.kind
    if field is None:
        hint, name = suggest_block(key, job), path.rpartition(".")[2]
        if not hint and kind.unsupported.get(path):
            hint = f"; {kind.unsupported[path]}"
        elif not hint and "." in path:
            # A common block does not make names similar.
            meant = [known for known in kind.fields if find_closest(name, [known.rpartition(".")[2]])]
            hint = did_you_mean(path, meant)
        return Problem("unsupported-by-kind", Sentence("{} does not support `{}`{}", kind.name, path, hint), key)
    declared = job.cluster.find_version(kind.operator)
    shown = path if field.at[0] == "item" else format_dotted(field.at)
    message = Sentence("{} {} does not support `{}`: it {}", kind.operator, declared, shown, field.versions)
    return Problem("unsupported-by-kind", message, key)


def _convert_value(
    value: Node, field: FieldMapping, where: tuple[str, Any], job: JobSpec, problems: list[Problem]
) -> Node:
    (path, key), found = where, value_of(value)
    is_scalar = not isinstance(found, (dict, list))
    if field.values is not None:
        if is_scalar and found in field.values:
            return with_value(value, field.values[found])
        supported = ("" if is_scalar else "only ") + ", ".join(f"`{word}`" for word in field.values)
    elif field.as_type == "int":
        # Python converts other digits than these, and refuses very many of them.
        if isinstance(found, str) and _WHOLE_NUMBER.fullmatch(found):
            return with_value(value, int(found))
        if is_scalar and not isinstance(found, str):
            return value
        supported = "only a number"
    elif field.at[-1] == "priorityClassName" and is_scalar and not isinstance(found, str):
        supported = "only the name of a PriorityClass"
    elif field.as_type and not is_scalar:
        supported = "only text"
    else:
        return with_value(value, str(found)) if field.as_type and not isinstance(found, str) else value
    shown = f"`{found}`" if is_scalar else "a mapping" if isinstance(found, dict) else "a list"
    message = Sentence("`{}` is {}; {} supports {}", path, shown, job.kind.name, supported)
    problems.append(Problem("unsupported-by-kind", message, value if is_scalar else key))
    return value


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
            main = job.metadata["name"] if value_of(container) == "{job}" else container
            template = build_pod_template(role.pod, main, problems)
            if "secrets" in role.pod or "configs" in role.pod:
                from jobgen.rendering.sources import add_sources

                template = add_sources(template, role.pod, job, problems)
            if "initContainers" in role.pod or "sidecars" in role.pod:
                template = add_init_containers(template, role.pod, job, problems)
            for extra in (shared, *role.templates) if shared else role.templates:
                template = merge(template, extra, deletions)
            made[key] = template
        templates[name] = made[key]
    return templates


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
    # A role whose name is wrong is not counted.
    is_complete = not any(problem.rule == "unknown-role" for problem in problems)
    if is_complete and sum(counts.values()) != value_of(declared):
        listed = " + ".join(f"{name} {count}" for name, count in counts.items())
        message = Sentence(
            "`replicas` is {}, but the roles add up to {} ({})", value_of(declared), sum(counts.values()), listed
        )
        if [*job.roles] == ["launcher"]:
            workers = f"{{launcher: {{}}, worker: {{replicas: {value_of(declared)}}}}}"
            message += f"; write `roles: {workers}` instead"
        nodes = ((name, role.replica.get("replicas")) for name, role in job.roles.items())
        related = tuple(
            (node, f"{name} has {value_of(node)}, set by {_layer_of(node)}") for name, node in nodes if _layer_of(node)
        )
        # The line that was written last is at fault: that of a patch, unless it is also that of the total.
        patched = next((node for node, _ in related if _layer_of(node).startswith("patch of")), None)
        if patched is not None and not _layer_of(declared):
            message += f"; add `replicas: {sum(counts.values())}` to the patch"
            related = ((declared, f"the job declares {value_of(declared)}"),)
            problems.append(Problem("replica-totals", message, patched, related, category="policy"))
            return
        if [*job.roles] != ["launcher"]:
            # A total in the job would be wrong in the other environments.
            others = (_layer_of(node) for node, _ in related)
            where = next((f" in the {layer}" for layer in others if layer != _layer_of(declared)), "")
            message += f"; write `replicas: {sum(counts.values())}`{where}, or change a role"
        problems.append(Problem("replica-totals", message, declared, related, category="policy"))


def _layer_of(node: Node) -> str:
    """The overlay's layer that set a scalar; empty if the job or its kind did."""
    layer = node.layer if isinstance(node, TracedScalar) else ""
    return "" if layer == "job" or layer.startswith("kind ") else layer


def _name_item(spelling: Node, role: str) -> Node:
    """The name of an item of a list, at the place where its role is named."""
    return TracedScalar(str(value_of(spelling)), role.location, role.layer) if type(role) is TracedKey else spelling


def _render_items(
    job: JobSpec, templates: ValidFields, resource: ValidFields, problems: list[Problem], deletions: list[Deletion]
) -> None:
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
        # A role stands where a job or an overlay names it.
        by_name = {
            TracedKey.at(str(value_of(spelling)), name.location, name.layer)
            if type(name) is TracedKey
            else str(value_of(spelling)): item
            for name, (spelling, item) in made.items()
        }
        set_path(resource, layout.at, by_name)
    elif layout.shape == "list" and (made or not any(role.at for role in kind.roles.values())):
        items = [{layout.key: _name_item(spelling, name), **item} for name, (spelling, item) in made.items()]
        set_path(resource, layout.at, items)
    elif made:
        [(_, item)] = made.values()
        set_path(resource, layout.at, item)


_REPLICA_PATHS = {"minReplicas": "least", "maxReplicas": "most", "restartPolicy": "restart_policy"}


def _render_item(
    job: JobSpec, name: str, template: Node, problems: list[Problem], deletions: list[Deletion], *, has_count: bool
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
            for path in (each for each in layout.counts if has_count and get_at(item, each) is None):
                set_path(item, path, value)
            continue
        path = getattr(layout, _REPLICA_PATHS[field]) if has_count or field == "restartPolicy" else ()
        if path:
            set_path(item, path, value)
        else:
            message = Sentence("{} does not support `{}` of role `{}`; remove it", job.kind.name, field, name)
            problems.append(Problem("unsupported-by-kind", message, value))
    if not layout.keeps_restart_policy:
        set_path(item, layout.template, template)
    if complete := _find_hook(job.kind, "complete_item"):
        complete(job, name, item)
    for manifest in role.manifests:
        item = merge(item, manifest, deletions)
    return item


def suggest_block(node: Node, job: JobSpec) -> str:
    """Return how to set a value of the defaults of an overlay or a team for other jobs only; empty for other layers."""
    layer = node.layer if isinstance(node, (TracedKey, TracedScalar)) else ""
    if not layer.startswith("defaults of "):
        return ""
    # Defaults of a team have no `match`.
    whose = "the `defaults` of an overlay" if layer.startswith("defaults of team ") else "`defaults`"
    match = f"`match: {{exclude: {{kinds: [{job.kind.name}]}}}}`"
    return f"; it is among the {layer}: set it in a block of {whose} with {match} instead"
