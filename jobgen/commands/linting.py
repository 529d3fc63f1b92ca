"""One whole lint of a repository, or of some paths: what remains to be told after severities and suppressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen import catalogue, git, repo
from jobgen.catalogue import Catalogue
from jobgen.commands import Code, Result, environments, kubeconform, stopped
from jobgen.jobs import note_comments
from jobgen.model import Data, Finding
from jobgen.pipeline import Run
from jobgen.policydocs import all_docs
from jobgen.ruledocs import RuleDoc
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
    rules: dict[str, RuleDoc]
    root: Path


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
    shelf = runs[0].shelf
    findings, silenced = _heard(runs, asked)
    concerned = [finding for finding in findings if not ours or _concerns(finding, ours, loose, asked.stdin)]
    return Linted(
        concerned,
        [each for each in silenced if not ours or _concerns(each.finding, ours, loose, asked.stdin)],
        sum(run.files for run in runs),
        objects,
        [name for run in runs for name in run.environments if name],
        _rules(shelf),
        root or asked.directory,
    )


def _runs(asked: Asked, root: Path | None, ours: list[str], loose: list[str]) -> list[Run] | Result:
    keep = _as_it_is if asked.second_opinion else _nothing
    runs: list[Run] = []
    if root is not None and (ours or not asked.paths):
        shelf = catalogue.load(root)
        chosen = environments(shelf, asked.envs)
        if isinstance(chosen, Result):
            return chosen
        runs.append(Run(shelf, chosen, finish=keep, judged=True))
    if loose or asked.stdin is not None or root is None:
        shelf = catalogue.load(root or asked.directory)
        entries = list(_entries(asked.directory, loose or ([] if asked.paths else ["."]), asked.stdin))
        runs.append(Run(shelf, [""], finish=keep, judged=True, entries=entries))
    return runs


def _heard(runs: Sequence[Run], asked: Asked) -> tuple[list[Finding], list[Silenced]]:
    """What remains after the comments that silence findings have been heard, and those were judged themselves."""
    findings = [finding for run in runs for finding in run.findings]
    comments: list[Suppression] = [comment for run in runs for comment in run.comments]
    shelf = runs[0].shelf
    for run in runs:
        if run.entries is None:
            for file in repo.layers(run.shelf.root):
                note_comments(file, comments, findings)
    if not comments:
        return findings, []
    today = asked.today or git.commit_date(asked.directory)
    kept, silenced, faults = silence(findings, comments, shelf.mandatory, today)
    # Of an environment that was not looked at nobody can say that a comment is of no use there.
    whole = all(run.entries is not None or set(run.environments) >= set(shelf.environments()) for run in runs)
    judged = [*faults, *idle(comments, silenced, list(_rules(shelf)), shelf.mandatory, today, whole=whole)]
    kept += filter(None, map(shelf.severities.of, judged))
    return sorted(kept, key=lambda found: (found.mark, found.rule, found.message, found.env)), silenced


def _rules(shelf: Catalogue) -> dict[str, RuleDoc]:
    """Every rule that was applied."""
    return {name: doc for name, doc in all_docs(shelf.root).items() if name not in shelf.severities.off}


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
        yield repo.Entry(STDIN, content=stdin)


def _concerns(finding: Finding, ours: Sequence[str], loose: Sequence[str], stdin: bytes | None) -> bool:
    """Whether a finding is about the paths that were asked about; overlays and kinds are about every job."""
    file = finding.mark.file
    if ours and file.startswith(("overlays", "policies/", "schemas/", repo.SETTINGS)):
        return True
    wanted = [*ours, *(path.removeprefix("./") for path in loose), *([STDIN] if stdin is not None else [])]
    return any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in wanted)
