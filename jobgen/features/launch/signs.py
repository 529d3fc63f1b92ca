"""Find the containers that launch something, without importing what reads their commands: most jobs have none."""

from __future__ import annotations

from functools import lru_cache

from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.lazy_re import lazy_pattern

CHECKED = lazy_pattern(r"(?m)^(?:NCCL_SOCKET|NCCL_IB|GLOO_SOCKET|CUDA_VISIBLE|DMLC_NUM|OMP_NUM)")
"""Variables that are checked."""
# Names of launchers, of servers and of options that scripts are known by.
_SIGNS = lazy_pattern(
    r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|mpiexec|orterun|prterun|horovodrun|paddle|fleetrun|"
    r"vllm|sglang|--trainer\.|\bray\b|jax|entrypoint"
)
# What a script can be known by, or what can change the numbers of torchrun.
_UNUSUAL = lazy_pattern(
    r"\$|PET_|CUDA_VISIBLE|parallel|deepspeed|output|trainer|pretrain|titan|config|model|run_|fsdp|batch_size"
)
# Fields of a job with, or around, the number of processes in a pod.
_FIELDS = ("nprocPerNode", "elasticPolicy", "torchrunConfig", "trainer")


@lru_cache(maxsize=2)
def has_launch(manifest: Manifest) -> bool:
    """Return True if a job can have faults of a launch."""
    has_field = any(field in manifest.spec for field in _FIELDS)
    if not manifest.pods:
        return False
    return (
        has_field
        or manifest.kind_name == "MPIJob"
        or manifest.group == "ray.io"
        or any(not _is_usual(*each) for each in find_trainers(manifest))
    )


def _is_usual(pod: Pod, container: Container) -> bool:
    """Return True if a container of a PyTorchJob starts `torchrun train.py`, and leaves all numbers to the operator."""
    manifest, words = pod.manifest, container.command_line
    if manifest.kind_name != "PyTorchJob" or not words or as_text(words[0]) != "torchrun":
        return False
    if manifest.find_role("master") is None and manifest.pod_count > 1:
        return False
    name, _, count = as_text(words[1]).partition("=") if len(words) > 1 else ("", "", "")
    is_number = name in ("--nproc-per-node", "--nproc_per_node") and count in ("auto", str(container.gpus or "auto"))
    script = words[2 if is_number else 1 :][:1]
    return bool(script) and as_text(script[0]).endswith(".py") and not _UNUSUAL.search(container.search_text)


def find_trainers(manifest: Manifest) -> list[tuple[Pod, Container]]:
    """Return the containers whose command has a sign of a launcher, or is a script in a ConfigMap."""
    if manifest.group == "ray.io" and as_text(manifest.spec.get("entrypoint")):
        # Ray runs it on the head.
        heads = [pod for pod in manifest.pods if pod.role is not None and pod.role.name == "head"]
        return [(pod, pod.main_container) for pod in heads if pod.main_container is not None]
    found: list[tuple[Pod, Container]] = []
    for pod in manifest.pods:
        containers = pod.containers if manifest.kind is None else [pod.main_container]
        found += [
            (pod, container)
            for container in containers
            if container is not None and (_SIGNS.search(container.search_text) or _runs_file(pod, container))
        ]
    return found


def _runs_file(pod: Pod, container: Container) -> bool:
    """Return True if a container mounts a ConfigMap and names a file in it in its command."""
    names = {as_text(each.get("name")) for each in pod.volumes if "configMap" in each or "projected" in each}
    mounts = [as_mapping(each) for each in as_list(container.data.get("volumeMounts"))] if names else []
    paths = [as_text(each.get("mountPath")) for each in mounts if as_text(each.get("name")) in names]
    return any(path in as_text(word) for path in paths if path for word in container.command_line)
