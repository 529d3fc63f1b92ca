"""The number of processes in its old place."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.objects import Manifest, mapping
from jobgen.k8s.operator_outcome import has_come
from jobgen.model.data import Change, bare
from jobgen.model.suggest import added


@rule("job", WARNING, kinds=("PyTorchJob",))
def deprecated_nproc_per_node(manifest: Manifest) -> Iterator[Fault]:
    """A PyTorchJob that says the number of processes in the deprecated `elasticPolicy.nProcPerNode`.

    From 1.7 on its place is `spec.nprocPerNode`, and the operator warns of the old one. Write it there, in quotes.
    """
    policy = mapping(manifest.spec.get("elasticPolicy"))
    if "nProcPerNode" not in policy or "nprocPerNode" in manifest.spec or not has_come(manifest, "1.7.0"):
        return
    node = policy["nProcPerNode"]
    number = bare(node)
    if number is not None:
        mend = (Change("remove", node, key="nProcPerNode"), *added("nprocPerNode", str(number), manifest.spec))
        message = f'it is deprecated here; write `nprocPerNode: "{number}"` under `spec`'
        # Without another entry the whole policy would go, and with it the job's elasticity.
        yield Fault(node, message, mend=mend if len(policy) > 1 else ())
