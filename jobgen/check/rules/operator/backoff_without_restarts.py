"""A limit of restarts where nothing is restarted."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_integer


@rule("job", WARNING)
def backoff_without_restarts(manifest: Manifest) -> Iterator[Violation]:
    """A `backoffLimit` of a job whose pods are never started again.

    The operator counts restarts of pods that may be restarted; with `Never`, which is the default of most kinds, the
    first failure ends the job whatever the limit. Use `OnFailure` or `ExitCode`, or leave the limit out.
    """
    assert manifest.kind is not None
    counted = manifest.kind.requirements.backoff_counts
    limit = manifest.run_policy.get("backoffLimit")
    if not counted or not (as_integer(limit) or 0) > 0 or not manifest.roles:
        return
    if not any(role.restart_policy in counted for role in manifest.roles):
        yield Violation(
            limit, "no role is ever restarted, so the first failure ends the job; use `OnFailure` or `ExitCode`"
        )
