"""Invalid numbers of processes."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest

_WORDS = ("auto", "cpu", "gpu", "xpu")


@rule("job", ERROR, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def unknown_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes per node that torchrun does not accept.

    The CRD accepts any text and passes it on. torchrun accepts `auto`, `cpu`, `gpu`, `xpu` or a positive integer, and
    exits at once otherwise.

    Use one of these values.
    """
    for node in (manifest.spec.get("nprocPerNode"), get_path(manifest.spec, "torchrunConfig", "procPerNode")):
        written = as_text(node)
        if not written or written in _WORDS or (written.isdecimal() and int(written) > 0):
            continue
        numeric = written.lstrip("-+").replace(".", "", 1).isdecimal()
        message = f"torchrun accepts `auto`, `cpu`, `gpu` or a positive integer, not `{written}`"
        yield Violation(node, message, severity=None if numeric else WARNING)
