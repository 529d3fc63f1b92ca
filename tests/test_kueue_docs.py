"""docs/kueue.md: its files make a repository in which its commands print what the page shows."""

import base64
import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest
from jobgenprocess import run_here

PAGE = Path(__file__).parent.parent / "docs/kueue.md"
FILE = re.compile(r"^```(?:yaml|csv)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```text\n\$ jobgen (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "branch"
    folder.mkdir()
    (folder / "jobgen.yaml").write_text("")
    return folder


def test_commands_print_what_the_page_shows(repository, accept):
    text = PAGE.read_text("utf-8")
    shown, main, has_run = text, repository.parent / "main", False
    for block in re.finditer(r"^```(yaml|csv|text)\n.*?^```$", text, re.MULTILINE | re.DOTALL):
        # A command sees the files above it; in `../main`, those above the last command before them.
        if (file := FILE.match(block[0])) and "/prod" not in file[1]:
            if has_run:
                shutil.copytree(repository, main, dirs_exist_ok=True)
                has_run = False
            (repository / file[1]).parent.mkdir(parents=True, exist_ok=True)
            (repository / file[1]).write_text(file[2])
        if command := COMMAND.match(block[0]):
            code, encoded, err = run_here(["-C", str(repository), *shlex.split(command[1])])
            out, has_run = base64.b64decode(encoded).decode(), True
            assert (code, err) == (0, "")
            shown = shown.replace(block[0], f"```text\n$ jobgen {command[1]}\n{out}```")
    if accept:
        PAGE.write_text(shown, "utf-8")

    assert len(COMMAND.findall(text)) >= 3
    assert shown == (shown if accept else text)


def test_python_examples():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0
