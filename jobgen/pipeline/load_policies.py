"""Load the policies of a repository: read, compile, and report their errors with locations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from jobgen.check.policy import Policies, compile_policies
from jobgen.check.policy.parse import POLICY, is_policy
from jobgen.model.data import ValidFields, value_of
from jobgen.model.finding import Finding
from jobgen.pipeline import config
from jobgen.pipeline.locate import locate
from jobgen.repo import layout
from jobgen.repo.commit import Folder


class PolicyFiles(NamedTuple):
    """Compiled policies, the errors in their files, and the file of each policy."""

    policies: Policies
    findings: tuple[Finding, ...]
    files: Mapping[str, str]


def load_policies(root: Folder) -> PolicyFiles:
    """Load all policies of a repository. A policy with an error is left out."""
    return compile_policy_files(tuple(layout.read_shipped_policies(root)), tuple(layout.read_own_policies(root)))


@lru_cache(maxsize=16)
def compile_policy_files(shipped: tuple[layout.File, ...], own: tuple[layout.File, ...]) -> PolicyFiles:
    """Compile the policies of files: those shipped with jobgen, and those of a repository."""
    findings: list[Finding] = []
    shipped_documents, documents = _read_files(shipped, findings), _read_files(own, findings)
    policies, problems = compile_policies((data for _, data in documents), (data for _, data in shipped_documents))
    if problems:
        traced = _read_files(own, [], traced=True)
        _, problems = compile_policies((data for _, data in traced), (data for _, data in shipped_documents))
        findings += [locate(problem, "policies") for problem in problems]
    named = {
        str(value_of(data["metadata"].get("name"))): path
        for path, data in (*shipped_documents, *documents)
        if is_policy(data) and value_of(data["kind"]) == POLICY and isinstance(data.get("metadata"), dict)
    }
    return PolicyFiles(policies, tuple(findings), named)


def _read_files(
    files: Iterable[layout.File], findings: list[Finding], *, traced: bool = False
) -> list[tuple[str, ValidFields]]:
    return [
        (file.path, document.data)
        for file in files
        for document in config.read_documents(file, findings, traced=traced).documents
    ]
