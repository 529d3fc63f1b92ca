"""Values of parsed shell scripts: commands, words and their parts."""

from __future__ import annotations

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


class Substitution(NamedTuple):
    """The output of commands; that of `<(…)` is the name of a file."""

    body: Script
    quoted: bool
    is_file: bool = False


class Arithmetic(NamedTuple):
    """`$((…))`."""

    expression: Word
    quoted: bool


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
    """Pipelines, each with the operator before it: empty, `&&` or `||`."""

    pipelines: tuple[tuple[str, Pipeline], ...]
    is_background: bool = False


Script: TypeAlias = "tuple[AndOr, ...]"
