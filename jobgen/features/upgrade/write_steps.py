"""`jobgen upgrade --fix`: write what can be written, one commit for each step.

A step declares the new version of a component where the old one is declared, and applies the fixes of what only the new
version reports. A file in which fixes lead to more errors stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.api.errors import UsageError
from jobgen.api.fix import apply_fixes
from jobgen.api.lint import lint
from jobgen.api.project import Project
from jobgen.features.upgrade.rehearse import EnvironmentUpgrade, Rehearsal, VersionChange
from jobgen.model.data import location_of, value_of
from jobgen.model.finding import Finding, Severity, TextEdit
from jobgen.rendering import config
from jobgen.repo import git
from jobgen.repo.atomic import replace_file

_MOST_ROUNDS = 5


class WrittenStep(NamedTuple):
    """A step that was committed."""

    change: VersionChange
    files: tuple[str, ...]
    left: int
    """Errors that the new version has, and that no fix solves."""


def write_steps(project: Project, rehearsal: Rehearsal) -> Iterator[WrittenStep]:
    """Write and commit each step of a rehearsal; yield what was written. Raise a UsageError if files have changes."""
    root = project.root
    if git.find_work_tree(root) is None or git.list_changed(root):
        raise UsageError("`--fix` commits each step, so it needs a Git repository without uncommitted changes")
    for change in (change for each in rehearsal.environments for change in each.changes):
        if change.is_downgrade:
            raise UsageError(f"`--fix` writes upgrades, and {change.component} {change.old} is newer than {change.new}")
    # All environments that declare a component are upgraded in one step.
    steps = {step.change.component: step.change for each in rehearsal.environments for step in each.steps}
    for name, change in steps.items():
        known = {_identify(each) for each in lint(root).findings}
        files = {*_declare(project, rehearsal.environments, name)}
        files |= _fix(root, known) if files else set()
        if files:
            git.commit_files(root, sorted(files), f"Upgrade {name} to {change.new}")
            yield WrittenStep(change, tuple(sorted(files)), len(_list_new(root, known)))


def _identify(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.severity, finding.env, finding.object, finding.pointer, finding.location.file


def _list_new(root: Path, known: Collection[tuple[object, ...]]) -> list[Finding]:
    """Return the errors that were not there before."""
    return [each for each in lint(root).findings if each.severity is Severity.ERROR and _identify(each) not in known]


def _declare(project: Project, upgrades: Sequence[EnvironmentUpgrade], name: str) -> Iterator[str]:
    """Write the new version of a component where the old one is declared; yield the files."""
    traced = config.load(project.root, traced=True)
    blocks: list[Any] = [traced.settings.get("cluster", {})]
    wanted = {change.old: change.new for each in upgrades for change in each.changes if change.component == name}
    blocks += (spec.get("cluster", {}) for overlay in traced.overlays.values() for spec in overlay.specs)
    edits: dict[str, list[TextEdit]] = {}
    for block in blocks:
        nodes = [block.get("kubernetes")] if name == "kubernetes" else [block.get("operators", {}).get(name)]
        nodes += [block.get("kueue", {}).get("version")] if name == "kueue" else []
        for node in nodes:
            place = location_of(node)
            if place and str(value_of(node)) in wanted:
                edits.setdefault(place.file, []).append(TextEdit("set", place, wanted[str(value_of(node))]))
    for file, several in edits.items():
        path = project.root / file
        new, _ = apply_fixes(path.read_bytes(), file, [(edit,) for edit in several])
        replace_file(path, new, project.root)
        yield file


def _fix(root: Path, known: Collection[tuple[object, ...]]) -> set[str]:
    """Apply the fixes of what only the new versions report; return the fixed files."""
    originals: dict[str, bytes] = {}
    refused: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        found = _list_new(root, known)
        errors = Counter(each.location.file for each in found)
        wanted: dict[str, list[tuple[TextEdit, ...]]] = {}
        for edits in (each.fix.edits for each in found if each.fix):
            wanted.setdefault(edits[0].location.file, []).append(edits)
        changed = False
        for file in sorted(wanted.keys() - refused):
            path = root / file
            old = path.read_bytes()
            new, _ = apply_fixes(old, file, list(dict.fromkeys(wanted[file])))
            if new == old:
                continue
            replace_file(path, new, root)
            if Counter(each.location.file for each in _list_new(root, known))[file] > errors[file]:
                replace_file(path, old, root)
                refused.add(file)
                continue
            originals.setdefault(file, old)
            changed = True
        if not changed:
            break
    return {file for file, old in originals.items() if (root / file).read_bytes() != old}
