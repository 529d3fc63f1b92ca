"""Training jobs without any resources."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.command_line import parse_command
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.objects import Manifest, Role

_QUEUE = "kueue.x-k8s.io/queue-name"
_LAUNCHERS = frozenset(("torchrun", "accelerate", "deepspeed", "horovodrun"))


@rule("job", INFO)
def missing_resources(manifest: Manifest) -> Iterator[Violation]:
    """A container that trains without requests or limits, where no LimitRange sets them.

    The scheduler assumes that the pod needs nothing, and can place it on a node that is full. When memory runs short,
    the pod is evicted first. A ResourceQuota for cpu or memory refuses it. A command trains if it starts `torchrun`,
    another launcher, or a file such as `train.py`.

    Add `resources` with cpu and memory.
    """
    # The rule missing-requests reports jobs in a queue.
    if _QUEUE in manifest.labels:
        return
    roles = [role for role in manifest.roles if _asks_for_nothing(role)]
    if not roles or _may_have_defaults(manifest):
        return
    names = " and ".join(role.title for role in roles)
    verb, subject = ("requests", "it is") if len(roles) == 1 else ("request", "they are")
    message = f"{names} {verb} no resources, so {subject} evicted first when memory runs short"
    main = roles[0].pod.main_container
    node = main.data.get("image") if main else None
    yield Violation(roles[0].key if node is None else node, f"{message}; add cpu and memory requests")


def _asks_for_nothing(role: Role) -> bool:
    """Return True if the main container of a role, whose command trains, asks for nothing, and neither does its pod."""
    pod, main = role.pod, role.pod.main_container
    # A launcher only waits for the others.
    if main is None or role.name == "launcher" or pod.partial or not role.count:
        return False
    if as_mapping(pod.spec.get("resources")) or as_mapping(main.data.get("resources")):
        return False
    return any(_trains(argument.text) for argument in parse_command(main.command_line))


def _trains(word: str) -> bool:
    """Return True if a word of a command is a program that trains."""
    name = word.rpartition("/")[2]
    is_script = name.endswith(".py") and "train" in name
    return name in _LAUNCHERS or is_script or word.startswith("torch.distributed.")


def _may_have_defaults(manifest: Manifest) -> bool:
    """Return True if a LimitRange sets what is missing, or may do so: one of the two does not say its namespace."""
    namespaces = manifest.read_catalog().defaulted_namespaces
    return bool(namespaces) and (not manifest.namespace or bool({"", manifest.namespace} & namespaces))
