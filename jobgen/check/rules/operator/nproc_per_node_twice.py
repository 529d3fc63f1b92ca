"""Duplicate settings for the number of processes."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep


@rule("job", ERROR, kinds=("PyTorchJob",))
def nproc_per_node_twice(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob that sets the number of processes per node twice.

    `elasticPolicy.nProcPerNode` is the deprecated form of `nprocPerNode`; the operator rejects a job that has both.

    Keep only `nprocPerNode`.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    own = manifest.spec.get("nprocPerNode")
    if "nProcPerNode" in policy and value_of(policy["nProcPerNode"]) is not None and value_of(own) is not None:
        message = f"`nprocPerNode` is also set; {describe_rejection(manifest)}; remove this one"
        old = policy["nProcPerNode"]
        fix_steps = (FixStep("remove", old, key="nProcPerNode"),) if len(policy) > 1 else ()
        yield Violation(
            old,
            message,
            related=((own, "also set here"),),
            fix_steps=fix_steps,
            safe=str(value_of(old)) == str(value_of(own)),
        )
