"""Verify a change before it is made: lint the changed files, and count the errors before and after."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobgen.api.errors import JobgenError
from jobgen.features.editor.lint_workspace import list_layer_findings
from jobgen.features.editor.workspace import Workspace
from jobgen.model.finding import Finding, Severity
from jobgen.repo.atomic import links_outside

MORE_ERRORS = "the file would have more errors than before"
_OVERLAYS = "overlays/"
_MAX_JOBS = 20
"""How many jobs are linted to see what a change of an overlay, a kind or a policy leads to."""


def read_editable(workspace: Workspace, file: str) -> bytes | str:
    """Return the content of a file that may be edited; a text says why it may not."""
    if workspace.find_relative(os.path.join(workspace.root, file)) is None:
        return f"`{file}` is not in this folder"
    if links_outside(os.path.join(workspace.root, file), workspace.root):
        return f"`{file}` is a link that leads out of this folder"
    read = workspace.read(file)
    return read.finding.message if read.finding else read.content


def is_new(workspace: Workspace, file: str) -> bool:
    """Return True if a file can be created: there is nothing at its path, and no link leads it out of the folder."""
    full = os.path.join(workspace.root, file)
    is_there = os.path.lexists(full) or os.path.realpath(full) in workspace.drafts
    return not is_there and workspace.find_relative(full) is not None and not links_outside(full, workspace.root)


def list_checked_files(workspace: Workspace, changed: Iterable[str], findings: Iterable[Finding] = ()) -> list[str]:
    """Return the files to lint when some files change.

    A layer concerns many jobs, so a few of them are linted: those of the findings, then the first. The background
    process lints all of them once the change is made.
    """
    files = dict.fromkeys(changed)
    if not all(map(workspace.is_job, files)):
        objects = {each.object for each in findings if each.object}
        for file, index in workspace.index.items():
            if any(not objects.isdisjoint(made.objects) for job in index.jobs for made in job.environments):
                files[file] = None
        files |= dict.fromkeys(list(workspace.index)[:_MAX_JOBS])
    return list(files)


class Found(NamedTuple):
    """The findings of some files with the layers that they use."""

    findings: tuple[Finding, ...]
    is_complete: bool = True
    """False if the settings have errors, so that nothing else is known."""


def find_findings(workspace: Workspace, files: Iterable[str]) -> Found:
    """Lint files with the layers that they use."""
    with workspace.reading():
        try:
            ready = workspace.load()
        except JobgenError as error:
            return Found(tuple(error.findings), is_complete=False)
        found: dict[Finding, None] = {}
        layers = list_layer_findings(ready.run.project, ready.prepared.findings)
        for file in files:
            found |= dict.fromkeys(workspace.lint_job(ready, file) if workspace.is_job(file) else layers.get(file, ()))
    return Found(tuple(found))


class Outcome(NamedTuple):
    """What is found before and after a change."""

    before: Found
    after: Found

    @property
    def has_new_errors(self) -> bool:
        """Return True if the change leads to errors.

        As `jobgen lint --fix` does, errors of a job are counted together: one that hides others may be replaced by one
        of them. Errors in the settings hide everything.
        """
        if self.before.is_complete == self.after.is_complete:
            return bool(_count_errors(self.after.findings) - _count_errors(self.before.findings))
        return self.before.is_complete


def try_change(workspace: Workspace, contents: Mapping[str, bytes], findings: Iterable[Finding] = ()) -> Outcome:
    """Lint the files that a change concerns, before and after it."""
    files = list_checked_files(workspace, contents, findings)
    before = find_findings(workspace, files)
    with workspace.trying(contents):
        return Outcome(before, find_findings(workspace, files))


def _count_errors(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter(
        (file := each.location.file, each.rule if file.startswith(_OVERLAYS) else "")
        for each in findings
        if each.severity is Severity.ERROR
    )
