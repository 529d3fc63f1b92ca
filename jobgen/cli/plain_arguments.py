"""Arguments of plain kinds, parsed without click, whose import takes longer than reading and checking a small file.

click describes the options. `tools/build_ready.py` derives a table of those that a few lines can parse: flags, and
options with one text. Anything else is left to click: an option that is unknown or checks its value, `--option=value`,
several letters in one word, `--`, and every mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.named_tuple import NamedTuple

SET, TAKE, ADD = "set", "take", "add"
"""What an option does with its parameter: set a value, take the next word, or add the next word to a list."""

NO_CACHE = "no_cache"
"""The parameter of `--no-cache`, which can stand before a command and behind it."""


class PlainCommand(NamedTuple):
    """A command, and what click would call it with."""

    module: str
    """The module whose function `run_command` is the command."""
    directory: str
    no_cache: bool
    values: dict[str, Any]


class _NotPlainError(Exception):
    """The arguments need click."""


def parse_plain(arguments: Sequence[str], tables: Mapping[str, Any]) -> PlainCommand | None:
    """Parse arguments with the tables of commands; None if click has to parse them.

    The table of the options before the command is that of an empty name. A table has the `options` by their spellings,
    each with its parameter, what it does, and the value or the choices; and the `values` without any option.
    """
    if not tables:
        return None
    words, rest = iter(arguments), list[str]()
    shared = dict(tables[""]["values"])
    try:
        name = _read_options(words, tables[""]["options"], shared)
        table = tables.get(name) if name else None
        if table is None:
            return None
        values = dict(table["values"])
        while (word := _read_options(words, table["options"], values)) is not None:
            rest.append(word)
    except _NotPlainError:
        return None
    values[table["argument"]] = rest
    no_cache = values.pop(NO_CACHE) or shared[NO_CACHE]
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return PlainCommand(table["module"], shared["directory"], no_cache, frozen)


def _read_options(words: Iterator[str], options: Mapping[str, Any], values: dict[str, Any]) -> str | None:
    """Read options up to the next word that is none, and return this word; None at the end."""
    for word in words:
        if not _is_option(word):
            return word
        if word not in options:
            raise _NotPlainError
        name, action, detail = options[word]
        if action == SET:
            values[name] = detail
            continue
        value = next(words, None)
        if value is None or _is_option(value) or (detail is not None and value not in detail):
            raise _NotPlainError
        values[name] = [*values[name], value] if action == ADD else value
    return None


def _is_option(word: str) -> bool:
    return word[:1] == "-" and word != "-"
