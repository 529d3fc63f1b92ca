"""Lint what a migration made: the errors that its source did not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jobgen.api.lint import lint
from jobgen.model.data import Plain
from jobgen.model.finding import Finding, Severity
from jobgen.repo.commit import Folder
from jobgen.yamlio.write import to_yaml


def list_new_errors(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return the errors of a result that its source did not have; the same fault may have another place there."""
    known = {(each.rule, each.env, each.values) for each in before}
    errors = [each for each in after if each.severity is Severity.ERROR]
    return [each for each in errors if (each.rule, each.env, each.values) not in known]


def lint_objects(
    folder: Folder, before: Sequence[Mapping[str, Plain]], after: Sequence[Mapping[str, Plain]]
) -> list[str]:
    """Return the errors that objects have and those before the migration did not, with the settings of a folder."""
    texts = ("---\n".join(map(to_yaml, objects)).encode() for objects in (before, after))
    old, new = (lint(Path(str(folder)), ["-"], stdin=text).findings for text in texts)
    return [f"error: {each.message} [{each.rule}]" for each in list_new_errors(old, new)]
