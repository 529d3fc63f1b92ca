"""Roles of one job under different schedulers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, as_text


@rule("job", WARNING)
def mixed_schedulers(manifest: Manifest) -> Iterator[Violation]:
    """Roles of one job whose pods different schedulers place.

    No scheduler sees the whole job, so none can start it all or not at all: half of it may hold its GPUs and wait for
    the other half. Give every role the same `schedulerName`.
    """
    first = None
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if not as_text(name):
            continue
        if first is None:
            first = name
        elif as_text(name) != as_text(first):
            message = f"`{as_text(name)}` places this role and `{as_text(first)}` another; no one sees the whole job"
            yield Violation(name, message, ((first, "the other scheduler"),))
