"""The `deepspeed` launcher: hosts, slots and filters. Source: DeepSpeed 0.19, launcher/runner.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.launch import torchrun
from jobgen.features.launch.hostfiles import DEEPSPEED, check_entries
from jobgen.features.launch.mpi import GPUS_RULE, Hosts, compare_slots, read_hostfile
from jobgen.features.launch.options import Options, make_syntax, read_options
from jobgen.features.launch.torchrun import JOINED, Torchrun
from jobgen.features.launch.values import Fault, Pods, Program, Word, World
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import find_at

NAMES = frozenset(("deepspeed", "deepspeed.launcher.runner", "ds"))
SYNTAX = make_syntax("deepspeed", stops=True)
_LAUNCHERS = frozenset(("pdsh", "openmpi", "mpich", "impi", "mvapich", "slurm"))
_DEFAULT = "/job/hostfile"
_MOST_SLOTS = 1 << 31


class _Resources(NamedTuple):
    """The slots of the hosts that deepspeed uses: of those whose names are known, and of the others."""

    named: Mapping[str, Sequence[int]]
    others: int = 0
    slots_of_other: Sequence[int] = ()

    @property
    def total(self) -> int:
        """The number of hosts."""
        return len(self.named) + self.others

    @property
    def sizes(self) -> set[int]:
        """The numbers of slots that hosts have."""
        sizes = {len(slots) for slots in self.named.values()}
        return sizes | {len(self.slots_of_other)} if self.others else sizes

    @property
    def processes(self) -> int:
        """The number of processes of all hosts."""
        return sum(map(len, self.named.values())) + self.others * len(self.slots_of_other)


def check_slots(manifest: Manifest) -> Iterator[Fault]:
    """Compare the slots of a DeepSpeedJob with the GPUs of its workers."""
    place = find_at(manifest.spec, "config", "slotsPerWorker")
    count = as_integer(place.node) if place is not None else None
    worker = manifest.find_role("worker")
    main = worker.pod.main_container if worker and count is not None else None
    if main is not None and main.pod.gpus and main.pod.gpus != count:
        message = f"`slotsPerWorker` is {count}, but a worker has {pluralize(main.pod.gpus, 'GPU')}"
        related = ((main.device_place, "the GPUs of a worker"), (main.device_place, ""))
        yield Fault(place, f"{message}; set it to {main.pod.gpus}", False, (), related, GPUS_RULE)


def judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    """Return what fails, the world of the script, and the script."""
    options = read_options(program.words, SYNTAX)
    if options.unknown is not None or not options.is_certain or "autotuning" in options.values:
        return [], World(), ()
    scripts = torchrun.list_scripts(Torchrun(program, options, None, None, None))
    if any(
        word.text is None
        for name, word in options.values.items()
        if name not in ("master_addr", "master_port", "node_rank")
    ):
        return [], World(), scripts
    for name in ("num_nodes", "num_gpus"):
        word = options.values.get(name)
        if word is not None and word.number is None:
            error = f"argument --{name}: invalid int value: '{word.text}'"
            message = (
                f"`{word.text}` is not a number for `--{name}`" if word.text else f"`--{name}` gets an empty value"
            )
            return [Fault(word.node, f"{message} (deepspeed: `{error}`); write an integer")], World(), ()
    if (fault := check_entries(program, options.values.get("hostfile"), pods, DEEPSPEED)) is not None:
        return [fault], World(), ()
    pool, is_local = _find_pool(program, options, pods)
    if pool is None:
        return list(_check_filters(options)), World(), scripts
    faults = list(_check_pool(program, options, pods, pool, is_local=is_local))
    if faults:
        return faults, World(), scripts
    active = _select(pool, options, program, is_local=is_local)
    if active is None or isinstance(active, Fault):
        return [active] if active else [], World(), scripts
    faults = list(_check_active(program, options, pods, active, is_local=is_local))
    sizes = active.sizes
    processes = sizes.pop() if len(sizes) == 1 else None
    return faults, World(active.total, processes, active.processes), scripts


def _find_pool(program: Program, options: Options, pods: Pods) -> tuple[Hosts | None, bool]:
    """Return the hosts, and whether they are only this pod; None if they or their slots are not known."""
    given = options.values.get("hostfile")
    path = given.text if given else _DEFAULT
    hosts = read_hostfile(program, path, pods)
    if hosts is not None:
        return (None if hosts.slots is None else hosts), False
    is_other = pods.kind not in (*JOINED, *torchrun.TRAINING)
    if (given is not None and (is_other or _may_be_written(path, pods))) or _may_have_file(pods):
        return None, False
    # A launcher of an MPIJob has no GPUs of its own.
    manifest = pods.container.pod.manifest
    launcher = manifest.find_role("launcher") if pods.kind == "MPIJob" else None
    gpus = launcher.pod.gpus if launcher else pods.gpus
    return (None if gpus is None else Hosts({"localhost": gpus})), True


def _may_be_written(path: str | None, pods: Pods) -> bool:
    """Return True if a volume, a script or the image of the pod can have a hostfile."""
    mounts = (as_text(as_mapping(each).get("mountPath")) for each in as_list(pods.container.data.get("volumeMounts")))
    is_mounted = path is None or any(path.startswith(mount) for mount in mounts if mount)
    return is_mounted or pods.container.words[:1] != ("deepspeed",) or path != _DEFAULT


def _may_have_file(pods: Pods) -> bool:
    mounts = (as_text(as_mapping(each).get("mountPath")) for each in as_list(pods.container.data.get("volumeMounts")))
    return any(_DEFAULT.startswith(path.rstrip("/") or "-") for path in mounts)


def _check_filters(options: Options) -> Iterator[Fault]:
    include, exclude = options.values.get("include"), options.values.get("exclude")
    numbers = [
        options.values[name]
        for name in ("num_nodes", "num_gpus")
        if (options.number(name) or -1) >= 0 and name in options.values
    ]
    chosen = include or exclude
    if numbers and chosen:
        error = "Cannot specify num_nodes/gpus with include/exclude"
        yield Fault(numbers[0].node, f"numbers and filters cannot be combined (deepspeed: `{error}`); remove one")
    elif include and exclude:
        error = "include_str and exclude_str are mutually exclusive."
        yield Fault(exclude.node, f"`--include` and `--exclude` cannot be combined (deepspeed: `{error}`); remove one")


def _check_pool(program: Program, options: Options, pods: Pods, pool: Hosts, *, is_local: bool) -> Iterator[Fault]:
    faults = list(_check_filters(options))
    yield from faults
    if faults:
        return
    nodes = options.values.get("num_nodes")
    if is_local and pool.slots == 0 and pods.gpus:
        error = "Unable to proceed, no GPU resources available"
        yield Fault(
            program.node,
            f"deepspeed has no hostfile, and this pod has no GPU (deepspeed: `{error}`); write `--hostfile`",
        )
    elif is_local and nodes is not None and (nodes.number or 0) > 1:
        error = "Num nodes is >1 but no extra nodes available via hostfile"
        yield Fault(
            nodes.node,
            f"`--num_nodes {nodes.text}` needs a hostfile (deepspeed: `{error}`); start the script with `torchrun`",
        )


def _select(pool: Hosts, options: Options, program: Program, *, is_local: bool) -> _Resources | Fault | None:
    """Return what the options choose; None if that is not known."""
    named = {host: _count_up(slots or 0) for host, slots in pool.named.items()}
    resources = _Resources(named, pool.others, _count_up(pool.slots_of_other or 0))
    include, exclude = options.values.get("include"), options.values.get("exclude")
    visible = program.variable("CUDA_VISIBLE_DEVICES") if is_local else None
    if (
        visible is not None
        and visible.text
        and not (include or exclude or options.values.keys() & {"num_nodes", "num_gpus"})
    ):
        include = Word(f"localhost:{visible.text}", visible.node if visible.node is not None else program.node)
    chosen = include or exclude
    if chosen is not None and chosen.text:
        selected = _filter(resources, chosen, keeps=include is not None)
        if selected is None or isinstance(selected, Fault):
            return selected
        resources = selected
    nodes, gpus = options.number("num_nodes") or -1, options.number("num_gpus") or -1
    if nodes > 0:
        first = {host: resources.named[host] for host in list(resources.named)[:nodes]}
        resources = _Resources(first, min(resources.others, nodes - len(first)), resources.slots_of_other)
    if gpus > 0:
        slots = _count_up(gpus)
        resources = _Resources(dict.fromkeys(resources.named, slots), resources.others, slots)
    return resources


def _count_up(count: int) -> range:
    """The numbers below a count, which takes no memory."""
    return range(min(count, _MOST_SLOTS))


def _filter(resources: _Resources, chosen: Word, *, keeps: bool) -> _Resources | Fault | None:
    named = resources.named
    wanted: dict[str, list[int]] = {}
    for item in str(chosen.text).split("@"):
        host, _, listed = item.partition(":")
        slots = [Word(each, None).number for each in listed.split(",")] if listed else []
        if host not in named and resources.others:
            return None
        if host not in named:
            return Fault(
                chosen.node,
                f"`{host}` is not a host (deepspeed: `Hostname '{host}' not found in hostfile`); use one of the hosts",
            )
        for slot in slots:
            if slot not in named[host]:
                error = f"No slot '{slot}' specified on host '{host}'"
                return Fault(
                    chosen.node,
                    f"`{host}` has {pluralize(len(named[host]), 'slot')} (deepspeed: `{error}`); use slots from 0",
                )
        wanted[host] = wanted.get(host, []) + [slot for slot in slots if slot is not None]
    if keeps:
        return _Resources({host: wanted[host] or slots for host, slots in named.items() if host in wanted})
    left = {host: _leave(slots, wanted.get(host)) for host, slots in named.items()}
    return resources._replace(named={host: slots for host, slots in left.items() if slots})


def _leave(slots: Sequence[int], excluded: Sequence[int] | None) -> Sequence[int]:
    """The slots of a host that are left; without numbers, all of them are excluded."""
    if excluded is None:
        return slots
    return range(len(slots) - len({slot for slot in excluded if slot in slots})) if excluded else ()


def _check_active(
    program: Program, options: Options, pods: Pods, active: _Resources, *, is_local: bool
) -> Iterator[Fault]:
    name = options.values.get("launcher")
    if (
        name is not None
        and active.total > 1
        and str(name.text).lower() not in _LAUNCHERS
        and "no_ssh" not in options.values
    ):
        known = ", ".join(f"`{each}`" for each in sorted(_LAUNCHERS))
        yield Fault(
            name.node,
            f"`{name.text}` is not a launcher (deepspeed: `Unknown launcher {name.text}`); use one of {known}",
        )
        return
    if is_local and pods.count is not None and pods.count > 1:
        is_meant = any(each in pods.container.search_text for each in ("MASTER_ADDR", "WORLD_SIZE"))
        if pods.kind in JOINED or pods.kind in torchrun.TRAINING or pods.kind == "MPIJob" or is_meant:
            message = f"`deepspeed` has no hostfile, so each of the {pods.count} pods trains on its own"
            advice = "start the script with `torchrun`, which finds the other pods"
            advice += " of a PyTorchJob (`framework: pytorch`)" if pods.kind in torchrun.TRAINING else ""
            yield Fault(program.node, f"{message}; {advice}", False, (), pods.related, "launcher-on-one-pod")
            return
    gpus = options.values.get("num_gpus") or options.values.get("include") or options.values.get("exclude")
    per_host = max(active.sizes, default=0)
    if not per_host:
        # Processes without GPUs are counted by the CPUs of the node.
        return
    yield from _compare(
        Word(str(per_host), gpus.node if gpus else program.node), program, pods, has_option=gpus is not None
    )
    if not is_local and pods.count is not None and active.total < pods.count:
        chosen = options.values.get("num_nodes") or gpus
        message = (
            f"deepspeed uses {pluralize(active.total, 'worker')}, and the job has {pods.count}: the others are idle"
        )
        yield Fault(chosen.node if chosen else program.node, f"{message}; use all of them", False, (), pods.related)


def _compare(value: Word, program: Program, pods: Pods, *, has_option: bool) -> Iterator[Fault]:
    if has_option or pods.slots is None:
        yield from torchrun.compare_processes(value, program._replace(env={}) if has_option else program, pods)
    elif pods.gpus and pods.slots != pods.gpus:
        yield from compare_slots(pods)
