"""The table of commands that completion reads instead of the commands, which take long to import."""

from __future__ import annotations

import os

from jobgen.model.features import find_missing_feature, is_as_shipped
from jobgen.model.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data", "completion")
"""A script for each shell."""
_UNKNOWN: Mapping[str, Any] = {"options": {}, "arguments": []}


class Slot(NamedTuple):
    """A place for a value: the sorts of names that it takes, and fixed words."""

    takes: Sequence[str] = ()
    words: Sequence[str] = ()


class Completed(NamedTuple):
    """What the last word of a command line is: the begin of a value, of an option or of a command."""

    word: str
    """The part of the last word that is completed."""
    lead: str = ""
    """The part of the last word before it, such as `--format=`."""
    slot: Slot = Slot()
    names: Mapping[str, str] = {}
    """Commands or options, with their help."""
    options: Mapping[str, str] = {}
    """The options before it, with their values."""
    arguments: Sequence[str] = ()
    """The arguments before it."""


def read_table() -> dict[str, Any]:
    """Return the table, which `tools/build_completion.py` writes: a module, because it is read without `json`."""
    from jobgen.cli.completion.commands import TABLE

    if is_as_shipped():
        return TABLE
    commands = {name: each for name, each in TABLE["commands"].items() if not find_missing_feature(name)}
    return {**TABLE, "commands": commands}


def parse_words(table: Mapping[str, Any], words: Sequence[str]) -> Completed:
    """Find what the last of the words is; the first one follows `jobgen`."""
    command, pending, completed = _parse_before(table, words)
    if pending:
        return completed._replace(slot=_find_slot(command["options"][pending]))
    if completed.word.startswith("-") and "--" not in completed.options:
        return _complete_option(command, completed)
    return _complete_argument(command, completed)


def _parse_before(command: Mapping[str, Any], words: Sequence[str]) -> tuple[Mapping[str, Any], str, Completed]:
    """Return the command, the option that the last word is a value of, and what is before the last word."""
    options: dict[str, str] = {}
    arguments: list[str] = []
    pending, missing = "", 0
    for word in words[:-1]:
        if missing:
            options[pending] = word
            missing -= 1
        elif word.startswith("-") and word != "-" and "--" not in options:
            pending, _, value = _split_option(command, word)
            missing = 0 if value else command["options"].get(pending, {}).get("count", 0)
            options[pending] = value
        elif "commands" in command:
            command = command["commands"].get(word, _UNKNOWN)
        else:
            arguments.append(word)
    return command, pending if missing else "", Completed(words[-1], options=options, arguments=arguments)


def _complete_option(command: Mapping[str, Any], completed: Completed) -> Completed:
    """The last word is an option, or one with the begin of its value."""
    name, lead, value = _split_option(command, completed.word)
    if lead:
        return completed._replace(word=value, lead=lead, slot=_find_slot(command["options"].get(name, {})))
    return completed._replace(names=_list_help(command["options"]))


def _complete_argument(command: Mapping[str, Any], completed: Completed) -> Completed:
    """The last word is a command or an argument; where there can be none, options are listed."""
    if "commands" in command:
        return completed._replace(names=_list_help(command["commands"]))
    slots, number = command["arguments"], len(completed.arguments)
    if not slots:
        return completed._replace(names=_list_help(command["options"]))
    if number < len(slots) or slots[-1].get("many"):
        return completed._replace(slot=_find_slot(slots[min(number, len(slots) - 1)]))
    return completed


def _split_option(command: Mapping[str, Any], word: str) -> tuple[str, str, str]:
    """Return the name of an option, the text before its value, and its value: `--env=prod`, `-eprod`."""
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        return name, name + sign if sign else "", value
    name, value = word[:2], word[2:]
    takes_value = command["options"].get(name, {}).get("count", 0)
    return (name, name, value) if takes_value and value else (word, "", "")


def _find_slot(entry: Mapping[str, Any]) -> Slot:
    return Slot(entry.get("takes", ()), entry.get("words", ()))


def _list_help(entries: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry.get("help", "") for name, entry in entries.items()}
