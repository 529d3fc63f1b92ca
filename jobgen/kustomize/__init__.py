"""Kustomizations: which files they use, and the objects that they build, with the line of every value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from jobgen.kustomize.tree import Plan, SourceTree, Tool

if TYPE_CHECKING:
    from jobgen.kustomize.builder import Build
    from jobgen.repo.files import BuiltObject

# Modules that build are imported in functions: most folders have no kustomization.


def plan(tree: SourceTree, kustomizations: Iterable[str]) -> Plan:
    """Return how the given kustomization files, and those that they lead to, use files."""
    named = list(kustomizations)
    if not named:
        return Plan((), {}, {})
    from jobgen.kustomize.planning import plan_kustomizations

    return plan_kustomizations(tree, named)


def build(
    tree: SourceTree,
    root: str,
    tool: Tool | None = None,
    charts: Mapping[str, Callable[[], Sequence[BuiltObject]]] = MappingProxyType({}),
) -> Build:
    """Build the kustomization file at a path; the tool is started only for one that jobgen says it cannot build.

    `charts` render the charts of kustomizations, by their paths.
    """
    from jobgen.kustomize.builder import build_own

    own = build_own(tree, root, charts)
    if tool is None or not own.is_left_to_tool:
        return own
    from jobgen.kustomize.tool import use_tool

    return use_tool(tree, own, tool)
