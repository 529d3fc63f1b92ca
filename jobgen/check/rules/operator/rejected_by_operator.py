"""Objects that the webhook of their operator rejects."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import REJECTED
from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR, kinds=KINDS)
def rejected_by_operator(manifest: Manifest) -> Iterator[Violation]:
    """An object that the webhook of its operator rejects.

    The schema of a CRD describes single fields. Webhooks check more: whether names fit, whether a reference names
    something that exists, and whether two fields go together. With GitOps the object then never reaches the cluster.
    `cluster.operators` names the version of the operator; without it, the newest applies.

    Change the value as the message says.
    """
    yield from find_violations(manifest, REJECTED)
