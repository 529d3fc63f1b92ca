"""The Job of Kubernetes: several pods get an index, so that each has a name and a rank."""

from __future__ import annotations

from jobgen.model.data import ValidFields, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import set_path

# Kubernetes refuses these fields without an index.
_NEED_INDEX = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, _problems: list[Problem]) -> ValidFields:
    """Give the pods of a job with several of them an index, if the framework or another field needs one."""
    [role] = job.roles.values()
    item = job.kind.replicas.item
    count = item.get("completions", role.replica.get("replicas"))
    needed = next((item[name] for name in _NEED_INDEX if name in item), None)
    is_distributed = job.framework != "generic" and isinstance(value_of(count), int) and value_of(count) != 1
    if (is_distributed or needed is not None) and "completionMode" not in item:
        set_path(resource, ("spec", "completionMode"), with_value(count if is_distributed else needed, "Indexed"))
    return templates
