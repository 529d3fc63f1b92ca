"""Shared memory for PyTorch."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Role
from jobgen.model.data import TracedScalar, value_of


@rule("role", WARNING, kinds=("PyTorchJob", "PyTorchTrainingJob"))
def missing_shm(role: Role) -> Iterator[Violation]:
    """A PyTorch pod with several GPUs and nothing mounted at `/dev/shm`.

    A container has 64 MiB of shared memory by default. The workers of a `DataLoader` and NCCL within a node pass their
    data through it and fail with `Bus error` when it is full.

    Mount an `emptyDir` with `medium: Memory` at `/dev/shm`; in a job spec, set `shm`.
    """
    main = role.pod.main_container
    if (
        main is None
        or main.gpus < 2
        or role.pod.partial
        or not role.count
        or value_of(role.pod.spec.get("hostIPC")) is True
    ):
        return
    if not _mounts_shm(main):
        node = main.device_node
        start = f"{main.gpus} GPUs share the default 64 MiB of `/dev/shm`"
        is_spec = _is_of_spec(role)
        remedy = "set `shm`, such as `shm: 8Gi`" if is_spec else "mount an `emptyDir` with `medium: Memory`"
        yield Violation(node, f"{start}; {remedy}")


def _is_of_spec(role: Role) -> bool:
    """True if the object is rendered from a job spec, which has `shm`: its kind comes from the kind description."""
    kind = role.manifest.object["kind"]
    return isinstance(kind, TracedScalar) and kind.layer.startswith("kind ")


def _mounts_shm(container: Container) -> bool:
    for mount in as_list(container.data.get("volumeMounts")):
        if as_text(as_mapping(mount).get("mountPath")).rstrip("/") in ("/dev/shm", "/dev"):  # noqa: S108
            return True
    return False
