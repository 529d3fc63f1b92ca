"""torchrun, `torch.distributed.run` and `torch.distributed.launch`: nodes, processes and where they meet.

Every option has a variable `PET_<NAME>`, which counts if the option is not given. Source: torch 2.13,
torch/distributed/run.py and argparse_util.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.features.launch.completions import find_waves
from jobgen.features.launch.options import Options, check_unknown, make_syntax, read_options
from jobgen.features.launch.read_job import start_words, to_program
from jobgen.features.launch.shell.values import Call, runs_program
from jobgen.features.launch.values import VISIBLE, Fault, Pods, Program, Word, World, count_visible, find_absent
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.k8s.operators import is_operator_since
from jobgen.model.finding import FixStep, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at, is_same, node_at
from jobgen.model.quantity import parse_digits

_OTHER = "torchrun-hpu"  # can have options of its own
NAMES = frozenset(("torchrun", "torch.distributed.run", "torch.distributed.launch", _OTHER))
SYNTAX = make_syntax("torchrun", stops=True)
_WORDS = frozenset(("auto", "gpu", "cpu", "xpu"))
_LOCAL = frozenset(("localhost", "127.0.0.1", "::1", "[::1]"))
# Kinds whose operator makes one job of all pods; the pods of others can be meant to work alone.
JOINED = frozenset(("PyTorchJob", "PyTorchTrainingJob", "TrainJob"))
TRAINING = frozenset(("TFJob", "MXJob", "XGBoostJob", "PaddleJob", "JAXJob"))
"""Kinds whose pods train together, and whose operators know other frameworks."""
_NO_HOST = "The hostname of the rendezvous endpoint must be a dot-separated list of labels"
# Pods of training-operator.
# The end of a generated name, `<random>`, is not known.
_POD = lazy_pattern(r"([^<]+)-(master|worker)-(\d{1,6})(?:\.|\Z)")
# Options with a rank, and the variables with the number of a pod.
_RANK = lazy_pattern(r"--(?:node|machine)[-_]rank\b")
_INDEXES = {
    **dict.fromkeys(("PyTorchJob", "TrainJob"), "$(PET_NODE_RANK)"),
    **dict.fromkeys(("Job", "JobSet"), "$(JOB_COMPLETION_INDEX)"),
    "LeaderWorkerSet": "$(LWS_WORKER_INDEX)",
}
_NUMBERS = frozenset(("master_port", "max_restarts", "node_rank"))
_ALL_NUMBERS = _NUMBERS | {"nnodes", "nproc_per_node"}
_MAX_PORT = 65535
_BACKENDS = ("c10d", "etcd", "etcd-v2", "static")
_FIELDS = (
    ("nprocPerNode",),
    ("elasticPolicy", "nProcPerNode"),
    ("torchrunConfig", "procPerNode"),
    ("trainer", "numProcPerNode"),
)
_ADDRESS = "rdzv_endpoint"
NODES_RULE, PROCESSES_RULE, ALONE_RULE = "nnodes-mismatch", "nproc-gpu-mismatch", "launcher-on-one-pod"


class Torchrun(NamedTuple):
    """What torchrun makes of its options and variables; None where it is not known."""

    program: Program
    options: Options
    least: int | None
    most: int | None
    processes: int | None
    name: str = "torchrun"
    option: str = "`--nnodes`"
    """The launcher, and its option with the number of nodes."""
    has_file_rank: bool = False
    """True if the rank of a node is in a config file, which all pods read."""

    def find(self, name: str, default: str = "") -> Word:
        """Return the value of an option: the option's own, or that of its variable."""
        return find_setting(self.program, self.options, name, default)

    @property
    def world(self) -> World:
        """The processes that it starts on its nodes."""
        nodes = self.least if self.least == self.most else None
        size = None if nodes is None or self.processes is None else nodes * self.processes
        return World(nodes, self.processes, size)


def find_setting(program: Program, options: Options, name: str, default: str = "") -> Word:
    """Return the value of an option of torchrun, of its variable, or its default, with where it was written."""
    given = options.values.get(name)
    if given is not None:
        return given
    if not options.is_certain:
        return Word(None, program.node)
    variable = program.variable(f"PET_{name.upper()}")
    if variable is None:
        return Word(default, program.node)
    return variable if variable.node is not None else variable._replace(node=program.node)


def read(program: Program, pods: Pods) -> Torchrun:
    """Read the options and variables."""
    options = read_options(program.words, SYNTAX)
    if options.unknown is not None:
        options = options._replace(is_certain=False)
    nodes = parse_nodes(find_setting(program, options, "nnodes", "1:1").text)
    if is_started_by_operator(pods) and pods.processes:
        options = options._replace(values={"nproc_per_node": Word(pods.processes, program.node), **options.values})
    processes = count_processes(find_setting(program, options, "nproc_per_node", "1"), program, pods)
    least, most = nodes or (None, None)
    return Torchrun(program, options, least, most, processes)


def judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    """Return what fails, the world of the script, and the script with the world that the pods give."""
    run = read(program, pods)
    faults = list(check_values(run, pods))
    if program.name != _OTHER:
        faults += check_unknown(read_options(program.words, SYNTAX), SYNTAX, "torchrun", is_error=False)
    faults = faults or [*check_nodes(run, pods), *check_processes(run, pods)]
    world = run.world
    if pods.count is not None and pods.kind in JOINED and world.processes is not None:
        world = World(pods.count, world.processes, pods.count * world.processes, world.nodes)
    return faults, world, list_scripts(run)


def list_scripts(run: Torchrun) -> tuple[Program, ...]:
    """Return the script that it starts."""
    words = run.options.rest
    if not words or run.options.unknown is not None:
        return ()
    flags = run.options.values
    if "no_python" in flags:
        return start_words(run.program, words)
    start = (Word("python", words[0].node), *((Word("-m", None),) if "module" in flags else ()))
    started = to_program(Call((*start, *words), run.program.env, run.program.is_certain, run.program.files))
    return () if started is None else (started,)


def parse_nodes(text: str | None) -> tuple[int, int] | None:
    """Return the least and the greatest number of nodes; None if they are not known, or no numbers."""
    bounds = [Word(each, None).number for each in (text or "").split(":")]
    if text is None or None in bounds or not 1 <= len(bounds) <= 2:
        return None
    return bounds[0], bounds[-1]  # type: ignore[return-value]


def count_processes(value: Word, program: Program, pods: Pods) -> int | None:
    """Return the number of processes of each node; None if it is not known."""
    if value.text in ("auto", "gpu"):
        return count_visible(program, pods) or None
    return value.number


def check_values(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    """Find values that torchrun refuses."""
    yield from _check_empty(run, pods)
    yield from _check_bounds(run, pods)
    if not _NUMBERS.isdisjoint(run.options.values):
        yield from _check_numbers(run)
    backend = run.options.values.get("rdzv_backend")
    if backend is not None and backend.text and backend.text not in _BACKENDS and "$" not in backend.text:
        # Imported late: most backends are right. A plugin can add others.
        from jobgen.model.meant import find_meant

        if meant := find_meant(backend.text, _BACKENDS) or ("c10d" if backend.text == "c10" else ""):
            error = f"The rendezvous backend '{backend.text}' is not registered"
            message = f"`{backend.text}` is not a backend of torchrun (`{error}`); did you mean `{meant}`?"
            yield Fault(backend.node, message, False)
    value = run.find("nproc_per_node", "1")
    is_field = value.text == pods.processes and "nproc_per_node" not in run.options.values
    if value.text is None or value.text in _WORDS - {"gpu"} or (is_field and value.text != "gpu"):
        # `unknown-nproc-per-node` reports the field.
        return
    if value.text == "gpu":
        if pods.gpus == 0:
            message = "`gpu` processes for each pod, but a pod has no GPU (torchrun: `Cuda is not available.`)"
            yield Fault(value.node, f"{message}; request GPUs, or write a number", rule=PROCESSES_RULE)
    elif value.text.endswith(".py") and _find_variable("nproc_per_node", pods):
        return
    elif value.number is None and value.text.strip() and "$" not in value.text:
        error = f"Unsupported nproc_per_node value: {value.text}"
        # A script behind the option is taken for its value.
        is_script = value.text.endswith(".py") or value.text == "-m"
        advice = f"write `{'gpu ' * is_script}{value.text * is_script or 'gpu'}`"
        yield Fault(value.node, f"`{value.text}` is not a number of processes (torchrun: `{error}`); {advice}")
    elif value.number is None and not _is_empty("nproc_per_node", run):
        yield Fault(value.node, _describe_bad_number("nproc-per-node", value.text, run, pods))


def _check_empty(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    """Report the numbers that are empty as one fault: nothing sets the variables that they are taken from."""
    found = {name: word for name, word in run.options.values.items() if name in _ALL_NUMBERS and word.text == ""}
    # Without quotes, an empty variable is no word, and the script behind it becomes the value.
    found |= {name: word for name, word in _list_scripts_as_numbers(run) if _find_variable(name, pods)}
    lacking = run.options.lacking
    if lacking is not None and (name := SYNTAX.find((lacking.text or "").lstrip("-"))) in _ALL_NUMBERS:
        # Without quotes, the next word is taken for the value.
        found[str(name)] = lacking
    empty = list(found)
    if not empty:
        return
    unset = dict.fromkeys(variable for name in empty if (variable := _find_variable(name, pods)))
    reason = f", because nothing sets {' and '.join(f'`{name}`' for name in unset)}" if unset else ""
    if any(name.startswith("SLURM_") for name in unset):
        reason += ": no Slurm starts the container"
    shown = " and ".join(f"`--{name.replace('_', '-')}`" for name in empty)
    gets = "gets an empty value" if len(empty) == 1 else "get empty values"
    advice = ", and ".join(_advise_number(name, run, pods) for name in empty)
    yield Fault(found[empty[0]].node, f"{shown} {gets}{reason}; {advice}")


def _list_scripts_as_numbers(run: Torchrun) -> Iterator[tuple[str, Word]]:
    """Yield the options of numbers whose value is a script."""
    for name, word in run.options.values.items():
        if name in _ALL_NUMBERS and word.text is not None and word.text.endswith(".py"):
            yield name, word


def _is_empty(name: str, run: Torchrun) -> bool:
    return name in run.options.values and run.options.values[name].text == ""


def _find_variable(option: str, pods: Pods) -> str:
    """Return the variable that an option takes its value from; empty if it is not found."""
    pattern = rf"--{option.replace('_', '[-_]')}[=\s]+[\"']?\$[{{(]?(\w+)"
    found = re.search(pattern, pods.container.search_text)
    return found[1] if found else ""


def _advise_number(option: str, run: Torchrun, pods: Pods) -> str:
    """Return what to write for an option whose value is empty."""
    shown, variable = f"`--{option.replace('_', '-')}`", f"PET_{option.upper()}"
    if run.program.variable(variable) is not None:
        return f"remove {shown}, for which `{variable}` is set"
    if option == "node_rank":
        if run.find("rdzv_backend", "static").text not in ("static", None):
            return f"remove {shown}: the nodes are numbered where they meet"
        index = _INDEXES.get(pods.kind, "")
        # The pods of another role have the same indexes.
        is_own = index and run.program.variable(index[2:-1]) is not None and len(pods.container.pod.manifest.roles) == 1
        return f"write `--node-rank={index}`" if is_own else "give each pod a rank of its own"
    if option == "nnodes" and pods.count:
        return f"write `--nnodes={pods.count}`, the number of pods"
    return f"write a number for {shown}, or remove it"


def _check_numbers(run: Torchrun) -> Iterator[Fault]:
    for name in sorted(_NUMBERS & run.options.values.keys()):
        word, option = run.options.values[name], f"--{name.replace('_', '-')}"
        if word.text and word.number is None and "$" not in word.text:
            error = f"argument {option}: invalid int value: '{word.text}'"
            yield Fault(word.node, f"`{word.text}` is not a number (torchrun: `{error}`); write an integer")
        elif name == "master_port" and (word.number or 0) > _MAX_PORT:
            message = f"`{word.text}` is not a port (`The port number must be between 0 and {_MAX_PORT}`)"
            yield Fault(word.node, f"{message}; write a smaller number, such as 29500")


def _check_bounds(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    value, least, most = run.find("nnodes", "1:1"), run.least, run.most
    is_given = "nnodes" in run.options.values
    # `elastic-bounds` reports the policy.
    if value.text is None or _is_empty("nnodes", run) or (pods.elastic is not None and not is_given):
        return
    if value.text.count(":") > 1:
        error = f'nnodes={value.text} is not in "MIN:MAX" format'
        message = f"`{value.text}` is not a number of nodes (torchrun: `{error}`)"
        yield Fault(value.node, f"{message}; write `{pods.count or 2}`")
    elif least is None or most is None:
        yield Fault(value.node, _describe_bad_number("nnodes", value.text, run, pods))
    elif not 0 < least <= most:
        error = f"min_nodes must be > 0 and <= max_nodes, got min_nodes={least}, max_nodes={most}"
        message = f"`{value.text}` is not a number of nodes (torchrun: `{error}`)"
        yield Fault(value.node, f"{message}; write the least number first")


def _describe_bad_number(option: str, text: str, run: Torchrun, pods: Pods) -> str:
    message = (
        f"`{text}` is not a number for `--{option}` (torchrun: `invalid literal for int() with base 10: '{text}'`)"
    )
    if not text:
        return f"`PET_{option.upper().replace('-', '_')}` is empty; write a number"
    name = text.lstrip("${(").rstrip("})")
    is_program = text.startswith("$(") and runs_program(name)
    if text.startswith("$(") and not is_program:
        return f"{message}; set `{name}` in `env`"
    if not text.startswith("$"):
        return f"{message}; write an integer"
    if run.program.variable(name) is not None:
        return f"{message}; write `$({name})`, which Kubernetes replaces"
    if option == "nproc-per-node":
        advice = "write `gpu`"
    elif run.program.variable("PET_NNODES") is not None:
        advice = "write `$(PET_NNODES)`, which the operator sets, or remove the option"
    else:
        advice = f"write `{pods.count}`, the number of pods" if pods.count else "write the number of pods"
    reason = f"no shell runs `{name}`" if is_program else f"no shell reads it, and nothing sets `{name}`"
    return f"{message}; {reason}; {advice}"


def check_nodes(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    """Compare the number of nodes with the pods, and look at where they meet."""
    count, least, most = pods.count, run.least, run.most
    if count is None or least is None or most is None or is_started_by_operator(pods):
        return
    value = run.find("nnodes", "1:1")
    shown, has = f"`{value.text}` nodes", f"the job has {pluralize(count, 'pod')}"
    given = run.options.values.get("nnodes")
    advice, fix = _advise(run, pods)
    # Pods that can be added later, or a first pod alone, are no certain failure.
    is_error = pods.elastic is None
    if given is None and pods.elastic is not None and run.program.variable("PET_NNODES") is not None:
        # `elastic-bounds` compares the policy with the pods.
        return
    is_indexed = as_text(pods.container.pod.manifest.spec.get("completionMode")) == "Indexed"
    if pods.kind in ("Job", "Pod") and not is_indexed and count < least and "node_rank" in run.options.values:
        # The other nodes can be Jobs of their own.
        return
    if (fault := check_completions(run, pods, count)) is not None:
        yield fault
    elif least > count:
        message = f"{run.name} waits for {shown}, but {has}, so it fails after a timeout"
        yield Fault(value.node, f"{message}; {advice}", is_error, fix, pods.related, NODES_RULE, subject="nnodes")
    elif most < count and most == 1 and given is None and (message := _describe_alone(run, pods, count)):
        in_spec = name_framework("pytorch", "PyTorchJob") if pods.kind in TRAINING else ("", "")
        yield Fault(value.node, message, False, (), pods.related, ALONE_RULE, in_spec=in_spec)
    elif most < count and (pods.kind in JOINED or most > 1):
        if most == 1:
            source = "" if given else " by default"
            message = f"{run.name} forms a job of 1 node{source}, but {has}: each pod trains alone, or waits"
            is_default = given is None and run.program.variable("PET_NNODES") is None
            rule = ALONE_RULE if is_default and pods.kind == "PyTorchTrainingJob" else NODES_RULE
            yield Fault(value.node, f"{message}; {advice}", False, fix, pods.related, rule, subject="nnodes")
        else:
            others = (
                "1 pod takes no part and fails" if count - most == 1 else f"{count - most} pods take no part and fail"
            )
            message = f"{run.name} forms a job of {shown}, but {has}, so {others}"
            yield Fault(value.node, f"{message}; {advice}", is_error, fix, pods.related, NODES_RULE, subject="nnodes")
    else:
        yield from _check_meeting(run, pods, count, least)
        yield from _check_rank(run, pods)


def check_completions(run: Torchrun, pods: Pods, count: int) -> Fault | None:
    """Return that the pods of a Job, which are the nodes, do not run at the same time; None if they do."""
    waves, value = find_waves(pods, count), run.find("nnodes", "1:1")
    least, most = run.least or 0, run.most or 0
    if waves is None or most < 2:
        return None
    note = ((value.node, "the nodes that it waits for"),) if value.node is not None else ()
    if count < least <= waves.total:
        message = f"{run.name} waits for {least} nodes, but only {count} of the {waves.total} pods run at the same time"
        advice = f"write `parallelism: {waves.parallelism * waves.total // count}`"
        return Fault(waves.place, f"{message}; {advice}", True, (), note, NODES_RULE)
    if most < waves.total and waves.is_rank:
        message = (
            f"the pods of `completions: {waves.completions}` have indexes up to {waves.completions - 1}, which are"
        )
        advice = f"write `completions: {most}`, or {waves.completions} for {run.option} and `parallelism`"
        message = f"{message} no ranks of {most} nodes, so that the later pods fail; {advice}"
        return Fault(waves.completions_place, message, True, (), note, NODES_RULE)
    return None


def _describe_alone(run: Torchrun, pods: Pods, count: int) -> str:
    """Return that each pod trains alone where nothing tells the launcher of the others; empty if that can be meant."""
    manifest = pods.container.pod.manifest
    if pods.kind in TRAINING:
        return describe_other_operator(pods, run.name, count, "PyTorchJob")
    if (pods.kind, manifest.group) != ("Job", "batch") or not _meets_others(pods):
        return ""
    reason = "a Job sets none of its variables"
    advice = f"add `--nnodes={count} --node-rank=$(JOB_COMPLETION_INDEX) --master-addr=…`, or use a PyTorchJob"
    return f"each of the {count} pods trains alone, because {reason} for {run.name}; {advice}"


def check_other_operator(program: Program, pods: Pods, framework: str, kind: str) -> Iterator[Fault]:
    """Report a launcher that starts its processes on its own pod, in a job whose operator knows other frameworks."""
    if pods.kind in (*TRAINING, *JOINED) and pods.kind != kind and pods.count is not None and pods.count > 1:
        message = describe_other_operator(pods, program.name, pods.count, kind)
        in_spec = name_framework(framework, kind)
        yield Fault(program.node, message, False, (), pods.related, ALONE_RULE, in_spec=in_spec)


def name_framework(framework: str, kind: str) -> tuple[str, str]:
    """Return what a message says of a kind, and what it says instead in a job spec."""
    return f"; use a {kind}", f"; use `framework: {framework}`"


def describe_other_operator(pods: Pods, launcher: str, count: int, kind: str) -> str:
    """Return that each pod trains alone, because the operator knows another framework than the launcher."""
    message = f"each of the {count} pods trains alone, because the operator of a {pods.kind} sets none of its variables"
    return f"{message} for {launcher}; use a {kind}"


def _meets_others(pods: Pods) -> bool:
    """Return True if the pods of a Job have names for each other, or an address of the first."""
    spec = pods.container.pod.spec
    return "subdomain" in spec or any(name in pods.container.variables for name in ("MASTER_ADDR", "WORLD_SIZE"))


def is_started_by_operator(pods: Pods) -> bool:
    """Return True if the operator of TensorStack starts torchrun itself."""
    spec = pods.container.pod.manifest.spec if pods.kind == "PyTorchTrainingJob" else {}
    return any(get_path(spec, name, "enabled") is True for name in ("torchrunConfig", "elastic"))


def describe_twice(program: Program, pods: Pods) -> Fault:
    """Report a launcher in the arguments of the torchrun that the operator starts: it is taken for the script."""
    message = f"the operator starts torchrun itself, so `{program.path}` is taken for the script, or left out"
    place = next(pods.container.command_places, program.node)
    return Fault(place, f"{message}; write only the script and its arguments, in `args`", False)


def _advise(run: Torchrun, pods: Pods) -> tuple[str, tuple[FixStep, ...]]:
    given = run.options.values.get("nnodes")
    if pods.kind not in JOINED:
        return f"use {pods.count}", ()
    if given is None and pods.kind == "PyTorchTrainingJob":
        return "set `torchrunConfig.enabled`, or `--nnodes` and the address", ()
    if given is None:
        return f"leave `PET_NNODES` to the operator, which sets it to {pods.count}", ()
    if fix := fix_value(given, "$(PET_NNODES)"):
        return f"write `$(PET_NNODES)`, the number of pods that the operator sets, for {run.option}", fix
    return f"remove {run.option}, because the operator sets `PET_NNODES`", ()


def fix_value(given: Word, value: str) -> tuple[FixStep, ...]:
    """Return the steps that set the value of an option, if it is an argument of its own, or has one."""
    text = str(node_at(given.node))
    name, equals, old = text.partition("=")
    if text == given.text:
        return (FixStep("set", given.node, value),)
    is_option = equals and old == given.text and name.startswith("--") and " " not in name
    return (FixStep("set", given.node, f"{name}={value}"),) if is_option else ()


def _check_meeting(run: Torchrun, pods: Pods, count: int, least: int) -> Iterator[Fault]:
    if count < 2 or (pods.kind not in JOINED and least < 2):
        return
    standalone = run.options.values.get("standalone")
    variable = run.program.variable("PET_STANDALONE") if standalone is None else None
    if standalone is not None or (variable is not None and variable.text is not None):
        node = (standalone or variable or Word("", None)).node
        message = f"`--standalone` makes each of the {count} pods meet itself, so that they do not form one job"
        yield Fault(
            node if node is not None else run.program.node, f"{message}; remove it", False, (), pods.related, NODES_RULE
        )
        return
    backend, endpoint = run.find("rdzv_backend", "static"), run.find("rdzv_endpoint")
    master = run.find("master_addr", "127.0.0.1")
    if backend.text is None or endpoint.text is None:
        return
    place = endpoint
    if backend.text == "static" and not endpoint.text:
        place = master
    if place.text is None:
        return
    host = place.text.rpartition(":")[0] if place is endpoint and ":" in place.text else place.text
    if problem := _describe_meeting(run, place.text, host, count, is_static=backend.text == "static"):
        # The image can set a variable that the job does not.
        is_written = not is_same(place.node, run.program.node)
        message = f"{problem}; {_advise_address(run, pods)}"
        yield Fault(place.node, message, is_written, (), pods.related, NODES_RULE, address=place.text, subject=_ADDRESS)
    elif pods.kind == "PyTorchJob" and (found := _POD.match(host)):
        manifest = pods.container.pod.manifest
        role, is_own = manifest.find_role(found[2]), found[1] == manifest.name
        if not is_own or role is None or int(found[3]) >= role.count:
            whose = "is not a pod of this job" if is_own else f"is a pod of another job, `{found[1]}`"
            message = f"`{host}`, where the {count} pods meet, {whose}, so that {run.name} waits until it fails"
            message = f"{message}; {_advise_address(run, pods)}"
            yield Fault(place.node, message, is_own, (), pods.related, NODES_RULE, address=host, subject=_ADDRESS)


def _describe_meeting(run: Torchrun, place: str, host: str, count: int, *, is_static: bool) -> str:
    """Return why the pods do not meet at a place; empty if they may."""
    if is_static and not host:
        return f"the {count} pods get no address to meet at (torchrun: `{_NO_HOST}`)"
    if place and host not in _LOCAL:
        return ""
    shown = place.removesuffix(":0")
    meets = f"the {count} pods meet at `{shown}`, which is each pod itself"
    if not place:
        meets = f"without an endpoint, each of the {count} pods meets itself"
    return f"{meets}, so that {run.name} waits until it fails"


def _check_rank(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    """Check the rank of a node, which static rendezvous takes as it is: no two pods can have the same one."""
    rank, nodes = run.find("node_rank"), run.least
    if run.find("rdzv_backend", "static").text != "static" or nodes is None or nodes < 2 or nodes != run.most:
        return
    option = "--machine_rank" if run.name == "accelerate" else "--node-rank"
    number = rank.number if "node_rank" in run.options.values else None
    if number is None or number < 0 or not pods.ranks:
        return
    index = _INDEXES.get(pods.kind, "the index of the pod")
    advice = f"write `{index}`"
    if number >= nodes:
        message = f"`{option} {number}` is not a rank of {nodes} nodes, which are numbered from 0"
        yield Fault(rank.node, f"{message}; {advice}", rule=NODES_RULE, subject="node_rank")
        return
    if run.has_file_rank:
        # All pods that run the command read the same file.
        words = pods.container.words
        alike = sum(count for count, main in _list_mains(pods) if main.words == words)
        if alike > 1:
            message = f"`machine_rank` of the config file is {number} in {alike} pods, so that {run.name} waits for"
            message = f"{message} the others until it fails; write `{option}={index}` in the command"
            yield Fault(rank.node, message, rule=NODES_RULE, subject="node_rank")
        return
    pattern = re.compile(rf"--(?:node|machine)[-_]rank[=\s]+[\"']?{number}(?![\w$.])")
    alike = sum(count for count, main in _list_mains(pods) if pattern.search(main.search_text))
    # Of several commands, each can have a rank of its own.
    if alike > 1 and pattern.search(text := pods.container.search_text) and len(_RANK.findall(text)) == 1:
        message = f"`{option} {number}` is the rank of {alike} pods, so that {run.name} waits for the others until it"
        yield Fault(rank.node, f"{message} fails; {advice}", rule=NODES_RULE)


def _list_mains(pods: Pods) -> Iterator[tuple[int, Container]]:
    """Yield the main containers of the roles, each with the number of its pods."""
    for role in pods.container.pod.manifest.roles:
        if (main := role.pod.main_container) is not None:
            yield role.count, main


def _advise_address(run: Torchrun, pods: Pods) -> str:
    manifest = pods.container.pod.manifest
    if pods.kind == "PyTorchJob" and manifest.find_role("master") is None and pods.elastic is None:
        return "add a master or an `elasticPolicy`, so that the operator sets the address"
    option = "--main_process_ip " if run.name == "accelerate" else ""
    names = {"PyTorchJob": f"`{option}$(MASTER_ADDR)`", "TrainJob": f"`{option}$(PET_MASTER_ADDR)`"}
    return f"use {names.get(pods.kind, 'the address of the first pod')}"


def _find_field(manifest: Manifest) -> At | None:
    """Return the place of the number of processes in the job."""
    found = (find_at(manifest.spec, *path) for path in _FIELDS)
    return next((place for place in found if place is not None and place.node is not None), None)


def check_field(manifest: Manifest) -> Iterator[Fault]:
    """Compare the processes in a field of the job with the GPUs of its pods, if no launcher is seen that reads it."""
    place = _find_field(manifest)
    count = parse_digits(str(place.node)) if place is not None and manifest.kind_name in JOINED else None
    # Another rule reports that no process is started.
    for role in manifest.roles if count else ():
        main = role.pod.main_container
        if main is not None and main.gpus and main.gpus != count:
            yield _compare(
                Word(str(count), place), main.gpus, f"a pod has {pluralize(main.gpus, 'GPU')}", main, is_error=False
            )
            return


def check_processes(run: Torchrun, pods: Pods) -> Iterator[Fault]:
    """Compare the processes of a pod with its GPUs."""
    value = run.find("nproc_per_node", "1")
    if value.number is not None:
        node = value.node
        if "nproc_per_node" not in run.options.values:
            node = _find_field(pods.container.pod.manifest) or node
        yield from compare_processes(Word(value.text, node), run.program, pods)


def compare_processes(value: Word, program: Program, pods: Pods, start: str = "", advice: str = "") -> Iterator[Fault]:
    """Compare a number of processes of each pod with the GPUs that they see.

    `start` says where the number is from, if it is not written as it is; then `advice` says what to write.
    """
    gpus, count = count_visible(program, pods), value.number
    if (absent := _find_absent(program, pods)) is not None:
        yield from absent
        return
    if gpus is None and count is not None and count > (pods.gpus or count):
        # A variable that is not known can only hide some of them.
        gpus = pods.gpus
    if not gpus or count is None or count == gpus or count < 1:
        return
    hidden = program.variable(VISIBLE)
    if (
        hidden is not None
        and hidden.node is not None
        and not is_same(hidden.node, program.node)
        and gpus < count <= (pods.gpus or 0)
    ):
        message = f"{_count_processes(count)}, but `{VISIBLE}` shows {gpus} of {pods.gpus} GPUs"
        related = ((pods.container.device_place, ""),)
        message = f"{message}: `CUDA error: invalid device ordinal`; remove the variable"
        yield Fault(hidden.node, message, _names_nccl(program), (), related, PROCESSES_RULE)
        return
    has = f"a pod has {pluralize(gpus, 'GPU')}" if gpus == pods.gpus else f"they see {pluralize(gpus, 'GPU')}"
    is_error, is_torchrun = _names_nccl(program), program.name in NAMES
    yield _compare(value, gpus, has, pods.container, start, advice, is_error=is_error, is_torchrun=is_torchrun)


def _find_absent(program: Program, pods: Pods) -> tuple[Fault, ...] | None:
    """Return what is wrong with a list of GPUs that has one which the pod does not have; None if it has all of them.

    The rule `exposed-devices` reports one in `env`, and not one that a script sets.
    """
    visible = program.variable(VISIBLE)
    absent = find_absent(visible.text or "", pods.gpus) if visible is not None and pods.gpus else None
    if visible is None or absent is None:
        return None
    if any(is_same(At(entry, "value"), visible.node) for name, entry in pods.container.env if name == VISIBLE):
        return ()
    message = f"`{VISIBLE}` has `{absent}`, but a pod has {pluralize(pods.gpus or 0, 'GPU')}, numbered from 0"
    message = f"{message}, so it and the ones after it are not used; remove the variable"
    node = program.node if visible.node is None else visible.node
    return (Fault(node, message, False, (), ((pods.container.device_place, ""),), PROCESSES_RULE),)


def _compare(
    value: Word,
    gpus: int,
    has: str,
    container: Container,
    start: str = "",
    advice: str = "",
    *,
    is_error: bool,
    is_torchrun: bool = False,
) -> Fault:
    count = value.number or 0
    # In another environment, a pod may have another number of GPUs, but not every field takes a word.
    takes_numbers = _takes_numbers(value, container)
    meant = str(gpus) if takes_numbers else "gpu"
    fix = () if not is_torchrun else (FixStep("set", value.node, gpus),) if takes_numbers else fix_value(value, meant)
    related = ((container.device_place, ""),)
    shown = f"{start}: {_count_processes(count)}" if start else _count_processes(count)
    is_option = is_torchrun and "--nproc" in str(node_at(value.node))
    written = "--nproc-per-node=gpu" if is_option else meant if fix else ""
    advice = advice or (f"write `{written}`" if written else f"use {gpus}")
    if count > gpus:
        message = f"{shown}, but {has}: `CUDA error: invalid device ordinal`; {advice}"
        return Fault(value.node, message, is_error, fix, related, PROCESSES_RULE)
    message = f"{shown} leave{'s' * (count == 1)} GPUs idle: {has}; {advice}"
    return Fault(value.node, message, False, fix, related, PROCESSES_RULE)


def _takes_numbers(value: Word, container: Container) -> bool:
    """Return True if a number of processes is in the field of a TrainJob, which takes no words since Trainer 2.2."""
    manifest = container.pod.manifest
    field = find_at(manifest.spec, "trainer", "numProcPerNode")
    return field is not None and is_same(field, value.node) and is_operator_since(manifest, "2.2.0")


def _count_processes(count: int) -> str:
    return f"{count} process{'es' * (count != 1)} per pod"


def _names_nccl(program: Program) -> bool:
    """Return True if an argument, or the value of an option, is `nccl`: NCCL refuses two processes on one GPU."""
    return any((word.text or "").rpartition("=")[2] == "nccl" for word in program.words)


def check_entrypoint(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report a launcher that starts no processes on the workers."""
    manifest = pods.container.pod.manifest
    workers = sum(role.count for role in manifest.roles if role.name != "head")
    on_worker = workers == 1 and manifest.spec.get("entrypointNumGpus")
    if workers and not on_worker:
        message = f"Ray runs `{program.path}` on one pod, and the {pluralize(workers, 'worker')} stay idle"
        yield Fault(program.node, f"{message}; start the processes with Ray Train", False, rule=ALONE_RULE)
