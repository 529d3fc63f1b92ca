"""CPUs, memory and shared memory that are missing or do not suffice."""

from collections.abc import Iterator
from functools import partial

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod, Role
from jobgen.k8s.shell.commands import parse_command
from jobgen.model.data import Plain, TracedScalar
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence, Words

_QUEUE = "kueue.x-k8s.io/queue-name"
_GPU_LAUNCHERS = frozenset(("torchrun", "accelerate", "deepspeed", "horovodrun"))
_IMPORTING = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Those that import PyTorch themselves."""
_TRAINING = (*_GPU_LAUNCHERS, "train", "torch.distributed.")


@rule("job", INFO)
def missing_resources(manifest: Manifest) -> Iterator[Violation]:
    """A container that trains without requests or limits, where no LimitRange sets them.

    The scheduler assumes that the pod needs nothing, and can place it on a node that is full. When memory runs short,
    the pod is evicted first. A ResourceQuota for cpu or memory refuses it. A command trains if it starts `torchrun`,
    another launcher, or a file such as `train.py`.

    Add `resources` with cpu and memory.

    When to turn it off: if another admission plugin of the cluster fills in requests, the info is noise there; set
    it to `off` for the environment.
    """
    # The rule missing-requests reports jobs in a queue.
    if _QUEUE in manifest.labels:
        return
    roles = [role for role in manifest.roles if _asks_for_nothing(role)]
    if not roles or _may_have_defaults(manifest):
        return
    names = " and ".join(role.title for role in roles)
    verb, subject = ("requests", "it is") if len(roles) == 1 else ("request", "they are")
    message = Sentence("{} {} no resources, so {} evicted first when memory runs short", names, verb, subject)
    main = roles[0].pod.main_container
    image = find_at(main.data, "image") if main else None
    yield Violation(image or roles[0].place, Sentence("{}; add cpu and memory requests", message))


def _asks_for_nothing(role: Role) -> bool:
    """Return True if the main container of a role, whose command trains, asks for nothing, and neither does its pod."""
    pod, main = role.pod, role.pod.main_container
    # A launcher only waits for the others.
    if main is None or role.name == "launcher" or pod.partial or not role.count:
        return False
    if main.resources or as_mapping(pod.spec.get("resources")) or not has_any(main.search_text, _TRAINING):
        return False
    return any(_trains(argument.text) for argument in parse_command(main.command_line))


def _trains(word: str) -> bool:
    """Return True if a word of a command is a program that trains."""
    name = word.rpartition("/")[2]
    is_script = name.endswith(".py") and "train" in name
    return name in _GPU_LAUNCHERS or is_script or word.startswith("torch.distributed.")


def _may_have_defaults(manifest: Manifest) -> bool:
    """Return True if a LimitRange sets what is missing, or may do so: one of the two does not say its namespace."""
    namespaces = manifest.read_catalog().defaulted_namespaces
    return bool(namespaces) and (not manifest.namespace or bool({"", manifest.namespace} & namespaces))


@rule("job", WARNING, fields=("labels",))
def missing_requests(manifest: Manifest) -> Iterator[Violation]:
    """A job in a Kueue queue with pods that request nothing.

    Kueue counts the requests of the pods, which are zero here. The job is admitted however full the queue is, and its
    pods take room on nodes that is assigned to others.

    Write `resources: {cpu: 8, memory: 32Gi}` with the amounts that the pods use.

    When to turn it off: in a queue that only limits GPUs, pods without CPU and memory are the agreed form: then
    turn it off for this queue's jobs by their `paths`.
    """
    if _QUEUE not in manifest.labels:
        return
    roles = [role.title for role in manifest.roles if _requests_nothing(role)]
    if roles:
        subject = f"{' and '.join(roles)} request{'s' * (len(roles) == 1)}"
        message = Sentence("{} no resources, so the queue counts none; add cpu and memory requests", subject)
        yield Violation(At(manifest.labels, _QUEUE), message)


def _requests_nothing(role: Role) -> bool:
    pod = role.pod
    # A launcher only waits for the others.
    if pod.partial or not pod.containers or not role.count or role.name == "launcher":
        return False
    asked = as_mapping(pod.spec.get("resources"))
    return not asked and not any(container.limits or container.requests for container in pod.containers)


@rule("manifest", INFO)
def missing_memory(manifest: Manifest) -> Iterator[Violation]:
    """A container with GPUs that requests no memory.

    The scheduler can place it on a node without enough memory. When memory runs short, such pods are evicted or killed
    first and lose everything since the last checkpoint.

    Add a memory request.

    When to turn it off: where a LimitRange of the cluster sets a default that is not among the files, export it, or
    set the rule to `off` for that environment.
    """
    for role, container in _list_containers(manifest):
        pod, named = container.pod, (*container.limits, *container.requests)
        if "memory" in named or pod.partial or not container.devices or as_mapping(pod.spec.get("resources")):
            continue
        # A name without a domain that resembles memory has a finding of its own.
        if not any("mem" in key for key in named if "/" not in key):
            name = role.title if role else f"`{container.name}`"
            wanted = "GPUs" if container.gpus else "accelerators"
            message = Sentence("{} has {} but requests no memory, so it is evicted first", name, wanted)
            yield Violation(container.device_place, Sentence("{}; add a memory request", message))
            return


def _list_containers(manifest: Manifest) -> list[tuple[Role | None, Container]]:
    """Return the containers that compute: that of each role, or all of a kind without roles."""
    if manifest.kind is None:
        return [(None, container) for pod in manifest.pods for container in pod.containers]
    return [(role, main) for role in manifest.roles if (main := role.pod.main_container)]


_MEBIBYTE = 1024 * 1024 * 1000  # in thousandths
_GIBIBYTE = 1024 * _MEBIBYTE
_TORCH_MEMORY = 256 * _MEBIBYTE
"""What a process has taken once it has imported PyTorch, at least."""


@rule("container", ERROR, fields=("resources",))
def memory_too_small(container: Container) -> Iterator[Violation]:
    """Too little memory: a missing unit, `m`, which means thousandths, or less than 1 GiB for several GPUs.

    `512m` is half a byte, and `64` is 64 bytes. With a limit below one mebibyte, the container is killed before its
    program starts; such a request is useless to the scheduler, which is a warning.

    Less than one gibibyte for several GPUs is a warning: the libraries of CUDA alone need more, so the container is
    probably killed with `OOMKilled` when it starts to train. So is less than 256 MiB for a program that trains on a
    GPU, or for a launcher such as `torchrun`, which imports PyTorch. As a request without a limit it is an info.

    The same is true of `ephemeral-storage`: the kubelet evicts a pod whose files and logs are larger than its limit.

    Write `512Mi` or `64Gi`.

    When to turn it off: a value in bytes that is meant is at least a MiB for every real program. For tests of the
    OOM handling itself, suppress it on the line.
    """
    yield from _check_units(container, "ephemeral-storage")
    if (without_unit := next(_check_units(container, "memory"), None)) is not None:
        yield without_unit
        return
    limit, request = container.limits.get("memory"), container.requests.get("memory")
    sizes = to_milli(limit), to_milli(request)
    # The request counts if there is no limit.
    holder, size = (container.requests, sizes[1]) if limit is None else (container.limits, sizes[0])
    if size is not None and 0 < size < _GIBIBYTE and (user := _find_user(container, size)):
        effect = "so the scheduler reserves too little" if limit is None else "so the container is probably killed"
        message = Sentence("`{}` is too little memory for {}, {}", holder["memory"], user, effect)
        severity, devices = INFO if limit is None else WARNING, ((container.device_place, ""),)
        digits = str(holder["memory"]).rstrip("kKmMiIbB")
        meant = f"{digits}Gi" if digits.isdigit() and len(digits) < len("1000") else "64Gi"
        yield Violation(
            At(holder, "memory"), Sentence("{}; write gibibytes, such as `{}`", message, meant), devices, severity
        )


def _check_units(container: Container, name: str) -> Iterator[Violation]:
    """Yield the first amount of memory or storage that is so small that its unit must be missing or wrong."""
    for holder, severity in ((container.limits, ERROR), (container.requests, WARNING)):
        if name in holder and _lacks_unit(holder[name], _OF_RESOURCE[name]):
            is_several = name == "memory" and container.gpus > 1
            yield _judge_unit(At(holder, name), severity, _SHARED if is_several else _OF_RESOURCE[name])
            return


class _Amount(NamedTuple):
    """What an amount is of, and how much of it is usual."""

    of: str = "memory"
    for_gpus: bool = False


_SHARED = _Amount(for_gpus=True)
_DISK = _Amount("local storage")
_OF_RESOURCE = {"memory": _Amount(), "ephemeral-storage": _DISK}


def _lacks_unit(node: Plain, amount: _Amount) -> bool:
    """Return True for less than a mebibyte; a disk can have few kilobytes that are meant, if they have their unit."""
    size = to_milli(node)
    if size is None or not 0 < size < _MEBIBYTE:
        return False
    return amount is not _DISK or str(node).endswith((*"0123456789", "m"))


def _judge_unit(place: At, severity: Severity, amount: _Amount) -> Violation:
    written = str(place.node)
    meant = _suggest(written, amount)
    # Docker means mebibytes by `m`, which are too little for several GPUs.
    is_open = written.endswith("m") and amount.for_gpus
    fix_steps = () if is_open else (FixStep("set", place, meant),)
    finish = partial(_name_as_written, amount)
    message = _explain_amount(written, meant, amount)
    return Violation(place, message, severity=severity, fix_steps=fix_steps, safe=False, finish=finish)


def _find_user(container: Container, size: int) -> str:
    """Return what needs more than an amount of memory below a gibibyte; empty if nothing certainly does."""
    if container.gpus > 1:
        return f"{container.gpus} GPUs"
    if size >= _TORCH_MEMORY:
        return ""
    names = [argument.text.rpartition("/")[2] for argument in parse_command(container.command_line)]
    if any(name in _IMPORTING for name in names):
        return "a launcher that imports PyTorch"
    return "a program that trains on a GPU" if container.gpus and any(map(_trains, names)) else ""


@rule("pod", WARNING, fields=("volumes",), words=("sizeLimit",))
def shm_too_small(pod: Pod) -> Iterator[Violation]:
    """A volume with `medium: Memory` of less than one mebibyte: a missing unit, or `m`, which means thousandths.

    `16` is 16 bytes. What writes to `/dev/shm`, such as the workers of a `DataLoader` and NCCL, fails with `Bus error`,
    or the pod is evicted because its volume is larger than its limit. So is a pod with such a `sizeLimit` on the disk.

    Write `16Gi`.

    When to turn it off: no program needs less than a mebibyte of shared memory. Delete the volume where shared
    memory is not used, rather than suppress the finding.
    """
    for volume in pod.volumes:
        source = as_mapping(volume.get("emptyDir"))
        amount = _OF_RESOURCE["memory"] if as_text(source.get("medium")) == "Memory" else _DISK
        if "sizeLimit" in source and _lacks_unit(source["sizeLimit"], amount):
            yield _judge_unit(At(source, "sizeLimit"), WARNING, amount)


def _name_as_written(amount: _Amount, problem: Problem, _: bool) -> Problem:
    """Return a problem of a number with the number as its file has it."""
    written = problem.node.written if type(problem.node) is TracedScalar else ""
    if not written:
        return problem
    meant = _suggest(written, amount)
    steps = tuple(step._replace(value=meant) for step in problem.fix_steps)
    return problem._replace(sentence=_explain_amount(written, meant, amount), fix_steps=steps)


def _explain_amount(written: str, meant: str, amount: _Amount) -> str:
    if written.endswith("m"):
        reason = "`m` means thousandths of a byte"
    elif written[-1].isdigit():
        reason = "without a unit it means bytes"
    else:
        reason = "no program fits into less than a mebibyte"
    return f"`{written}` is too little {amount.of}: {reason}; write `{meant}`"


def _suggest(written: str, amount: _Amount) -> str:
    """Return the quantity that was probably meant; less than a gibibyte is none for several GPUs."""
    digits = written.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if amount is _DISK:
        is_small = written.endswith("m") or len(digits) > len("999")
    else:
        is_small = (written.endswith("m") or len(digits) > 2) and not (amount.for_gpus and len(digits) < 4)
    return f"{digits}{'Mi' if is_small else 'Gi'}"


_KINDS = frozenset(("PyTorchJob", "PyTorchTrainingJob"))
# In objects of other kinds, the command says that PyTorch starts processes that share the GPUs of the pod.
_SHM_USERS = lazy_pattern(
    r"(?s)(?:\A|[\s/;&|(])(?:torchrun|accelerate\s+launch|deepspeed)\s|\btorch\.distributed\.(?:run|launch)\b"
    # A server that divides a model among GPUs passes it through NCCL.
    r"|\b(?:vllm|sglang|tritonserver)\b.*?\s--?(?:tensor[-_]parallel[-_]size|tp(?:[-_]size)?)(?:=|\s+)(?:[2-9]|1[0-9]|\$)"
    r"|\b(?:text-generation-(?:launcher|inference))\b|\bmpirun\b.*?\btritonserver\b",
)


@rule("pod", WARNING, fields=("containers",))
def missing_shm(pod: Pod) -> Iterator[Violation]:
    """A PyTorch pod with several GPUs and nothing mounted at `/dev/shm`.

    A container has 64 MiB of shared memory by default. The workers of a `DataLoader` and NCCL within a node pass their
    data through it and fail with `Bus error` when it is full. A pod is one of PyTorch if it belongs to a PyTorchJob, or
    if its command is `torchrun`, `accelerate launch` or `deepspeed`, or a server that divides a model among GPUs: vLLM,
    SGLang or text-generation-inference with tensor parallelism, or Triton with several ranks.

    Mount an `emptyDir` with `medium: Memory` at `/dev/shm`; in a job spec, set `shm`.

    When to turn it off: with `num_workers=0` and one process for each GPU without NCCL over shared memory, 64 MiB
    are enough; suppress it at the container with this reason.
    """
    main = pod.main_container
    is_started = pod.role is None or pod.role.count
    if main is None or main.gpus < 2 or pod.partial or not is_started or pod.spec.get("hostIPC") is True:
        return
    if _runs_torch(main) and not _mounts_shm(main):
        start = Sentence("{} GPUs share the default 64 MiB of `/dev/shm`", main.gpus)
        remedy = "mount an `emptyDir` with `medium: Memory`"
        yield Violation(
            main.device_place, Sentence("{}; {}", start, remedy), finish=partial(_name_field_of_spec, start)
        )


def _name_field_of_spec(start: Words, problem: Problem, is_spec: bool) -> Problem:
    """Return a problem with the field that a job spec has for shared memory."""
    return problem._replace(sentence=Sentence("{}; set `shm`, such as `shm: 8Gi`", start)) if is_spec else problem


def _runs_torch(main: Container) -> bool:
    manifest = main.pod.manifest
    if manifest.kind is not None and manifest.kind.name in _KINDS:
        return True
    # KubeRay mounts shared memory in its pods.
    command = " ".join((main.image, *main.words))
    return manifest.group != "ray.io" and _SHM_USERS.search(f"{command} ") is not None


def _mounts_shm(container: Container) -> bool:
    paths = [as_text(mount.get("mountPath")).rstrip("/") for mount in container.volume_mounts]
    return "/dev/shm" in paths or "/dev" in paths  # noqa: S108


@rule("pod", WARNING, fields=("volumes",), words=("emptyDir",))
def shm_over_memory(pod: Pod) -> Iterator[Violation]:
    """A volume with `medium: Memory` whose `sizeLimit` exceeds the memory limit of a container that mounts it.

    Files in the volume count as memory of the container that wrote them. If they grow, the container is killed
    (`OOMKilled`) before the volume is full.

    Raise the memory limit, or reduce the size of the volume.

    When to turn it off: a size that is only an upper bound for all sizes of pods, with files that stay small, can
    be accepted on `sizeLimit`.
    """
    for volume in pod.volumes:
        if "emptyDir" not in volume or as_text(get_path(volume, "emptyDir", "medium")) != "Memory":
            continue
        node = get_path(volume, "emptyDir", "sizeLimit")
        size = to_milli(node) if node is not None else None
        for container in pod.containers if size else ():
            limit = container.limits.get("memory")
            memory = to_milli(limit) if limit is not None else None
            # `memory-too-small` reports a limit without a unit.
            if size and memory and size > memory >= _MEBIBYTE and _mounts(container, as_text(volume.get("name"))):
                yield Violation(
                    At(volume["emptyDir"], "sizeLimit"),
                    _explain_shm(container, node, limit),
                    ((At(container.limits, "memory"), "the memory limit"), (At(container.limits, "memory"), "")),
                )


def _explain_shm(container: Container, size: Plain, limit: Plain) -> str:
    exceeded = f"the memory limit of container `{container.name}`, `{limit}`"
    return f"a memory volume of `{size}` exceeds {exceeded}; raise the limit or reduce the size"


def _mounts(container: Container, name: str) -> bool:
    return any(as_text(mount.get("name")) == name for mount in container.volume_mounts)


# More than machines for training have; the smallest of the usual numbers of millicores above it is 500.
_MOST_CORES = 448


@rule("container", WARNING, fields=("resources",))
def cpu_too_large(container: Container) -> Iterator[Violation]:
    """A number of CPUs that hardly any node has, such as `500`.

    `500` is five hundred cores, and `500m` is half a core. Hardly any machine has that many, so
    the pod probably stays `Pending`.

    Add the unit `m` for millicores.

    When to turn it off: on machines with several hundred cores, set the rule to `off` for the environment of that
    cluster, since the number can be right there.
    """
    reported: set[int] = set()
    for amounts in (container.limits, container.requests):
        node = amounts.get("cpu")
        milli = to_milli(node)
        if milli is None or milli <= _MOST_CORES * 1000 or milli in reported:
            continue
        reported.add(milli)
        cores = milli // 1000
        message = Sentence("`cpu` is `{}` cores, more than most nodes have; write `{}m` for millicores", cores, cores)
        fix_steps = (FixStep("set", At(amounts, "cpu"), f"{cores}m"),) if str(node) == str(cores) else ()
        yield Violation(At(amounts, "cpu"), message, fix_steps=fix_steps, safe=False)
