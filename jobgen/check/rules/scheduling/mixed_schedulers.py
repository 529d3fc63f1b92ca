"""Roles of one job under different schedulers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.objects import Manifest, text


@rule("job", WARNING)
def mixed_schedulers(manifest: Manifest) -> Iterator[Fault]:
    """Roles of one job whose pods different schedulers place.

    No scheduler sees the whole job, so none can start it all or not at all: half of it may hold its GPUs and wait for
    the other half. Give every role the same `schedulerName`.
    """
    first = None
    for role in manifest.roles:
        name = role.pod.spec.get("schedulerName")
        if not text(name):
            continue
        if first is None:
            first = name
        elif text(name) != text(first):
            message = f"`{text(name)}` places this role and `{text(first)}` another; no one sees the whole job"
            yield Fault(name, message, ((first, "the other scheduler"),))
