"""Judge what a job launches: each launcher against its pods, and each script against the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from jobgen.features.launch import accelerate, deepspeed, mpi, paddle, torchrun
from jobgen.features.launch.hf_trainer import check_deepspeed, check_trainer
from jobgen.features.launch.megatron import check_megatron
from jobgen.features.launch.python_calls import check_jax, check_ray_train
from jobgen.features.launch.read_job import Launch, read_launches
from jobgen.features.launch.serving import check_ray_service, check_server
from jobgen.features.launch.signs import find_trainers
from jobgen.features.launch.torchrun import check_entrypoint
from jobgen.features.launch.trainers import check_lightning, check_torchtitan
from jobgen.features.launch.values import Fault, Pods, Program, World
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import location_of
from jobgen.model.named_tuple import NamedTuple

_MODE = 0o644  # of files in volumes, by default
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


@lru_cache(maxsize=2)
def judge_manifest(manifest: Manifest, *, is_brief: bool = False) -> tuple[Judged, ...]:
    """Return what each role of a job starts, with everything that is wrong with it."""
    return tuple(
        Judged(launch, tuple(_judge_program(program, launch.pods) for program in launch.programs))
        for launch in read_launches(manifest, is_brief=is_brief)
    )


def _check_script(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Yield what fails in a script or server that a launcher starts, or that runs by itself."""
    for check in _SCRIPTS:
        yield from check(program, world, pods)


def _judge_program(program: Program, pods: Pods) -> Stage:
    judge = _judges().get(program.name)
    if pods.kind == "RayJob" and program.name in (*torchrun.NAMES, *deepspeed.NAMES):
        return Stage(program, World(), tuple(check_entrypoint(program, pods)))
    if judge is None:
        return Stage(program, World(), tuple(_check_script(program, World(), pods)))
    faults, world, scripts = judge(program, pods)
    world = world._replace(is_launched=True)
    if any(fault.is_error for fault in faults):
        # What the script makes of it is not known.
        return Stage(program, world, tuple(faults))
    stages = tuple(
        Stage(script, world, tuple(_check_script(script, world, pods)))
        for script in scripts
        if script.name not in _judges()
    )
    return Stage(program, world, tuple(faults), stages)


@lru_cache(maxsize=2)
def find_faults(manifest: Manifest) -> tuple[Fault, ...]:
    """Return the faults of a job, each once."""
    return tuple(_find_faults(manifest))


def _find_faults(manifest: Manifest) -> Iterator[Fault]:
    seen: set[object] = set()
    judged_roles = judge_manifest(manifest, is_brief=True)
    names = {stage.program.name for judged in judged_roles for stage in judged.stages}
    if not names & _judges().keys():
        yield from torchrun.check_field(manifest)
        yield from mpi.check_unseen(manifest)
    if manifest.kind_name == "RayService":
        yield from check_ray_service(manifest)
    yield from (fault for _, container in find_trainers(manifest) for fault in _check_mode(container))
    for judged in judged_roles:
        for fault in _list_certain(judged):
            node = (
                fault.node
                if fault.node is not None
                else judged.launch.container.data.get("command", manifest.object.get("kind"))
            )
            # Roles that have the same command, from one line, have one fault.
            key = (location_of(node) or id(node), fault.message)
            if key not in seen:
                seen.add(key)
                yield fault._replace(node=node)


def _check_mode(container: Container) -> Iterator[Fault]:
    """Report a command that is a file of a ConfigMap or Secret that no user can execute, which is the default."""
    command = next(iter(as_list(container.data.get("command"))), None)
    path = as_text(command)
    mounts = [as_mapping(each) for each in as_list(container.data.get("volumeMounts"))]
    # A mount of one file has the path of the file.
    mounts = [each for each in mounts if f"{path}/".startswith(f"{as_text(each.get('mountPath')).rstrip('/')}/")]
    if not mounts:
        return
    mount = max(mounts, key=lambda each: len(as_text(each.get("mountPath"))))
    inner = path.removeprefix(as_text(mount.get("mountPath"))).strip("/") or as_text(mount.get("subPath"))
    for volume in container.pod.volumes:
        source = as_mapping(volume.get("configMap") or volume.get("secret"))
        if as_text(volume.get("name")) != as_text(mount.get("name")) or not source:
            continue
        items = [as_mapping(each) for each in as_list(source.get("items"))]
        own = next((each.get("mode") for each in items if as_text(each.get("path")) == inner), None)
        mode = as_integer(source.get("defaultMode", _MODE) if own is None else own)
        if mode is not None and not mode & 0o111:
            message = f"`{path}` is a file of a volume with mode `{mode:04o}`, which no user can execute"
            advice = f"set `defaultMode: 0755`, or start it with a shell: `[sh, {path}]`"
            yield Fault(command, f"{message} (`permission denied`); {advice}")


def _list_certain(judged: Judged) -> Iterator[Fault]:
    """Yield the faults that no unknown condition avoids: of programs that may not start, all must have one."""
    launching = [stage for stage in judged.stages if stage.program.name in _judges() or list(_flatten(stage))]
    is_avoidable = any(not list(_flatten(stage)) for stage in launching)
    for stage in launching:
        if stage.program.is_certain:
            yield from _flatten(stage)
        elif not is_avoidable:
            yield from (fault._replace(is_error=False, fix=()) for fault in _flatten(stage))


def _flatten(stage: Stage) -> Iterator[Fault]:
    where = _find_line(stage.program) if stage.faults else ""
    for fault in stage.faults:
        # Other faults name the file and its line themselves.
        yield fault._replace(message=f"{where}{fault.message}") if " in line " not in fault.message else fault
    for script in stage.scripts:
        yield from _flatten(script)


def _find_line(program: Program) -> str:
    """Return which line of a script starts a program, for a message; empty if it is not in a script, or in several."""
    written = as_text(program.node)
    name = next((word for word in written.split() if word.startswith("/") and program.files(word)), "")
    text = written if "\n" in written else program.files(name) if name else None
    path = program.path or program.name
    # A script that is the program itself does not start it.
    lines = enumerate((text or "").splitlines(), 1) if path != name else ()
    found = [number for number, line in lines if path in line.partition("#")[0].split()]
    script = "the script" if text is written else f"`{name}`"
    return f"in line {found[0]} of {script}, " if len(found) == 1 else ""
