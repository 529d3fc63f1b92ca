"""Different priorities in one job."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest


@rule("job", WARNING)
def uneven_priority(manifest: Manifest) -> Iterator[Violation]:
    """A priority class on some roles of a job but not on others.

    When a pod without the priority is evicted, the other pods also lose their work.

    Set the same priority class in every role.
    """
    if not any("priorityClassName" in role.pod.spec for role in manifest.roles):
        return
    classes = [(role, role.pod.spec.get("priorityClassName")) for role in manifest.roles if not role.pod.partial]
    written = [name for _, name in classes if as_text(name)]
    if not written:
        return
    for role, name in classes:
        if not as_text(name) and role.count:
            message = f"`{role.replica_type}` has no priority class, but another role has `{as_text(written[0])}`"
            yield Violation(
                role.key, f"{message}; set it in every role", ((written[0], "the priority of the other role"),)
            )
