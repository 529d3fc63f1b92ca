"""Roles that need an explicit number of replicas."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import describe_rejection, is_operator_since
from jobgen.model.suggest import suggest_entry


@rule("role", ERROR, kinds=("PyTorchJob", "XGBoostJob", "MPIJob"))
def missing_replicas(role: Role) -> Iterator[Violation]:
    """A role without `replicas` where the operator does not default to one pod.

    Since 1.8, the webhook of training-operator rejects a Master of a PyTorchJob or an XGBoostJob without an explicit
    `replicas: 1`. The Worker of an MPIJob has no pods without `replicas`.

    Set `replicas`.
    """
    kind, described = role.manifest.kind, role.definition
    if described is None or kind is None or as_integer(role.replica_spec.get("replicas")) is not None:
        return
    since = kind.requirements.written.get(described.name)
    if since and is_operator_since(role.manifest, since):
        message = f"`{role.replica_type}` must set `replicas: 1`; {describe_rejection(role.manifest)}"
        yield Violation(role.key, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec))
    elif not described.omitted:
        consequence = f"; {describe_rejection(role.manifest)}" if described.least else ""
        message = f"`{role.replica_type}` does not set `replicas`, so it has no pods{consequence}; set it"
        yield Violation(role.key, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec), safe=False)
