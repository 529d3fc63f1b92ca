"""Find the containers that launch something, without importing what reads their commands: most jobs have none."""

from __future__ import annotations

from functools import lru_cache

from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern

CHECKED_WORDS = ("NCCL_SOCKET", "NCCL_IB", "GLOO_SOCKET", "CUDA_VISIBLE", "DMLC_NUM", "OMP_NUM")
"""How the names of variables that are checked begin."""
NAMED_WORDS = (
    *("CUDA_", "HF_", "NCCL_", "NVIDIA_", "OMP_", "TORCH_", "TRANSFORMERS_"),
    *("TF_CPP", "WANDB_MODE", "_IB_", "_P2P_", "_NUM_THREADS", "_SOCKET_IFNAME", "_VISIBLE_DEVICES"),
)
"""Parts of the names of variables that libraries read; a misspelled one has another part that is right."""
CHECKED = lazy_pattern(rf"(?m)^(?:{'|'.join(CHECKED_WORDS)})")
"""A variable that is checked, in the text of a container."""
# Names of launchers, of servers and of options that scripts are known by.
_SIGNS = lazy_pattern(
    r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|mpiexec|orterun|prterun|horovodrun|paddle|fleetrun|"
    r"vllm|sglang|text-generation-|--trainer\.|\bray\b|jax|entrypoint|\s-m\s+\S*(?:/|\.py(?:\s|\Z))"
)
# What a script can be known by, or what can change the numbers of torchrun.
_UNUSUAL = lazy_pattern(
    r"\$|PET_|CUDA_VISIBLE|parallel|deepspeed|output|trainer|pretrain|titan|config|model|run_|fsdp|batch_size"
)
# A module, a list, or words in quotation marks.
_SEVERAL = lazy_pattern(r"['\"\[\n]|\s-m\s")
# Options of torchrun, which can stand behind the script.
_OPTIONS = lazy_pattern(r"--(?:nnodes|nproc|rdzv|master|standalone|node)")
# Fields of a job around the number of processes in a pod, and the field with that number.
_FIELDS = frozenset(("elasticPolicy", "torchrunConfig", "trainer"))
_PROCESSES = "nprocPerNode"
# Volumes with files that the repository may have.
_FILES = frozenset(("configMap", "projected", "secret"))


@lru_cache(maxsize=2)
def has_launch(manifest: Manifest) -> bool:
    """Return True if a job can have faults of a launch."""
    if not manifest.pods:
        return False
    if manifest.group == "ray.io":
        return not _is_plain_entrypoint(manifest)
    if manifest.kind_name in ("DeepSpeedJob", "MPIJob") or not _FIELDS.isdisjoint(manifest.spec):
        return True
    trainers = find_trainers(manifest)
    if not trainers:
        return _PROCESSES in manifest.spec
    return not all(_is_usual(*each) for each in trainers)


def _is_plain_entrypoint(manifest: Manifest) -> bool:
    """Return True if Ray runs a script of which nothing is known: no name, no option, no file of the repository."""
    entrypoint = as_text(manifest.spec.get("entrypoint"))
    if (
        not entrypoint.strip()
        or _SIGNS.search(entrypoint)
        or _UNUSUAL.search(entrypoint)
        or _SEVERAL.search(entrypoint)
    ):
        return False
    mounted = [volume for pod in manifest.pods for volume in pod.volumes if not _FILES.isdisjoint(volume)]
    return not mounted


def _is_usual(pod: Pod, container: Container) -> bool:
    """Return True if a container of a PyTorchJob starts `torchrun train.py` with a process for each of its GPUs.

    The operator passes all other numbers on, and `nprocPerNode` if no option says otherwise.
    """
    manifest, words = pod.manifest, container.words
    if manifest.kind_name != "PyTorchJob" or container.init or not words or words[0] != "torchrun":
        return False
    has_master = manifest.find_role("master") is not None
    if not has_master and (manifest.pod_count > 1 or _PROCESSES in manifest.spec):
        return False
    numbers = ("auto", str(container.gpus or "auto"))
    name, _, count = words[1].partition("=") if len(words) > 1 else ("", "", "")
    is_number = name in ("--nproc-per-node", "--nproc_per_node") and count in numbers
    if not is_number and _PROCESSES in manifest.spec and as_text(manifest.spec[_PROCESSES]) not in numbers:
        return False
    script = words[2 if is_number else 1 :]
    is_file = bool(script) and script[0].endswith(".py") and " " not in script[0]
    is_plain = is_file and not _UNUSUAL.search(container.search_text)
    if not is_plain or _runs_file(_list_files(pod), container):
        return False
    return len(script) == 1 or not _OPTIONS.search(" ".join(script))


def find_trainers(manifest: Manifest) -> list[tuple[Pod, Container]]:
    """Return the containers whose command has a sign of a launcher, or is a script in a ConfigMap."""
    if manifest.group == "ray.io" and as_text(manifest.spec.get("entrypoint")):
        # Ray runs it on the head.
        heads = [pod for pod in manifest.pods if pod.role is not None and pod.role.name == "head"]
        return [(pod, pod.main_container) for pod in heads if pod.main_container is not None]
    found: list[tuple[Pod, Container]] = []
    for pod in manifest.pods:
        mains = pod.containers if manifest.kind is None else [pod.main_container]
        containers = (*mains, *pod.init_containers) if pod.init_containers else mains
        files = _list_files(pod)
        for container in containers:
            if container is not None and (_SIGNS.search(container.search_text) or _runs_file(files, container)):
                found.append((pod, container))
    return found


def _list_files(pod: Pod) -> list[dict[str, Plain]]:
    return [volume for volume in pod.volumes if "configMap" in volume or "projected" in volume]


def _runs_file(volumes: list[dict[str, Plain]], container: Container) -> bool:
    """Return True if a container mounts one of some volumes and names a file in it in its command or a variable."""
    if not volumes:
        return False
    names = {as_text(volume.get("name")) for volume in volumes}
    mounts = [mount for mount in container.volume_mounts if as_text(mount.get("name")) in names]
    paths = [as_text(mount.get("mountPath")) for mount in mounts]
    return any(path in container.search_text for path in paths if path)
