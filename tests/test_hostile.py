"""Repositories that are broken, odd or malicious: the real command says what is wrong, and where, and lives.

A case is a folder under hostile/: a jobs repository, the arguments of `jobgen render` in `args`, and in `expected` the
exit code and one line for each finding. A line may give a finding's whole message, or leave it out.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CASES = sorted(path for path in (Path(__file__).parent / "hostile").iterdir() if path.is_dir())
# Seconds at work, and for waiting in all: tests run beside each other, and a clock on the wall counts them too.
AT_WORK, IN_ALL = 10, 60
MEMORY = 1 << 30
DROP_CAPABILITY, OVERRIDE_PERMISSIONS, SEARCH_ANYWHERE = 24, 1, 2

LIBC = ctypes.CDLL(None)

PLACE = r"[^:\s][^:]*:[1-9]\d*:[1-9]\d*"
FINDING = re.compile(rf"({PLACE}: (?:error|warning|info))(: .*[^.\s])( \[[a-z]+(?:-[a-z]+)*\])")
RELATED = re.compile(rf"    {PLACE}: .*[^.\s]")
CLOSING = re.compile(r"jobgen: .*[^.\s]")


def large_file(repo: Path) -> None:
    with (repo / "jobs/large.yaml").open("wb") as stream:
        stream.writelines(b"# %060d\n" % number for number in range(50 * 1024 * 1024 // 63))


def links_out(repo: Path) -> None:
    outside = repo.parent / "outside"
    outside.mkdir()
    shutil.copy(repo / "jobs/good.yaml", outside / "stolen.yaml")
    (repo / "jobs/file.yaml").symlink_to(outside / "stolen.yaml")
    (repo / "jobs/folder").symlink_to(outside)
    (repo / "jobs/relative.yaml").symlink_to("../../outside/stolen.yaml")
    (repo / "overlays").symlink_to(outside)
    (repo / "schemas").symlink_to(outside)


def dangling_link(repo: Path) -> None:
    (repo / "jobs/gone.yaml").symlink_to("nowhere.yaml")


def link_loops(repo: Path) -> None:
    (repo / "jobs/around").symlink_to(".")
    (repo / "jobs/itself.yaml").symlink_to("itself.yaml")
    (repo / "jobs/one.yaml").symlink_to("other.yaml")
    (repo / "jobs/other.yaml").symlink_to("one.yaml")


def links_within(repo: Path) -> None:
    (repo / "kept").mkdir()
    shutil.move(repo / "jobs/good.yaml", repo / "kept/good.yaml")
    (repo / "jobs/good.yaml").symlink_to("../kept/good.yaml")
    (repo / "jobs/folder").symlink_to("../kept")


def jobs_linked(repo: Path) -> None:
    (repo / "jobs").symlink_to("kept")


def pipe(repo: Path) -> None:
    os.mkfifo(repo / "jobs/x.yaml")


def unreadable_file(repo: Path) -> None:
    (repo / "jobs/secret.yaml").write_text("kind: [\n")
    (repo / "jobs/secret.yaml").chmod(0)


def unreadable_folder(repo: Path) -> None:
    (repo / "jobs/secret").mkdir(mode=0)


def nested_folders(repo: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(repo / "jobs")
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.yaml").write_text("kind: [\n")
    finally:
        os.chdir(here)


def wide_line(repo: Path) -> None:
    head = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata:\n  name: wide\nspec:\n  framework: pytorch\n"
    (repo / "jobs/wide.yaml").write_text(f"{head}  image: x{' ' * 200_000}y\n")


def control_characters(repo: Path) -> None:
    (repo / "jobs/a\x1b[2J\nb.yaml").write_text("kind: [\n")
    Path(os.fsdecode(os.fsencode(repo) + b"/jobs/\xff.yaml")).write_text("kind: [\n")


PREPARE: dict[str, Callable[[Path], None]] = {
    "file-of-50-mb": large_file,
    "symlinks-out-of-the-tree": links_out,
    "dangling-symlink": dangling_link,
    "symlink-loops": link_loops,
    "symlinks-within-the-tree": links_within,
    "jobs-folder-is-a-symlink": jobs_linked,
    "pipe-named-yaml": pipe,
    "unreadable-file": unreadable_file,
    "unreadable-folder": unreadable_folder,
    "folders-nested-1500-deep": nested_folders,
    "line-of-200000-spaces": wide_line,
    "file-names-with-control-characters": control_characters,
}
"""What Git cannot or should not hold is made by the test."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is removed in the end; Python's own way of doing that is not up to some of the cases."""
    name = tempfile.mkdtemp()
    yield Path(name)
    subprocess.run(["rm", "-rf", name], check=True)


def set_limits() -> None:
    """Little time and memory; and root, who may read everything, may no longer."""
    resource.setrlimit(resource.RLIMIT_CPU, (AT_WORK, AT_WORK))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for capability in (OVERRIDE_PERMISSIONS, SEARCH_ANYWHERE):
        LIBC.prctl(DROP_CAPABILITY, capability, 0, 0, 0)


def render(repo: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """The real command, in little memory and little time."""
    return subprocess.run(
        [sys.executable, "-m", "jobgen", "render", *arguments],
        cwd=repo,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=IN_ALL,
        check=False,
        preexec_fn=set_limits,
    )


def told(line: re.Match[str], expected: str) -> bool:
    """Whether a finding is the one that was expected; an expectation may be silent about the message."""
    place, _, rule = line.groups()
    return expected in (line.string, place + rule)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_faults_of_a_hostile_repository_are_found_where_they_are(case: Path, folder: Path) -> None:
    repo = folder / "repo"
    shutil.copytree(case, repo, symlinks=True)
    PREPARE.get(case.name, lambda _: None)(repo)
    arguments = shlex.split((case / "args").read_text()) if (case / "args").exists() else []
    code, *expected = (case / "expected").read_text().splitlines()
    done = render(repo, arguments)
    said = done.stderr.splitlines()
    findings = [match for match in map(FINDING.fullmatch, said) if match]
    other = [line for line in said if not FINDING.fullmatch(line) and not RELATED.fullmatch(line)]

    assert (done.returncode, len(findings)) == (int(code), len(expected)), done.stderr[-4000:]
    assert [line.string for line, wanted in zip(findings, expected, strict=True) if not told(line, wanted)] == []
    assert len(other) == bool(done.returncode), other
    assert all(CLOSING.fullmatch(line) and "internal fault" not in line for line in other)
    assert not (done.returncode and done.stdout)


def test_of_five_thousand_faults_the_first_hundred_are_told_in_time(folder: Path) -> None:
    head = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: many}\nspec:\n"
    (folder / "jobs").mkdir()
    (folder / "jobs/many.yaml").write_text(head + "".join(f"  imag{number}: x\n" for number in range(5_000)))
    done = render(folder, [])

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 102
    assert "[too-many-faults]" in done.stderr


def test_a_document_of_four_million_nodes_is_refused(folder: Path) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wide}\n"
    (folder / "jobs").mkdir()
    (folder / "jobs/wide.yaml").write_text(f"{manifest}data: [{'x,' * 4_000_000}x]\n")
    done = render(folder, [])

    assert done.returncode == 1
    assert done.stderr.endswith(" [too-many-nodes]\njobgen: 1 error; nothing was rendered\n")
