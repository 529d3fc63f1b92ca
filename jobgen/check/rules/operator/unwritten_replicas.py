"""A role whose number of pods must be written out."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role, as_integer
from jobgen.k8s.operators import describe_rejection, is_operator_since
from jobgen.model.suggest import suggest_entry


@rule("role", ERROR, kinds=("PyTorchJob", "XGBoostJob", "MPIJob"))
def unwritten_replicas(role: Role) -> Iterator[Violation]:
    """A role without `replicas`, where the operator does not take one pod for granted.

    From 1.8 on the training-operator's webhook refuses a Master of a PyTorchJob or an XGBoostJob whose `replicas: 1` is
    not written out. The Worker of an MPIJob has no pods at all unless it says how many. Write the number.
    """
    kind, described = role.manifest.kind, role.definition
    if described is None or kind is None or as_integer(role.replica_spec.get("replicas")) is not None:
        return
    since = kind.requirements.written.get(described.name)
    if since and is_operator_since(role.manifest, since):
        message = f"`{role.replica_type}` must say `replicas: 1`; {describe_rejection(role.manifest)}"
        yield Violation(role.key, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec))
    elif not described.omitted:
        consequence = f"; {describe_rejection(role.manifest)}" if described.least else ""
        message = f"`{role.replica_type}` does not say `replicas`, and so has no pods{consequence}"
        yield Violation(role.key, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec), safe=False)
