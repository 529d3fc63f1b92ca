"""Repositories that are broken, odd or malicious: `jobgen render` reports what is wrong, and where, in little memory.

A case is a transcript in hostile/ (see transcripts.py). What Git cannot or should not hold is made by `PREPARE`.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from growth import count_calls
from jobgenprocess import run_jobgen
from transcripts import changed_files, copy_repository, files_below, find_transcripts, output_sections, read_transcript

from jobgen.model.finding import FixStep
from jobgen.model.suggest import suggest_rename

TRANSCRIPTS = find_transcripts("hostile")
# Seconds at work, and for waiting in all: tests run beside each other, and a clock on the wall counts them too.
AT_WORK, IN_ALL = 10, 60
MEMORY = 1 << 30
DROP_CAPABILITY, OVERRIDE_PERMISSIONS, SEARCH_ANYWHERE = 24, 1, 2

LIBC = ctypes.CDLL(None)

PLACE = r"[^:\s][^:]*:[1-9]\d*:[1-9]\d*"
FINDING = re.compile(rf"{PLACE}: (?:error|warning|info): .*[^.\s] \[[a-z]+(?:-[a-z]+)*\]")
RELATED = re.compile(rf"    {PLACE}: .*[^.\s]")
CLOSING = re.compile(r"jobgen: .*[^.\s]")
PAGE = re.compile(r"see: https://\S+")


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
    "file-names-with-control-characters": control_characters,
}
"""What is added to the repository of a transcript."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is removed in the end; `shutil.rmtree` fails on some of the cases."""
    name = tempfile.mkdtemp()
    yield Path(name)
    subprocess.run(["rm", "-rf", name], check=True)


def set_limits() -> None:
    """Limit time and memory, and drop the capabilities by which root reads everything."""
    resource.setrlimit(resource.RLIMIT_CPU, (AT_WORK, AT_WORK))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for capability in (OVERRIDE_PERMISSIONS, SEARCH_ANYWHERE):
        LIBC.prctl(DROP_CAPABILITY, capability, 0, 0, 0)


def jobgen(repo: Path, arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run the real command with little memory and little time."""
    return run_jobgen(repo, *arguments, timeout=IN_ALL, limit=set_limits)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_hostile_transcript(path: Path, folder: Path, accept: bool) -> None:
    transcript = read_transcript(path)
    directory = transcript.write_repository(folder / "repo")
    PREPARE.get(transcript.name, lambda _: None)(folder / "repo")
    [step] = transcript.steps
    done = jobgen(directory, step.arguments)
    output = output_sections(done.returncode, done.stdout, done.stderr)
    if transcript.name not in PREPARE:
        output |= changed_files(transcript.files(), files_below(folder / "repo"))
    if accept:
        transcript = transcript.accept([output])

    assert output == transcript.expected
    assert_plain_report(done)


def assert_plain_report(done: subprocess.CompletedProcess[bytes]) -> None:
    """Check the shape of the output: findings, then one closing line if the command failed."""
    other = [line for line in done.stderr.decode().splitlines() if not is_finding(line) and not PAGE.fullmatch(line)]

    assert len(other) == bool(done.returncode), other
    assert all(CLOSING.fullmatch(line) and "internal error" not in line for line in other)
    assert not (done.returncode and done.stdout)


def is_finding(line: str) -> bool:
    return bool(FINDING.fullmatch(line) or RELATED.fullmatch(line))


def test_preparations_belong_to_transcripts() -> None:
    assert PREPARE.keys() <= {path.stem for path in TRANSCRIPTS}


def test_5000_errors_are_cut_to_100(folder: Path) -> None:
    head = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: many}\nspec:\n"
    (folder / "jobs").mkdir()
    (folder / "jobs/many.yaml").write_text(head + "".join(f"  imag{number}: x\n" for number in range(5_000)))
    done = jobgen(folder, ["render"])

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 102
    assert b"[too-many-errors]" in done.stderr


def test_one_of_many_unknown_names_is_judged_without_the_others() -> None:
    """Each name that is reported would be compared with all others, and each of these with all known ones."""
    known, few, many = ["image", "command"], {"imag1": 1, "imag2": 1}, {f"imag{number}": 1 for number in range(5_000)}
    # The first call compiles patterns.
    _, *calls = [
        count_calls(lambda names=names: suggest_rename("imag1", known, names, bool)) for names in (few, few, many)
    ]

    renamed = (FixStep("rename", "imagee", "image"),)
    assert suggest_rename("imagee", known, {**many, "imagee": 1}, bool) == (renamed, True)
    assert suggest_rename("imagee", known, {**many, "imagee": 1, "imgae": 1}, bool) == (renamed, False)
    assert calls[0] == calls[1]


def test_document_of_four_million_nodes_is_refused(folder: Path) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wide}\n"
    (folder / "jobs").mkdir()
    (folder / "jobs/wide.yaml").write_text(f"{manifest}data: [{'x,' * 4_000_000}x]\n")
    done = jobgen(folder, ["render"])

    assert done.returncode == 1
    assert done.stderr.endswith(b" [too-many-nodes]\njobgen: 1 error; nothing was rendered\n")


def test_line_of_200000_spaces_is_rendered(folder: Path) -> None:
    head = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata:\n  name: wide\nspec:\n  framework: pytorch\n"
    copy_repository("good-job", folder)
    (folder / "jobs/wide.yaml").write_text(f"{head}  image: x{' ' * 200_000}y\n")
    done = jobgen(folder, ["render"])

    assert (done.returncode, done.stderr) == (0, b"")
    assert f'image: "x{" " * 200_000}y"\n'.encode() in done.stdout
    assert b"name: good\n" in done.stdout
