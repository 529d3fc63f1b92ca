"""Nodes of a launcher and pods of the job."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR)
def nnodes_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A number of nodes, or a meeting point, with which the pods do not form one job.

    A launcher such as `torchrun --nnodes=4` waits for that many nodes. With more nodes than pods it never starts, and
    fails after a timeout. With fewer, the other pods fail. Pods that meet at `localhost` wait for each other forever.
    It is a warning if each pod trains alone, which can be meant, and if a condition that is not known decides whether
    the launcher starts.

    Remove the option if the operator gives the number, as `PET_NNODES`; otherwise, use the number of pods.
    """
    return list_violations(manifest, "nnodes-mismatch")
