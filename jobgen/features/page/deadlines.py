"""After how much time a job is stopped at the latest."""

from __future__ import annotations

from jobgen.k8s.kueue import DOMAIN, get_kueue_queue
from jobgen.k8s.nodes import as_integer, as_list, as_text, get_path
from jobgen.k8s.objects import Manifest

_MAX_TIME_LABEL = DOMAIN + "max-exec-time-seconds"
_SECONDS = "activeDeadlineSeconds"
_DEADLINES = (("runPolicy", _SECONDS), (_SECONDS,), ("jobTemplate", "spec", _SECONDS), ("jobTemplate", _SECONDS))
_RETRIES = (("backoffLimit",), ("jobTemplate", "backoffLimit"))
_MAX_DIGITS = 18


def find_deadline(manifest: Manifest) -> int:
    """Return after how many seconds a job is stopped at the latest; 0 if nothing stops it.

    The time of most kinds includes restarts. For a RayJob and a JobSet it starts again with each restart.
    """
    found = [as_integer(get_path(manifest.spec, *path)) for path in _DEADLINES]
    seconds = [value * _count_attempts(manifest) for value in found if value is not None and value > 0]
    seconds += _find_job_set_deadline(manifest)
    label = as_text(manifest.labels.get(_MAX_TIME_LABEL))
    is_number = label.isascii() and label.isdigit() and len(label) <= _MAX_DIGITS
    if get_kueue_queue(manifest) is not None and is_number and int(label):
        seconds.append(int(label))
    return min(seconds, default=0)


def _count_attempts(manifest: Manifest) -> int:
    if manifest.group != "ray.io":
        return 1
    retries = [as_integer(get_path(manifest.spec, *path)) for path in _RETRIES]
    return 1 + max((number for number in retries if number is not None and number > 0), default=0)


def _find_job_set_deadline(manifest: Manifest) -> list[int]:
    """Return the longest deadline of the jobs of a JobSet, times its restarts; none if a job has no deadline."""
    jobs = as_list(manifest.spec.get("replicatedJobs")) if manifest.kind_name == "JobSet" else ()
    found = [as_integer(get_path(job, "template", "spec", _SECONDS)) or 0 for job in jobs]
    restarts = as_integer(get_path(manifest.spec, "failurePolicy", "maxRestarts")) or 0
    return [max(found) * (1 + max(restarts, 0))] if found and min(found) > 0 else []
