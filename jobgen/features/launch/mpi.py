"""`mpirun`, `mpiexec` and `horovodrun`: processes against the slots of the hosts, and against the GPUs.

Source: Open MPI 5.0 (run with the operator's hostfile), MPICH 5.0, horovod 0.28, runner/launch.py and util/hosts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.launch.hostfiles import HOROVOD, OPERATOR_FILE, check_entries
from jobgen.features.launch.options import Options, make_syntax, read_options
from jobgen.features.launch.read_job import start_words
from jobgen.features.launch.values import Fault, Pods, Program, Word, World
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place, find_at, is_same

_SLOTS = lazy_pattern(r"(\S+?)(?:\s+slots\s*=\s*(\d{1,6})|:(\d{1,6}))?(?:\s.*)?\Z")


class Hosts(NamedTuple):
    """The hosts that processes run on: those whose names are known, and the number of the others."""

    named: Mapping[str, int | None]
    """The slots of the hosts, None for those without a number."""
    others: int = 0
    slots_of_other: int | None = None

    @property
    def total(self) -> int:
        """The number of hosts."""
        return len(self.named) + self.others

    @property
    def slots(self) -> int | None:
        """The slots of all hosts; None if those of some are not known."""
        slots = (*self.named.values(), *((self.slots_of_other,) if self.others else ()))
        if None in slots:
            return None
        return sum(map(int, self.named.values())) + self.others * (self.slots_of_other or 0)  # type: ignore[arg-type]


def read_hostfile(program: Program, path: str | None, pods: Pods) -> Hosts | None:
    """Return the hosts of a hostfile; None if it is not known."""
    text = program.files(path) if path else None
    if text is None:
        return None
    hosts: dict[str, int | None] = {}
    for line in (each.partition("#")[0].strip() for each in text.splitlines()):
        found = _SLOTS.match(line) if line else None
        if line and found is None:
            return None
        if found:
            number = found[2] or found[3]
            hosts[found[1]] = int(number) if number else None
    # The text of the operator's hostfile has the first of many hosts only.
    missing = max((pods.count or 0) - len(hosts), 0) if path == OPERATOR_FILE else 0
    return Hosts(hosts, missing, pods.slots)


def read_list(word: Word) -> Hosts | None:
    """Return the hosts of a list such as `a:8,b:8`; None if it is not known."""
    if word.text is None:
        return None
    hosts: dict[str, int | None] = {}
    for item in word.text.split(","):
        name, _, slots = item.partition(":")
        number = Word(slots, None).number if slots else None
        known = hosts.get(name)
        hosts[name] = number if known is None or number is None else known + number
    return Hosts(hosts)


def has_host(hosts: Mapping[str, int | None], name: str) -> bool:
    """Return True if a name, or the same name with a domain, is one of the hosts."""
    short = name.partition(".")[0]
    return any(each == name or each.partition(".")[0] == short for each in hosts)


NAMES = frozenset(
    (
        "mpirun",
        "mpiexec",
        "mpirun.openmpi",
        "mpiexec.openmpi",
        "mpiexec.hydra",
        "mpirun_rsh",
        "orterun",
        "prterun",
        "horovodrun",
    )
)
SYNTAX = make_syntax("mpi", has_abbreviations=False, stops=True, has_single=True)
_PER_NODE = lazy_pattern(
    r"ppr:(\d{1,6}):(?:node|host)",
)
_OTHER_MAPPING = lazy_pattern(
    r"ppr:\d+:(?!node|host)|dist|seq|rankfile",
)
_SHORT_SLIPS = {"pn": "np", "mac": "mca", "cma": "mca", "hots": "host", "hsot": "host", "ohst": "host"}
"""Misspellings of names that are too short to be compared."""
_OF_OTHERS = frozenset(("envall", "envnone", "env_all", "env_none"))
"""Options that some release has, beside known ones that are alike."""
# What only Open MPI has.
_OPEN_MPI = frozenset(("allow_run_as_root", "mca", "omca", "prtemca"))
_HIDING = (".sh", "torchrun", "torch.distributed", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun")
_BARE_WORKER = lazy_pattern(r"worker-\d{1,4}\Z")
_OWN_NAMES = frozenset(("dnsConfig", "hostAliases"))
"""The fields of a pod with which it can know other names of hosts."""
# Variables with the hosts of a launch.
_HOSTS = lazy_pattern(r"(?i)host_?(?:file|list|s\Z)|\AHOROVOD_HOST")
SLOTS_RULE, GPUS_RULE = "mpi-slots-mismatch", "slots-gpu-mismatch"
# Programs that start processes of their own.
_STARTS_OTHERS = lazy_pattern(r"torchrun|torch\.distributed|accelerate|deepspeed|.*\.sh\Z|bash|sh\Z|python\Z")

_PROGRAM = lazy_pattern(r"(?:\S*/)?(?:python[\d.]*|bash|sh|torchrun)\Z")
# What is the name of no program, also with a value; other names in capitals may be one.
_VARIABLE = lazy_pattern(
    r"(?:(?:CUDA|GLOO|HF|HOROVOD|LD|MASTER|NCCL|NVIDIA|OMP|OMPI|PYTHON|TF|TORCH|UCX)_[A-Z\d_]+|PATH|PYTHONPATH)\Z|"
    r"[A-Za-z_]\w*="
)
_CAPITALS = lazy_pattern(r"[A-Z][A-Z\d]*_[A-Z\d_]+\Z")
_ALLOWED = lazy_pattern(r"allow[-_]run[-_]as[-_]root")
_ALLOWING = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
_WITHOUT_ROOT = frozenset(("horovodrun", "mpiexec.hydra", "mpirun_rsh", "prterun"))
"""Programs of others, and those that allow it by themselves or have variables of their own."""
_OTHERS = lazy_pattern(r"(?i)intel|mpich|oneapi|mvapich|spectrum|cray")
_OF_HYDRA = frozenset("env envlist envall envnone f genv genvall genvlist genvnone iface launcher ppn rmk".split())


class _Launch(NamedTuple):
    """A call of mpirun: its parts, and the hosts that they run on."""

    parts: tuple[Options, ...]
    hosts: Hosts | None
    """The hosts; None if they are not known."""
    oversubscribes: bool

    @property
    def slots(self) -> int | None:
        """The slots of all hosts."""
        return self.hosts.slots if self.hosts else None

    def value(self, name: str) -> Word | None:
        """Return the first value of an option in any part."""
        return next((part.values[name] for part in self.parts if name in part.values), None)


def judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    """Return what fails, the world of the script, and the script."""
    faults, world, scripts = _judge(program, pods)
    return [*faults, *_check_root(program, pods), *_check_implementation(program, pods)], world, scripts


def _judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    parts = tuple(read_options(words, SYNTAX) for words in _split(program.words))
    first = parts[0]
    if (fault := _check_number(parts) or _check_variable(program, parts, pods)) is not None:
        return [fault], World(), ()
    if any(part.unknown is not None or not part.is_certain for part in parts):
        return [*_check_unknown(program, first)], World(), ()
    scripts = start_words(program, first.rest) if len(parts) == 1 else ()
    is_horovod = program.name == "horovodrun"
    if (
        is_horovod
        and "np" not in first.values
        and not first.values.keys() & {"min_np", "max_np", "host_discovery_script"}
    ):
        error = "the following arguments are required: -np/--num-proc"
        return (
            [Fault(program.node, f"`-np` is missing (horovodrun: `{error}`); write the number of GPUs of all workers")],
            World(),
            (),
        )
    if first.values.keys() & {"min_np", "max_np", "host_discovery_script", "app", "rankfile"}:
        return [], World(), scripts
    file = first.values.get("hostfile")
    if is_horovod and (fault := _check_host_format(first) or check_entries(program, file, pods, HOROVOD)):
        return [fault], World(), scripts
    if alone := tuple(_check_alone(program, first, pods)):
        return [*alone], World(), ()
    launch = _Launch(parts, _find_hosts(program, first, pods), _oversubscribes(program, parts))
    faults, count = _check_hosts(program, launch, pods), None
    if not faults:
        faults, count = _check_slots(program, launch, pods)
    hosts = launch.hosts.total if launch.hosts and launch.hosts.total else None
    each = count // hosts if count and hosts and count % hosts == 0 else None
    if not faults and count is not None:
        faults = list(_check_gpus(program, launch, pods, count, scripts))
    if scripts and _starts_others(scripts):
        return faults, World(), ()
    return faults, World(hosts, each, count), scripts


def _check_alone(program: Program, options: Options, pods: Pods) -> Iterator[Fault]:
    """Report a launch without hosts where the operator writes no hostfile."""
    is_told = options.values.keys() & {"host", "hostfile"} or any(_HOSTS.search(name) for name in program.env)
    if not is_told and "*" not in program.env:
        # Imported late: most jobs of MPI have an operator that writes a hostfile.
        from jobgen.features.launch.torchrun import check_other_operator

        yield from check_other_operator(program, pods, "mpi", "MPIJob")


def _check_number(parts: Sequence[Options]) -> Fault | None:
    """Return what is wrong with `-np` if no number follows it."""
    for part in parts:
        word = part.values.get("np")
        if word is None and part.lacking is not None and SYNTAX.find((part.lacking.text or "").lstrip("-")) == "np":
            word, found = part.lacking, "another option follows it"
        elif word is None or word.text is None or "$" in word.text or word.text.strip().isdecimal():
            continue
        else:
            found = f"`{word.text}` follows it"
        return Fault(word.node, f"`-np` takes a number, but {found}; write the number of processes behind it")
    return None


def _check_unknown(program: Program, options: Options) -> Iterator[Fault]:
    """Yield an option that is one slip away from a known one; releases of mpirun have options of their own."""
    word = options.unknown
    text = (word.text or "").partition("=")[0] if word is not None and options.is_certain else ""
    name = text.lstrip("-").replace("-", "_")
    is_start = program.name == "horovodrun" and any(each.startswith(name) for each in SYNTAX.counts)
    if word is None or not name or name in _OF_OTHERS or is_start:
        return
    # Imported late: most options are known.
    from jobgen.model.meant import find_meant

    meant = _SHORT_SLIPS.get(name) or find_meant(name, [*SYNTAX.counts, *SYNTAX.aliases])
    if meant:
        dashes = text[: len(text) - len(text.lstrip("-"))]
        message = f"`{text}` is not an option of `{program.name}`"
        yield Fault(word.node, f"{message}; did you mean `{dashes}{meant.replace('_', '-')}`?", False)


def _check_variable(program: Program, parts: Sequence[Options], pods: Pods) -> Fault | None:
    """Return a variable that mpirun takes for the program, or a program that `-x` takes for a variable."""
    if any(part.unknown is not None or not part.is_certain for part in parts):
        return None
    for part in parts:
        passed = next((word for word in part.lists.get("x", ()) if _PROGRAM.match(word.text or "")), None)
        if passed is not None:
            message = f"`-x` takes the name of a variable, and gets the program `{passed.text}`"
            return Fault(passed.node, f"{message}; remove `-x`, or write the name behind it", False)
        text, after = ((*(word.text or "" for word in part.rest[:2]), "", ""))[:2]
        is_name = after and (_VARIABLE.match(text) or (_CAPITALS.match(text) and _PROGRAM.match(after)))
        # MVAPICH takes variables there, and Horovod gives the command to a shell, which sets them.
        if not is_name or program.name == "mpirun_rsh" or (program.name == "horovodrun" and "=" in text):
            continue
        message = f"`{_name(program)}` takes `{text}` for the program to start"
        is_open = "x" in part.values or _uses_open_mpi(program, pods)
        if program.name == "horovodrun":
            advice = "remove it, because all variables are passed on"
        elif not is_open and _is_other(program, pods):
            advice = "write the variable as `-genv NAME VALUE`"
        else:
            advice = "write `-x` before it"
        return Fault(part.rest[0].node, f"{message}; {advice}", is_open)
    return None


def _check_root(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report mpirun of Open MPI that runs as root, which it refuses without an option or two variables."""
    is_told = any(word.text is None or _ALLOWED.search(word.text) for word in program.words)
    is_set = all(program.variable(name) is not None for name in _ALLOWING)
    if is_told or is_set or program.name in _WITHOUT_ROOT or _is_other(program, pods):
        return
    containers = (each for pod in pods.container.pod.manifest.pods for each in pod.containers)
    own = next(
        (each for each in containers if any(is_same(place, program.node) for place in each.command_places)), None
    )
    holders = (own.data, own.pod.spec) if own else ()
    users = (find_at(holder, "securityContext", "runAsUser") for holder in holders)
    user = next((each for each in users if each is not None and each.node is not None), None)
    if user is None or user.node != 0 or type(user.node) is not int:
        return
    message = f"`{program.path}` of Open MPI refuses to run as root, which `runAsUser: 0` asks for"
    error = "mpirun has detected an attempt to run as root"
    advice = "write `--allow-run-as-root` behind it, or set another user"
    yield Fault(program.node, f"{message} (`{error}`); {advice}", False, (), ((user, "the user"),))


def _check_implementation(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report options of Open MPI in a job whose operator prepares another implementation."""
    place = find_at(pods.container.pod.manifest.spec, "mpiImplementation")
    written = as_text(place.node) if place is not None else ""
    if pods.kind != "MPIJob" or written not in ("Intel", "MPICH") or program.name in _WITHOUT_ROOT:
        return
    names = [(word, (word.text or "").lstrip("-").partition("=")[0].replace("-", "_")) for word in program.words]
    own = next((word for word, name in names if name in _OPEN_MPI and (word.text or "").startswith("-")), None)
    if own is None or any(name in ("H", "host", "hostfile", "machinefile") for _, name in names):
        return
    message = f"`{own.text}` is an option of Open MPI, which does not find the workers with this `mpiImplementation`"
    related = ((place, "decides how the hostfile is passed on"),)
    advice = f"write `mpiImplementation: OpenMPI`, or remove the option for {written}"
    yield Fault(own.node, f"{message}; {advice}", False, (), related)


def _is_other(program: Program, pods: Pods) -> bool:
    """Return True if the processes are probably started with another implementation than Open MPI."""
    written = as_text(pods.container.pod.manifest.spec.get("mpiImplementation"))
    is_named = any(_OTHERS.search(each.image) for pod in pods.container.pod.manifest.pods for each in pod.containers)
    # The operator sets those of all implementations.
    own = [name for name, word in program.env.items() if word.node is not None]
    is_hydra = program.name == "mpiexec.hydra" or any(name.startswith(("I_MPI_", "MV2_")) for name in own)
    options = {(word.text or "").lstrip("-").partition("=")[0] for word in program.words}
    return written in ("Intel", "MPICH") or is_named or is_hydra or not _OF_HYDRA.isdisjoint(options)


def _starts_others(scripts: Sequence[Program]) -> bool:
    return any(_STARTS_OTHERS.match(script.name) for script in scripts)


def _split(words: Sequence[Word]) -> list[list[Word]]:
    """Split the parts of a launch of several programs, which `:` separates."""
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.text == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _find_hosts(program: Program, options: Options, pods: Pods) -> Hosts | None:
    listed, file = options.values.get("host"), options.values.get("hostfile")
    if listed is not None:
        return read_list(listed)
    if file is not None:
        return read_hostfile(program, file.text, pods)
    if program.name == "horovodrun":
        count = options.number("np")
        return None if count is None else Hosts({"localhost": count})
    return read_hostfile(program, OPERATOR_FILE, pods) if pods.kind == "MPIJob" else None


def _oversubscribes(program: Program, parts: Sequence[Options]) -> bool:
    """Return True if more processes than slots are allowed, or if that is not known."""
    for part in parts:
        texts = [word.text for name in ("map_by", "mca", "omca", "prtemca") for word in part.lists.get(name, ())]
        if "oversubscribe" in part.values or any(text is None or "oversubscribe" in text.lower() for text in texts):
            return True
    names = [name.lower() for name in program.env]
    return any("oversubscribe" in name or name.startswith("prte_mca_rmaps") for name in names)


def _check_host_format(options: Options) -> Fault | None:
    listed = options.values.get("host")
    if listed is None or listed.text is None:
        return None
    wrong = next(
        (item for item in listed.text.split(",") if not item.rpartition(":")[2].isdecimal() or ":" not in item), None
    )
    if wrong is None:
        return None
    error = "Invalid host input, please make sure it has format as : worker-0:2,worker-1:2."
    return Fault(
        listed.node, f"`{wrong}` has no number of slots (horovodrun: `{error}`); write `{wrong.partition(':')[0]}:1`"
    )


def _check_hosts(program: Program, launch: _Launch, pods: Pods) -> list[Fault]:
    """Find hosts that are no workers of the job."""
    values = launch.parts[0].values
    listed, file = values.get("host"), values.get("hostfile")
    own = read_hostfile(program, OPERATOR_FILE, pods) if pods.kind == "MPIJob" else None
    given = listed or file
    if own and given and launch.hosts and (fault := _check_short(given, launch.hosts, own, pods)):
        return [fault]
    if listed is None or not own or not own.total or own.others or launch.hosts is None:
        return []
    prefix = f"{pods.container.pod.manifest.name}-worker-"
    # Other names can be aliases, or addresses.
    wrong = next(
        (name for name in launch.hosts.named if name.startswith(prefix) and not has_host(own.named, name)), None
    )
    if wrong is None:
        return []
    message = f"`{wrong}` is not a worker: the job has {pluralize(pods.count or 0, 'worker')}, from 0"
    return [Fault(listed.node, f"{message}; use only these", True, (), pods.related)]


def _check_short(given: Word, hosts: Hosts, own: Hosts, pods: Pods) -> Fault | None:
    """Return that a worker has only a part of its name in the operator's hostfile, which the launcher cannot find."""
    manifest = pods.container.pod.manifest
    domain = next(iter(own.named), "").partition(".")[2]
    if not manifest.namespace:
        domain = domain.replace(".default.svc", ".<namespace>.svc")
    short = next((name for name in hosts.named if _find_worker(name, manifest.name, domain)), None)
    # The pods can have other names for each other.
    if short is None or any(not _OWN_NAMES.isdisjoint(pod.spec) for pod in manifest.pods):
        return None
    name = _find_worker(short, manifest.name, domain)
    message = f"`{short}` is not a host name of a worker, so mpirun cannot reach it; write `{name}`"
    return Fault(given.node, f"{message}, or remove the option: the operator writes a hostfile", False)


def _find_worker(name: str, job: str, domain: str) -> str:
    """Return the name in the hostfile of a worker that is named without its job or its domain; empty for others."""
    if _BARE_WORKER.match(name):
        name = f"{job}-{name}"
    elif not domain or not _BARE_WORKER.match(name.removeprefix(f"{job}-")):
        return ""
    return f"{name}.{domain}" if domain else name


def _check_slots(program: Program, launch: _Launch, pods: Pods) -> tuple[list[Fault], int | None]:
    """Compare the processes with the slots; return the number of processes, too."""
    slots = launch.slots
    counts = [part.values.get("np") for part in launch.parts]
    if any(word is not None and word.number is None for word in counts) or (len(counts) > 1 and None in counts):
        return [], None
    per_node = _find_per_node(launch)
    if per_node is not None and per_node.number is None:
        return [], None
    wanted = sum(word.number or 0 for word in counts if word is not None) if any(counts) else None
    node = next((word.node for word in reversed(counts) if word is not None), program.node)
    if per_node is not None and launch.hosts is not None:
        most = (per_node.number or 0) * launch.hosts.total
        if wanted is not None and wanted > most and not launch.oversubscribes:
            hosts = pluralize(launch.hosts.total, "host")
            message = f"`{wanted}` processes, but {per_node.number} on each of {hosts} are {most}"
            return [_refuse(program, node, f"{message}, so mpirun fails; use {most}", pods)], None
        wanted, node = (most, per_node.node) if wanted is None else (wanted, node)
    if slots is None:
        return [], None
    if wanted is None:
        return [], slots
    if not launch.hosts or not launch.hosts.total:
        # mpi-operator rejects a job without workers; `invalid-replica-count` reports that.
        if wanted > 1 and not pods.count and _is_first(pods):
            effect = "but the job has no workers, so all of them run in the launcher; set `replicas` of the workers"
            return [Fault(node, f"`{wanted}` processes, {effect}", False, rule=SLOTS_RULE)], None
        return [], None
    others = as_text(pods.container.pod.manifest.spec.get("mpiImplementation")) in ("Intel", "MPICH")
    if wanted > slots and not launch.oversubscribes and not others:
        message = _describe(wanted, slots, launch, f"so {_name(program)} fails", program, pods)
        return [_refuse(program, node, message, pods)], None
    return [], wanted


def _is_first(pods: Pods) -> bool:
    """Return True if the job is one of training-operator."""
    kind = pods.container.pod.manifest.kind
    return kind is not None and kind.api_version == "kubeflow.org/v1"


def _find_per_node(launch: _Launch) -> Word | None:
    given = launch.value("npernode")
    if given is not None:
        return given
    if launch.value("pernode"):
        return Word("1", launch.value("pernode").node)  # type: ignore[union-attr]
    for part in launch.parts:
        for word in part.lists.get("map_by", ()):
            if word.text is None or _OTHER_MAPPING.match(word.text):
                return Word(None, word.node)
            if found := _PER_NODE.match(word.text):
                return Word(found[1], word.node)
    return None


def _name(program: Program) -> str:
    return "horovodrun" if program.name == "horovodrun" else "mpirun"


def _describe(wanted: int, slots: int, launch: _Launch, effect: str, program: Program, pods: Pods) -> str:
    hosts, gpus = pluralize(launch.hosts.total if launch.hosts else 0, "host"), pods.gpus or 0
    is_own = "host" in launch.parts[0].values or "hostfile" in launch.parts[0].values
    advice = "remove the option, and mpirun starts one process on each slot"
    if program.name == "horovodrun":
        advice = f"use {slots}"
    elif not is_own and pods.slots is not None and pods.count and slots == pods.slots * pods.count < gpus * pods.count:
        # The slots are too few for the GPUs, too: one change repairs both.
        is_all = wanted == gpus * pods.count
        advice = f"set `slotsPerWorker` to {gpus}"
        advice += "" if is_all else " and remove the option: mpirun then starts one process on each GPU"
    return f"`{wanted}` processes for {pluralize(slots, 'slot')} ({hosts}), {effect}; {advice}"


def _refuse(program: Program, node: object, message: str, pods: Pods) -> Fault:
    """Report too many processes: Open MPI and Horovod refuse them, others put several on a slot."""
    is_error = program.name == "horovodrun" or _uses_open_mpi(program, pods)
    error = (
        "Requested more processes than there are available slots"
        if program.name == "horovodrun"
        else "There are not enough slots available in the system"
    )
    what, _, advice = message.rpartition("; ")
    return Fault(node, f"{what} (`{error}`); {advice}", is_error, (), pods.related, SLOTS_RULE)  # type: ignore[arg-type]


def _uses_open_mpi(program: Program, pods: Pods) -> bool:
    """Return True if the processes are certainly started with Open MPI."""
    manifest = pods.container.pod.manifest
    if program.name in ("mpiexec.hydra", "mpirun_rsh") or any(
        name.startswith("I_MPI_") for name, word in program.env.items() if word.node is not None
    ):
        return False
    options = read_options(_split(program.words)[0], SYNTAX)
    if program.name.endswith((".openmpi", "erun")) or _OPEN_MPI & options.values.keys():
        return True
    is_second = manifest.kind is not None and manifest.kind.api_version == "kubeflow.org/v2beta1"
    return is_second and as_text(manifest.spec.get("mpiImplementation")) in ("", "OpenMPI")


def _check_gpus(
    program: Program, launch: _Launch, pods: Pods, count: int, scripts: Sequence[Program]
) -> Iterator[Fault]:
    """Compare the processes with the GPUs of the workers."""
    if not pods.count or launch.oversubscribes or _starts_others(scripts) or pods.slots is None:
        return
    # Devices that are no whole GPUs are taken to be one for each slot.
    gpus = pods.slots if pods.gpus is None and pods.container.devices else pods.gpus
    if not gpus:
        return
    total, slots = gpus * pods.count, pods.slots
    word = launch.value("np") or _find_per_node(launch) or launch.value("host")
    if count < total and (word is not None and count != slots * pods.count):
        workers = pluralize(pods.count, "worker")
        message = f"`{count}` processes for {pluralize(total, 'GPU')} of {workers}, so some GPUs stay idle"
        yield Fault(word.node, f"{message}; use {total}", False, (), pods.related, SLOTS_RULE)
    elif (count < total or min(count, slots) > gpus) and slots != gpus:
        yield from compare_slots(pods)


def check_unseen(manifest: Manifest) -> Iterator[Fault]:
    """Compare the slots of a worker with its GPUs, if the command of the launcher shows no call of `mpirun`."""
    worker, launcher = manifest.find_role("worker"), manifest.find_role("launcher")
    main = worker.pod.main_container if worker else None
    if manifest.kind_name != "MPIJob" or manifest.group == "batch.tensorstack.dev" or main is None or not launcher:
        return
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    slots = 1 if written is None else written
    # A script, or another launcher, can start the processes of a worker itself.
    words = [as_text(word) for each in launcher.pod.containers for word in each.command_line]
    gpus = main.pod.gpus
    is_hidden = slots < gpus and any(sign in word for word in words for sign in _HIDING)
    if gpus and gpus != slots and not is_hidden:
        yield from compare_slots(Pods(main, None, gpus, slots=slots))


def compare_slots(pods: Pods) -> Iterator[Fault]:
    """Compare the slots of a worker with its GPUs."""
    manifest, slots = pods.container.pod.manifest, pods.slots
    written = find_at(manifest.spec, "slotsPerWorker")
    written = written if written is not None and written.node is not None else None
    worker = manifest.find_role("worker")
    devices: Place = pods.container.device_place
    if devices is None and worker:
        devices = worker.place
    subject = f"`slotsPerWorker` is {slots}" if written is not None else "`slotsPerWorker` is not set, so it is 1"
    related = () if written is None else ((devices, "the GPUs of a worker"), (devices, ""))
    message = f"{subject}, but a worker has {pluralize(pods.gpus or 0, 'GPU')}; set it to {pods.gpus}"
    yield Fault(devices if written is None else written, message, False, (), related, GPUS_RULE)
