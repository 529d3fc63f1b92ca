"""Roles without a pod template."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.spec.replicas import find_template


@rule("role", ERROR)
def role_without_template(role: Role) -> Iterator[Violation]:
    """A role without a pod template.

    The CRD does not require one, but the operator cannot create pods without it and rejects the job.

    Add `template.spec.containers`, or remove the role.
    """
    kind = role.manifest.kind
    if role.pod.partial or kind is None or not kind.requirements.known:
        return
    if isinstance(find_template(role.replica_spec, kind.replicas), dict):
        # An empty template is a pod without containers, which the API server rejects.
        return
    yield Violation(
        role.key,
        f"`{role.replica_type}` has no pod template; {describe_rejection(role.manifest)}; set `template`",
        severity=choose_severity(role.manifest),
    )
