"""Numbers of replicas."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_integer
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.model.finding import Severity, pluralize
from jobgen.spec.replicas import RoleDescription, find_count


@rule("role", ERROR)
def invalid_replica_count(role: Role) -> Iterator[Violation]:
    """A role with more or fewer pods than the operator supports, such as two masters.

    Operators require exactly one Master or Launcher, and reject the job otherwise. mpi-operator also rejects
    `replicas: 0` of the Worker, and so does training-operator 1.9 or later for a PyTorchJob; it accepts that in other
    kinds, such as MPIJob `v1`. A second Chief of TensorFlow is started, and both train as if they were alone.
    A number that the operator does not check is a warning.

    Set a supported number of replicas.
    """
    kind = role.manifest.kind
    assert kind is not None
    one = kind.shape == "one"
    node = role.replica_spec.get(str(kind.replicas_at[-1])) if one else find_count(role.replica_spec, kind.replicas)
    written = as_integer(node)
    # A kind without templates has only the number of nodes.
    described = kind.roles.get("node") if one else role.definition
    if written is None or (written < 0 and described and described.name in kind.requirements.scaled):
        # The schema of the CRD reports it.
        return
    wanted = _describe_bounds(role, described, written)
    if not wanted:
        return
    # An operator with bounds in the object uses the nearest number.
    checked = described is not None and described.name not in kind.requirements.unchecked and not kind.replicas.least
    bounded = described is not None and described.least is not None
    consequence = f"; {describe_rejection(role.manifest)}" if checked and bounded else ""
    severity = choose_severity(role.manifest) if checked or described is None else Severity.WARNING
    if one:
        message = f"the job has {pluralize(written, 'node')} but needs {wanted}"
    else:
        message = f"`{role.replica_type}` has `replicas: {written}` but needs {wanted}"
    yield Violation(node, f"{message}{consequence}", severity=severity)


def _describe_bounds(role: Role, described: RoleDescription | None, written: int) -> str:
    """Return how many pods the role must have; an empty string if it has as many."""
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
