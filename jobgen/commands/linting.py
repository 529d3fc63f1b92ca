"""One whole lint of a repository, or of some paths: what remains to be told after severities and suppressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen import catalogue, git, repo
from jobgen.commands import Code, Result, environments, kubeconform, stopped
from jobgen.jobs import note_comments
from jobgen.model import Data, Finding
from jobgen.pipeline import Run, nothing
from jobgen.roadrules import TWO_SIDED
from jobgen.ruledocs import names
from jobgen.station import Station
from jobgen.suppress import Silenced, Suppression, idle, silence

_OURS = ("jobs", "overlays", "policies", "schemas", repo.SETTINGS)
STDIN = "<stdin>"


class Asked(NamedTuple):
    """What is to be linted: a folder, paths in it, environments, standard input; and whether kubeconform is asked."""

    directory: Path
    paths: Sequence[str] = ()
    envs: Sequence[str] = ()
    stdin: bytes | None = None
    second_opinion: bool = False
    today: str = ""


class Linted(NamedTuple):
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


def lint(asked: Asked) -> Linted | Result:
    """Judge a whole repository, or the manifests at some paths."""
    if asked.second_opinion and not kubeconform.installed():
        return stopped(Code.USAGE, kubeconform.MISSING)
    root = repo.find_root(asked.directory.resolve())
    ours, loose = _sorted(asked.directory, root, asked.paths)
    runs = _runs(asked, root, ours, loose)
    if isinstance(runs, Result):
        return runs
    try:
        objects = sum(_walked(run, second_opinion=asked.second_opinion) for run in runs)
    except kubeconform.FailedError as fault:
        return stopped(Code.BROKEN, f"kubeconform could not be run: {fault}")
    comments = _comments(runs)
    today = asked.today or (git.commit_date(asked.directory) if comments else "")
    findings, silenced = _heard(runs, comments, today)
    return Linted(
        [finding for finding in findings if is_asked_about(finding, asked)],
        [each for each in silenced if is_asked_about(each.finding, asked)],
        sum(run.files for run in runs),
        objects,
        [name for run in runs for name in run.environments if name],
        _rules(runs),
        root or asked.directory,
        comments,
        runs[0].shelf.mandatory,
        today,
    )


def _runs(asked: Asked, root: Path | None, ours: list[str], loose: list[str]) -> list[Run] | Result:
    keep = _as_it_is if asked.second_opinion else nothing
    runs: list[Run] = []
    if root is not None and (ours or not asked.paths):
        shelf = catalogue.load(root, today=asked.today)
        chosen = environments(shelf, asked.envs)
        if isinstance(chosen, Result):
            return chosen
        runs.append(Run(shelf, chosen, finish=keep, judged=True))
    if loose or asked.stdin is not None or root is None:
        shelf = catalogue.load(root or asked.directory, today=asked.today)
        entries = list(_entries(asked.directory, loose or ([] if asked.paths else ["."]), asked.stdin))
        runs.append(Run(shelf, [""], finish=keep, judged=True, entries=entries))
    return runs


def _comments(runs: Sequence[Run]) -> list[Suppression]:
    """The comments that silence findings, of jobs and of layers."""
    comments = [comment for run in runs for comment in run.comments]
    for run in runs:
        if run.entries is None:
            for file in repo.layers(run.shelf.root):
                note_comments(file, comments, run.findings)
    return comments


def _heard(runs: Sequence[Run], comments: Sequence[Suppression], today: str) -> tuple[list[Finding], list[Silenced]]:
    """What remains after the comments that silence findings have been heard, and those were judged themselves."""
    findings = [finding for run in runs for finding in run.findings]
    if not comments:
        return findings, []
    shelf = runs[0].shelf
    kept, silenced, faults = silence(findings, comments, shelf.mandatory, today)
    # Of an environment that was not looked at nobody can say that a comment is of no use there.
    whole = all(run.entries is not None or set(run.environments) >= set(shelf.environments()) for run in runs)
    spared = shelf.mandatory | TWO_SIDED
    judged = [*faults, *idle(comments, silenced, sorted(_rules(runs)), spared, today, whole=whole)]
    kept += filter(None, map(shelf.severities.of, judged))
    return sorted(kept, key=lambda found: (found.mark, found.rule, found.message, found.env)), silenced


def _rules(runs: Sequence[Run]) -> frozenset[str]:
    """Every rule and policy that was applied."""
    return names().union(*(run.policies for run in runs)) - runs[0].shelf.severities.off


def _walked(run: Run, *, second_opinion: bool) -> int:
    """The number of objects that were judged, by kubeconform too if it was asked for."""
    if not second_opinion:
        return sum(1 for _ in run)
    judges = {name: Station(run.shelf, name).judge for name in run.environments}
    objects = [(made, judges[made.env].schema_of(judges[made.env].manifest(made.object))) for made in run]
    run.findings += kubeconform.disagreements(run.shelf.root, objects, run.findings)
    return len(objects)


def _as_it_is(made: Data) -> Data:
    return made


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
        yield repo.Entry(STDIN, content=stdin)


def is_asked_about(finding: Finding, asked: Asked) -> bool:
    """Whether a finding is about the paths that were asked about; overlays and kinds are about every job."""
    ours, loose = _sorted(asked.directory, repo.find_root(asked.directory.resolve()), asked.paths)
    file = finding.mark.file
    if not ours or file.startswith(("overlays", "policies/", "schemas/", repo.SETTINGS)):
        return True
    wanted = [*ours, *(path.removeprefix("./") for path in loose), *([STDIN] if asked.stdin is not None else [])]
    return any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in wanted)
