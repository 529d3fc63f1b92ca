"""What is parsed and printed without click is exactly what click parses and prints."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobgen.cli.group import cli
from jobgen.cli.plain_arguments import PlainCommand, parse_plain
from jobgen.cli.result import Result, find_columns
from jobgen.cli.stored_help import find_help
from jobgen.repo import ready

ROOT = Path(__file__).parent.parent


def load_builder():
    spec = importlib.util.spec_from_file_location("build_ready", ROOT / "tools/build_ready.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILDER = load_builder()
TABLES = BUILDER.describe_arguments()
COMMANDS = [name for name in TABLES if name]


def parse_with_click(arguments):
    """What click calls a command with; None if it prints something or reports a mistake."""
    try:
        with cli.make_context("jobgen", [*arguments]) as context:
            name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
            with command.make_context(name, rest, parent=context) as inner:
                is_given = inner.get_parameter_source("no_cache") is click.core.ParameterSource.COMMANDLINE
                no_cache = context.params["no_cache"] or is_given
                return PlainCommand(f"jobgen.cli.run_{name}", context.params["directory"], no_cache, inner.params)
    except (click.ClickException, click.exceptions.Exit):
        return None


def list_words():
    """Spellings of all options, also those that only click can parse, and words that may be anything else."""
    commands = [cli.resolve_command(click.Context(cli), [name])[1] for name in COMMANDS]
    parameters = [*cli.params, *(each for command in commands for each in command.params)]
    options = {spelling for each in parameters for spelling in (*each.opts, *each.secondary_opts)}
    choices = {choice for each in parameters if isinstance(each.type, click.Choice) for choice in each.type.choices}
    odd = {"", "-", "--", "-h", "--help", "-x", "--form", "--format=json", "-eprod", "-e=prod", "-Cjobs", "--fix=safe"}
    return sorted({*options, *choices, *odd, *COMMANDS, "diff", "a.yaml", "jobs", "ü", "a b", "1/2", "2027-01-31"})


WORDS = st.sampled_from(list_words())


@given(st.sampled_from(COMMANDS), st.lists(WORDS, max_size=3), st.lists(WORDS | st.text(max_size=3), max_size=6))
def test_click_gives_what_the_table_gives(command, before, after):
    arguments = [*before, command, *after]
    plain = parse_plain(arguments, TABLES)
    if plain is not None:
        assert plain == parse_with_click(arguments)


@given(st.data())
@pytest.mark.parametrize("command", COMMANDS)
def test_plain_options_are_parsed_without_click(command, data):
    plain = [
        [spelling] if action == "set" else [spelling, detail[-1] if detail else "a"]
        for spelling, (_, action, detail) in TABLES[command]["options"].items()
    ]
    words = data.draw(st.lists(st.sampled_from([*plain, ["a.yaml"], ["-"]]), max_size=8))
    arguments = ["-C", "jobs", command, *(word for option in words for word in option)]
    parsed = parse_plain(arguments, TABLES)
    assert parsed is not None
    assert parsed == parse_with_click(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["lint", "--help"],
        ["--help", "lint"],
        ["lint", "--format=json"],
        ["lint", "--format", "jso"],
        ["lint", "--format"],
        ["lint", "-e", "--no-cache"],
        ["lint", "--since", "main"],
        ["lint", "--today", "2027-01-31"],
        ["lint", "--", "a.yaml"],
        ["lint", "-ea"],
        ["-C"],
        ["--version"],
        ["diff"],
        ["render", "-o"],
        ["nothing"],
    ],
)
def test_everything_else_is_left_to_click(arguments):
    assert parse_plain(arguments, TABLES) is None


def test_without_tables_click_parses_everything():
    assert parse_plain(["lint"], {}) is None


def test_the_module_of_a_table_has_the_command():
    for name, table in TABLES.items():
        assert not name or callable(importlib.import_module(table["module"]).run_command)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The help that a wheel has."""
    text = BUILDER._show("--version") + BUILDER._show("--help")
    (tmp_path / ready.name_file(ready.HELP)).write_text(text, "utf-8")
    monkeypatch.setattr(ready, "FOLDER", str(tmp_path))
    return tmp_path


ASK_CLICK = """
import sys
from jobgen.cli.group import parse_and_run
from jobgen.cli.result import Result, finish
found = parse_and_run(sys.argv[1:])
isinstance(found, Result) and finish(found)
"""


@functools.cache
def ask_click(columns, *arguments):
    """What click prints in a process of its own."""
    command = [sys.executable, "-c", ASK_CLICK, *arguments]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "COLUMNS": columns})
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["--version"]])
@pytest.mark.parametrize("columns", ["", "80", "81", "200", "0", "-5", "wide"])
def test_stored_help_is_what_click_prints(stored, monkeypatch, arguments, columns):
    monkeypatch.setenv("COLUMNS", columns)
    found = find_help(arguments)
    assert found.out + found.err == ask_click(columns, *arguments)
    assert found.code == (0 if arguments else 2)


@pytest.mark.parametrize("columns", ["79", "60", "1"])
def test_click_wraps_the_help_for_narrow_terminals(stored, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert find_help(["--help"]) is None
    assert isinstance(find_help(["--version"]), Result)


def test_stored_help_has_the_same_bytes_in_every_encoding(stored):
    text = next(stored.iterdir()).read_text("utf-8")
    assert text.isascii()


@pytest.mark.parametrize("columns", ["", "120", "0", "-1", "x", " 90 ", "1_0"])
def test_columns_are_those_of_the_standard_library(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert find_columns() == shutil.get_terminal_size().columns


def test_help_of_a_command_is_that_of_click(stored):
    assert find_help(["lint", "--help"]) is None
