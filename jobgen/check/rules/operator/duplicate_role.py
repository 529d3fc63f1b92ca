"""Duplicate roles."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, Role


@rule("job", WARNING, kinds=("TensorFlowTrainingJob", "PyTorchTrainingJob", "XGBoostTrainingJob"))
def duplicate_role(manifest: Manifest) -> Iterator[Violation]:
    """A role that appears twice in the list of roles.

    Pods are named after the job, the role and an index, so both entries ask for pods of the same names.

    Merge the entries into one, with the sum of their replicas.
    """
    seen: dict[str, Role] = {}
    for role in manifest.roles:
        first = seen.setdefault(role.replica_type, role)
        if first is not role:
            yield Violation(
                role.key,
                f"role `{role.replica_type}` is listed twice; merge the two entries",
                related=((first.key, "the first entry"),),
            )
