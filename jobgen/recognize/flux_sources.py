"""Where Kustomizations and HelmReleases of Flux get their files from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import text_of
from jobgen.recognize.gitops_objects import BOOTSTRAPPED, SOURCE, GitOpsObject, GitOpsTree

_BRANCHES = ("", "main", "master")


def find_sources(tree: GitOpsTree, reference: Mapping[str, Any], kind: str) -> list[GitOpsObject]:
    """Return the sources of a kind that a reference can mean."""
    name = text_of(reference.get("name"))
    return [each for each in tree.list_kind(SOURCE, kind) if each.name == name]


def is_own(tree: GitOpsTree, reference: Mapping[str, Any]) -> bool:
    """Return True if the files of a source are certainly those of this repository."""
    if text_of(reference.get("kind")) != "GitRepository":
        return False
    found = find_sources(tree, reference, "GitRepository")
    if not found:
        return text_of(reference.get("name")) == BOOTSTRAPPED
    return all(tree.is_own(text_of(each.spec.get("url"))) and _is_whole(each) for each in found)


def may_be_own(tree: GitOpsTree, reference: Mapping[str, Any]) -> bool:
    """Return True if the files of a source may be those of this repository."""
    found = find_sources(tree, reference, "GitRepository")
    is_git = text_of(reference.get("kind")) == "GitRepository"
    return is_git and all(tree.may_be_own(text_of(each.spec.get("url"))) for each in found)


def _is_whole(source: GitOpsObject) -> bool:
    """Return True if a source has the files of the branch that is linted, and no others."""
    reference = as_mapping(source.spec.get("ref"))
    is_branch = text_of(reference.get("branch")) in _BRANCHES and not reference.keys() - {"branch"}
    return is_branch and not source.spec.get("include") and not source.spec.get("ignore")
