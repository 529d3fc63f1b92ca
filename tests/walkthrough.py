"""Run a page of the documentation: write its files and run its commands, in order, in an empty folder.

A block of YAML whose first line is a comment with a path is a file. A block `console` has commands after `$ `, each
with its output, in which `...` stands for any lines. After `<!-- fails -->`, the last command of the next block exits
with an error. If a picture of the folder terminal/ follows a block, it shows the last command as a terminal does.

`python tests/walkthrough.py PAGE` runs a page with the `jobgen` that is on the PATH.
"""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import NamedTuple

MARK = "<!-- The commands of this page run in order, in an empty folder: tests/test_walkthroughs.py. -->"
DATE = "2026-11-02T09:00:00Z"
COLUMNS = 100
_BLOCK = re.compile(
    r"^(?P<fails><!-- fails -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"(?:\n\n!\[.*?\]\(terminal/(?P<picture>[\w-]+\.svg)\))?",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# (\S+/\S+|\S+\.yaml)\n")
_COMMAND = re.compile(r"^\$ (.*(?<!\\)\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
_CHANGING = re.compile(r"(?<=checked by )\d+(?= rules)|(?<=\()[0-9a-f]{10}(?=\))")


class Command(NamedTuple):
    """A command of a page, with what the page shows and what it printed."""

    text: str
    shown: str
    position: int
    """Where the output begins in the page."""
    printed: str
    code: int
    fails: bool
    picture: str
    """The file of the picture that shows the command, or nothing."""
    screen: str
    """For a picture: the output on a terminal."""

    @property
    def is_as_shown(self) -> bool:
        """Whether the command did what the page shows."""
        return self.fails == (self.code != 0) and fits(self.shown, self.printed)


def fits(shown: str, printed: str) -> bool:
    """Return True if an output is the one that is shown, in which `...` stands for any lines."""
    parts = re.split(r"^\.\.\.\n", mask(shown), flags=re.MULTILINE)
    pattern = "(?:.*\n)*".join(map(re.escape, parts))
    return re.fullmatch(pattern, mask(printed)) is not None


def mask(text: str) -> str:
    """Return a text without what differs between versions of jobgen: the number of rules, and commits of its files."""
    return _CHANGING.sub("#", text)


def run_page(page: Path, folder: Path, programs: Path = Path(sys.executable).parent) -> Iterator[Command]:
    """Write the files of a page and run its commands, with the `jobgen` of a folder."""
    current, environment = folder, make_environment(folder, programs)
    for block in _BLOCK.finditer(page.read_text("utf-8")):
        named = _FILE.match(block["text"])
        if block["language"] == "yaml" and named:
            path = current / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            # With the comment, as a reader copies the block.
            path.write_text(block["text"], "utf-8")
        if block["language"] != "console":
            continue
        commands = list(_COMMAND.finditer(block["text"]))
        for command in commands:
            is_last = command is commands[-1]
            picture = (block["picture"] or "") if is_last else ""
            screen = show_on_terminal(command[1], current, environment) if picture else ""
            printed, code, current = _run(command[1], current, environment)
            position = block.start("text") + command.start(2)
            fails = bool(block["fails"]) and is_last
            yield Command(command[1].rstrip("\n"), command[2], position, printed, code, fails, picture, screen)


def accept_outputs(page: Path, commands: list[Command]) -> None:
    """Write what commands printed into their page; an output with `...` stays if it fits."""
    text = page.read_text("utf-8")
    for command in reversed(commands):
        is_cut = re.search(r"^\.\.\.$", command.shown, re.MULTILINE) is not None
        if not fits(command.shown, command.printed) or not is_cut:
            before, after = text[: command.position], text[command.position + len(command.shown) :]
            text = f"{before}{command.printed}{after}"
    page.write_text(text, "utf-8")


def make_environment(folder: Path, programs: Path) -> dict[str, str]:
    """Return an environment in which Git has an author, no other settings, and a fixed time."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n")
    return {
        # The tools of this Python come before those of the system.
        "PATH": os.pathsep.join((str(programs), os.path.dirname(sys.executable), os.environ["PATH"])),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": DATE,
        "GIT_COMMITTER_DATE": DATE,
    }


def _run(command: str, folder: Path, environment: dict[str, str]) -> tuple[str, int, Path]:
    """Run a command in a shell, and return its output, its exit code, and the folder that it leaves the shell in."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as left:
        done = subprocess.run(
            ["bash", "-c", f"{command}\ncode=$?; pwd > '{left.name}'; exit $code"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout, done.returncode, Path(left.read().strip() or folder)


def show_on_terminal(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what a command shows on a terminal, with its colors."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux says so at the end
        pass
    finally:
        os.close(ours)
        process.wait(120)
    return b"".join(parts).decode().replace("\r\n", "\n")


def main() -> int:
    """Run the pages that are named, and show what differs."""
    failed = False
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder, "work")
            work.mkdir()
            commands = list(run_page(Path(name), work))
        wrong = [command for command in commands if not command.is_as_shown]
        for command in wrong:
            sys.stdout.write(f"$ {command.text}\n{command.printed}exit code {command.code}\n")
        sys.stdout.write(f"{name}: {len(commands)} commands, {len(wrong)} differ from the page\n")
        failed = failed or bool(wrong) or not commands
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
