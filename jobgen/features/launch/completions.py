"""Pods of an indexed Job that do not all run at once: `completions` counts all, `parallelism` those that run then."""

from __future__ import annotations

from jobgen.features.launch.values import Pods
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place, find_at

_INDEX = "JOB_COMPLETION_INDEX"


class Waves(NamedTuple):
    """The pods of a Job of which only some run at the same time."""

    total: int
    """All pods, also those that start later."""
    parallelism: int
    completions: int
    place: Place
    """Where `parallelism` is written, or else `completions`."""
    completions_place: Place
    is_rank: bool
    """True if the command has the index of the pod, which counts all of them."""


def find_waves(pods: Pods, count: int) -> Waves | None:
    """Return the pods of a Job, or of the one job of a JobSet, that start in waves; None if all start at once."""
    manifest = pods.container.pod.manifest
    if pods.kind not in ("Job", "JobSet") or manifest.group not in ("batch", "jobset.x-k8s.io"):
        return None
    roles = [role for role in manifest.roles if role.count]
    if len(roles) != 1 or not count:
        return None
    item = roles[0].replica_spec
    spec = manifest.spec if pods.kind == "Job" else as_mapping(get_path(item, "template", "spec"))
    completions = as_integer(spec.get("completions"))
    written = as_integer(spec.get("parallelism"))
    parallelism = 1 if written is None else written
    is_indexed = as_text(spec.get("completionMode")) == "Indexed"
    if completions is None or not 0 < parallelism < completions or not is_indexed or spec.get("successPolicy"):
        return None
    place, other = find_at(spec, "parallelism"), find_at(spec, "completions")
    times = count // parallelism
    is_rank = _INDEX in pods.container.search_text
    return Waves(times * completions, parallelism, completions, place or other, other, is_rank)
