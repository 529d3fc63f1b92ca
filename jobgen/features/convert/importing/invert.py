"""Build job specs that may render to a manifest, by applying its kind description in reverse."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, starmap
from typing import Any

from jobgen.features.convert.importing.pod_fields import (
    Fields,
    extract_common,
    is_valid_field,
    shorten_resources,
    split_template,
    with_types,
)
from jobgen.features.convert.importing.verify import (
    Difference,
    create_patch,
    find_differences,
    is_equivalent,
    render_spec,
)
from jobgen.model.data import API_VERSION, Node, Plain, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.rendering.expand import Expander
from jobgen.rendering.kinds.main_container import set_path
from jobgen.spec.frameworks import Frameworks, collect_frameworks
from jobgen.spec.kinds import ANY_ROLE, FieldMapping, Kind, Network
from jobgen.spec.replicas import ReplicaItem, count_pods, find_count, find_restart_policy, find_template, get_at

_MISSING = object()


_GENERIC = "generic"
_SIGNS = {
    "pytorch": ("torchrun", "torch.distributed", "PET_NNODES", "MASTER_ADDR"),
    "tensorflow": ("TF_CONFIG",),
    "paddle": ("paddle.distributed", "PADDLE_MASTER"),
    "jax": ("JAX_COORDINATOR_ADDRESS",),
}
"""Texts in the command and names of variables by which a framework is recognized in a kind that runs any."""


def list_frameworks(manifest: dict[str, Plain], kind: Kind) -> list[str]:
    """The frameworks that a job may have, the most likely first."""
    if _GENERIC not in kind.frameworks:
        return [detect_framework(manifest, kind)]
    items = list(kind.list_items(manifest))
    texts = [text for item in items for text in _list_texts(find_template(item.data, kind.replicas))]
    signs = (name for name, signs in _SIGNS.items() if any(sign in text for sign in signs for text in texts))
    plugins = _get(manifest, ("spec", "plugins"))
    found = (*(plugins if isinstance(plugins, dict) else ()), *signs)
    keys = {item.key for item in items}
    served = (name for name in found if name in kind.frameworks and keys <= _list_spellings(kind, name))
    return [*list(served)[:1], _GENERIC]


def _list_spellings(kind: Kind, framework: str) -> set[Any]:
    return {value_of(kind.roles[name].spelling) for name in kind.frameworks[framework].roles}


def _list_texts(template: Any) -> Iterator[str]:
    """Yield the words of the commands in a pod template, and the names of variables."""
    containers = _get(template, ("spec", "containers"))
    for each in containers if isinstance(containers, list) else ():
        words = (word for field in ("command", "args") for word in (_get(each, (field,)),) if isinstance(word, list))
        yield from (word for listed in words for word in listed if isinstance(word, str))
        env = _get(each, ("env",))
        yield from (str(_get(entry, ("name",))) for entry in (env if isinstance(env, list) else ()))


def detect_framework(manifest: dict[str, Plain], kind: Kind) -> str:
    """The framework of a job; if its kind supports several, the runtime decides."""
    runtime = str(_get(manifest, ("spec", "runtimeRef", "name")))
    described = kind.requirements.runtimes.get(runtime)
    policy = {"torch": "pytorch"}.get(described.policy, described.policy) if described else ""
    if policy in kind.frameworks:
        return policy
    named = [name for name in kind.frameworks if name in runtime]
    return [*named, *kind.frameworks][0]


def take_job_fields(manifest: dict[str, Plain], kind: Kind, framework: str) -> tuple[Fields, Fields]:
    """The fields of the job spec that a custom resource has, and the manifest without them."""
    left = copy.deepcopy(manifest)
    spec: Fields = {}
    frameworks = collect_frameworks((kind,))
    for path, field in _list_fields(kind, framework):
        if field.at[0] == "item":
            _take_item_field(spec, left, kind, (path, field), frameworks)
            continue
        value = _get(left, field.at)
        if value is _MISSING or field.at[0] == "template":
            continue
        if path in kind.branches and isinstance(value, dict) and value:
            for key in list(value):
                if _set_if_valid(spec, (*path.split("."), key), value[key], frameworks):
                    _remove(left, (*field.at, key))
            continue
        ours = _to_our_value(value, field)
        if ours is not _MISSING and _set_if_valid(spec, tuple(path.split(".")), ours, frameworks):
            _remove(left, field.at)
    if kind.network is not None and kind.network.has_service and _have_names(manifest, kind, kind.network):
        # What the manifest has is all there is: its Service, if there is one, is another object.
        set_path(spec, (kind.platform, "service"), value=False)
    return spec, left


def _have_names(manifest: Fields, kind: Kind, network: Network) -> bool:
    """Return True if a job with these pods is rendered with a Service for their DNS names."""
    items = [item.data for item in kind.list_items(manifest)]
    named = all(_get(item, path) == value for item in items for path, value in network.when)
    return named and sum(count_pods(item, kind.replicas, 1) for item in items) > 1


def _take_item_field(
    spec: Fields, left: Fields, kind: Kind, named: tuple[str, FieldMapping], frameworks: Frameworks
) -> None:
    """Take a field that all items of roles have with the same value."""
    (path, field), items = named, list(kind.list_items(left))
    at = field.at[1:]
    values = [_get(item.data, at) for item in items]
    if not values or values[0] is _MISSING or any(value != values[0] for value in values):
        return
    if at in kind.replicas.counts and all(
        value == find_count(item.data, kind.replicas) for item, value in zip(items, values, strict=True)
    ):
        return
    if _set_if_valid(spec, tuple(path.split(".")), values[0], frameworks):
        for item in items:
            assert isinstance(item.data, dict), "items of a copied manifest"
            _remove(item.data, at)


def _list_fields(kind: Kind, framework: str) -> list[tuple[str, FieldMapping]]:
    """The fields of a framework: the deepest paths first, and of two names for one path the shorter."""
    others = set(kind.frameworks) - {framework}
    fields = [(path, field) for path, field in kind.fields.items() if path.split(".")[0] not in others]
    return sorted(fields, key=lambda pair: (-len(pair[1].at), len(pair[0])))


def _to_our_value(value: Any, field: FieldMapping) -> Any:
    """The value as the job spec has it, if rendering turns it into the same value again."""
    if field.values is not None:
        return next((ours for ours, theirs in field.values.items() if theirs == value), _MISSING)
    if field.as_type == "string" and not isinstance(value, str):
        return _MISSING
    if field.as_type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        return _MISSING
    return value


def _set_if_valid(spec: Fields, path: tuple[str, ...], value: Any, frameworks: Frameworks) -> bool:
    nested = value
    for step in reversed(path[1:]):
        nested = {step: nested}
    if not is_valid_field(path[0], nested, frameworks):
        return False
    set_path(spec, path, value)
    return True


def drop_defaults(spec: Fields, defaults: Mapping[str, Node]) -> None:
    """Remove fields that equal the kind's default, and set those to null that only the default has."""
    for key, value in untraced(defaults).items():
        if key == "restartPolicy":
            continue
        if isinstance(value, dict):
            below = spec.setdefault(key, {})
            drop_defaults(below, value)
            if not below:
                del spec[key]
        elif key not in spec:
            spec[key] = None
        elif spec[key] == value:
            del spec[key]


def _get(tree: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        if not isinstance(tree, dict) or step not in tree:
            return _MISSING
        tree = tree[step]
    return tree


def _remove(tree: Fields, path: tuple[Step, ...]) -> None:
    """Remove a value, and the maps that are then empty."""
    parents = [tree]
    for step in path[:-1]:
        parents.append(parents[-1][str(step)])
    del parents[-1][str(path[-1])]
    for parent, step in reversed(list(zip(parents, path[:-1], strict=False))):
        if not parent[str(step)]:
            del parent[str(step)]


# What kinds need beyond their description.
_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_NAMESPACE = lazy_pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_NOT_IN_NAMES = lazy_pattern(r"[^a-z0-9.-]+")
_ORDER = """
    framework replicas description image imagePullPolicy containerName command args workingDir env envFrom ports
    resources volumes shm initContainers sidecars restartPolicy nodeSelector tolerations affinity serviceAccount
    imagePullSecrets securityContext labels annotations queue priority suspend runPolicy FRAMEWORK tensorboard roles
    podTemplate manifest
""".split()
_RANK = {field: rank for rank, field in enumerate(_ORDER)}
"""The order of fields in a spec; `FRAMEWORK` stands for the settings of any framework."""


class _Forms(NamedTuple):
    """Which parts of a manifest become fields of a spec, rather than a patch of the object."""

    split_templates: bool
    split_maps: bool


class Candidate(NamedTuple):
    """A spec, and how the object that it renders to differs from the manifest."""

    document: dict[str, Plain]
    differences: tuple[Difference, ...]
    problems: tuple[str, ...] = ()


def build_candidates(manifest: dict[str, Plain], kind: Kind, renderer: Expander) -> Iterator[Candidate]:
    """Specs for a manifest, those with the most short forms first."""
    for framework in list_frameworks(manifest, kind):
        for forms in starmap(_Forms, product((True, False), repeat=2)):
            yield _build_candidate(manifest, kind, framework, renderer, forms)


def _build_candidate(
    manifest: dict[str, Plain], kind: Kind, framework: str, renderer: Expander, forms: _Forms
) -> Candidate:
    document = _build_document(manifest, kind, framework, renderer.environment.cluster.gpu_resource, forms)
    rendered, problems = render_spec(document, renderer)
    if rendered is None:
        return Candidate(document, (), tuple(problems))
    if not is_equivalent(rendered, manifest) and _patch_roles(document, rendered, manifest, kind, framework):
        rendered, problems = render_spec(document, renderer)
    if rendered is not None and not is_equivalent(rendered, manifest):
        document["spec"]["manifest"] = create_patch(rendered, manifest)
        rendered, problems = render_spec(document, renderer)
    differences = () if rendered is None else tuple(find_differences(manifest, rendered))
    return Candidate(document, differences, tuple(problems))


def _patch_roles(document: Fields, rendered: Fields, manifest: Fields, kind: Kind, framework: str) -> bool:
    """Add `manifest` to roles whose items differ, in kinds that list their items by a name; a list has no other key."""
    if kind.shape != "list":
        return False
    own = [name for name in kind.frameworks[framework].roles if name != ANY_ROLE]
    named = {value_of(kind.roles[name].spelling): name for name in own}
    wanted = {item.key: item.data for item in kind.list_items(manifest) if isinstance(item.key, str)}
    patched = False
    for item in list(kind.list_items(rendered)):
        if isinstance(item.key, str) and item.key in wanted and not is_equivalent(item.data, wanted[item.key]):
            role = document["spec"].setdefault("roles", {}).setdefault(named.get(item.key, str(item.key)), {})
            if "manifest" not in role:
                role["manifest"] = create_patch(item.data, wanted[item.key])
                patched = True
    return patched


def _build_document(manifest: dict[str, Plain], kind: Kind, framework: str, gpu_resource: str, forms: _Forms) -> Fields:
    spec, left = take_job_fields(manifest, kind, framework)
    metadata = _build_metadata(left["metadata"])
    roles = _build_roles(left, kind, framework, str(metadata["name"]), split_templates=forms.split_templates)
    _take_job_fields_of_templates(spec, roles, kind)
    if kind.code in _ADJUST:
        _ADJUST[kind.code](manifest, kind, spec, roles)
    drop_defaults(spec, kind.frameworks[framework].defaults)
    roles = _drop_role_defaults(roles, kind, framework)
    apart: dict[str, Fields] = {}
    for name, fields in roles.items():
        # What a role does not take from the job can only be its own.
        described = kind.find_role(name)
        alone = (*(described.ignores if described else ()), "manifest")
        apart[name] = {field: fields.pop(field) for field in alone if field in fields}
    common, own = extract_common(roles, split_maps=forms.split_maps)
    for name, fields in apart.items():
        own[name].update(fields)
    for fields in (common, *own.values()):
        containers = (each for field in ("initContainers", "sidecars") for each in fields.get(field, {}).values())
        for holder in (fields, *containers):
            if "resources" in holder:
                holder["resources"] = shorten_resources(holder["resources"], gpu_resource)
    spec = {"framework": framework, **common, **spec}
    if own and not (list(own) == [kind.frameworks[framework].single] and not own[next(iter(own))]):
        spec["roles"] = {name: sort_fields(fields) for name, fields in own.items()}
    return {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": metadata, "spec": sort_fields(spec)}


def sort_fields(fields: Fields) -> Fields:
    """Fields in the usual order of a spec."""
    return dict(sorted(fields.items(), key=lambda pair: _RANK.get(pair[0], _RANK["FRAMEWORK"])))


def _build_metadata(metadata: Fields) -> Fields:
    """The metadata of a spec; what a spec cannot have is patched into the object."""
    name = metadata.get("name", metadata.get("generateName", ""))
    kept: Fields = {"name": name if _NAME.match(str(name)) else to_spec_name(str(name))}
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and _NAMESPACE.match(namespace):
        kept["namespace"] = namespace
    for key in ("labels", "annotations"):
        found = metadata.get(key)
        if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
            kept[key] = found
    return kept


def to_spec_name(name: str) -> str:
    """A valid name of a spec, similar to the name of an object."""
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("-.")[:253] or "imported"


def _build_roles(manifest: Fields, kind: Kind, framework: str, job: str, *, split_templates: bool) -> dict[str, Fields]:
    """The fields of every role of the kind; what they cannot express is patched into the object."""
    roles: dict[str, Fields] = {}
    for name, replica in _list_replicas(manifest, kind, framework):
        named = str(value_of(kind.name_container(name)))
        container = job if named == "{job}" else named
        is_fixed = kind.requirements.container
        found = replica.get("template")
        template = split_template(found, container, is_fixed=is_fixed) if split_templates else None
        fields: Fields = {**template.fields} if template else {}
        rest = (
            _drop_restart_policy(template.rest)
            if template and kind.replicas.keeps_restart_policy
            else template and template.rest
        )
        if rest:
            fields["podTemplate"] = rest
        for key in ("replicas", "restartPolicy"):
            if key not in replica:
                fields[key] = None
            elif replica[key] is not None and is_valid_field(key, replica[key]):
                fields[key] = replica[key]
        roles[name] = fields
    return roles


def _drop_restart_policy(template: Fields) -> Fields:
    """A template without the restart policy, where that of the role is the same field."""
    pod = template.get("spec")
    if not isinstance(pod, dict):
        return template
    left = {key: value for key, value in pod.items() if key != "restartPolicy"}
    return {**{key: value for key, value in template.items() if key != "spec"}, **({"spec": left} if left else {})}


def _list_replicas(manifest: Fields, kind: Kind, framework: str) -> Iterator[tuple[str, Fields]]:
    """The roles of a manifest in the kind's order, each as a replica with a template."""
    if kind.shape == "one":
        yield kind.frameworks[framework].single, _to_replica(manifest, kind)
        return
    items = list(kind.list_items(manifest))
    if kind.shape == "item":
        yield from (
            (kind.frameworks[framework].single, _to_plain_replica(item.data, kind, has_count=True)) for item in items
        )
        return
    for name in _list_role_names(items, kind, framework):
        role = kind.find_role(name)
        found = [item for item in items if role and item.key == value_of(role.spelling)]
        if len(found) == 1:
            yield name, _to_plain_replica(found[0].data, kind, has_count=not (role and role.at))


def _list_role_names(items: Sequence[ReplicaItem], kind: Kind, framework: str) -> list[str]:
    """The roles of a framework in the kind's order, then others that the kind takes under any name."""
    roles = kind.frameworks[framework].roles
    known = [name for name in roles if name != ANY_ROLE]
    spellings = {value_of(kind.roles[name].spelling) for name in known}
    others = [str(item.key) for item in items if str(item.key) not in spellings] if ANY_ROLE in roles else []
    return list(dict.fromkeys((*known, *others)))


def _to_plain_replica(item: Mapping[str, Any], kind: Kind, *, has_count: bool) -> Fields:
    """The item of a role as a replica with `replicas`, `restartPolicy` and `template`, wherever the kind has them."""
    layout = kind.replicas
    parts = {
        "replicas": find_count(item, layout) if has_count else None,
        "restartPolicy": find_restart_policy(item, layout),
        "template": find_template(item, layout),
    }
    return {name: value for name, value in parts.items() if value is not None}


def _to_replica(manifest: Fields, kind: Kind) -> Fields:
    """A kind without templates, as a replica with a template."""
    assert kind.template is not None, "schemas/kind.json requires a template for the shape `one`"
    container: Fields = {"name": str(value_of(kind.container))}
    for field, path in kind.template.container.items():
        value = get_at(manifest, path)
        if value is not None:
            container[field] = value
    replica: Fields = {"template": {"spec": {"containers": [container]}}, "restartPolicy": None}
    count = get_at(manifest, kind.replicas_at)
    return replica if count is None else {**replica, "replicas": count}


def _drop_role_defaults(roles: dict[str, Fields], kind: Kind, framework: str) -> dict[str, Fields]:
    """Roles without fields that equal the kind's default; a null removes a default that the manifest does not have."""
    restart_policy = value_of(kind.frameworks[framework].defaults.get("restartPolicy"))
    result: dict[str, Fields] = {}
    for name, fields in roles.items():
        role = kind.find_role(name)
        defaults = {"replicas": value_of(role.replicas) if role else 1, "restartPolicy": restart_policy}
        result[name] = {
            key: value
            for key, value in fields.items()
            if key not in defaults or with_types(value) != with_types(defaults[key])
        }
    return result


def _take_job_fields_of_templates(spec: Fields, roles: dict[str, Fields], kind: Kind) -> None:
    """Move values that every template has, and that are a field of the job, to the job: the priority class."""
    for path, field in kind.fields.items():
        if field.at[:2] != ("template", "spec") or len(field.at) != 3 or not roles:
            continue
        key = str(field.at[2])
        found = [fields.get("podTemplate", {}).get("spec", {}).get(key) for fields in roles.values()]
        is_shared = found[0] is not None and all(with_types(each) == with_types(found[0]) for each in found)
        if not is_shared or not is_valid_field(path, found[0]):
            continue
        spec[path] = found[0]
        for fields in roles.values():
            rest = {name: value for name, value in fields["podTemplate"]["spec"].items() if name != key}
            fields["podTemplate"] = {**fields["podTemplate"], "spec": rest}
            if not rest:
                del fields["podTemplate"]["spec"]
            if not fields["podTemplate"]:
                del fields["podTemplate"]


def adjust_launched_job(manifest: dict[str, Plain], _kind: Kind, spec: Fields, _roles: dict[str, Fields]) -> None:
    """Set the field of a job that `jobgen.rendering.kinds.launched_job` renders as `cleanUpWorkers`."""
    cleaned = get_at(manifest, ("spec", "runPolicy", "cleanUpWorkers"))
    if isinstance(cleaned, bool):
        spec.setdefault("runPolicy", {})["cleanPodPolicy"] = "Running" if cleaned else "None"


_HEAD = "head"
_COMMAND = ("command", "args")


def adjust_ray_job(manifest: dict[str, Plain], kind: Kind, spec: Fields, roles: dict[str, Fields]) -> None:
    """Change fields of a job and its roles to what `jobgen.rendering.kinds.ray_job` renders to the same object."""
    settings = spec.setdefault("ray", {})
    if get_at(manifest, ("spec", "rayClusterSpec", "enableInTreeAutoscaling")) is True:
        settings.setdefault("autoscaling", True)
    for item in kind.list_items(manifest):
        fields = roles.get(str(item.key))
        if fields is None:
            continue
        fields.pop("replicas" if item.key == _HEAD else "", None)
        # Keep the command of a container in `manifest` of its role, because `command` becomes the entrypoint.
        own = {field: fields.pop(field) for field in _COMMAND if field in fields}
        if own:
            name = item.data["template"]["spec"]["containers"][0]["name"]
            fields["manifest"] = {"template": {"spec": {"containers": [{"name": name, **own}]}}}
        _take_bounds(fields, item.data)
        params = item.data.get("rayStartParams")
        if isinstance(params, dict) and params and all(isinstance(value, str) for value in params.values()):
            settings.setdefault("startParams", {})[str(item.key)] = params
    _take_command(spec, settings, roles)
    if not settings:
        del spec["ray"]


def _take_bounds(fields: Fields, item: Any) -> None:
    """Take bounds that differ from the number of replicas; others are rendered anyway."""
    count = fields.get("replicas")
    for field in ("minReplicas", "maxReplicas"):
        value = item.get(field)
        if type(value) is int and value >= 0 and value != count:
            fields[field] = value


def _take_command(spec: Fields, settings: Fields, roles: dict[str, Fields]) -> None:
    """Split an entrypoint that is words alone; what a shell expands stays text."""
    text = settings.get("entrypoint")
    try:
        words = shlex.split(text) if isinstance(text, str) else []
    except ValueError:
        return
    if words and shlex.join(words) == text and "$(" not in text:
        del settings["entrypoint"]
        for fields in roles.values() or (spec,):
            fields["command"] = words


def adjust_volcano_job(manifest: dict[str, Plain], kind: Kind, spec: Fields, roles: dict[str, Fields]) -> None:
    """Change fields of a job and its roles to what `jobgen.rendering.kinds.volcano_job` renders to the same object."""
    for item in kind.list_items(manifest):
        fields, least = roles.get(str(item.key)), item.data.get("minAvailable")
        if fields is not None and type(least) is int and 0 <= least != item.data.get("replicas"):
            fields["minReplicas"] = least
    # jobgen sets variables of torchrun beside those of the plugin.
    has_plugin = get_at(manifest, ("spec", "plugins", "pytorch")) is not None
    if has_plugin and '"PET_NNODES"' not in json.dumps(get_at(manifest, ("spec", "tasks")), default=str):
        spec.setdefault("volcano", {})["variables"] = False


_ADJUST = {"launched-job": adjust_launched_job, "ray-job": adjust_ray_job, "volcano-job": adjust_volcano_job}
