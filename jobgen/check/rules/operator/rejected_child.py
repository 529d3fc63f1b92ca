"""Objects whose Jobs or pods are rejected."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import CHILD_REJECTED
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR, kinds=KINDS)
def rejected_child(manifest: Manifest) -> Iterator[Violation]:
    """An object whose Job, StatefulSet, Service or pods the API server rejects.

    The API server accepts the object, but not what its operator creates from it. The operator retries forever and
    reports this only in events.

    Change the value as the message says.
    """
    yield from find_violations(manifest, CHILD_REJECTED)
