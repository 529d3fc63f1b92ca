"""A time limit that Kueue cannot read."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.objects import Manifest, as_text

_LIMIT = DOMAIN + "max-exec-time-seconds"
_MOST = 2**31 - 1


@rule("manifest", ERROR)
def bad_max_exec_time(manifest: Manifest) -> Iterator[Violation]:
    """A `kueue.x-k8s.io/max-exec-time-seconds` that is not a whole number above 0.

    Kueue's webhook refuses the job. Write seconds, as a string: `"3600"`.
    """
    labels = manifest.metadata.get("labels")
    if not isinstance(labels, dict) or _LIMIT not in labels:
        return
    limit = as_text(labels[_LIMIT])
    if not (limit.isascii() and limit.isdigit() and 0 < int(limit) <= _MOST):
        yield Violation(labels[_LIMIT], f"`{limit}` is not a number of seconds above 0, and Kueue refuses the job")
