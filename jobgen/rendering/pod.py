"""Render the fields of a role as a pod template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import Node, ValidFields, location_of, to_scalar, value_of, with_value
from jobgen.model.finding import FixStep, Problem
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.suggest import describe_quantities, find_key, suggest_quantity
from jobgen.rendering.expand import JobSpec
from jobgen.schema.shipped_kinds import find_pod_release
from jobgen.spec.kinds import parse_version

CONTAINER_FIELDS = frozenset(("image", "imagePullPolicy", "command", "args", "workingDir", "envFrom", "ports"))
POD_FIELDS = frozenset(("nodeSelector", "tolerations", "affinity", "imagePullSecrets"))
METADATA_FIELDS = frozenset(("labels", "annotations"))
# Fields of a security context that only containers have; the others are set on the pod.
_CONTAINER_SECURITY = frozenset(
    ("allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem")
)
SHM = "shm"
SHM_PATH = "/dev/shm"  # noqa: S108
MOUNT_FIELDS = ("mountPath", "subPath", "readOnly")
SHORT_SOURCES = {
    "pvc": ("persistentVolumeClaim", "claimName"),
    "configMap": ("configMap", "name"),
    "secret": ("secret", "secretName"),
    "hostPath": ("hostPath", "path"),
}

# Words for resources that are no names of resources.
_RESOURCE_WORDS = {
    **dict.fromkeys(("gpus", "GPU", "GPUs", "Gpu", "gpu_count", "gpuCount", "num_gpus", "numGpus"), "gpu"),
    **dict.fromkeys(("cpus", "CPU", "Cpu", "cores"), "cpu"),
    **dict.fromkeys(("mem", "Memory", "ram"), "memory"),
}


def build_pod_template(fields: dict[str, Any], container_name: Node, problems: list[Problem]) -> dict[str, Any]:
    """Build the pod template of a role. The main container comes first."""
    container: dict[str, Any] = {"name": fields.get("containerName", container_name)}
    spec: dict[str, Any] = {"containers": [container]}
    metadata: dict[str, Any] = {}
    # Keys are reused, because they carry their locations.
    for field, value in fields.items():
        if field in CONTAINER_FIELDS:
            container[field] = value
        elif field in POD_FIELDS:
            spec[field] = value
        elif field in METADATA_FIELDS:
            metadata[field] = value
        elif field == "env":
            container[field] = [render_env(name, item, problems) for name, item in value.items()]
        elif field == "resources":
            container[field] = render_resources(value, problems)
        elif field == "serviceAccount":
            spec["serviceAccountName"] = _name_account(field, value, problems)
    check_ports(fields.get("ports", ()), problems)
    _add_security(fields.get("securityContext", {}), container, spec)
    _add_volumes(fields, container, spec, problems)
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _name_account(field: str, account: Node, problems: list[Problem]) -> Node:
    if not isinstance(account, dict):
        return account
    if "name" not in account:
        problems.append(Problem("missing-field", f"`{field}` has no `name`; add it", field))
    if account.get("annotations") and value_of(account.get("create")) is not True:
        message = f"`annotations` of `{field}` have no effect; set `create: true`, or remove them"
        problems.append(Problem("invalid-value", message, find_key(account, "annotations")))
    return account.get("name")


def render_env(name: str, value: Node, problems: list[Problem]) -> dict[str, Any]:
    """Render a variable as an entry of `env`."""
    if isinstance(value, dict):
        _check_sources(f"`{name}` of `env`", value.get("valueFrom", {}), "conflicting-env", name, problems)
        return {"name": to_scalar(name), **value}
    scalar = value_of(value)
    if isinstance(scalar, bool):
        return {"name": to_scalar(name), "value": with_value(value, "true" if scalar else "false")}
    return {"name": to_scalar(name), "value": value if isinstance(scalar, str) else with_value(value, str(scalar))}


def _check_sources(what: str, sources: Node, rule: str, name: str, problems: list[Problem]) -> None:
    """Report several sources: each may come from another layer, and merged they conflict."""
    if isinstance(sources, dict) and len(sources) > 1:
        listed = " and ".join(f"`{key}`" for key in sources)
        last = list(sources)[-1]
        message = f"{what} has {len(sources)} sources, {listed}; set all but one to null"
        problems.append(Problem(rule, message, last if location_of(last) else name))


def check_ports(ports: Iterable[ValidFields], problems: list[Problem]) -> None:
    """Report a name that two ports have: ports merge by number, so layers can cause that."""
    numbers: dict[Any, Any] = {}
    for port in ports:
        name = value_of(port.get("name"))
        if name is not None and name in numbers:
            both = f"{numbers[name]} and {value_of(port.get('containerPort'))}"
            message = f"`{name}` is the name of ports {both}; rename one of them"
            problems.append(Problem("conflicting-port", message, port["name"]))
        numbers[name] = value_of(port.get("containerPort"))


def render_resources(resources: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Render the resources of a container, with canonical quantities."""
    rendered: dict[str, Any] = {"claims": resources["claims"]} if "claims" in resources else {}
    for side in ("limits", "requests"):
        if side in resources:
            amounts = resources[side].items()
            problems.extend(_find_foreign_words(resources[side]))
            rendered[side] = {name: _render_amount(name, value, problems) for name, value in amounts}
    return rendered


def _find_foreign_words(amounts: dict[str, Any]) -> Iterator[Problem]:
    """Report words of other tools that are no names of resources."""
    for name in amounts:
        meant = _RESOURCE_WORDS.get(name)
        if meant:
            fix_steps = (FixStep("rename", name, meant),)
            message = f"containers cannot request the resource `{name}`; write `{meant}`"
            yield Problem("unknown-resource", message, name, category="pod", fix_steps=fix_steps)


def _render_amount(name: str, value: Node, problems: list[Problem]) -> Node:
    """A quantity in canonical form. Device counts stay integers, as users write them."""
    found = value_of(value)
    if isinstance(found, int) and "/" in name:
        return value
    return render_quantity(value, name, problems)


def render_quantity(value: Node, name: str, problems: list[Problem]) -> Node:
    """A scalar as a canonical quantity; report one that is not a quantity."""
    found = value_of(value)
    rendered = _quantities.get(found)
    if rendered is None:
        text = str(found)
        rendered = canonicalize_quantity(text)
        if rendered is None:
            message = f"`{name}` is `{text}`, and must be {describe_quantities(name, value)}"
            fix_steps, safe = suggest_quantity(value)
            problems.append(Problem("invalid-quantity", message, value, fix_steps=fix_steps, safe=safe))
            return value
        if len(_quantities) < _MAX_QUANTITIES:
            _quantities[found] = rendered
    return with_value(value, rendered)


_quantities: dict[str | int | float, str] = {}
_MAX_QUANTITIES = 10_000


def _add_security(context: dict[str, Any], container: dict[str, Any], spec: dict[str, Any]) -> None:
    own = {key: value for key, value in context.items() if key in _CONTAINER_SECURITY}
    shared = {key: value for key, value in context.items() if key not in _CONTAINER_SECURITY}
    if own:
        container["securityContext"] = own
    if shared:
        spec["securityContext"] = shared


def _add_volumes(
    fields: dict[str, Any], container: dict[str, Any], spec: dict[str, Any], problems: list[Problem]
) -> None:
    volumes: list[Any] = []
    mounts: list[Any] = []
    for name, volume in fields.get("volumes", {}).items():
        source = {key: value for key, value in volume.items() if key not in MOUNT_FIELDS}
        _check_sources(f"volume `{name}`", source, "conflicting-volume", name, problems)
        if not source:
            message = f"volume `{name}` has no source; add `pvc`, `emptyDir`, `configMap` or another"
            problems.append(Problem("missing-field", message, name))
        volumes.append({"name": to_scalar(name), **dict(_render_source(source, problems))})
        mount = {field: volume[field] for field in MOUNT_FIELDS if field in volume}
        if "mountPath" in mount:
            mounts.append({"name": to_scalar(name), **mount})
        elif mount:
            problems.append(Problem("missing-field", f"volume `{name}` has no `mountPath`; add one", name))
    if "shm" in fields:
        _add_shm(fields["shm"], volumes, mounts, problems)
    if volumes:
        spec["volumes"] = volumes
    if mounts:
        container["volumeMounts"] = mounts


def _add_shm(wanted: Node, volumes: list[Any], mounts: list[Any], problems: list[Problem]) -> None:
    size = render_quantity(wanted, "shm", problems)
    name = with_value(size, SHM)
    if any(value_of(volume["name"]) == SHM for volume in volumes):
        problems.append(
            Problem(
                "conflicting-volume", "`shm` adds a volume named `shm`, but there is one already; rename it", wanted
            )
        )
    if any(value_of(mount["mountPath"]) == SHM_PATH for mount in mounts):
        message = f"`shm` is mounted at `{SHM_PATH}`, but another volume is mounted there; remove one of them"
        problems.append(Problem("conflicting-volume", message, wanted))
    volumes.append({"name": name, "emptyDir": {"medium": with_value(size, "Memory"), "sizeLimit": size}})
    mounts.append({"name": name, "mountPath": with_value(size, SHM_PATH)})


def _render_source(source: dict[str, Any], problems: list[Problem]) -> Iterator[tuple[str, Any]]:
    for key, value in source.items():
        if key in SHORT_SOURCES and not isinstance(value, dict):
            name, field = SHORT_SOURCES[key]
            yield name, {field: value}
        elif key == "emptyDir" and "sizeLimit" in value:
            yield key, {**value, "sizeLimit": render_quantity(value["sizeLimit"], "sizeLimit", problems)}
        else:
            yield key, value


# The first release whose containers have `restartPolicy`, which makes an init container a sidecar.
_SIDECARS_SINCE = "1.28"


def add_init_containers(
    template: dict[str, Any], fields: dict[str, Any], job: JobSpec, problems: list[Problem]
) -> dict[str, Any]:
    """Add the init containers of a role to its pod template, then its sidecars."""
    containers = [_render_container(name, each, problems) for name, each in fields.get("initContainers", {}).items()]
    if fields.get("sidecars"):
        _check_sidecars(fields, job, problems)
    for name, each in fields.get("sidecars", {}).items():
        always = with_value(to_scalar(name), "Always")
        containers.append({**_render_container(name, each, problems), "restartPolicy": always})
    if not containers:
        return template
    return {**template, "spec": {**template["spec"], "initContainers": containers}}


def _render_container(name: str, fields: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    container: dict[str, Any] = {"name": to_scalar(name)}
    # Keys are reused, because they carry their locations.
    for field, value in fields.items():
        if field == "env":
            container[field] = [render_env(variable, item, problems) for variable, item in value.items()]
        elif field == "resources":
            container[field] = render_resources(value, problems)
        elif field != "mounts":
            container[field] = value
    check_ports(fields.get("ports", ()), problems)
    mounts = [{"name": to_scalar(volume), **mount} for volume, mount in fields.get("mounts", {}).items()]
    if mounts:
        container["volumeMounts"] = [*container.get("volumeMounts", ()), *mounts]
    return container


def _check_sidecars(fields: dict[str, Any], job: JobSpec, problems: list[Problem]) -> None:
    """Report sidecars if the CRD of the operator drops what makes them sidecars: the job would never start."""
    operator = job.kind.operator
    declared = job.cluster.find_version(operator)
    minor = find_pod_release(operator, declared) if declared else ""
    if minor and parse_version(minor) < parse_version(_SIDECARS_SINCE):
        message = (
            f"{operator} {declared} has the pods of Kubernetes {minor}, which have no `sidecars` (they came with"
            f" {_SIDECARS_SINCE}); write the container in `podTemplate.spec.containers`, and let it end with training"
        )
        problems.append(Problem("unsupported-by-kind", message, find_key(fields, "sidecars")))
