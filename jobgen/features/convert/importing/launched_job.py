"""Import MPIJobs and ColossalAIJobs of TensorStack: whether the workers are deleted when the job ends."""

from __future__ import annotations

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.model.data import Plain
from jobgen.spec.kinds import Kind
from jobgen.spec.replicas import get_at


def adjust_fields(manifest: dict[str, Plain], _kind: Kind, spec: Fields, _roles: dict[str, Fields]) -> None:
    """Set the field of a job that `jobgen.render.kinds.launched_job` renders as `cleanUpWorkers`."""
    cleaned = get_at(manifest, ("spec", "runPolicy", "cleanUpWorkers"))
    if isinstance(cleaned, bool):
        spec.setdefault("runPolicy", {})["cleanPodPolicy"] = "Running" if cleaned else "None"
