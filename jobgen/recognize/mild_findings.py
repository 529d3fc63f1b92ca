"""Findings that are milder than their rule says, because of where they are or of what the repository says itself.

A warning asks for a change. It is an info where no change is expected: what jobgen could not check of manifests
that were only found beside others, a file that a script of the repository creates, a placeholder that a page explains.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping

from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.tree import FileTree
from jobgen.schema.shipped_kinds import is_known_elsewhere

# Folders with objects that show how something is done, and that run for a short time.
_EXAMPLES = lazy_pattern(r"(?:\A|/)(?:examples?|samples?|demos?|docs?|tutorials?|quick-?starts?)(?=/)")
# Folders with what runs in a cluster on one machine, into which images are loaded rather than pulled.
_LOCAL = lazy_pattern(r"(?:\A|/)(?:e2e|kind|local|minikube|k3d)(?=/)")
_ARGUMENT = lazy_pattern(r"/parameters/[0-9]+/(?:default|value)\Z")


def soften(findings: Iterable[Finding], tree: FileTree, *, is_jobs_repository: bool) -> Iterator[Finding]:
    """Yield the findings; a warning that its place excuses is an info."""
    for finding in findings:
        is_mild = finding.severity is Severity.WARNING and _is_excused(finding, tree, is_jobs_repository)
        yield finding._replace(severity=Severity.INFO) if is_mild else finding


def _is_excused(finding: Finding, tree: FileTree, is_jobs_repository: bool) -> bool:
    if finding.rule in _UNCHECKED:
        return not is_jobs_repository and not _is_almost_known(finding)
    check = _CHECKS.get(finding.rule)
    return check is not None and check(finding, tree)


# What jobgen could not check. Only a jobs repository promises that all of it is checked.
_UNCHECKED = frozenset(("missing-schema", "unbuilt-kustomization"))


def _is_almost_known(finding: Finding) -> bool:
    """Return True for a kind or version that is missing among others that are known, and so is probably wrong."""
    obj = finding.object
    return finding.rule == "missing-schema" and obj is not None and is_known_elsewhere(obj.api_version, obj.kind)


def _never_runs_again(finding: Finding, tree: FileTree) -> bool:
    """Return True for the image of an example, of a local cluster, or of a PodTemplate, which runs nothing itself."""
    file = finding.location.file
    is_template = finding.object is not None and finding.object.kind == "PodTemplate"
    return is_template or _EXAMPLES.search(file) is not None or _LOCAL.search(file) is not None


def _is_loaded(finding: Finding, tree: FileTree) -> bool:
    """Return True for the image of a local cluster, where `IfNotPresent` is what lets a loaded image run."""
    return _LOCAL.search(finding.location.file) is not None


def _is_explained(finding: Finding, tree: FileTree) -> bool:
    """Return True for a placeholder that a page or a script names, together with the file."""
    file = finding.location.file
    texts = [text.encode("utf-8", "replace") for text in (posixpath.basename(file), *finding.quoted[:1])]
    return len(texts) > 1 and bool(tree.find_mention(file, *texts))


def _is_argument(finding: Finding, tree: FileTree) -> bool:
    """Return True for the argument of a Workflow: Argo reads a number as text, unless the full CRDs are installed."""
    obj = finding.object
    is_workflow = obj is not None and obj.api_version.startswith("argoproj.io/") and "Workflow" in obj.kind
    return is_workflow and _ARGUMENT.search(finding.pointer) is not None


_CHECKS: Mapping[str, Callable[[Finding, FileTree], bool]] = {
    "mutable-image-tag": _never_runs_again,
    "stale-image": _is_loaded,
    "unfilled-placeholder": _is_explained,
    "untagged-image": _never_runs_again,
    "wrong-type": _is_argument,
}
