"""A role without pods to make."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role, as_mapping
from jobgen.k8s.operators import choose_severity, describe_rejection


@rule("role", ERROR)
def role_without_template(role: Role) -> Iterator[Violation]:
    """A role without a pod template.

    The CRD does not ask for one, but there is nothing to make pods of, so the operator refuses the job. Write
    `template.spec.containers`, or take the role out.
    """
    kind = role.manifest.kind
    if role.pod.partial or kind is None or not kind.requirements.known or as_mapping(role.replica_spec.get("template")):
        return
    if isinstance(role.replica_spec.get("template"), dict):
        # An empty one is a pod without containers, which every cluster refuses.
        return
    yield Violation(
        role.key,
        f"`{role.replica_type}` has no pod template; {describe_rejection(role.manifest)}",
        severity=choose_severity(role.manifest),
    )
