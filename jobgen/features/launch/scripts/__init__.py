"""What training scripts and servers refuse, one module each: `check` takes a program, its world and its pods."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.values import Fault, Pods, Program, World


def check_script(program: Program, world: World, pods: Pods) -> Iterator[Fault]:
    """Yield what fails in a script or server that a launcher starts, or that runs by itself."""
    from jobgen.features.launch.scripts import (
        deepspeed_config,
        hf_trainer,
        jax,
        lightning,
        megatron,
        ray_train,
        serving,
        torchtitan,
    )

    for module in (megatron, torchtitan, deepspeed_config, hf_trainer, lightning, jax, ray_train, serving):
        yield from module.check(program, world, pods)
