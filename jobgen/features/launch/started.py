"""What a launcher starts: a script that is missing, and options of the launcher that were written behind the script."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from jobgen.features.launch import accelerate, deepspeed, mpi, paddle, torchrun
from jobgen.features.launch.items import check_words
from jobgen.features.launch.options import Options, Syntax, read_options
from jobgen.features.launch.script_options import find_script_options
from jobgen.features.launch.shell.mistakes import has_broken_command
from jobgen.features.launch.values import Fault, Pods, Program
from jobgen.k8s.nodes import as_text
from jobgen.k8s.shell.commands import find_script
from jobgen.k8s.shell.syntax import parse_all
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import is_same, node_at


class _Launcher(NamedTuple):
    """A launcher: its name in messages, its options, what it says without a script, and options that replace it."""

    title: str
    syntax: Syntax
    error: str
    replacements: Collection[str] = ()


RULE = "launcher-without-script"
# What only launchers understand: the number of processes, and where they meet. Scripts have nodes, too.
_OWN = frozenset("nproc_per_node rdzv_backend rdzv_conf rdzv_endpoint rdzv_id".split())
# Launchers that start Python, unless an option says otherwise.
_STARTING = frozenset(("accelerate", "deepspeed", "torchrun"))
_PYTHON = lazy_pattern(r"(?:\S*/)?python[\d.]*\Z")
_WITHOUT_PYTHON = frozenset(("--no-python", "--no_python"))
_REQUIRED = "the following arguments are required: "
_TORCHRUN = _Launcher("torchrun", torchrun.SYNTAX, f"{_REQUIRED}training_script")
_ACCELERATE = _Launcher("accelerate launch", accelerate.SYNTAX, f"{_REQUIRED}training_script", ("help",))
_DEEPSPEED = _Launcher("deepspeed", deepspeed.SYNTAX, f"{_REQUIRED}user_script")
_PADDLE = _Launcher("paddle.distributed.launch", paddle.SYNTAX, f"{_REQUIRED}training_script")
_MPI = _Launcher("mpirun", mpi.SYNTAX, "", ("app", "config_file", "display", "display_map", "display_allocation"))
_LAUNCHERS = {
    name: launcher
    for module, launcher in (
        (torchrun, _TORCHRUN),
        (accelerate, _ACCELERATE),
        (deepspeed, _DEEPSPEED),
        (paddle, _PADDLE),
        (mpi, _MPI),
    )
    for name in module.NAMES
}


def check_items(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report an item of a launcher that has several words."""
    if any(" " in (word.text or "") for word in program.words):
        yield from check_words(program, _read(program, _LAUNCHERS[program.name]), pods.container.pod.manifest)


def check_script(program: Program, pods: Pods) -> Iterator[Fault]:
    """Report a launcher without a script or program to start."""
    launcher = _LAUNCHERS[program.name]
    options = _read(program, launcher)
    if options is None or options.rest or not options.is_certain:
        return
    is_unclear = options.unknown is not None or options.lacking is not None
    # The image can set a variable that the job does not.
    if is_unclear or not options.values.keys().isdisjoint(launcher.replacements) or "$" in pods.container.search_text:
        return
    if has_broken_command(parse_all(as_text(node_at(program.node)))):
        # The rule `script-syntax` reports it.
        return
    error = f" (`{launcher.error}`)" if launcher.error else ""
    message = f"`{program.path}` gets no script to start{error}"
    yield Fault(program.node, f"{message}; write the script after the options", rule=RULE)


def is_cut_off(program: Program, pods: Pods) -> bool:
    """Return True if `sh -c` runs a launcher without its arguments, as in `[bash, -c, torchrun, train.py]`.

    The rule `arguments-after-script` reports it, and what follows of it is not known.
    """
    if program.words or program.node is None:
        return False
    containers = (each for pod in pods.container.pod.manifest.pods for each in pod.containers)
    scripts = (script for each in containers if (script := find_script(each)) is not None)
    cut = (each for each in scripts if len(each.rest) > 1 or (each.rest and "." in each.rest[0]))
    return any(is_same(each.place, program.node) for each in cut)


def _check_repeated(program: Program, script: Program) -> Iterator[Fault]:
    """Report a launcher that another one takes for a script: `torchrun --nproc-per-node=8 torchrun train.py`."""
    is_python = not any(word.text in _WITHOUT_PYTHON for word in program.words)
    if is_python and not script.is_module and program.path in (*_STARTING, *torchrun.NAMES):
        message = f"`{program.path}` takes `{script.path}` for a Python script"
        is_other = _PYTHON.match(script.path)
        advice = (
            f"remove `{script.path}`"
            if is_other
            else "write it once"
            if script.path == program.path
            else f"write `{script.path}` or `{program.path}`"
        )
        yield Fault(script.node, f"{message}; {advice}", False)


def check_options(program: Program, scripts: Sequence[Program]) -> Iterator[Fault]:
    """Report an option of the launcher behind a script that has no such option, or that no script has."""
    launcher = _LAUNCHERS[program.name]
    given = _read(program, launcher)
    for script in scripts:
        if script.path in _STARTING or _PYTHON.match(script.path):
            yield from _check_repeated(program, script)
        for word in script.words:
            name = (word.text or "").partition("=")[0]
            option = name[2:].replace("-", "_")
            if not name.startswith("--") or option not in launcher.syntax.counts:
                continue
            known = find_script_options(script)
            text = program.files(script.path) or ""
            is_own = option in _OWN and option not in text.replace("-", "_")
            is_own = is_own and given is not None and given.values.keys().isdisjoint((option, "no_python"))
            if (known is None and not is_own) or (known and any(each.startswith(name) for each in known)):
                continue
            has = ", which has no such option," if known is not None else ""
            message = f"`{name}` is an option of {launcher.title}, but `{script.path}`{has} gets it"
            yield Fault(word.node, f"{message}; write it before `{script.path}`", False)


def _read(program: Program, launcher: _Launcher) -> Options | None:
    words = program.words
    if program.name == "accelerate":
        if not words or words[0].text != "launch":
            return None
        words = words[1:]
    return read_options(words, launcher.syntax)
