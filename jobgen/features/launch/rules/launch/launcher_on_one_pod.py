"""Launchers that do not know the other pods of the job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def launcher_on_one_pod(manifest: Manifest) -> Iterator[Violation]:
    """A launcher such as `torchrun` that starts processes on one pod only, though the job has several.

    Ray runs the command of a job once, on the head: `torchrun` there starts no processes on the workers, whose GPUs
    stay idle. On other platforms every pod trains on its own: TensorStack sets no variables for `torchrun` unless
    `torchrunConfig` starts it, and `deepspeed` finds other pods by a hostfile only.

    Follow the advice in the message.
    """
    return list_violations(manifest, "launcher-on-one-pod")
