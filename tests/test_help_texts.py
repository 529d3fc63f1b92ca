"""The help that is kept as text: it is what click prints."""

from __future__ import annotations

import fcntl
import os
import pty
import runpy
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from jobgen.cli.help_texts import FOLDER, find_help

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
TEXTS = {path.name: path.read_text() for path in Path(FOLDER).iterdir()}


def name_arguments(file):
    """The arguments that ask for the help in a file."""
    return [] if file == "jobgen.txt" else file.removesuffix(".txt").split(".")


def test_texts_are_current():
    built = runpy.run_path(str(ROOT / "tools/build_completion.py"))["build_help"]()
    assert built == TEXTS, "run `python tools/build_completion.py`"


@pytest.mark.parametrize("arguments", [["--help"], ["lint", "-h"], ["policy", "test", "--help"]], ids=" ".join)
def test_click_prints_the_same(arguments):
    outputs = [
        subprocess.run(
            [sys.executable, "-m", "jobgen", *arguments],
            capture_output=True,
            check=True,
            env={**ENVIRONMENT, **columns},
        ).stdout
        for columns in ({}, {"COLUMNS": "80"})
    ]
    assert outputs[0] == outputs[1] != b""


@pytest.mark.parametrize("file", sorted(TEXTS))
def test_every_command_has_its_text(file):
    for option in ("-h", "--help"):
        assert find_help([*name_arguments(file), option], {}) == TEXTS[file]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["lint"],
        ["--help", "lint"],
        ["lint", "a.yaml", "--help"],
        ["../jobgen", "-h"],
        ["nothing", "-h"],
        ["", "-h"],
    ],
    ids=repr,
)
def test_other_arguments_are_left_to_click(arguments):
    assert find_help(arguments, {}) is None


def test_a_narrow_terminal_gets_lines_that_fit():
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    process = subprocess.Popen([sys.executable, "-m", "jobgen", "--help"], stdout=follower, env=ENVIRONMENT)
    os.close(follower)
    printed = b""
    try:
        while block := os.read(leader, 4096):
            printed += block
    except OSError:
        pass
    os.close(leader)
    assert process.wait() == 0
    lines = printed.decode().splitlines()
    assert any("Write training jobs once" in line for line in lines)
    assert max(map(len, lines)) <= 50
