"""Retry limits without retries."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import list_alternatives


@rule("job", WARNING)
def backoff_without_restarts(manifest: Manifest) -> Iterator[Violation]:
    """A `backoffLimit` on a job whose pods are never restarted.

    The operator counts restarts, and restarts only pods whose policy allows it. With `Never`, the default of most
    kinds, the first failure ends the job whatever the limit.

    Use `OnFailure` or `ExitCode`, or remove the limit. For an MPIJob, use `OnFailure`: training-operator never creates
    a launcher again.
    """
    assert manifest.kind is not None
    counted = manifest.kind.requirements.backoff_counts
    limit = manifest.run_policy.get("backoffLimit")
    if not counted or not (as_integer(limit) or 0) > 0 or not manifest.roles:
        return
    if not any(role.restart_policy in counted for role in manifest.roles):
        # training-operator reads `ExitCode` of an MPIJob, and never creates a launcher again.
        unusable = ("Always", "ExitCode") if manifest.kind_name == "MPIJob" else ("Always",)
        usable = [policy for policy in counted if policy not in unusable and policy in manifest.kind.restart_policies]
        names = list_alternatives(f"`{policy}`" for policy in usable)
        message = (
            f"`backoffLimit` has no effect, because no role is ever restarted; set `restartPolicy` of a role to {names}"
        )
        policies = tuple((role.restart_policy_node, "") for role in manifest.roles)
        yield Violation(limit, message, policies)
