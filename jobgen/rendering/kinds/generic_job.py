"""The GenericJob of TensorStack: pods that find each other need Services, which need a port."""

from __future__ import annotations

from jobgen.model.data import ValidFields, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.rendering.expand import JobSpec

_PORTS = {"jax": 6666, "paddle": 36767}


def prepare(job: JobSpec, templates: ValidFields, resource: ValidFields, _problems: list[Problem]) -> ValidFields:
    """Give the replicas of a distributed framework Services."""
    counts = [value_of(role.replica.get("replicas")) for role in job.roles.values()]
    pods = sum(count for count in counts if type(count) is int)
    port = _PORTS.get(job.framework)
    if port and pods > 1 and "service" not in resource["spec"]:
        name = job.metadata["name"]
        ports = [{"name": with_value(name, job.framework), "port": with_value(name, port)}]
        resource["spec"]["service"] = {"ports": ports}
    return templates
