"""Variables that replace what the device plugin assigned."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.node_agents import is_node_agent
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.finding import pluralize

_VISIBLE, _CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"
# What hides all GPUs, or leaves them to the device plugin.
_HIDDEN = ("", "none", "void")
# Variables of libraries: they number the devices that the container was given.
_NUMBERED = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_READ = frozenset((_VISIBLE, _CAPABILITIES, *_NUMBERED))


@rule("container", WARNING, fields=("env",))
def exposed_devices(container: Container) -> Iterator[Violation]:
    """A variable with which a container uses other GPUs than the device plugin assigned to it, or none.

    `NVIDIA_VISIBLE_DEVICES` is how the device plugin tells the container runtime which GPUs a container gets. A value
    in the pod, such as `all`, replaces it: the container uses GPUs of other pods. `CUDA_VISIBLE_DEVICES` numbers the
    GPUs of the container from 0; a number that it does not have hides the GPU. `NVIDIA_DRIVER_CAPABILITIES` without
    `compute` leaves out the libraries of CUDA.

    Remove the variable.
    """
    if not any(name in _READ for name, _ in container.env):
        return
    # mpi-operator hides the GPUs of a launcher, which `overwritten-env` reports.
    is_launcher = container.pod.role is not None and container.pod.role.name == "launcher"
    if container.pod.manifest.runs_on_every_node or is_launcher or is_node_agent(container.pod):
        return
    for name, entry in container.env:
        text = as_text(entry.get("value")).strip()
        if name == _VISIBLE and text.lower() not in _HIDDEN and "$" not in text:
            if container.gpus or not any(container.pod.devices.values()):
                effect = "uses GPUs of other pods" if text.lower() == "all" else "ignores which GPUs are free"
                message = f"`{name}: {text}` replaces what the device plugin assigns, so the container {effect}"
                yield Violation(entry["value"], f"{message}; remove it")
        elif name in _NUMBERED and container.gpus:
            yield from _check_numbers(container, name, entry.get("value"))
        elif name == _CAPABILITIES and container.gpus and text and not {"all", "compute"} & set(text.split(",")):
            message = f"`{name}: {text}` leaves out the libraries of CUDA, so the container cannot use its GPUs"
            yield Violation(entry["value"], f"{message}; add `compute`, or remove it")


def _check_numbers(container: Container, name: str, node: Node) -> Iterator[Violation]:
    numbers = [number.strip() for number in as_text(node).split(",")]
    if not all(number.isdecimal() and len(number) < 5 for number in numbers):
        return
    beyond = [number for number in numbers if int(number) >= container.gpus]
    if beyond:
        gpus = pluralize(container.gpus, "GPU")
        message = f"`{name}` has `{beyond[0]}`, but the container has only {gpus}, numbered from 0"
        yield Violation(node, f"{message}, so it and the ones after it are not used; remove the variable")
