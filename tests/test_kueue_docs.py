"""The pages about Kueue: their files, in order, make a repository in which their commands print what they show."""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest
from command import run_jobgen_text

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [DOCS / "kueue.md", DOCS / "queue_changes.md", DOCS / "queue_places.md"]
LIBRARY = DOCS / "kueue_library.md"
END = "\n<!-- end of the page -->\n"
FILE = re.compile(r"^```(?:yaml|csv)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```text\n\$ jobgen (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "branch"
    folder.mkdir()
    (folder / "jobgen.yaml").write_text("")
    return folder


def test_commands_print_what_the_page_shows(repository, accept):
    text = END.join(page.read_text("utf-8") for page in PAGES)
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
            done, has_run = run_jobgen_text(repository, *shlex.split(command[1])), True
            assert (done.returncode, done.stderr) == (0, "")
            shown = shown.replace(block[0], f"```text\n$ jobgen {command[1]}\n{done.stdout}```")
    if accept:
        for page, part in zip(PAGES, shown.split(END), strict=True):
            page.write_text(part, "utf-8")

    assert len(COMMAND.findall(text)) >= 3
    assert shown == (shown if accept else text)


def test_python_examples():
    assert doctest.testfile(str(LIBRARY), module_relative=False).failed == 0
