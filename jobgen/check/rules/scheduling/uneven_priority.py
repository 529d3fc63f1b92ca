"""Roles of one job with different priorities."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_text


@rule("job", WARNING)
def uneven_priority(manifest: Manifest) -> Iterator[Violation]:
    """A priority class on some roles of a job and not on the others.

    The job is as safe as its least role: when a pod without the priority is evicted, the others lose their work with
    it. Give every role the same class.
    """
    if not any("priorityClassName" in role.pod.spec for role in manifest.roles):
        return
    classes = [(role, role.pod.spec.get("priorityClassName")) for role in manifest.roles if not role.pod.partial]
    written = [name for _, name in classes if as_text(name)]
    if not written:
        return
    for role, name in classes:
        if not as_text(name) and role.count:
            message = f"`{role.replica_type}` has no priority class, and others have `{as_text(written[0])}`"
            yield Violation(
                role.key, f"{message}; give it to every role", ((written[0], "the priority of another role"),)
            )
