"""Deprecated field for the number of processes."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep
from jobgen.model.suggest import suggest_entry


@rule("job", WARNING, kinds=("PyTorchJob",))
def deprecated_nproc_per_node(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob that sets the deprecated `elasticPolicy.nProcPerNode`.

    Since 1.7 the field is `spec.nprocPerNode`, and the operator warns about the old one.

    Move it to `spec.nprocPerNode`, as a string.
    """
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    if "nProcPerNode" not in policy or "nprocPerNode" in manifest.spec or not is_operator_since(manifest, "1.7.0"):
        return
    node = policy["nProcPerNode"]
    number = value_of(node)
    if number is not None:
        fix_steps = (
            FixStep("remove", node, key="nProcPerNode"),
            *suggest_entry("nprocPerNode", str(number), manifest.spec),
        )
        message = f'this field is deprecated; write `nprocPerNode: "{number}"` under `spec`'
        # If it is the only entry, the fix would remove the whole policy, and the job would not be elastic.
        yield Violation(node, message, fix_steps=fix_steps if len(policy) > 1 else ())
