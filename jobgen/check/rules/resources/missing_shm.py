"""Shared memory for PyTorch."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.data import TracedScalar, value_of
from jobgen.model.lazy_re import lazy_pattern

_KINDS = frozenset(("PyTorchJob", "PyTorchTrainingJob"))
# In objects of other kinds, the command says that PyTorch starts processes that share the GPUs of the pod.
_LAUNCHERS = lazy_pattern(
    r"(?:\A|[\s/;&|(])(?:torchrun|accelerate\s+launch|deepspeed)\s|\btorch\.distributed\.(?:run|launch)\b"
)


@rule("pod", WARNING, fields=("containers",))
def missing_shm(pod: Pod) -> Iterator[Violation]:
    """A PyTorch pod with several GPUs and nothing mounted at `/dev/shm`.

    A container has 64 MiB of shared memory by default. The workers of a `DataLoader` and NCCL within a node pass their
    data through it and fail with `Bus error` when it is full. A pod is one of PyTorch if it belongs to a PyTorchJob, or
    if its command is `torchrun`, `accelerate launch` or `deepspeed`.

    Mount an `emptyDir` with `medium: Memory` at `/dev/shm`; in a job spec, set `shm`.
    """
    main = pod.main_container
    is_started = pod.role is None or pod.role.count
    if main is None or main.gpus < 2 or pod.partial or not is_started or value_of(pod.spec.get("hostIPC")) is True:
        return
    if _runs_torch(main) and not _mounts_shm(main):
        start = f"{main.gpus} GPUs share the default 64 MiB of `/dev/shm`"
        is_spec = _is_of_spec(pod.manifest)
        remedy = "set `shm`, such as `shm: 8Gi`" if is_spec else "mount an `emptyDir` with `medium: Memory`"
        yield Violation(main.device_node, f"{start}; {remedy}")


def _runs_torch(main: Container) -> bool:
    manifest = main.pod.manifest
    if manifest.kind is not None and manifest.kind.name in _KINDS:
        return True
    # KubeRay mounts shared memory in its pods.
    command = " ".join(map(as_text, main.command_line))
    return manifest.group != "ray.io" and _LAUNCHERS.search(f"{command} ") is not None


def _is_of_spec(manifest: Manifest) -> bool:
    """True if the object is rendered from a job spec, which has `shm`: its kind comes from the kind description."""
    kind = manifest.object["kind"]
    return isinstance(kind, TracedScalar) and kind.layer.startswith("kind ")


def _mounts_shm(container: Container) -> bool:
    for mount in as_list(container.data.get("volumeMounts")):
        if as_text(as_mapping(mount).get("mountPath")).rstrip("/") in ("/dev/shm", "/dev"):  # noqa: S108
            return True
    return False
