"""Variables of a container that do not fit its devices, its network or its pods."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.features.launch.report import list_settings
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def launch_variables(manifest: Manifest) -> Iterator[Violation]:
    """A variable of CUDA, NCCL, Gloo, OpenMP or MXNet that does not fit the devices, the network or the pods.

    The device plugin numbers the GPUs of a container from 0, so `CUDA_VISIBLE_DEVICES` can only hide some of them.
    `NCCL_SOCKET_IFNAME=lo` keeps pods from reaching each other. `NCCL_IB_DISABLE=1` beside RDMA devices holds them for
    nothing. `GLOO_SOCKET_IFNAME` takes one name, unlike NCCL's variable. `NCCL_IB_HCA` without RDMA devices, and more
    OpenMP threads than CPUs, are only slow, and reported as info.

    Remove the variable, or follow the message.
    """
    return list_settings(manifest)
