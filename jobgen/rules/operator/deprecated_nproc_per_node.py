"""The number of processes in its old place."""

from collections.abc import Iterator

from jobgen.model import bare
from jobgen.operators import has_come
from jobgen.rules import WARNING, Fault, rule
from jobgen.view import Manifest, mapping


@rule("job", WARNING, kinds=("PyTorchJob",))
def deprecated_nproc_per_node(manifest: Manifest) -> Iterator[Fault]:
    """A PyTorchJob that says the number of processes in the deprecated `elasticPolicy.nProcPerNode`.

    From 1.7 on its place is `spec.nprocPerNode`, and the operator warns of the old one. Write it there, in quotes.
    """
    policy = mapping(manifest.spec.get("elasticPolicy"))
    if "nProcPerNode" not in policy or "nprocPerNode" in manifest.spec or not has_come(manifest, "1.7.0"):
        return
    number = bare(policy["nProcPerNode"])
    if number is not None:
        yield Fault(policy["nProcPerNode"], f'it is deprecated here; write `nprocPerNode: "{number}"` under `spec`')
