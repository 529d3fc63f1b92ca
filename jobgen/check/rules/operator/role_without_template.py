"""Roles without a pod template."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role, as_mapping
from jobgen.k8s.operators import choose_severity, describe_rejection


@rule("role", ERROR)
def role_without_template(role: Role) -> Iterator[Violation]:
    """A role without a pod template.

    The CRD does not require one, but the operator cannot create pods without it and rejects the job.

    Add `template.spec.containers`, or remove the role.
    """
    kind = role.manifest.kind
    if role.pod.partial or kind is None or not kind.requirements.known or as_mapping(role.replica_spec.get("template")):
        return
    if isinstance(role.replica_spec.get("template"), dict):
        # An empty template is a pod without containers, which the API server rejects.
        return
    yield Violation(
        role.key,
        f"`{role.replica_type}` has no pod template; {describe_rejection(role.manifest)}",
        severity=choose_severity(role.manifest),
    )
