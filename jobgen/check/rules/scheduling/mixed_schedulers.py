"""Different schedulers in one job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest


@rule("job", WARNING)
def mixed_schedulers(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job with different schedulers.

    No scheduler sees the whole job, so none can start all of it or nothing. One half can hold its GPUs and wait for the
    other half.

    Set the same `schedulerName` in every role.
    """
    first = None
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if not as_text(name):
            continue
        if first is None:
            first = name
        elif as_text(name) != as_text(first):
            message = (
                f"scheduler `{as_text(name)}` differs from `{as_text(first)}` of another role; use one for all roles"
            )
            yield Violation(name, message, ((first, "the scheduler of the other role"),))
