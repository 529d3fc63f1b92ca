"""Arguments after the script of a shell."""

import shlex
from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.objects import Container
from jobgen.k8s.shell_script import Script, find_script
from jobgen.model.lazy_re import lazy_pattern

# Scripts that read their parameters, and those whose text Kubernetes completes.
_READS_PARAMETERS = lazy_pattern(
    r"\$[\d@*#]|\$\{[#!]?[\d@*#]|\b(?:shift|getopts|BASH_ARGV|eval)\b|\bfor\s+\w+\s*(?:;|\n|do\b)|\$\(\w+\)"
)
# Programs that do nothing useful without arguments.
_NEED_ARGUMENTS = lazy_pattern(
    r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|sleep|cd)"
)
_OPERATORS = frozenset(("&&", "||", "|", ">", ">>", "<", "2>&1", "&>"))
# What is written for `$0`, the name of the script in messages.
_NAMES = frozenset(("sh", "bash", "_", "-", "--", "/bin/sh", "/bin/bash", "arg0", "argv0", "dummy", "ignored"))
_MAX_LENGTH = 60


@rule("container", WARNING, fields=("command", "args"))
def arguments_after_script(container: Container) -> Iterator[Violation]:
    """Arguments after the script of `sh -c`, such as `[bash, -c, torchrun, train.py]`.

    A shell takes one item after `-c` as its script. The items after that are the parameters `$0`, `$1` and so on of the
    script, which this script does not use, so they have no effect. It is an error if the program needs them: `python`
    and `torchrun` end at once without a script.

    Write the whole command as one item after `-c`, or leave out the shell.
    """
    script = find_script(container)
    if script is None or not script.rest or not _loses_arguments(script):
        return
    lost, program = script.rest[0], script.text.strip()
    is_certain = bool(as_list(container.data.get("command"))) and _NEED_ARGUMENTS.fullmatch(program)
    message = f"`{script.shell} -c` runs `{_shorten(program)}` without `{_shorten(as_text(lost))}`"
    yield Violation(
        lost,
        f"{message}; write the whole command as one item: `{_shorten(_join(script))}`",
        severity=ERROR if is_certain else WARNING,
    )


def _loses_arguments(script: Script) -> bool:
    """Return True if the script uses none of the words after it, and they are more than a name for it."""
    words = [as_text(word) for word in script.rest]
    if script.reads_files or _READS_PARAMETERS.search(script.text) or _OPERATORS.intersection(words):
        # The rule shell-syntax-without-shell reports operators.
        return False
    try:
        is_single = len(shlex.split(script.text)) == 1
    except ValueError:
        return False
    if words[0] in _NAMES or not words[0]:
        return len(words) > 1
    # One word after a longer script may be a name for it.
    return len(words) > 1 or is_single or words[0].startswith("-")


def _join(script: Script) -> str:
    return " ".join((script.text.strip(), *map(as_text, script.rest)))


def _shorten(text: str) -> str:
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}…"
