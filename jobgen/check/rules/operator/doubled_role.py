"""A role that stands twice in a list."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, Role


@rule("job", WARNING, kinds=("TensorFlowTrainingJob", "PyTorchTrainingJob", "XGBoostTrainingJob"))
def doubled_role(manifest: Manifest) -> Iterator[Violation]:
    """A role that stands twice in the list of roles.

    Pods are called after the job, the role and a number, so both entries ask for pods of the same names. Make one entry
    of them, with all the replicas.
    """
    seen: dict[str, Role] = {}
    for role in manifest.roles:
        first = seen.setdefault(role.replica_type, role)
        if first is not role:
            yield Violation(
                role.key,
                f"the role `{role.replica_type}` stands here for the second time",
                related=((first.key, "first here"),),
            )
