"""Features that are off by default."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import GATE_OFF
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING, kinds=KINDS)
def feature_gate_off(manifest: Manifest) -> Iterator[Violation]:
    """A field that its operator rejects unless you turn on a feature gate that is off by default.

    Without the gate, the operator rejects the object or never starts it. This is an error if `cluster.featureGates`
    declares the gates of the cluster and does not list this one.

    Remove the field. If the gate is on in your cluster, name it in `cluster.featureGates`.
    """
    yield from find_violations(manifest, GATE_OFF)
