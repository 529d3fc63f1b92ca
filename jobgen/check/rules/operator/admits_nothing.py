"""Queues that admit nothing."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import ADMITS_NOTHING
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING, kinds=KINDS)
def admits_nothing(manifest: Manifest) -> Iterator[Violation]:
    """A queue that Kueue accepts, but that admits no workload.

    A ClusterQueue without `namespaceSelector` matches no namespace, so its workloads wait forever.

    Change the value as the message says.
    """
    yield from find_violations(manifest, ADMITS_NOTHING)
