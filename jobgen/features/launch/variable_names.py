"""Variables with a name that is one slip away from one that a library reads, or with a value that it does not know."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.settings import RULE
from jobgen.features.launch.values import Fault
from jobgen.features.launch.variable_values import ALLOCATORS, VALUES, check_allocator, check_value
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.place import At

_STEM = 4
_KNOWN = frozenset(
    """
    CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING CUDA_VISIBLE_DEVICES
    GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME HF_DATASETS_CACHE HF_DATASETS_OFFLINE HF_ENDPOINT HF_HUB_CACHE HF_HUB_OFFLINE
    KMP_AFFINITY KMP_BLOCKTIME KMP_NUM_THREADS MKL_NUM_THREADS OMP_NUM_THREADS OMP_PROC_BIND OPENBLAS_NUM_THREADS
    NCCL_BUFFSIZE NCCL_CROSS_NIC NCCL_DEBUG NCCL_DEBUG_FILE NCCL_DEBUG_SUBSYS NCCL_IB_DISABLE NCCL_IB_GID_INDEX
    NCCL_IB_HCA NCCL_IB_PCI_RELAXED_ORDERING NCCL_IB_QPS_PER_CONNECTION NCCL_IB_RETRY_CNT NCCL_IB_TIMEOUT
    NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ NCCL_NET_PLUGIN NCCL_NSOCKS_PERTHREAD
    NCCL_NVLS_ENABLE
    NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_SHM_DISABLE NCCL_SOCKET_FAMILY NCCL_SOCKET_IFNAME NCCL_SOCKET_NTHREADS
    NCCL_TOPO_FILE NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF
    TOKENIZERS_PARALLELISM TORCH_CUDA_ARCH_LIST TORCH_DISTRIBUTED_DEBUG TORCH_EXTENSIONS_DIR
    TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_BLOCKING_WAIT TRANSFORMERS_CACHE TRANSFORMERS_OFFLINE
    """.split()
)
_SHORT = frozenset(
    """
    CUDA_HOME CUDA_PATH HF_HOME HF_TOKEN NCCL_ALGO NCCL_IB_SL NCCL_IB_TC NCCL_NET NCCL_PROTO TORCH_HOME
    """.split()
)
"""Names that are too short to be compared."""
# A slip is in the first half of a name or in the second, so that one of its ends is right.
_STARTS = frozenset(name[:_STEM] for name in _KNOWN)
_ENDS = frozenset(name[-_STEM:] for name in _KNOWN)


def check_names(manifest: Manifest) -> Iterator[Fault]:
    """Yield the variables whose names were probably meant as those of a library."""
    for pod in manifest.pods:
        for container in pod.containers:
            yield from _check_container(container)


def _check_container(container: Container) -> Iterator[Fault]:
    for name, entry in container.env:
        if name in VALUES:
            yield from check_value(name, entry)
        elif name in ALLOCATORS:
            yield from check_allocator(name, entry)
        if name in _KNOWN or name in _SHORT or (name[:_STEM] not in _STARTS and name[-_STEM:] not in _ENDS):
            continue
        meant = _find_meant(name)
        # A script may have a variable of its own.
        if meant and container.search_text.count(name) == 1 and meant not in container.search_text:
            message = f"no known library reads `{name}`; did you mean `{meant}`?"
            yield Fault(At(entry, "name"), message, False, rule=RULE)


def _find_meant(name: str) -> str:
    half = len(name) // 2 - 1
    start, end = name[:half], name[-half:]
    near = [each for each in _KNOWN if each[:half] == start or each[-half:] == end] if half >= _STEM - 1 else []
    if not near:
        return ""
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant

    return find_meant(name, near)
