"""Queued jobs without resource requests."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest, Role

_QUEUE = "kueue.x-k8s.io/queue-name"


@rule("job", WARNING)
def missing_requests(manifest: Manifest) -> Iterator[Violation]:
    """A job in a Kueue queue with pods that request nothing.

    Kueue counts the requests of the pods, which are zero here. The job is admitted however full the queue is, and its
    pods take room on nodes that is assigned to others.

    Add `resources` with cpu and memory.
    """
    if not manifest.labels or _QUEUE not in manifest.labels:
        return
    roles = [role.title for role in manifest.roles if _requests_nothing(role)]
    if roles:
        subject = f"{' and '.join(roles)} request{'s' * (len(roles) == 1)}"
        message = f"{subject} no resources, so the queue counts none; add cpu and memory requests"
        yield Violation(manifest.labels[_QUEUE], message)


def _requests_nothing(role: Role) -> bool:
    pod = role.pod
    # A launcher only waits for the others.
    if pod.partial or not pod.containers or not role.count or role.name == "launcher":
        return False
    asked = as_mapping(pod.spec.get("resources"))
    return not asked and not any(container.limits or container.requests for container in pod.containers)
