"""Files of kustomizations: resources and patches are judged in the builds that use them, fragments are not judged."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.kustomize import Plan, SourceTree
from jobgen.model.finding import Finding, Severity, quoted_values
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import FRAGMENT, INPUT, KUSTOMIZATION, PATCH, RESOURCE, Taken
from jobgen.recognize.tree import FileTree, list_folders
from jobgen.repo.files import KUSTOMIZATION_NAMES
from jobgen.repo.walk import is_excluded, parse_patterns
from jobgen.yamlio.read import read_shared

_PATCH_FOLDER = lazy_pattern(r"(?:\A|[-_])patch(?:es)?(?:[-_]|\Z)")
_PATCH_NAME = lazy_pattern(r"(?:\A|[-_.])patch(?:es)?(?=[-_.]|\Z)")
# Directives that only patches have.
_DIRECTIVE = lazy_pattern(
    rb"^[ \t]*(?:-[ \t]+)?[\"']?\$(?:patch|retainKeys|setElementOrder/\w+|deleteFromPrimitiveList/\w+)[\"']?:",
    re.MULTILINE,
)
_COMMENTED = "commented out"
_DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
_PATH_FIELDS = frozenset(("path", "paths", "file", "files", "manifests", "resources"))
# An object can be in a file with the name of a kustomization.
_OTHER_KIND = lazy_pattern(rb"^apiVersion:[ \t]{0,8}[\"']?(?!kustomize\.config\.k8s\.io)[\w./]", re.MULTILINE)
_PATH = lazy_pattern(r"[\w.@-]+(?:/[\w.@-]+)*/?\Z")


def is_kustomization(path: str) -> bool:
    """Return True if a file has the name of a kustomization."""
    return posixpath.basename(path) in KUSTOMIZATION_NAMES


def recognize_file(path: str, plan: Plan, tree: FileTree) -> Taken | None:
    """Return how kustomizations use a file; None if none of them mentions it."""
    if is_kustomization(path) and not _OTHER_KIND.search(tree.read(path).content):
        return Taken(KUSTOMIZATION, "its name is that of a kustomization")
    uses = plan.uses.get(path, ())
    active = [use for use in uses if use.role != _COMMENTED]
    roots = plan.members.get(path, ())
    resource = next((use for use in active if use.role == "resource"), None)
    if resource is not None and roots:
        builds = "one build" if len(roots) == 1 else f"{len(roots)} builds"
        return Taken(RESOURCE, f"{resource.by}:{resource.line} lists it; it is judged in {builds}")
    if resource is not None:
        return Taken(FRAGMENT, f"{resource.by}:{resource.line} lists it, and no build uses that kustomization")
    if active:
        use = active[0]
        sort = PATCH if use.role == "patch" else INPUT
        return Taken(sort, f"{use.by}:{use.line} lists it ({use.role})")
    if uses:
        return Taken(FRAGMENT, f"its line in {uses[0].by}:{uses[0].line} is a comment")
    return None


def find_plugin_inputs(plan: Plan, source: SourceTree) -> dict[str, str]:
    """Return the files and folders that the configurations of plugins name, each with the configuration.

    A generator such as PolicyGenerator reads manifests, and writes others.
    """
    found: dict[str, str] = {}
    for file, uses in plan.uses.items():
        if any(use.role == "transformer" for use in uses):
            folder = posixpath.dirname(file)
            for document in read_shared(source.read(file).content, file).documents:
                for text in _list_texts(document.data):
                    path = posixpath.normpath(posixpath.join(folder, text))
                    if _PATH.match(text) and source.exists(path):
                        found[path] = file
    return found


def _list_texts(tree: Any) -> Iterator[str]:
    """Return the texts in a tree that are paths by the names of their fields."""
    pending = [("", tree)]
    while pending:
        name, node = pending.pop()
        if isinstance(node, str) and name in _PATH_FIELDS:
            yield node
        elif isinstance(node, dict):
            pending += node.items()
        elif isinstance(node, list):
            pending += [(name, each) for each in node]


def recognize_plugin_input(path: str, inputs: Mapping[str, str]) -> Taken | None:
    """Return which plugin reads a file, or the folder that it is in."""
    reader = next((inputs[each] for each in (path, *list_folders(path)) if each in inputs), "")
    return Taken(INPUT, f"a plugin reads it, as {reader} says") if reader else None


def _has_directive(tree: Any) -> bool:
    """Return True if a mapping has a directive of a patch: in a text, it is the text of something else."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(str(key).startswith(_DIRECTIVES) for key in node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def recognize_fragment(path: str, content: bytes, folders: frozenset[str]) -> Taken | None:
    """Return why a file that no kustomization mentions is a part of an object.

    `folders` have kustomizations.
    """
    # Most files have no directive, and need no pattern.
    directive = _DIRECTIVE.search(content) if any(each.encode() in content for each in _DIRECTIVES) else None
    if directive and any(map(_has_directive, (each.data for each in read_shared(content, path).documents))):
        shown = directive[0].strip(b" \t-\"':").decode("ascii", "replace")
        return Taken(FRAGMENT, f"`{shown}` is a directive of a strategic merge patch")
    above, _, name = path.rpartition("/")
    inside = next((folder for folder in above.split("/") if _PATCH_FOLDER.search(folder)), "")
    if not (inside or _PATCH_NAME.search(name.rpartition(".")[0])) or not _has_kustomization(above, folders):
        return None
    return Taken(FRAGMENT, f"it is in `{inside}`" if inside else f"`{name}` is the name of a patch")


def _has_kustomization(folder: str, folders: frozenset[str]) -> bool:
    """Return True if a folder, one above it, or one beside these has a kustomization."""
    if folder in folders:
        return True
    for above in list_folders(folder):
        start = f"{above}/" if above else ""
        if any(each.startswith(start) and each.count("/") == start.count("/") for each in folders):
            return True
    return False


def find_closures(plan: Plan) -> dict[str, frozenset[str]]:
    """Return all files that the build of each root reads."""
    below: dict[str, list[str]] = {}
    for file, uses in plan.uses.items():
        for use in uses:
            below.setdefault(use.by, []).extend([file] if use.role != _COMMENTED else [])
    return {root: frozenset(_reach(root, below)) for root in plan.roots}


def _reach(root: str, below: Mapping[str, Sequence[str]]) -> set[str]:
    reached: set[str] = set()
    pending = [root]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending += below.get(path, ())
    return reached


MISSING = "kustomization-file-missing"


def settle_generated(findings: Iterable[Finding], tree: FileTree) -> Iterator[Finding]:
    """Yield the findings; a file that something else creates is a warning, because the build needs it first."""
    for finding in findings:
        creator = _find_creator(finding, tree) if finding.rule == MISSING else ""
        if creator:
            name = quoted_values(finding.message)[0]
            message = f"`{name}` does not exist here; the build fails until it is created, as `{creator}` says"
            yield finding._replace(severity=Severity.WARNING, message=message)
        else:
            yield finding


def _find_creator(finding: Finding, tree: FileTree) -> str:
    """Return the script, page or .gitignore that says that a missing file is created; empty without one."""
    folder = posixpath.dirname(finding.location.file)
    path = posixpath.normpath(posixpath.join(folder, quoted_values(finding.message)[0]))
    name = posixpath.basename(path)
    if "." in name:
        return tree.find_mention(finding.location.file, name.encode("utf-8", "surrogateescape")) or _find_ignoring(
            path, tree
        )
    missing = _find_missing_folder(path, tree)
    return tree.find_script(finding.location.file, missing.encode("utf-8", "surrogateescape")) or _find_ignoring(
        path, tree
    )


def _find_missing_folder(path: str, tree: FileTree) -> str:
    """Return the name of the first folder of a path that does not exist."""
    names = path.split("/")
    return next((names[index] for index in range(len(names)) if not tree.exists("/".join(names[: index + 1]))), "/")


def _find_ignoring(path: str, tree: FileTree) -> str:
    """Return the .gitignore that a missing file matches; empty without one."""
    for folder in list_folders(path):
        file = posixpath.join(folder, ".gitignore")
        lines = tree.read(file).content.decode("utf-8", "replace").split("\n") if tree.exists(file) else ()
        patterns = parse_patterns(line.strip() for line in lines if line.strip() and line[0] not in "#!")
        if is_excluded(posixpath.relpath(path, folder or "."), patterns):
            return file
    return ""
