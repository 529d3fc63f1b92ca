"""`paddle.distributed.launch`: nodes, devices and processes. Variables win over options.

Source: paddlepaddle 3.3, python/paddle/distributed/launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch import torchrun
from jobgen.features.launch.options import Options, make_syntax, read_options
from jobgen.features.launch.torchrun import NODES_RULE, PROCESSES_RULE, Torchrun
from jobgen.features.launch.values import Fault, Pods, Program, Word, World
from jobgen.model.finding import pluralize

NAMES = frozenset(("paddle.distributed.launch", "fleetrun"))
SYNTAX = make_syntax("paddle", stops=True)
_VARIABLES = {
    "nnodes": "PADDLE_NNODES",
    "devices": "PADDLE_DEVICES",
    "nproc_per_node": "PADDLE_NPROC_PER_NODE",
    "master": "PADDLE_MASTER",
}


def judge(program: Program, pods: Pods) -> tuple[list[Fault], World, tuple[Program, ...]]:
    """Return what fails, the world of the script, and the script."""
    options = read_options(program.words, SYNTAX)
    if options.unknown is not None or not options.is_certain or "auto_tuner_json" in options.values:
        return [], World(), ()
    scripts = torchrun.list_scripts(Torchrun(program, options, None, None, None))
    if options.values.keys() & {"servers", "trainers", "server_num", "trainer_num", "ips"}:
        return [], World(), scripts
    faults, processes = _check_devices(program, options, pods)
    nodes = _find(program, options, "nnodes", "1")
    bounds = torchrun.parse_nodes(nodes.text)
    if not faults and bounds == (1, 1) and not _find(program, options, "master", "").text:
        faults = [*torchrun.check_other_operator(program, pods, "paddle", "PaddleJob")]
    if faults or bounds is None:
        return faults, World(), scripts
    faults = list(_check_nodes(program, options, pods, bounds))
    fixed = bounds[0] if bounds[0] == bounds[1] else None
    if not faults and processes is not None:
        value = (
            _find(program, options, "nproc_per_node", "")
            if "nproc_per_node" in options.values
            else _find(program, options, "devices", "")
        )
        faults += torchrun.compare_processes(Word(str(processes), value.node), program, pods)
    size = None if fixed is None or processes is None else fixed * processes
    return faults, World(fixed, processes, size), scripts


def _find(program: Program, options: Options, name: str, default: str) -> Word:
    variable = program.variable(_VARIABLES[name])
    if variable is not None:
        return variable if variable.node is not None else variable._replace(node=program.node)
    return options.values.get(name, Word(default, program.node))


def _check_devices(program: Program, options: Options, pods: Pods) -> tuple[list[Fault], int | None]:
    """Return what is wrong with the devices, and the number of processes of each pod."""
    devices, processes = _find(program, options, "devices", ""), _find(program, options, "nproc_per_node", "")
    if not pods.gpus or devices.text is None or processes.text is None or program.variable("CUDA_VISIBLE_DEVICES"):
        return [], None
    names = [name.strip() for name in devices.text.split(",")] if devices.text else []
    wrong = next((name for name in names if not name.isdecimal() or int(name[:9]) >= pods.gpus), None)
    available = len(names) or pods.gpus
    related = ((pods.container.device_place, ""),)
    if wrong is not None:
        has = f"a pod has {pluralize(pods.gpus, 'GPU')}"
        message = f"`--devices` names `{wrong}`, but {has} (paddle: `'{wrong}' is not in list`)"
        return [Fault(devices.node, f"{message}; use 0 to {pods.gpus - 1}", True, (), related, PROCESSES_RULE)], None
    count = processes.number if processes.text else available
    if count is not None and count > available:
        message = f"{count} processes per pod for {pluralize(available, 'GPU')} (paddle: `list index out of range`)"
        return [Fault(processes.node, f"{message}; use {available}", True, (), related, PROCESSES_RULE)], None
    return [], count


def _check_nodes(program: Program, options: Options, pods: Pods, bounds: tuple[int, int]) -> Iterator[Fault]:
    count, (least, most) = pods.count, bounds
    value, master = _find(program, options, "nnodes", "1"), _find(program, options, "master", "")
    if count is None or (pods.kind != "PaddleJob" and most == 1 and not master.text):
        return
    has = f"the job has {pluralize(count, 'pod')}"
    if not 0 < least <= most:
        yield Fault(value.node, f"`{value.text}` is not a number of nodes; use {count}")
    elif least > count:
        message = f"paddle waits for `{value.text}` nodes, but {has}"
        yield Fault(value.node, f"{message}; use {count}", True, (), pods.related, NODES_RULE)
    elif most < count:
        message = f"paddle forms a job of `{value.text}` node{'s' * (most > 1)}, but {has}"
        yield Fault(value.node, f"{message}; use {count}", most > 1, (), pods.related, NODES_RULE)
