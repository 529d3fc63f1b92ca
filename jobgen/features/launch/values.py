"""Values that launchers and scripts are checked with: programs, pods, known GPUs and models, the world, and faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jobgen.features.launch.shell.values import Word, find_variable
from jobgen.k8s.devices import is_device, is_device_share
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Container
from jobgen.model.data import Location, Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place
from jobgen.repo.shipped import read_data

__all__ = ["Fault", "Pods", "Program", "Word", "World"]


class Program(NamedTuple):
    """One program that a container starts."""

    name: str
    """The base name; that of `python -m X` is X, that of `python X.py` is X.py."""
    words: tuple[Word, ...]
    """Its arguments, without the interpreter and its own name."""
    env: Mapping[str, Word]
    """The environment that it sees, as `find_variable` reads it."""
    files: Callable[[str], str | None]
    """Returns the text of a file at a path in the container; None if it is not known."""
    node: Place = None
    """Where its name was written."""
    is_certain: bool = True
    """False if a condition that is not known decides whether it starts."""
    path: str = ""
    """The program, script or module as it was written."""
    is_module: bool = False
    """True if it is the module of `python -m`."""

    def variable(self, name: str) -> Word | None:
        """Return the value of a variable; None if it is certainly not set."""
        return find_variable(self.env, name)


class Pods(NamedTuple):
    """The pods that run the launcher, or that it starts processes on."""

    container: Container
    """The container whose GPUs the processes use: that of the workers for an MPIJob."""
    count: int | None  # type: ignore[assignment]  # hides the method of tuples, which is not used
    """The number of pods; None if it is not known."""
    gpus: int | None
    """The GPUs of one pod; None if they cannot be counted, as shares and claims that are not in the repository."""
    cpus: float | None = None
    """The CPUs of one pod."""
    kind: str = ""
    """The kind of the job; that of Volcano is `VolcanoJob`."""
    role: str = ""
    elastic: tuple[int, int] | None = None
    """The least and the greatest number of pods of an elastic job."""
    slots: int | None = None
    """The slots of a worker in the hostfile that the operator writes; None without such a hostfile."""
    processes: str = ""
    """The processes per pod that the operator tells the launcher: a number or a word such as `auto`."""
    product: str = ""
    """The GPU product, or instance type, that the pods select; empty if none."""
    counts: tuple[Place, ...] = ()
    """The numbers of pods as they are written, to compare with."""
    ranks: bool = True
    """True if all pods run the same command as one job; False if each may be meant to work alone."""

    @property
    def related(self) -> tuple[tuple[Place, str], ...]:
        """The numbers of pods as they are written, for `Fault.related`."""
        return tuple((node, "") for node in self.counts)


class World(NamedTuple):
    """What the launcher makes of the pods for the script. None: not known."""

    nodes: int | None = None
    processes: int | None = None
    """The processes of each node."""
    size: int | None = None
    asked: int | None = None
    """The nodes that the launcher waits for, if they are known; `nodes` are those that the pods give."""
    is_launched: bool = False
    """True if a launcher starts the processes, also if their number is not known."""


class Fault(NamedTuple):
    """Something that fails, or wastes GPUs, and where."""

    node: Place
    message: str
    is_error: bool = True
    """False for waste and for what only probably fails."""
    fix: tuple[FixStep, ...] = ()
    related: tuple[tuple[Place, str], ...] = ()
    """As in `Violation`: a node without a text is a value that the fault is compared with."""
    rule: str = ""
    """The rule that reports it; empty for the general one."""
    is_info: bool = False
    """True if it is only slow."""
    file: str = ""
    """The path in the container of the file that the fault is in."""
    inside: Location | None = None
    """Where it is in the text of that file, or of `at`."""
    at: Place = None
    """The text that the fault is in, as it is written."""
    locate: Callable[[], Any] | None = None
    """Returns the text of the file with its location, which is in another object."""
    in_spec: tuple[str, str] = ("", "")
    """Words of the message, and what it says instead if the job is rendered from a spec."""
    subject: str = ""
    """The option of the launcher whose value is at fault, where a config file can have it instead."""
    address: str = ""
    """The address at which the pods cannot meet."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other faults of one node."""
        return self.rule, self.message


VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable with the GPUs that processes see."""
# Resources of a GPU that several containers share, or of a part of one.
_PARTS = lazy_pattern(r"nvidia\.com/(?:gpu\.shared|vgpu|mig-.*)|.*/(?:vgpu|sgpu)")


def count_visible(program: Program, pods: Pods) -> int | None:
    """Return the number of GPUs that processes see: CUDA stops at the first identifier that it does not have."""
    value = program.variable(VISIBLE)
    if value is None or pods.gpus is None:
        return pods.gpus
    if value.text is None:
        return None
    return count_listed(value.text, pods.gpus)


def count_listed(text: str, gpus: int) -> int | None:
    """Return how many of the GPUs a list of identifiers shows; None if it has names."""
    seen: set[int] = set()
    for item in text.split(","):
        if not item.strip().isdecimal():
            # Names of devices, or an end such as -1.
            return None if item.strip().lstrip("-")[:1].isalpha() else len(seen)
        number = int(item[:9])
        if number >= gpus or number in seen:
            break
        seen.add(number)
    return len(seen)


def find_absent(text: str, gpus: int) -> str | None:
    """Return the first number of a list of GPUs that a container with so many GPUs does not have."""
    numbers = (item.strip() for item in text.split(","))
    return next((number for number in numbers if number.isdecimal() and int(number[:9]) >= gpus), None)


def count_gpus(container: Container, limits: Mapping[str, Plain]) -> int | None:
    """Return the GPUs of a container; None if they cannot be counted, as shares, or are other devices."""
    if any(_PARTS.match(str(name)) or is_device_share(str(name)) for name in limits):
        return None
    if as_list(as_mapping(container.data.get("resources")).get("claims")):
        claims = container.pod.claims.values()
        if any(each.definition is None or each.definition.uncounted or each.is_shared for each in claims):
            return None
        return container.gpus or None
    manifest = container.pod.manifest
    devices = {
        str(name): value
        for name, value in limits.items()
        if is_device(str(name)) or name == manifest.cluster.gpu_resource
    }
    count = manifest.count_gpus(devices)
    # Other accelerators are counted in other ways.
    return None if devices and not count else count


# Fine-tunes of the same organization have the dimensions of their base.
_VARIANT = lazy_pattern(r"(?<=/)meta-|-(?:instruct|chat|it|hf)(?=-|\Z)")


class Model(NamedTuple):
    """A model: its parameters, at least; its attention heads; the bytes of a parameter in its checkpoint, at least."""

    parameters: int
    heads: int
    bytes: int = 2


def find_model(name: str) -> Model | None:
    """Return a model by the name that it has at Hugging Face; None if it is not known, or can be quantized."""
    found = read_data("launch.yaml")["models"].get(_VARIANT.sub("", name.lower()))
    return Model(found["millions"] * 10**6, found["heads"], found.get("bytes", 2)) if found else None


def _name_product(product: str) -> str:
    known, name = read_data("launch.yaml"), product.lower()
    name = next((family for start, family in known["machines"].items() if name.startswith(start)), name)
    return next((each for each in known["memory"] if f"-{each}-" in f"-{name}-"), "")


def find_memory(product: str) -> int | None:
    """Return the bytes that a GPU of a product or instance type has at most; None if it is not known."""
    found = _name_product(product)
    return int(read_data("launch.yaml")["memory"][found]) * 2**20 if found else None


def is_before_blackwell(product: str) -> bool:
    """Return True if a GPU certainly has a compute capability below 10."""
    found = _name_product(product)
    return bool(found) and found not in read_data("launch.yaml")["blackwell"]
