"""Objects that their operator accepts and never starts."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import NEVER_STARTS
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR, kinds=KINDS)
def never_starts(manifest: Manifest) -> Iterator[Violation]:
    """An object that its operator accepts, but never starts.

    KubeRay validates objects in its controller: the API server accepts an invalid RayJob, and nothing runs. It reports
    this only in an event or in the status, and a RayJob stays invalid even after a correction.

    Change the value as the message says.
    """
    yield from find_violations(manifest, NEVER_STARTS)
