"""A role that the kind does not have."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import Severity
from jobgen.model.suggest import did_you_mean, suggest_rename, suggest_value


@rule("role", ERROR)
def unknown_role(role: Role) -> Iterator[Violation]:
    """A role that the kind does not have, often one in the wrong case or of another framework.

    CRDs take any name here. Most operators then refuse the job; the mpi-operator starts all but this role; the
    controllers of TFJob and MXJob start its pods and never look at how they end. Spell the role as the kind does.
    """
    kind = role.manifest.kind
    if role.definition or kind is None or not role.replica_type or not kind.requirements.unknown_roles:
        return
    known = [str(value_of(known.spelling)) for known in kind.roles.values()]
    told: Severity | None = choose_severity(role.manifest)
    if kind.requirements.unknown_roles == "started":
        consequence, told = "its pods start, and nobody looks at how they end", Severity.WARNING
    elif kind.requirements.unknown_roles == "ignored":
        consequence = "the operator ignores it, so none of its pods is started"
    else:
        consequence = describe_rejection(role.manifest)
    message = f"{kind.name} has no role `{role.replica_type}`{did_you_mean(role.replica_type, known)}"
    taken = dict.fromkeys(other.replica_type for other in role.manifest.roles)
    if kind.shape == "map" and isinstance(role.key, str):
        fix_steps, safe = suggest_rename(role.key, known, taken)
    else:
        fix_steps, safe = suggest_value(role.key, known)
    yield Violation(
        role.key,
        f"{message.removesuffix('?')}{'?' if message.endswith('?') else ';'} {consequence}",
        severity=told,
        fix_steps=fix_steps,
        safe=safe,
    )
