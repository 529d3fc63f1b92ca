"""Names of programs that jobs start: what is no name of one, and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.k8s.shell import SHELLS
from jobgen.k8s.shell.commands import LAUNCHERS, PROGRAMS, STARTED
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.write import to_inline_yaml

_MEANT = (*LAUNCHERS, "bash", "python", "python3", "jupyter", "paddle", "nvidia-smi")
# Names of modules, and commands of other tools.
_OTHERS = {
    "torch": "torchrun",
    "torch.distributed.launch": "python -m torch.distributed.launch",
    "torch.distributed.run": "python -m torch.distributed.run",
}
_SIMILAR = frozenset(("paddlex", "pypy3", "python2", "pythonw"))
OF_SLURM = frozenset(("srun", "sbatch", "salloc"))
"""Programs that ask Slurm for nodes."""
_VARIABLE = lazy_pattern(r"[A-Za-z_]\w*=")
_PYTHON = lazy_pattern(r"(?:\S*/)?python[\d.]*\Z")
_MAX_SHOWN = 120


def describe_slurm(program: str) -> str:
    """Say that there is no Slurm in a container."""
    return f"`{program}` is a program of Slurm, which images do not have, because Kubernetes starts the pods"


def describe_program(words: Sequence[str]) -> tuple[str, bool] | None:
    """Say what is wrong with the program of a command line, and whether it certainly fails; None if nothing is."""
    first = words[0]
    if _VARIABLE.match(first):
        shown = to_inline_yaml(["env", *words])
        written = f", or write `{shown}`" if len(shown) <= _MAX_SHOWN and "`" not in shown else ""
        return f"`{first}` is not the name of a program; set the variable in `env`{written}", True
    if _PYTHON.match(first) and words[1:2] and (words[1],) in STARTED:
        shown = to_inline_yaml(list(words[1:]))
        meant = f"write `{shown}`" if len(shown) <= _MAX_SHOWN and "`" not in shown else f"remove `{first}`"
        return f"`{words[1]}` is a program, and `{first}` takes it for a file; {meant}", False
    if first in OF_SLURM:
        at = next((at for at, word in enumerate(words) if at and (word in PROGRAMS or word in _MEANT)), len(words))
        shown = to_inline_yaml([*words[at:]])
        others = f", such as `{shown}`" if 2 < len(shown) <= _MAX_SHOWN and "`" not in shown else ""
        return f"{describe_slurm(first)}; write the program that it starts{others}", False
    if first.endswith(".py") and "/" not in first and " " not in first:
        shown = to_inline_yaml(["python", *words])
        meant = f"write `{shown}`" if len(shown) <= _MAX_SHOWN and "`" not in shown else "start it with `python`"
        return f"`{first}` is a file, and not a program that is found by its name; {meant}", False
    if first in ("docker", "nvidia-docker") and "run" in words[1:2]:
        message = "the pod is a container already, and has no `docker` that could start another one"
        return f"{message}; write its image as `image`, and what follows it as `command`", False
    script = words[1] if words[1:2] and words[1][:1] != "-" and " " not in words[1] else ""
    if (_PYTHON.match(first) and script.endswith(".sh")) or (first in SHELLS and script.endswith(".py")):
        program = "sh" if script.endswith(".sh") else "python"
        return f"`{first}` cannot run `{script}`; write `{to_inline_yaml([program, *words[1:]])}`", False
    message = describe_misspelled(first)
    return (message, False) if message else None


def describe_misspelled(program: str) -> str:
    """Say which program a name nearly is; empty if it is one, or resembles none."""
    if program in PROGRAMS or program in _MEANT or program in _SIMILAR or "/" in program or " " in program:
        return ""
    # Imported late: most programs are common ones.
    from jobgen.model.meant import find_meant

    meant = _OTHERS.get(program, "") or find_meant(program, _MEANT)
    return f"`{program}` is not a known program; did you mean `{meant}`?" if meant else ""
