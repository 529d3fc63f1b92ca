"""Unsupported restart policies."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Role
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.finding import FixStep
from jobgen.model.suggest import list_alternatives

_KNOWN = ("Always", "OnFailure", "Never", "ExitCode")


@rule("role", ERROR)
def unsupported_restart_policy(role: Role) -> Iterator[Violation]:
    """A restart policy that this kind's operator does not support, although other operators do.

    mpi-operator supports only `Never` and `OnFailure`. With `Always`, or with `ExitCode` of training-operator, it
    reports an event and does nothing more.

    Use a restart policy that the kind supports.
    """
    kind = role.manifest.kind
    policy = as_text(role.restart_policy_node)
    # `unsupported-value` reports policies that no pod can have; kinds without requirements have checks of their own.
    if (
        kind
        and kind.requirements.known
        and policy in _KNOWN
        and kind.restart_policies
        and policy not in kind.restart_policies
    ):
        known = list_alternatives(f"`{word}`" for word in kind.restart_policies)
        message = f"{kind.name} does not support `{policy}`; {describe_rejection(role.manifest)}; use {known}"
        node = role.restart_policy_node
        # All three restart a pod that failed.
        fix_steps = (FixStep("set", node, "OnFailure"),) if "OnFailure" in kind.restart_policies else ()
        yield Violation(node, message, severity=choose_severity(role.manifest), fix_steps=fix_steps, safe=False)
