"""What a lint is asked about, which files that means, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobgen.repo import layout

if TYPE_CHECKING:
    from jobgen.model.finding import Finding
    from jobgen.report.suppress import Silenced, Suppression

STDIN = "<stdin>"
_OURS = ("jobs", "overlays", "policies", "schemas", layout.SETTINGS)


class LintRequest(NamedTuple):
    """What is to be linted: a folder, paths in it, environments, standard input; and whether kubeconform is asked."""

    directory: Path
    paths: Sequence[str] = ()
    envs: Sequence[str] = ()
    stdin: bytes | None = None
    second_opinion: bool = False
    today: str = ""


class LintResult(NamedTuple):
    """What a lint found, and how much it looked at."""

    findings: list[Finding]
    silenced: list[Silenced]
    files: int
    objects: int
    environments: list[str]
    rules: frozenset[str]
    """The names of all rules and policies that were applied."""
    root: Path
    comments: list[Suppression]
    mandatory: frozenset[str]
    today: str
    lasting: bool
    """Whether it is true as long as no file changes."""


class Scope(NamedTuple):
    """The repository, if it is meant as a whole its jobs; and files that stand for themselves, None if nobody asked."""

    root: Path | None
    whole: bool
    jobs: list[layout.FileEntry]
    loose: list[layout.FileEntry] | None


def resolve_files(asked: LintRequest) -> Scope:
    """The files that are meant."""
    root = layout.find_root(asked.directory.resolve())
    ours, loose = _sorted(asked.directory, root, asked.paths)
    whole = root is not None and bool(ours or not asked.paths)
    jobs = list(layout.find_jobs(root)) if root is not None and whole else []
    if not loose and asked.stdin is None and root is not None:
        return Scope(root, whole, jobs, None)
    entries = _entries(asked.directory, loose or ([] if asked.paths else ["."]), asked.stdin)
    return Scope(root, whole, jobs, list(entries))


def asked_about(findings: Iterable[Finding], asked: LintRequest) -> list[Finding]:
    """The findings about the paths that were asked about; overlays and kinds are about every job."""
    ours, loose = _sorted(asked.directory, layout.find_root(asked.directory.resolve()), asked.paths)
    if not ours:
        return list(findings)
    named = {path.removeprefix("./").rstrip("/") for path in (*ours, *loose)}
    wanted = named | ({STDIN} if asked.stdin is not None else set())
    return [finding for finding in findings if _is_about(finding.location.file, wanted)]


def _is_about(file: str, wanted: set[str]) -> bool:
    if file.startswith(("overlays", "policies/", "schemas/", layout.SETTINGS)) or file in wanted:
        return True
    return any(file[:at] in wanted for at, letter in enumerate(file) if letter == "/")


def _sorted(directory: Path, root: Path | None, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Paths that belong to the repository's own folders, from its root; and those that stand for themselves."""
    ours: list[str] = []
    loose: list[str] = []
    for path in paths:
        full = (directory / path).resolve()
        inside = root is not None and full.is_relative_to(root) and full != root
        relative = full.relative_to(root).as_posix() if root and inside else ""
        if path == "-":
            continue
        if root is not None and full == root:
            ours += _OURS
        elif relative.split("/")[0] in _OURS and relative:
            ours.append(relative)
        else:
            loose.append(path)
    return ours, loose


def _entries(directory: Path, paths: Sequence[str], stdin: bytes | None) -> Iterator[layout.FileEntry]:
    for path in paths:
        yield from layout.find_manifests(directory, path)
    if stdin is not None:
        yield layout.FileEntry(STDIN, content=stdin)
