"""Two who lead."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection


@rule("job", ERROR, kinds=("TFJob",))
def chief_and_master(manifest: Manifest) -> Iterator[Violation]:
    """A TFJob with a Chief and a Master.

    Both are names of one role, that which leads and decides whether the job has succeeded, so the operator refuses a
    job that has both. Keep `Chief`; `Master` is its name of old.
    """
    leaders = [role for role in manifest.roles if role.name in ("chief", "master")]
    if len(leaders) > 1:
        first, second = leaders[:2]
        message = (
            f"`{first.replica_type}` and `{second.replica_type}` are the same role; {describe_rejection(manifest)}"
        )
        yield Violation(second.key, message, related=((first.key, "the other"),))
