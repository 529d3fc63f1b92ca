"""CONTRIBUTING.md is followed to the letter in a copy of the repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## Add a (\w[\w ]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = (
    "jobgen",
    "schemas",
    "policies",
    "defects",
    "jobs",
    "overlays",
    "docs",
    "tests",
    "tools",
    "jobgen.yaml",
    "pyproject.toml",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which all files of the page are written."""
    folder = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)  # with compiled modules, which nine processes would compile again
        else:
            shutil.copy(source, folder / name)
    for language, text in BLOCK.findall(PAGE):
        named = re.match(r"# (\S+/\S+)\n", text)
        if named and language != "console":
            path = folder / named[1]
            assert not path.exists(), path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if language == "python" else text[named.end() :], "utf-8")
    with open(folder / "docs/formats.md", "a", encoding="utf-8") as page:
        page.write("\n## csv\n\nOne row for each entry.\n")
    return folder


def commands() -> list[tuple[str, str, str]]:
    return [
        (title, *entry.partition("\n")[::2])
        for title, section in SECTIONS.items()
        for language, text in BLOCK.findall(section)
        if language == "console"
        for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    ]


def test_the_page_has_all_walkthroughs():
    assert list(SECTIONS) == ["rule", "kind", "report format", "command"]
    assert {title for title, _, _ in commands()} == set(SECTIONS)


@pytest.mark.parametrize(("title", "command", "shown"), commands())
def test_commands_print_what_the_page_shows(title: str, command: str, shown: str, copy: Path) -> None:
    program, *arguments = shlex.split(command)
    pytest_command = ["-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-p", "no:pytest-lsp"]
    run = {"jobgen": ["-m", "jobgen"], "pytest": pytest_command, "python": []}
    environment = {**os.environ, "PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(copy / "cache")}
    done = subprocess.run(
        [sys.executable, *run[program], *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    if program == "pytest":
        # At least one test ran, and none was only collected.
        assert re.search(r"^\.+ +\[100%\]", done.stdout, re.MULTILINE), done.stdout
    position = 0
    for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE):
        found = done.stdout.find(part, position)
        assert found >= 0, done.stdout
        position = found + len(part)
    assert shown.startswith("...") or done.stdout.startswith(shown.partition("...\n")[0])
