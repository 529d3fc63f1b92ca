"""Import Jobs of Volcano: the least number of pods of tasks, and jobs whose pods lack variables of their framework."""

from __future__ import annotations

import json

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.model.data import Plain
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import get_at


def adjust_fields(manifest: dict[str, Plain], kind: Kind, spec: Fields, roles: dict[str, Fields]) -> None:
    """Change fields of a job and its roles to what `jobgen.render.kinds.volcano_job` renders to the same object."""
    for item in kind.list_items(manifest):
        fields, least = roles.get(str(item.key)), item.data.get("minAvailable")
        if fields is not None and type(least) is int and 0 <= least != item.data.get("replicas"):
            fields["minReplicas"] = least
    # jobgen sets variables of torchrun beside those of the plugin.
    has_plugin = get_at(manifest, ("spec", "plugins", "pytorch")) is not None
    if has_plugin and '"PET_NNODES"' not in json.dumps(get_at(manifest, ("spec", "tasks")), default=str):
        spec.setdefault("volcano", {})["variables"] = False
