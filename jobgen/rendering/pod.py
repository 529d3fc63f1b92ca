"""Render the fields of a role as a pod template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, TracedScalar, ValidFields, location_of, to_scalar, value_of, with_value
from jobgen.model.finding import FixStep, Problem
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.sentence import Sentence
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

_STANDARD_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))
_HUGEPAGES = "hugepages-"


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
    for key, value in fields.get("securityContext", {}).items():
        holder = container if key in _CONTAINER_SECURITY else spec
        holder.setdefault("securityContext", {})[key] = value
    _add_volumes(fields, container, spec, problems)
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def _name_account(field: str, account: Node, problems: list[Problem]) -> Node:
    if not isinstance(account, dict):
        return account
    if "name" not in account:
        problems.append(Problem("missing-field", Sentence("`{}` has no `name`; add it", field), field))
    if account.get("annotations") and value_of(account.get("create")) is not True:
        message = Sentence("`annotations` of `{}` have no effect; set `create: true`, or remove them", field)
        problems.append(Problem("invalid-value", message, find_key(account, "annotations")))
    return account.get("name")


def render_env(name: str, value: Node, problems: list[Problem]) -> dict[str, Any]:
    """Render a variable as an entry of `env`."""
    if isinstance(value, dict):
        _check_sources(f"`{name}` of `env`", value.get("valueFrom", {}), "conflicting-env", name, problems)
        return {"name": to_scalar(name), **value}
    return {"name": to_scalar(name), "value": to_text(value)}


def to_text(value: Node) -> Node:
    """A scalar as text."""
    scalar = value_of(value)
    if isinstance(scalar, bool):
        return with_value(value, "true" if scalar else "false")
    return value if isinstance(scalar, str) else with_value(value, str(scalar))


def _check_sources(what: str, sources: Node, rule: str, name: str, problems: list[Problem]) -> None:
    """Report several sources: each may come from another layer, and merged they conflict."""
    if isinstance(sources, dict) and len(sources) > 1:
        listed = " and ".join(f"`{key}`" for key in sources)
        last = list(sources)[-1]
        files = {(location_of(key) or (None,))[0] for key in sources}
        # What another file sets can only be deleted.
        advice = "remove all but one" if len(files) == 1 else "set all but one to null"
        message = Sentence("{} has {} sources, {}; {}", what, len(sources), listed, advice)
        problems.append(Problem(rule, message, last if location_of(last) else name))


def check_ports(ports: Iterable[ValidFields], problems: list[Problem]) -> None:
    """Report a name that two ports have: ports merge by number, so layers can cause that."""
    numbers: dict[Any, Any] = {}
    for port in ports:
        name = value_of(port.get("name"))
        if name is not None and name in numbers:
            both = f"{numbers[name]} and {value_of(port.get('containerPort'))}"
            message = Sentence("`{}` is the name of ports {}; rename one of them", name, both)
            problems.append(Problem("conflicting-port", message, port["name"]))
        numbers[name] = value_of(port.get("containerPort"))


def render_resources(resources: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Render the resources of a container, with canonical quantities."""
    rendered: dict[str, Any] = {"claims": resources["claims"]} if "claims" in resources else {}
    for side in ("limits", "requests"):
        if side not in resources:
            continue
        rendered[side] = {}
        amounts = resources[side]
        for name, value in amounts.items():
            if "/" not in name and name not in _STANDARD_RESOURCES and _report_other_field(name, amounts, problems):
                continue
            # Device counts stay integers, as users write them.
            is_device = isinstance(value_of(value), int) and "/" in name
            rendered[side][name] = value if is_device else render_quantity(value, name, problems)
    return rendered


def _report_other_field(name: str, amounts: Mapping[str, Node], problems: list[Problem]) -> bool:
    """Report what is no resource of a container; return True if its value is not to be judged as an amount."""
    if name.startswith(_HUGEPAGES):
        return False
    # Imported late: most amounts are those of resources.
    from jobgen.schema.resource_words import describe_other_field, find_other_name

    message = Sentence("containers cannot request the resource `{}`", name)
    if meant := find_other_name(name):
        # `gpu` has the name of the resource by now.
        is_set = any(each == meant or each.endswith(f"/{meant}") for each in amounts)
        fix_steps = () if is_set else (FixStep("rename", name, meant),)
        words = "{}, and `{}` is written as well; remove one of them" if is_set else "{}; write `{}`"
        message = Sentence(words, message, meant)
        problems.append(Problem("unknown-resource", message, name, category="pod", fix_steps=fix_steps))
        return False
    advice = describe_other_field(name, amounts[name])
    if advice:
        problems.append(Problem("unknown-resource", Sentence("{}; {}", message, advice), name, category="pod"))
    return advice != ""


def render_quantity(value: Node, name: str, problems: list[Problem]) -> Node:
    """A scalar as a canonical quantity; report one that is not a quantity."""
    found = value_of(value)
    rendered = _quantities.get(found)
    if rendered is None:
        text = str(found)
        rendered = canonicalize_quantity(text)
        if rendered is None:
            message = Sentence("`{}` is `{}`, and must be {}", name, text, describe_quantities(name, value))
            fix_steps, safe = suggest_quantity(value, name)
            problem = Problem("invalid-quantity", message, value, fix_steps=fix_steps, safe=safe)
            problems.append(problem._replace(expected="a quantity"))
            return value
        if len(_quantities) < _MAX_QUANTITIES:
            _quantities[found] = rendered
    quantity = with_value(value, rendered)
    if rendered != found and type(quantity) is TracedScalar and str(found)[-1:] == "m":
        # Thousandths are a slip in most amounts, and messages show them.
        quantity.written = str(found)
    return quantity


_quantities: dict[str | int | float, str] = {}
_MAX_QUANTITIES = 10_000


def _add_volumes(fields: ValidFields, container: ValidFields, spec: ValidFields, problems: list[Problem]) -> None:
    volumes: list[Any] = []
    mounts: list[Any] = []
    for name, volume in fields.get("volumes", {}).items():
        source = {key: value for key, value in volume.items() if key not in MOUNT_FIELDS}
        _check_sources(f"volume `{name}`", source, "conflicting-volume", name, problems)
        if not source:
            message = Sentence("volume `{}` has no source; add `pvc`, `emptyDir`, `configMap` or another", name)
            problems.append(Problem("missing-field", message, name))
        volumes.append({"name": to_scalar(name), **dict(_render_source(source, problems))})
        mount = {field: volume[field] for field in MOUNT_FIELDS if field in volume}
        if "mountPath" in mount:
            mounts.append({"name": to_scalar(name), **mount})
        elif mount:
            problems.append(Problem("missing-field", Sentence("volume `{}` has no `mountPath`; add one", name), name))
    if "shm" in fields:
        size = render_quantity(fields["shm"], "shm", problems)
        faults = []
        if any(value_of(volume["name"]) == SHM for volume in volumes):
            faults.append("`shm` adds a volume named `shm`, but there is one already; rename it")
        if any(value_of(mount["mountPath"]) == SHM_PATH for mount in mounts):
            faults.append(f"`shm` is mounted at `{SHM_PATH}`, but another volume is mounted there; remove one of them")
        problems += (Problem("conflicting-volume", fault, fields["shm"]) for fault in faults)
        name = with_value(size, SHM)
        volumes.append({"name": name, "emptyDir": {"medium": with_value(size, "Memory"), "sizeLimit": size}})
        mounts.append({"name": name, "mountPath": with_value(size, SHM_PATH)})
    if volumes:
        spec["volumes"] = volumes
    if mounts:
        container["volumeMounts"] = mounts


def _render_source(source: dict[str, Any], problems: list[Problem]) -> Iterator[tuple[str, Any]]:
    for key, value in source.items():
        if key in SHORT_SOURCES and not isinstance(value, dict):
            name, field = SHORT_SOURCES[key]
            yield name, {field: value}
        elif key == "emptyDir" and "sizeLimit" in value:
            yield key, {**value, "sizeLimit": render_quantity(value["sizeLimit"], "sizeLimit", problems)}
        else:
            yield key, value


def add_init_containers(
    template: dict[str, Any], fields: dict[str, Any], job: JobSpec, problems: list[Problem]
) -> dict[str, Any]:
    """Add the init containers of a role to its pod template, then its sidecars."""
    containers = [_render_container(name, each, problems) for name, each in fields.get("initContainers", {}).items()]
    declared = job.cluster.find_version(job.kind.operator) if fields.get("sidecars") else ""
    minor = find_pod_release(job.kind.operator, declared) if declared else ""
    # The first release whose containers have `restartPolicy`, which makes an init container a sidecar. Without it,
    # the job would never start.
    since = "1.28"
    if minor and parse_version(minor) < parse_version(since):
        message = Sentence(
            "{} {} has the pods of Kubernetes {}, which have no `sidecars` (added in {}); write the container in "
            "`podTemplate.spec.containers`, and let it end with training",
            job.kind.operator,
            declared,
            minor,
            since,
        )
        problems.append(Problem("unsupported-by-kind", message, find_key(fields, "sidecars")))
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
    mounts: list[dict[str, Any]] = []
    for volume, mount in fields.get("mounts", {}).items():
        if "mountPath" in mount:
            mounts.append({"name": to_scalar(volume), **mount})
        else:
            problems.append(Problem("missing-field", "a mount needs `mountPath`", volume))
    if mounts:
        container["volumeMounts"] = [*container.get("volumeMounts", ()), *mounts]
    return container
