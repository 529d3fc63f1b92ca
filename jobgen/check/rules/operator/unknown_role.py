"""Unknown roles."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import Severity
from jobgen.model.suggest import did_you_mean, suggest_rename, suggest_value


@rule("role", ERROR)
def unknown_role(role: Role) -> Iterator[Violation]:
    """A role that the kind does not have, often in the wrong case or of another framework.

    CRDs accept any name. Most operators then reject the job; mpi-operator starts all other roles; the controllers of
    TFJob and MXJob start the pods of the role but ignore how they end, which is a warning.

    Use a role of the kind.
    """
    kind = role.manifest.kind
    if role.definition or kind is None or not role.replica_type or not kind.requirements.unknown_roles:
        return
    known = [str(value_of(known.spelling)) for known in kind.roles.values()]
    severity: Severity | None = choose_severity(role.manifest)
    if kind.requirements.unknown_roles == "started":
        consequence, severity = "its pods start, but the operator ignores how they end", Severity.WARNING
    elif kind.requirements.unknown_roles == "ignored":
        consequence = "the operator ignores it and starts none of its pods"
    else:
        consequence = describe_rejection(role.manifest)
    taken = dict.fromkeys(other.replica_type for other in role.manifest.roles)
    free = [name for name in known if name not in taken]
    message = f"{kind.name} has no role `{role.replica_type}`{did_you_mean(role.replica_type, free)}"
    if kind.shape == "map" and isinstance(role.key, str):
        fix_steps, safe = suggest_rename(role.key, known, taken)
    else:
        fix_steps, safe = suggest_value(role.key, free)
    yield Violation(
        role.key,
        f"{message.removesuffix('?')}{'?' if message.endswith('?') else ';'} {consequence}",
        severity=severity,
        fix_steps=fix_steps,
        safe=safe,
    )
