"""A restart policy that the operator does not take."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Role, as_text
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.finding import FixStep

_KNOWN = ("Always", "OnFailure", "Never", "ExitCode")


@rule("role", ERROR)
def unsupported_restart_policy(role: Role) -> Iterator[Violation]:
    """A restart policy that others take, but not this kind's operator.

    The mpi-operator takes `Never` and `OnFailure` alone: with `Always`, or the training-operator's `ExitCode`, it
    reports an event and does nothing more.
    """
    kind = role.manifest.kind
    policy = as_text(role.replica_spec.get("restartPolicy"))
    # What no pod can have either is refused by the API server, and said by `unsupported-value`.
    if kind and policy in _KNOWN and kind.restart_policies and policy not in kind.restart_policies:
        words = " or ".join(f"`{word}`" for word in kind.restart_policies)
        message = f"`{policy}` is no restart policy of {kind.name}; {describe_rejection(role.manifest)}; use {words}"
        node = role.replica_spec["restartPolicy"]
        # All three mean that a pod which failed is started again.
        fix_steps = (FixStep("set", node, "OnFailure"),) if "OnFailure" in kind.restart_policies else ()
        yield Violation(node, message, severity=choose_severity(role.manifest), fix_steps=fix_steps, safe=False)
