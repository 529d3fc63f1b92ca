"""The commands of a script in the order in which they are written, with their words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from jobgen.k8s.shell import SHELLS
from jobgen.k8s.shell.syntax import Parsed, SyntaxFault, parse_all
from jobgen.k8s.shell.tree import Assignment, Command, Script, Simple, list_bodies, wrap
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_ASSIGNMENT = lazy_pattern(r"\w+\+?=")
# Programs that run the command after them.
_BEFORE_COMMANDS = frozenset(("exec", "nohup", "time", "env"))


class Step(NamedTuple):
    """Commands that `|` connects, and the operator behind the last of them."""

    commands: tuple[Command, ...]
    end: str


def parse_command_line(text: str) -> Parsed:
    """Return the commands of a script as it stands in a manifest, up to what is wrong with it."""
    # Kubernetes makes one `$` of two.
    text = text.replace("$$(", "$(")
    parsed = parse_all(text)
    is_clear = parsed.failure is None or isinstance(parsed.failure, SyntaxFault)
    return parsed if is_clear else parse_all(text, is_template=True)


def read_commands(text: str) -> Script:
    """Return the commands of a script; () if a shell refuses it, or if it is not understood."""
    parsed = parse_command_line(text)
    return parsed.script if parsed.failure is None else ()


def read_single(text: str) -> tuple[str, ...]:
    """Return the words of a text that is one command; () if it is none, or if a shell does more than to start it."""
    script = read_commands(text)
    command = script[0].pipelines[0][1].commands[0] if script else None
    if not isinstance(command, Simple) or command.assignments or command.redirections:
        return ()
    return tuple(_list_texts(command)) if script in ((wrap(command),), (wrap(command, "\n"),)) else ()


def read_words(text: str) -> list[tuple[str, ...]]:
    """Return the words of all programs in a script, up to what is wrong with it."""
    programs = parse_command_line(text).programs
    # `bash <<EOF` reads a script.
    shells = (each for each in programs if (list_words(each) or [""])[0].rpartition("/")[2] in SHELLS)
    documents = (body for shell in shells for redirection in shell.redirections for body in redirection.body)
    inner = [parse_command_line("".join(part.text for part in body)).programs for body in documents]
    return [words for program in chain(programs, *inner) if (words := list_words(program))]


def list_steps(script: Script) -> Iterator[Step]:
    """Yield the pipelines of a script in their order: instead of a loop or the like, those in it."""
    for and_or in script:
        ends = (*(operator for operator, _ in and_or.pipelines[1:]), and_or.end)
        for (_, pipeline), end in zip(and_or.pipelines, ends, strict=True):
            bodies = [body for command in pipeline.commands for body in list_bodies(command)]
            for body in bodies:
                yield from list_steps(body)
            if not bodies or len(pipeline.commands) > 1:
                yield Step(pipeline.commands, end)


def list_words(command: Command) -> tuple[str, ...]:
    """Return the words of a command, with its variables as they are written, and without programs that only start it.

    A loop and the like have none.
    """
    if not isinstance(command, Simple):
        return ()
    words, at = _list_texts(command), 0
    while at < len(words) and (words[at] in _BEFORE_COMMANDS or _ASSIGNMENT.match(words[at])):
        at += 1
    return tuple(words[at:])


def _list_texts(command: Simple) -> list[str]:
    return ["".join([part.text for part in word]) for word in command.words if not isinstance(word, Assignment)]
