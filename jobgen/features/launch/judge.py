"""Judge what a job launches: each launcher against its pods, and each script against the processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from jobgen.features.launch.launchers import accelerate, deepspeed, mpi, paddle, torchrun
from jobgen.features.launch.launchers.ray import check_entrypoint
from jobgen.features.launch.read_job import Launch, read_launches
from jobgen.features.launch.scripts import check_script
from jobgen.features.launch.scripts.serving import check_ray_service
from jobgen.features.launch.values import Fault, Pods, Program, World
from jobgen.k8s.objects import Manifest
from jobgen.model.data import location_of

LAUNCHERS = (torchrun, accelerate, deepspeed, mpi, paddle)
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


def _judge_program(program: Program, pods: Pods) -> Stage:
    judge = _judges().get(program.name)
    if pods.kind == "RayJob" and program.name in (*torchrun.NAMES, *deepspeed.NAMES):
        return Stage(program, World(), tuple(check_entrypoint(program, pods)))
    if judge is None:
        return Stage(program, World(), tuple(check_script(program, World(), pods)))
    faults, world, scripts = judge(program, pods)
    world = world._replace(is_launched=True)
    if any(fault.is_error for fault in faults):
        # What the script makes of it is not known.
        return Stage(program, world, tuple(faults))
    stages = tuple(
        Stage(script, world, tuple(check_script(script, world, pods)))
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
    yield from stage.faults
    for script in stage.scripts:
        yield from _flatten(script)
