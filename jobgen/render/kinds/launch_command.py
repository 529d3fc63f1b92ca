"""The command of a container as what a launcher runs: its options, and the script, module or program behind them."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Node, value_of, with_value
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.kinds.main_container import find_main_container, with_main_container

_LAUNCHERS = frozenset(("deepspeed", "torchrun", "colossalai"))
_MODULE_OPTIONS = frozenset(("-m", "--module"))
# Options that take no value; the value of others follows them.
_FLAGS = frozenset(
    """--standalone --no-python --no_python --module -m --run-path --force_multi --no_local_rank --save_pid
    --enable_each_rank_log --bind_cores_to_rank --elastic_training --no_ssh --force""".split()
)


class Launch(NamedTuple):
    """What a command runs: a Python script, a `module`, or any program (`exec`); and the options of its launcher."""

    form: str
    script: list[Node]
    options: list[Node]


def take_command(template: Any) -> tuple[list[Node], Any]:
    """Return the command line of the main container, and the template without it."""
    container = find_main_container(template)
    parts = [container.get(key) for key in ("command", "args")]
    line = [word for part in parts if isinstance(part, list) for word in part]
    if not line:
        return [], template
    return line, with_main_container(
        template, {key: value for key, value in container.items() if key not in ("command", "args")}
    )


def parse_launch(line: list[Node]) -> Launch:
    """Parse a command line that starts with Python, a launcher of distributed training, or another program."""
    program = str(value_of(line[0])).rpartition("/")[2]
    if program.startswith("python"):
        rest = line[2:] if len(line) > 2 and value_of(line[1]) == "-u" else line[1:]
        if len(rest) > 1 and value_of(rest[0]) == "-m":
            return Launch("module", rest[1:], [])
        is_script = bool(rest) and not str(value_of(rest[0])).startswith("-")
        return Launch("", rest, []) if is_script else Launch("exec", line, [])
    if program not in _LAUNCHERS:
        return Launch("exec", line, [])
    start = 2 if program == "colossalai" and len(line) > 1 and value_of(line[1]) == "run" else 1
    return _split_options(line[start:])


def _split_options(words: list[Node]) -> Launch:
    options: list[Node] = []
    form, index = "", 0
    while index < len(words) and str(value_of(words[index])).startswith("-"):
        word = str(value_of(words[index]))
        if word in _MODULE_OPTIONS:
            form = "module"
        elif word in ("--no-python", "--no_python"):
            form = "exec"
        else:
            options.append(words[index])
        index += 1
        if "=" not in word and word not in _FLAGS and index < len(words):
            options.append(with_value(words[index], str(value_of(words[index]))))
            index += 1
    return Launch(form, words[index:], options)
