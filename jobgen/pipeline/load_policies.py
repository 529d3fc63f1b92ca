"""The policies of a repository: read, compiled, and what is wrong with them on its line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from jobgen.check.policy import Policies, compile_policies
from jobgen.check.policy.parse import POLICY, is_policy
from jobgen.model.data import Data, value_of
from jobgen.model.finding import Finding
from jobgen.pipeline import config
from jobgen.pipeline.locate import locate
from jobgen.repo import layout


class PolicyFiles(NamedTuple):
    """Compiled policies, the faults of their files, and the file that each policy stands in."""

    policies: Policies
    findings: tuple[Finding, ...]
    files: Mapping[str, str]


def load_policies(root: Path) -> PolicyFiles:
    """All policies of a repository; a policy with a fault is left out, and its fault is a finding."""
    return compile_policy_files(tuple(layout.read_shipped_policies(root)), tuple(layout.read_own_policies(root)))


# The same policies are compiled once, however many repositories have them.
@lru_cache(maxsize=16)
def compile_policy_files(shipped: tuple[layout.File, ...], own: tuple[layout.File, ...]) -> PolicyFiles:
    """The same, from files that have been read: those that travel with jobgen, and those of a repository."""
    findings: list[Finding] = []
    proven, documents = _documents(shipped, findings), _documents(own, findings)
    policies, problems = compile_policies((data for _, data in documents), (data for _, data in proven))
    if problems:
        marked = _documents(own, [], marked=True)
        _, problems = compile_policies((data for _, data in marked), (data for _, data in proven))
        findings += [locate(problem, "policies") for problem in problems]
    named = {
        str(value_of(data["metadata"].get("name"))): path
        for path, data in (*proven, *documents)
        if is_policy(data) and value_of(data["kind"]) == POLICY and isinstance(data.get("metadata"), dict)
    }
    return PolicyFiles(policies, tuple(findings), named)


def _documents(
    files: Iterable[layout.File], findings: list[Finding], *, marked: bool = False
) -> list[tuple[str, Data]]:
    return [
        (file.path, document.data)
        for file in files
        for document in config.read_cached(file, findings, marked=marked).documents
    ]
