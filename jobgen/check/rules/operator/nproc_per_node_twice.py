"""The number of processes, said twice."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Fault, rule
from jobgen.k8s.objects import Manifest, mapping
from jobgen.k8s.operator_outcome import refusal
from jobgen.model.data import Change, bare


@rule("job", ERROR, kinds=("PyTorchJob",))
def nproc_per_node_twice(manifest: Manifest) -> Iterator[Fault]:
    """A PyTorchJob that says the number of processes in two places.

    `elasticPolicy.nProcPerNode` is the old place of `nprocPerNode`; the operator refuses a job that has both. Keep
    `nprocPerNode`.
    """
    policy = mapping(manifest.spec.get("elasticPolicy"))
    own = manifest.spec.get("nprocPerNode")
    if "nProcPerNode" in policy and bare(policy["nProcPerNode"]) is not None and bare(own) is not None:
        message = f"`nprocPerNode` says it already; {refusal(manifest)}"
        old = policy["nProcPerNode"]
        mend = (Change("remove", old, key="nProcPerNode"),) if len(policy) > 1 else ()
        yield Fault(old, message, related=((own, "here"),), mend=mend, safe=str(bare(old)) == str(bare(own)))
