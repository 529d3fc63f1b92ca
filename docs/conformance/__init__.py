"""The conformance suites: one module for each, with a function `run` that yields a verdict for each case.

The first line of a module's docstring names the reference, for the table of the page. `reasons.yaml` has the reasons
for disagreements: for each suite a list of `cases` (names, in which `*` matches anything) with their `reason`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.api.lint import lint
from jobgen.model.finding import Finding, Severity


class Verdict(NamedTuple):
    """Whether jobgen agrees with the reference on a case, and what both say."""

    case: str
    agrees: bool
    details: str = ""
    group: str = ""
    """Cases are also counted by group, if there is more than one."""


@contextmanager
def temporary_repository(files: Mapping[str, Any]) -> Iterator[Path]:
    """Write files to a temporary folder: text as it is, a tuple as documents, other data as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            documents = content if isinstance(content, tuple) else (content,)
            texts = [each if isinstance(each, str) else json.dumps(each, indent=1) for each in documents]
            path.write_text("\n---\n".join(texts), "utf-8")
        yield Path(folder)


def lint_files(files: Mapping[str, Any], paths: Sequence[str] = (".",)) -> dict[str, list[Finding]]:
    """Return the findings of `jobgen lint` in each file; many files take little more time than one."""
    found: dict[str, list[Finding]] = defaultdict(list)
    with temporary_repository(files) as root:
        for finding in lint(root, paths).findings:
            found[os.path.relpath(Path(root, finding.location.file), root)].append(finding)
    return found


def list_errors(
    findings: Iterable[Finding], categories: frozenset[str] = frozenset(("yaml", "schema", "pod"))
) -> list[str]:
    """Return the errors of some categories; by default those that say that the API server rejects the object."""
    return [
        f"{finding.rule}: {finding.message}"
        for finding in findings
        if finding.severity is Severity.ERROR and finding.category in categories
    ]


def lint_pods(pods: Sequence[Mapping[str, Any]]) -> list[list[Finding]]:
    """Return the findings of `jobgen lint` in each pod, as the pod template of a PyTorchJob."""
    files: dict[str, Any] = {}
    for number, pod in enumerate(pods):
        metadata = {
            key: value for key, value in (pod.get("metadata") or {}).items() if key in ("labels", "annotations")
        }
        template = {"metadata": metadata, "spec": pod.get("spec")} if metadata else {"spec": pod.get("spec")}
        files[f"p{number}.yaml"] = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": f"p{number}", "namespace": "default"},
            "spec": {
                "pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "Never", "template": template}}
            },
        }
    found = lint_files(files)
    return [found.get(f"p{number}.yaml", []) for number in range(len(pods))]


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
