"""Kueue's maximum execution time."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.quantity import parse_digits

_LIMIT = DOMAIN + "max-exec-time-seconds"
_MOST = 2**31 - 1


@rule("manifest", ERROR)
def bad_max_exec_time(manifest: Manifest) -> Iterator[Violation]:
    """A `kueue.x-k8s.io/max-exec-time-seconds` that is not a positive integer.

    Kueue's webhook rejects the job.

    Write the seconds as a string: `"3600"`.
    """
    labels = manifest.metadata.get("labels")
    if not isinstance(labels, dict) or _LIMIT not in labels:
        return
    limit = as_text(labels[_LIMIT])
    if not 0 < (parse_digits(limit) or 0) <= _MOST:
        yield Violation(
            labels[_LIMIT], f"`{limit}` is not a positive number of seconds, so Kueue rejects the job; write seconds"
        )
