"""docs/kueue.md: its files make a repository in which its commands print what the page shows."""

import base64
import doctest
import re
import shlex
from pathlib import Path

import pytest
from jobgenprocess import run_here

PAGE = Path(__file__).parent.parent / "docs/kueue.md"
FILE = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```text\n\$ jobgen (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("")
    return tmp_path


def test_commands_print_what_the_page_shows(repository, accept):
    text = PAGE.read_text("utf-8")
    shown = text
    for block in re.finditer(r"^```(yaml|text)\n.*?^```$", text, re.MULTILINE | re.DOTALL):
        # A command sees the files above it.
        if (file := FILE.match(block[0])) and "/prod" not in file[1]:
            (repository / file[1]).parent.mkdir(parents=True, exist_ok=True)
            (repository / file[1]).write_text(file[2])
        if command := COMMAND.match(block[0]):
            code, encoded, err = run_here(["-C", str(repository), *shlex.split(command[1])])
            out = base64.b64decode(encoded).decode()
            assert (code, err) == (0, "")
            shown = shown.replace(block[0], f"```text\n$ jobgen {command[1]}\n{out}```")
    if accept:
        PAGE.write_text(shown, "utf-8")

    assert len(COMMAND.findall(text)) >= 3
    assert shown == (shown if accept else text)


def test_python_examples():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0
