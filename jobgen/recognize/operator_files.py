"""Manifests that a program completes before it applies them: assets of operators, and bundles of OLM."""

from __future__ import annotations

import re

from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize import ASSET, Taken
from jobgen.recognize.tree import FileTree

_FILLED = lazy_pattern(
    rb"^[^#\n]{0,200}?(filled[ _-](?:in[ _-])?by[ _-](?:(?:the|an?)[ _-])?"
    rb"(?:operator|controller|webhook|installer|validator|manager))",
    re.IGNORECASE | re.MULTILINE,
)
# Folders that a Go program embeds or reads; `manifests` only inside of its code.
_ASSET_FOLDERS = frozenset(("assets", "bindata"))
_CODE_FOLDERS = frozenset(("cmd", "controllers", "internal", "pkg"))
_EMBEDDED_FOLDERS = frozenset(("manifests", "resources", "templates", "yaml", "yamls"))
# The first file that shows that a folder is a program in Go.
_GO_FILES = ("go.mod", "PROJECT", "main.go")
_BUILD_FILES = ("Makefile", "Dockerfile")
_GO_BUILD = lazy_pattern(rb"\bgo (?:build|test|mod|install)\b|\bcontroller-gen\b|^FROM \S*golang", re.MULTILINE)
BUNDLE_SUFFIX = ".clusterserviceversion.yaml"
_BUNDLE_METADATA = "metadata/annotations.yaml"


def recognize_asset(path: str, content: bytes, tree: FileTree) -> Taken | None:
    """Return why a controller completes a manifest; None if nothing says so."""
    # Most files do not have the word, and need no pattern.
    found = _FILLED.search(content) if b"filled" in content.lower() else None
    if found:
        return Taken(ASSET, f"it says `{found[1].decode()}`")
    folders = path.split("/")[:-1]
    for index, folder in enumerate(folders):
        above = folders[:index]
        is_embedded = folder in _EMBEDDED_FOLDERS and not _CODE_FOLDERS.isdisjoint(above)
        if (folder in _ASSET_FOLDERS or is_embedded) and (program := _find_program(above, tree)):
            shown = "/".join(folders[: index + 1])
            return Taken(ASSET, f"`{shown}` belongs to a Go program (`{program}`), which completes its manifests")
    return None


def _find_program(folders: list[str], tree: FileTree) -> str:
    """Return the file that shows that a folder, or one above it, is a program in Go; empty if there is none."""
    for count in range(len(folders), -1, -1):
        for name in _GO_FILES:
            path = "/".join((*folders[:count], name))
            if tree.exists(path):
                return path
        for name in _BUILD_FILES:
            path = "/".join((*folders[:count], name))
            if tree.exists(path) and _GO_BUILD.search(tree.read(path).content):
                return path
    return ""


def recognize_bundle(path: str, tree: FileTree) -> Taken | None:
    """Return why OLM installs a manifest: it is part of a bundle."""
    folder, _, _ = path.rpartition("/")
    above, _, name = folder.rpartition("/")
    metadata = f"{above}/{_BUNDLE_METADATA}" if above else _BUNDLE_METADATA
    if name == "manifests" and tree.exists(metadata):
        return Taken(ASSET, f"it is part of a bundle that OLM installs (`{metadata}`)")
    if path.endswith(BUNDLE_SUFFIX):
        return Taken(ASSET, "it is a ClusterServiceVersion, which OLM installs with its bundle")
    return None
