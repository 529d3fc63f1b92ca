"""What a lint finds in the jobs of tests: in those that are given or changed as if they were written in their file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.engine.inputs import edited
from jobgen.engine.store import Store
from jobgen.features.testing.evaluate import Subject
from jobgen.model.data import untraced
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.rendering.build import identity_of, split_list
from jobgen.rendering.trace import WHOLE, Job
from jobgen.repo import layout
from jobgen.repo.named_paths import read_first
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

_REPORTED = (Severity.ERROR, Severity.WARNING)
_SAME_OBJECT = frozenset(("duplicate-identity",))
"""A given job may stand for one of the repository."""


class DraftLinter:
    """Lints a repository for tests, as it is and with the jobs of tests; what is the same is checked once."""

    def __init__(self, root: Path, environments: Sequence[str], today: str) -> None:
        self._root = root
        envs = [env for env in environments if env]
        self._request = LintRequest(root, envs=envs, today=today, starts_tools=False, compares_trees=False)
        self._store = Store()

    def list_rules(self, subject: Subject) -> frozenset[str]:
        """The rules that find errors or warnings in the objects of a job."""
        identities = {identity_of(made.object) for made in subject.made}
        own = (each for each in self._lint(subject) if each.env == subject.environment and each.object in identities)
        return frozenset(each.rule for each in own if each.severity in _REPORTED)

    def _lint(self, subject: Subject) -> Sequence[Finding]:
        test = subject.test
        if test.given is None and test.change is None:
            return self._findings
        with edited(self._write_draft(subject)):
            found = self._find()
        return [each for each in found if test.given is None or each.rule not in _SAME_OBJECT]

    @cached_property
    def _findings(self) -> Sequence[Finding]:
        return self._find()

    def _find(self) -> Sequence[Finding]:
        linted = find_findings(self._request, self._store)
        return finish(linted.findings, Finishing(linted.mandatory), OF_REPORT)

    def _write_draft(self, subject: Subject) -> dict[str, bytes]:
        """The contents of the file that has the job: it is added to a file, or takes the place of the job there."""
        job = subject.job
        written = to_yaml(untraced(job.document.data))
        if subject.test.given is None:
            others = list(_list_others(job))
            return {self._locate(job.file.path): "---\n".join([*others, written]).encode()}
        path = job.file.path if self._is_read(job.file.path) else f"jobs/{job.file.path.rpartition('/')[2]}"
        known = read_first((self._root,), path)
        before = known.content.rstrip() + b"\n---\n" if known and known.content.strip() else b""
        return {self._locate(path): before + written.encode()}

    def _is_read(self, path: str) -> bool:
        """Return True if a lint would read a job in such a file."""
        with edited({self._locate(path): b"a: 1\n"}):
            return any(entry.path == path for entry in layout.find_jobs(self._root))

    def _locate(self, path: str) -> str:
        return os.path.realpath(self._root / path)


def _list_others(job: Job) -> Iterator[str]:
    """The other documents of the file of a job, and the other items of its list."""
    for position, document in enumerate(read(job.file.content, job.file.path).documents):
        items = split_list(document.data) if job.item > WHOLE and position == job.position else [document.data]
        for at, data in enumerate(items):
            if position != job.position or (job.item > WHOLE and at != job.item):
                yield to_yaml(untraced(data))
