"""What is not known about the objects of a kustomization whose patches or inputs do not exist here.

The missing file is reported at the kustomization. What its objects lack may be in it, so that is no error.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize.kustomization import Kustomization, load, text_of
from jobgen.kustomize.tree import SourceTree, find_kustomizations, resolve_path
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.kustomize_files import MISSING
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import is_kustomization

_LACKS = frozenset(("missing-field", "missing-pod-field", "unknown-volume"))
"""Rules about what an object does not have, and what a patch may add."""
_KEY_MISSING = "file-mounted-as-folder"
_MAX_FILES = 2_000


class _Patch(NamedTuple):
    path: str
    kind: str
    """The kind that it changes; empty if it is not stated."""


class _Incomplete(NamedTuple):
    """A kustomization with files that do not exist."""

    files: frozenset[str]
    """The files whose objects it builds."""
    patches: tuple[_Patch, ...]
    """Those that do not exist."""
    keys: frozenset[str]
    """The keys of generated objects whose files do not exist."""


def leave_open(findings: Sequence[Finding], tree: FileTree) -> Sequence[Finding]:
    """Return the findings, as infos if they are about what a file may set that does not exist here."""
    roots = sorted({finding.location.file for finding in findings if finding.rule == MISSING})
    if not roots or not any(finding.rule in _LACKS or finding.rule == _KEY_MISSING for finding in findings):
        return findings
    known = [_read(tree.source, root) for root in roots if is_kustomization(root)]
    return [settled for finding in findings if (settled := _settle(finding, known))]


def _settle(finding: Finding, known: Sequence[_Incomplete]) -> Finding | None:
    around = [each for each in known if finding.location.file in each.files]
    if finding.rule == _KEY_MISSING:
        return None if any(not each.keys.isdisjoint(finding.values) for each in around) else finding
    if finding.rule not in _LACKS or finding.severity is not Severity.ERROR:
        return finding
    kind = finding.object.kind if finding.object else ""
    patches = (each for one in around for each in one.patches)
    path = next((each.path for each in patches if not kind or each.kind in ("", kind)), "")
    if not path:
        return finding
    message = f"{finding.without_advice}, unless `{path}`, which does not exist here, adds it"
    return finding._replace(severity=Severity.INFO, message=message)


def _read(source: SourceTree, root: str) -> _Incomplete:
    kustomization = load(source, root)
    return _Incomplete(
        frozenset(_list_files(source, kustomization)),
        tuple(_list_patches(source, kustomization)),
        frozenset(_list_keys(source, kustomization)),
    )


def _is_absent(source: SourceTree, kustomization: Kustomization, text: str) -> bool:
    path = resolve_path(source, kustomization.folder, text) if text and "\n" not in text else None
    return path is not None and not source.exists(path)


def _list_files(source: SourceTree, kustomization: Kustomization) -> Iterator[str]:
    """Yield the files with objects and patches that a kustomization, and those below it, are built from."""
    pending, seen = [kustomization], {kustomization.path}
    while pending and len(seen) < _MAX_FILES:
        each = pending.pop()
        patches = (as_mapping(item).get("path", item) for item in each.items("patches", "patchesStrategicMerge"))
        for item in (*each.items("resources", "bases", "components"), *patches):
            path = resolve_path(source, each.folder, text_of(item)) if "\n" not in text_of(item) else None
            if path is None or not source.exists(path):
                continue
            below = find_kustomizations(source, path)[:1] if source.is_folder(path) else []
            pending += [load(source, file) for file in below if file not in seen]
            seen.update(below or [path])
    yield from seen


def _list_patches(source: SourceTree, kustomization: Kustomization) -> Iterator[_Patch]:
    for item in kustomization.items("patches", "patchesJson6902", "patchesStrategicMerge"):
        fields = as_mapping(item)
        path = text_of(fields.get("path") if fields else item)
        if _is_absent(source, kustomization, path):
            yield _Patch(path, text_of(as_mapping(fields.get("target")).get("kind")))


def _list_keys(source: SourceTree, kustomization: Kustomization) -> Iterator[str]:
    for item in kustomization.items("configMapGenerator", "secretGenerator"):
        for node in as_list(as_mapping(item).get("files")):
            key, _, path = text_of(node).rpartition("=")
            if _is_absent(source, kustomization, path):
                yield key or posixpath.basename(path)
