"""Values of parsed shell scripts: commands, words and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from jobgen.model.named_tuple import NamedTuple


class Literal(NamedTuple):
    """Text as it stands."""

    text: str
    quoted: bool = False


class Parameter(NamedTuple):
    """`$NAME` or `${NAME…}`."""

    name: str
    quoted: bool
    operator: str = ""
    argument: Word = ()
    item: Word | None = None
    """The index of an array, or `@` or `*`."""
    prefix: str = ""
    """`#` for the length, `!` for the variable that the value names."""
    text: str = ""
    """As it is written, as in all parts of a word."""


class Substitution(NamedTuple):
    """The output of commands; that of `<(…)` is the name of a file."""

    body: Script
    quoted: bool
    is_file: bool = False
    text: str = ""


class Arithmetic(NamedTuple):
    """`$((…))`."""

    expression: Word
    quoted: bool
    text: str = ""


Part: TypeAlias = Literal | Parameter | Substitution | Arithmetic
Word: TypeAlias = "tuple[Part, ...]"


class Assignment(NamedTuple):
    """`NAME=value`, `NAME[index]=value`, `NAME+=value` or `NAME=(values)`."""

    name: str
    value: Word | list[Word]
    appends: bool = False
    item: str | None = None


class Redirection(NamedTuple):
    """A file, or a text, that a command reads or writes."""

    operator: str
    target: Word
    descriptor: str
    body: list[Word]
    """The text of a here-document, which follows later in the script."""


class Simple(NamedTuple):
    """A program, function or built-in command with its words."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirections: tuple[Redirection, ...] = ()


class Group(NamedTuple):
    """`{ …; }`, or `( … )`, which has a state of its own."""

    body: Script
    is_subshell: bool
    redirections: tuple[Redirection, ...] = ()


class If(NamedTuple):
    """Conditions with what follows each; the last one of `else` is None."""

    branches: tuple[tuple[Script | None, Script], ...]


class Loop(NamedTuple):
    """`while` and `until`."""

    condition: Script
    body: Script
    until: bool


class For(NamedTuple):
    """`for NAME in words`, or with three expressions."""

    name: str
    words: tuple[Word, ...] | None
    body: Script
    expressions: tuple[Word, ...] = ()


class Case(NamedTuple):
    """`case` with its patterns."""

    subject: Word
    branches: tuple[tuple[tuple[Word, ...], Script, str], ...]


class Function(NamedTuple):
    """The definition of a function."""

    name: str
    body: Command


class Test(NamedTuple):
    """`[[ … ]]`: words, and operators as texts."""

    tokens: tuple[Word | str, ...]


class Calculation(NamedTuple):
    """`((…))`."""

    expression: Word


Command: TypeAlias = Simple | Group | If | Loop | For | Case | Function | Test | Calculation


class Pipeline(NamedTuple):
    """Commands that `|` connects."""

    commands: tuple[Command, ...]
    negated: bool = False


class AndOr(NamedTuple):
    """Pipelines, each with the operator before it: empty, `&&` or `||`; and the sign behind them."""

    pipelines: tuple[tuple[str, Pipeline], ...]
    end: str = ""
    """`;`, `&` or a line break; empty before a word or sign that closes."""

    @property
    def is_background(self) -> bool:
        """Return True if a shell does not wait for it."""
        return self.end == "&"


Script: TypeAlias = "tuple[AndOr, ...]"


def list_bodies(command: Command) -> Iterator[Script]:
    """Yield the scripts in a command, in the order in which they are written: none of a program."""
    if isinstance(command, (Group, For, Loop)):
        yield from (command.condition, command.body) if isinstance(command, Loop) else (command.body,)
    elif isinstance(command, If):
        for condition, body in command.branches:
            yield from (condition or (), body)
    elif isinstance(command, Case):
        yield from (body for _, body, _ in command.branches)
    elif isinstance(command, Function):
        yield (wrap(command.body),)


def wrap(command: Command, end: str = "") -> AndOr:
    """Return a command as one that stands alone."""
    return AndOr((("", Pipeline((command,))),), end)
