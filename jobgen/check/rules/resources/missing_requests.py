"""A job in a queue that does not say what it needs."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, Role, as_mapping

_QUEUE = "kueue.x-k8s.io/queue-name"


@rule("job", WARNING)
def missing_requests(manifest: Manifest) -> Iterator[Violation]:
    """A job in a queue of Kueue with pods that ask for nothing.

    Kueue counts what pods request, and for these nothing: the job is admitted however full the queue is, and its pods
    crowd nodes that others have paid for. Write `resources` with cpu and memory.
    """
    if not manifest.labels or _QUEUE not in manifest.labels:
        return
    roles = [role.replica_type for role in manifest.roles if _asks_for_nothing(role)]
    if roles:
        shown = " and ".join(f"`{name}`" for name in roles)
        message = f"pods of {shown} request nothing, so the queue counts nothing for them; write cpu and memory"
        yield Violation(manifest.labels[_QUEUE], message)


def _asks_for_nothing(role: Role) -> bool:
    pod = role.pod
    # A launcher only waits for the others.
    if pod.partial or not pod.containers or not role.count or role.name == "launcher":
        return False
    asked = as_mapping(pod.spec.get("resources"))
    return not asked and not any(container.limits or container.requests for container in pod.containers)
