"""TFJobs with a Chief and a Master."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection


@rule("job", ERROR, kinds=("TFJob",))
def chief_and_master(manifest: Manifest) -> Iterator[Violation]:
    """A TFJob with both a Chief and a Master.

    Both are names of the role that leads the job and decides whether it succeeded, so the operator rejects a job that
    has both.

    Keep `Chief`; `Master` is the older name.
    """
    leaders = [role for role in manifest.roles if role.name in ("chief", "master")]
    if len(leaders) > 1:
        first, second = leaders[:2]
        message = f"`{first.replica_type}` and `{second.replica_type}` are the same role"
        message = f"{message}; {describe_rejection(manifest)}; remove one of them"
        yield Violation(second.key, message, related=((first.key, "the other role"),))
