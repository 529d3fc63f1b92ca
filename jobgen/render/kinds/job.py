"""The Job of Kubernetes: several pods get an index, so that each has a name and a rank."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import value_of, with_value
from jobgen.model.finding import Problem
from jobgen.render.expand import JobSpec
from jobgen.render.set_path import set_path


def prepare(
    job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], _problems: list[Problem]
) -> dict[str, Any]:
    """Give the pods of a job with several of them an index."""
    [role] = job.roles.values()
    item = job.kind.replicas.item
    count = item.get("completions", role.replica.get("replicas"))
    if isinstance(value_of(count), int) and value_of(count) != 1 and "completionMode" not in item:
        set_path(resource, ("spec", "completionMode"), with_value(count, "Indexed"))
    return templates
