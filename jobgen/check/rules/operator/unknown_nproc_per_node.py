"""A number of processes that torchrun does not take."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_text, get_path

_WORDS = ("auto", "cpu", "gpu", "xpu")


@rule("job", ERROR, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def unknown_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes that torchrun does not take.

    Any text is accepted and handed on; torchrun takes `auto`, `cpu`, `gpu` or a number from 1 on, and ends at once
    otherwise.
    """
    for node in (manifest.spec.get("nprocPerNode"), get_path(manifest.spec, "torchrunConfig", "procPerNode")):
        said = as_text(node)
        if not said or said in _WORDS or (said.isdecimal() and int(said) > 0):
            continue
        numeric = said.lstrip("-+").replace(".", "", 1).isdecimal()
        message = f"torchrun takes `auto`, `cpu`, `gpu` or a number from 1 on, not `{said}`"
        yield Violation(node, message, severity=None if numeric else WARNING)
