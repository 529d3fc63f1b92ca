"""Judge what a job launches: each launcher against its pods, and each script against the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial

from jobgen.features.launch import accelerate, deepspeed, items, mpi, paddle, torchrun
from jobgen.features.launch.config_files import check_files, check_settings
from jobgen.features.launch.hf_trainer import check_deepspeed, check_trainer
from jobgen.features.launch.items import PROGRAMS_AS_MODULES, check_entrypoint_words, check_name, check_quotes
from jobgen.features.launch.megatron import check_megatron
from jobgen.features.launch.modes import check_mode
from jobgen.features.launch.python_calls import check_jax, check_ray_train
from jobgen.features.launch.read_job import Launch, read_launches
from jobgen.features.launch.serving import check_ray_service, check_server
from jobgen.features.launch.signs import find_trainers
from jobgen.features.launch.started import check_items, check_options, check_script, is_cut_off
from jobgen.features.launch.torchrun import check_entrypoint
from jobgen.features.launch.trainers import check_lightning, check_torchtitan
from jobgen.features.launch.values import Fault, Pods, Program, World
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Location, location_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at, identify, is_same, node_at
from jobgen.yamlio.inner_text import find_line

LAUNCHERS = (torchrun, accelerate, deepspeed, mpi, paddle)
_SCRIPTS = (
    check_megatron,
    check_torchtitan,
    check_deepspeed,
    check_trainer,
    check_lightning,
    check_jax,
    check_ray_train,
    check_server,
)
"""What training scripts and servers refuse."""
_SERVERS = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "sglang.launch_server")
"""Modules of servers."""
_DOTS = 2
"""How many dots the name of a launcher's module has at least; a file has fewer."""
Judge = Callable[[Program, Pods], tuple[list[Fault], World, tuple[Program, ...]]]


class Stage(NamedTuple):
    """A program that a launch starts, with the world that it finds, and what is wrong with it."""

    program: Program
    world: World
    faults: tuple[Fault, ...]
    scripts: tuple[Stage, ...] = ()

    @property
    def trainers(self) -> tuple[Stage, ...]:
        """The programs that train or serve: what the launcher starts, or the program itself."""
        return self.scripts if self.world.is_launched else (self,)


class Judged(NamedTuple):
    """What the containers of one role start."""

    launch: Launch
    stages: tuple[Stage, ...]


@cache
def _judges() -> dict[str, Judge]:
    return {name: module.judge for module in LAUNCHERS for name in module.NAMES}


def judge_manifest(manifest: Manifest) -> tuple[Judged, ...]:
    """Return what each role of a job starts, with everything that is wrong with it."""
    found = (*judge_containers(manifest), *judge_containers(manifest, copies=True))
    return tuple(sorted(found, key=lambda judged: judged.launch.number))


@lru_cache(maxsize=4)
def judge_containers(manifest: Manifest, *, copies: bool = False) -> tuple[Judged, ...]:
    """Return what the containers of a job start: each once, or those of roles that have the one of another role."""
    return tuple(
        Judged(launch, tuple(_judge_program(program, launch.pods) for program in launch.programs))
        for launch in read_launches(manifest, copies=copies)
    )


def _check_script(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Yield what fails in a script or server that a launcher starts, or that runs by itself."""
    for check in _SCRIPTS:
        yield from check(program, world, pods)


def _check_module(program: Program, pods: Pods) -> Iterator[Fault]:
    """Yield the name of a module that is one slip away from a launcher: `python -m torch.distributed.lunch`."""
    if program.is_module:
        yield from check_name(program)
    if pods.kind == "RayJob" and (" " in program.path or program.path[:1] == "["):
        yield from check_entrypoint_words(program)
    is_short = program.name.count(".") < _DOTS and program.name[:2] != "sg"
    if is_short or program.name in _SERVERS or program.name.endswith(".py"):
        return
    # Imported late: most programs are files.
    from jobgen.model.meant import find_meant

    meant = find_meant(program.name, (*_judges(), *_SERVERS))
    if meant:
        message = f"`{program.name}` is not a module (`No module named {program.name}`); did you mean `{meant}`?"
        yield Fault(program.node, message, False)


def _judge_program(program: Program, pods: Pods) -> Stage:
    judge = _judges().get(program.name)
    if program.is_module and program.path in PROGRAMS_AS_MODULES:
        return Stage(program, World(is_launched=True), tuple(check_name(program)))
    if pods.kind == "RayJob" and program.name in (*torchrun.NAMES, *deepspeed.NAMES):
        return Stage(program, World(), tuple(check_entrypoint(program, pods)))
    if judge is None:
        return Stage(program, World(), (*_check_module(program, pods), *_check_script(program, World(), pods)))
    if is_cut_off(program, pods):
        return Stage(program, World(is_launched=True), ())
    if program.name in torchrun.NAMES and torchrun.is_started_by_operator(pods):
        return Stage(program, World(is_launched=True), (torchrun.describe_twice(program, pods),))
    if joined := tuple(check_items(program, pods)):
        return Stage(program, World(is_launched=True), joined)
    faults, world, scripts = judge(program, pods)
    # What an option takes for its value can be the script.
    is_taken = bool(program.words) and any(is_same(fault.node, program.words[-1].node) for fault in faults)
    missing = () if is_taken else check_script(program, pods)
    faults = [*missing, *faults, *check_options(program, scripts)]
    world = world._replace(is_launched=True)
    if any(fault.is_error for fault in faults):
        # What the script makes of it is not known.
        return Stage(program, world, tuple(faults))
    stages = tuple(
        Stage(script, world, (*check_name(script), *_check_script(script, world, pods)))
        for script in scripts
        if script.name not in _judges()
    )
    return Stage(program, world, tuple(faults), stages)


@lru_cache(maxsize=2)
def find_faults(manifest: Manifest) -> tuple[Fault, ...]:
    """Return the faults of a job, each once."""
    found = tuple(_find_faults(manifest, judge_containers(manifest)))
    # What is wrong with the container of a role is wrong with its copies, in other places.
    has_copies = bool(found) and bool(judge_containers(manifest, copies=True))
    return tuple(_find_faults(manifest, judge_manifest(manifest))) if has_copies else found


def _find_faults(manifest: Manifest, judged_roles: Sequence[Judged]) -> Iterator[Fault]:
    seen: set[object] = set()
    names = {stage.program.name for judged in judged_roles for stage in judged.stages}
    if not names & _judges().keys():
        yield from torchrun.check_field(manifest)
        yield from mpi.check_unseen(manifest)
        if manifest.kind_name == "DeepSpeedJob":
            yield from deepspeed.check_slots(manifest)
    if manifest.kind_name == "RayJob":
        yield from check_quotes(manifest)
        yield from items.check_entrypoint(manifest)
    if manifest.kind_name == "RayService":
        yield from check_ray_service(manifest)
    yield from (fault for _, container in find_trainers(manifest) for fault in check_mode(container))
    for judged in judged_roles:
        for fault in (*_list_certain(judged), *_check_files(judged)):
            place = fault.node
            if place is None:
                place = find_at(judged.launch.container.data, "command") or At(manifest.object, "kind")
            # Roles that have the same command, from one line, have one fault, and so have those that read one file.
            text = judged.launch.volumes.find_text(fault.file) if fault.file else None
            origin = (fault.file, text, fault.inside) if text is not None else None
            key = (origin or location_of(node_at(place)) or identify(place), fault.key)
            if key not in seen:
                seen.add(key)
                yield _place(fault._replace(node=place), judged.launch)


def _place(fault: Fault, launch: Launch) -> Fault:
    """Return a fault with the text of the file that it is in, if the repository has the file."""
    if not fault.file or launch.volumes.find_text(fault.file) is None:
        return fault
    return fault._replace(locate=partial(launch.volumes.locate_text, fault.file))


def _list_certain(judged: Judged) -> Iterator[Fault]:
    """Yield the faults that no unknown condition avoids: of programs that may not start, all must have one."""
    found = [(stage, tuple(_flatten(stage))) for stage in judged.stages]
    launching = [(stage, faults) for stage, faults in found if faults or stage.program.name in _judges()]
    is_avoidable = not all(faults for _, faults in launching)
    for stage, faults in launching:
        if stage.program.is_certain:
            yield from faults
        elif not is_avoidable:
            yield from (fault._replace(is_error=False, fix=()) for fault in faults)


def _check_files(judged: Judged) -> Iterator[Fault]:
    """Yield what is wrong with the files of ConfigMaps that the command or a variable names."""
    launch = judged.launch
    if judged.stages and "=/" in launch.container.search_text:
        yield from check_settings(judged.stages[0].program, launch.volumes, launch.container)
    for stage in judged.stages:
        for program in (stage.program, *(script.program for script in stage.scripts)):
            faults = tuple(check_files(program, judged.launch.volumes))
            for fault in _flatten(Stage(program, World(), faults)) if faults else ():
                yield fault if program.is_certain else fault._replace(is_error=False)


def _flatten(stage: Stage) -> Iterator[Fault]:
    line = _find_line(stage.program) if stage.faults else None
    for fault in stage.faults:
        # Other faults are in a file of their own.
        is_of_line = line is not None and not fault.file
        yield line.move(fault, stage.program) if line is not None and is_of_line else fault
    for script in stage.scripts:
        yield from _flatten(script)


class _Line(NamedTuple):
    """The line of a script that starts a program."""

    file: str
    """The path of the script in the container; empty for one in the command itself."""
    inside: Location

    def move(self, fault: Fault, program: Program) -> Fault:
        """Return a fault at the line; what is wrong with another value of the object stays there."""
        script = f"`{self.file}`" if self.file else "the script"
        fault = fault._replace(message=f"in line {self.inside.line} of {script}, {fault.message}")
        if fault.node is not None and not is_same(fault.node, program.node):
            return fault
        return fault._replace(file=self.file, inside=self.inside, at=None if self.file else program.node)


def _find_line(program: Program) -> _Line | None:
    """Return which line of a script starts a program; None if it is not in a script, or in several."""
    written = as_text(node_at(program.node))
    name = next((word for word in written.split() if word.startswith("/") and program.files(word)), "")
    text = written if "\n" in written else program.files(name) if name else None
    path = program.path or program.name
    # A script that is the program itself does not start it.
    lines = enumerate((text or "").split("\n"), 1) if path != name else ()
    found = [number for number, line in lines if path in line.partition("#")[0].split()]
    return _Line("" if text is written else name, find_line(text or "", found[0])) if len(found) == 1 else None
