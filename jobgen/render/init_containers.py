"""Render `initContainers` and `sidecars` of a role as init containers of its pods."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import to_scalar, with_value
from jobgen.model.finding import Problem
from jobgen.model.suggest import find_key
from jobgen.render.expand import JobSpec
from jobgen.render.pod import check_ports, render_env, render_resources
from jobgen.schema.shipped_kinds import find_pod_release
from jobgen.spec.kinds import parse_version

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
