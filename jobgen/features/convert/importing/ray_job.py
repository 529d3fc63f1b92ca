"""Import RayJobs: the entrypoint as a command, parameters of `ray start`, and bounds of groups."""

from __future__ import annotations

import shlex
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.model.data import Plain
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import get_at

_HEAD = "head"
_COMMAND = ("command", "args")


def adjust_fields(manifest: dict[str, Plain], kind: Kind, spec: Fields, roles: dict[str, Fields]) -> None:
    """Change fields of a job and its roles to what `jobgen.render.kinds.ray_job` renders to the same object."""
    settings = spec.setdefault("ray", {})
    if get_at(manifest, ("spec", "rayClusterSpec", "enableInTreeAutoscaling")) is True:
        settings.setdefault("autoscaling", True)
    for item in kind.list_items(manifest):
        fields = roles.get(str(item.key))
        if fields is None:
            continue
        fields.pop("replicas" if item.key == _HEAD else "", None)
        _move_command(fields, item.data)
        _take_bounds(fields, item.data)
        params = item.data.get("rayStartParams")
        if isinstance(params, dict) and params and all(isinstance(value, str) for value in params.values()):
            settings.setdefault("startParams", {})[str(item.key)] = params
    _take_command(spec, settings, roles)
    if not settings:
        del spec["ray"]


def _move_command(fields: Fields, item: Any) -> None:
    """Keep the command of a container in `manifest` of its role, because `command` becomes the entrypoint."""
    own = {field: fields.pop(field) for field in _COMMAND if field in fields}
    if own:
        name = item["template"]["spec"]["containers"][0]["name"]
        fields["manifest"] = {"template": {"spec": {"containers": [{"name": name, **own}]}}}


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
