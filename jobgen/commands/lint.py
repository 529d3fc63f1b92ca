"""`jobgen lint`: what is wrong with specs, overlays, rendered objects and raw manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jobgen import catalogue, repo
from jobgen.commands import Code, Result, environments, stopped
from jobgen.model import Data, Finding
from jobgen.pipeline import Run
from jobgen.report import json, text

_OURS = ("jobs", "overlays", "schemas", repo.SETTINGS)
_STDIN = "<stdin>"


def lint_paths(
    directory: Path, paths: Sequence[str], envs: Sequence[str], *, format_: str, stdin: bytes | None = None
) -> Result:
    """Judge a whole repository, or the manifests at some paths."""
    root = repo.find_root(directory.resolve())
    ours, loose = _sorted(directory, root, paths)
    runs: list[Run] = []
    if root is not None and (ours or not paths):
        shelf = catalogue.load(root)
        chosen = environments(shelf, envs)
        if isinstance(chosen, Result):
            return chosen
        runs.append(Run(shelf, chosen, finish=_nothing, judged=True))
    if loose or stdin is not None or root is None:
        shelf = catalogue.load(root or directory)
        entries = list(_entries(directory, loose or ([] if paths else ["."]), stdin))
        runs.append(Run(shelf, [""], finish=_nothing, judged=True, entries=entries))
    objects = sum(1 for run in runs for _ in run)
    files = sum(run.files for run in runs)
    findings = [
        finding for run in runs for finding in run.findings if not ours or _concerns(finding, ours, loose, stdin)
    ]
    if not objects and not findings:
        return stopped(Code.NOTHING, "there is nothing to lint here")
    failed = any(finding.severity == "error" for finding in findings)
    return _told(findings, files, objects, format_, Code.ERRORS if failed else Code.FINE)


def _nothing(_: Data) -> Data:
    """Of an object that has been judged nothing needs to be kept."""


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


def _entries(directory: Path, paths: Sequence[str], stdin: bytes | None) -> Iterator[repo.Entry]:
    for path in paths:
        yield from repo.loose(directory, path)
    if stdin is not None:
        yield repo.Entry(_STDIN, content=stdin)


def _concerns(finding: Finding, ours: Sequence[str], loose: Sequence[str], stdin: bytes | None) -> bool:
    """Whether a finding is about the paths that were asked about; overlays and kinds are about every job."""
    file = finding.mark.file
    if ours and file.startswith(("overlays", "schemas/", repo.SETTINGS)):
        return True
    wanted = [*ours, *(path.removeprefix("./") for path in loose), *([_STDIN] if stdin is not None else [])]
    return any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in wanted)


def _told(findings: Sequence[Finding], files: int, objects: int, format_: str, code: Code) -> Result:
    if format_ == "json":
        return Result(code, json.render(findings, {"files": files, "objects": objects}))
    found = text.summary(findings) or "nothing found"
    plural = "" if objects == 1 else "s"
    return Result(code, text.render(findings), f"{objects} object{plural} checked: {found}\n")
