"""Launches that a launcher or its script refuses."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", ERROR)
def launch_refused(manifest: Manifest) -> Iterator[Violation]:
    """Arguments that the launcher, the training script or the server refuses on these pods.

    The pods start, pull their images, and fail at once, or wait for processes that never start. jobgen reads the
    command as Kubernetes and a shell would run it, with the variables that the operator sets, and computes what the
    framework computes: world size, tensor, pipeline and data parallel sizes, batch sizes. What depends on an image, on
    files that are not in the repository or on other unknown values is not reported. The message has the error of the
    framework. GPUs that no process uses are a warning.

    Follow the advice in the message. `jobgen explain JOB launch` shows all numbers, and where they come from.
    """
    return list_violations(manifest, "")
