"""The number of processes, said twice."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_mapping
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep


@rule("job", ERROR, kinds=("PyTorchJob",))
def nproc_per_node_twice(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob that says the number of processes in two places.

    `elasticPolicy.nProcPerNode` is the old place of `nprocPerNode`; the operator refuses a job that has both. Keep
    `nprocPerNode`.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    own = manifest.spec.get("nprocPerNode")
    if "nProcPerNode" in policy and value_of(policy["nProcPerNode"]) is not None and value_of(own) is not None:
        message = f"`nprocPerNode` says it already; {describe_rejection(manifest)}"
        old = policy["nProcPerNode"]
        fix_steps = (FixStep("remove", old, key="nProcPerNode"),) if len(policy) > 1 else ()
        yield Violation(
            old, message, related=((own, "here"),), fix_steps=fix_steps, safe=str(value_of(old)) == str(value_of(own))
        )
