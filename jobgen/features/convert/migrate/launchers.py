"""Migration steps for kinds that start the processes themselves: their settings become a command again."""

from __future__ import annotations

from typing import Any

from jobgen.features.convert.importing.format_yaml import KeyPath
from jobgen.features.convert.migrate.draft import Draft, get_at, pop_path, put_at

_LAUNCHED = "launched-job"


def write_launch_commands(draft: Draft) -> None:
    """Write the command that other kinds run, and what kinds with a launcher of their own keep when they end."""
    if draft.source.code != draft.target.code:
        if draft.source.code == _LAUNCHED and draft.framework == "mpi":
            _write_mpi_command(draft)
        elif draft.source.code == "deepspeed-job":
            _write_deepspeed_command(draft)
    policy = ("runPolicy", "cleanPodPolicy")
    if draft.target.code == _LAUNCHED and get_at(draft.spec, policy) == "All":
        put_at(draft.spec, policy, "Running")
        draft.note(policy, "changed", "the launcher is never deleted; it is `Running` now")


def _write_mpi_command(draft: Draft) -> None:
    script, options = get_at(draft.spec, ("mpi", "script")), get_at(draft.spec, ("mpi", "extraArgs"))
    mca, home = get_at(draft.spec, ("mpi", "mca")), get_at(draft.spec, ("mpi", "home"))
    if not isinstance(script, list):
        return
    words: list[Any] = ["mpirun", *(["--prefix", home] if home else [])]
    for name, value in mca.items() if isinstance(mca, dict) else ():
        words += ["-mca", name, value]
    words += [*(options if isinstance(options, list) else []), *script]
    fields = (("mpi", "script"), ("mpi", "extraArgs"), ("mpi", "mca"), ("mpi", "home"))
    _move_to_command(draft, ("roles", "launcher", "command"), words, fields)


def _write_deepspeed_command(draft: Draft) -> None:
    run = get_at(draft.spec, ("deepspeed", "config", "run"))
    for form, start in (("python", ["torchrun"]), ("module", ["torchrun", "-m"]), ("exec", [])):
        words = run.get(form) if isinstance(run, dict) else None
        if isinstance(words, list):
            _move_to_command(draft, ("command",), [*start, *words], (("deepspeed", "config", "run"),))
            draft.note(("command",), "check", "every pod runs it; DeepSpeedJob started it from its first worker")
            return


def _move_to_command(draft: Draft, path: KeyPath, words: list[Any], fields: tuple[KeyPath, ...]) -> None:
    put_at(draft.spec, path, [str(word) for word in words])
    for field in fields:
        if get_at(draft.spec, field) is not None:
            pop_path(draft.spec, field)
            draft.note(field, "moved", f"it is in `{'.'.join(path)}` now")
