"""A role with more or fewer pods than it can have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role, as_integer
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.model.finding import Severity
from jobgen.spec import kinds


@rule("role", ERROR)
def replica_count(role: Role) -> Iterator[Violation]:
    """A role with more or fewer pods than it can have, such as two masters.

    Operators want one Master or Launcher and at least one Worker where there are Workers, and refuse the job otherwise.
    A second chief of TensorFlow is started, and both train as if they were alone.
    """
    kind = role.manifest.kind
    assert kind is not None
    one = kind.shape == "one"
    node = role.replica_spec.get(str(kind.replicas_at[-1]) if one else "replicas")
    written = as_integer(node)
    # Of a kind without templates, only the nodes themselves are counted.
    described = kind.roles.get("node") if one else role.definition
    if written is None or (written < 0 and described and described.name in kind.requirements.scaled):
        # What the CRD itself refuses has been said.
        return
    wanted = _wanted(role, described, written)
    if not wanted:
        return
    checked = described is not None and described.name not in kind.requirements.unchecked
    bounded = described is not None and described.least is not None
    consequence = f"; {describe_rejection(role.manifest)}" if checked and bounded else ""
    told = choose_severity(role.manifest) if checked or described is None else Severity.WARNING
    said = (
        f"`numNodes` is {written}, and must be"
        if one
        else f"`{role.replica_type}` has `replicas: {written}`, and needs"
    )
    yield Violation(node, f"{said} {wanted}{consequence}", severity=told)


def _wanted(role: Role, described: kinds.RoleDescription | None, written: int) -> str:
    """How many pods there must be; empty if there are."""
    assert role.manifest.kind is not None
    least, most = (described.least, described.most) if described else (None, None)
    since = role.manifest.kind.requirements.bounds_since.get(described.name, "") if described else ""
    if not is_operator_since(role.manifest, since):
        least = None
    if (least or 0) <= written and (most is None or written <= most):
        return ""
    if least is not None and least == most:
        return f"exactly {most}"
    return f"at least {least or 0}" if written < (least or 0) else f"at most {most}"
