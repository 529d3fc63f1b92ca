"""What depends on several fields of a job, by the `code` of its kind description."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jobgen.model.finding import Problem
from jobgen.render.expand import JobSpec

# The module of each code; it has a function `prepare`, and perhaps `finish`. Imported late: most repositories use one.
_MODULES = {
    "job": "jobgen.render.kinds.job",
    "jobset": "jobgen.render.kinds.jobset",
    "ray-job": "jobgen.render.kinds.ray_job",
    "volcano-job": "jobgen.render.kinds.volcano_job",
    "generic-job": "jobgen.render.kinds.generic_job",
    "deepspeed-job": "jobgen.render.kinds.deepspeed_job",
    "launched-job": "jobgen.render.kinds.launched_job",
}


def prepare(
    job: JobSpec, templates: dict[str, Any], resource: dict[str, Any], problems: list[Problem]
) -> dict[str, Any]:
    """Set fields of the object that depend on several fields of the job; return the pod templates to render."""
    if not job.kind.code:
        return templates
    module = import_module(_MODULES[job.kind.code])
    prepared: dict[str, Any] = module.prepare(job, templates, resource, problems)
    return prepared


def finish(job: JobSpec, resource: dict[str, Any], problems: list[Problem]) -> None:
    """Complete an object with the items of its roles, before `manifest` is merged into it."""
    if job.kind.code:
        module = import_module(_MODULES[job.kind.code])
        if hasattr(module, "finish"):
            module.finish(job, resource, problems)


def complete_item(job: JobSpec, name: str, item: dict[str, Any]) -> None:
    """Set fields in the item of a role that depend on several fields of the job, if the kind has such fields."""
    complete = getattr(import_module(_MODULES[job.kind.code]), "complete_item", None) if job.kind.code else None
    if complete is not None:
        complete(job, name, item)
