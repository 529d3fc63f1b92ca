"""Change the main container of a pod template that is being rendered; what the job sets stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import value_of, with_value
from jobgen.render.expand import JobSpec


def add_env(template: Any, variables: Mapping[str, str]) -> Any:
    """Add variables that the container does not set itself."""
    container = find_main_container(template)
    own = container.get("env")
    own = own if isinstance(own, list) else []
    known = {value_of(entry.get("name")) for entry in own if isinstance(entry, dict)}
    node = container.get("name")
    added = [{"name": name, "value": with_value(node, text)} for name, text in variables.items() if name not in known]
    return with_main_container(template, {**container, "env": [*added, *own]})


def set_command(template: Any, command: list[str]) -> Any:
    """Set the command of a container that has neither command nor arguments."""
    container = find_main_container(template)
    if "command" in container or "args" in container:
        return template
    return with_main_container(
        template, {**container, "command": [with_value(container.get("name"), w) for w in command]}
    )


def find_main_container(template: Any) -> dict[str, Any]:
    """Return the first container of a template; empty if it has none."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    return first if isinstance(first, dict) else {}


def with_main_container(template: Any, container: dict[str, Any]) -> Any:
    """Return the template with another first container."""
    spec = template["spec"]
    return {**template, "spec": {**spec, "containers": [container, *spec["containers"][1:]]}}


def count_gpus(job: JobSpec, template: Any) -> int:
    """Return the number of GPUs of one pod."""
    return Pod(template, Manifest({}, job.kind, job.cluster)).gpus
