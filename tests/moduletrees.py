"""The syntax trees of modules, each parsed when a test first needs it: all of jobgen takes seconds to parse."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path
from typing import Any, TypeVar

import pytest

Node = TypeVar("Node", bound=ast.AST)


@functools.cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which must not be changed."""
    gc.disable()
    tree = ast.parse(path.read_text("utf-8"))
    gc.freeze()  # trees live as long as the process and contain no garbage
    gc.enable()
    return tree


@functools.cache
def list_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of a tree, outer ones first, as `ast.walk` does; several tests ask for those of each module."""
    nodes = [tree]
    for node in nodes:
        for field in node._fields:
            if field == "ctx":
                # A third of all nodes say that a name is read, or written.
                continue
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [each for each in value if isinstance(each, ast.AST)]
    return nodes


def find_nodes(tree: ast.AST, *types: type[Node]) -> list[Node]:
    """Return the nodes of a tree that have one of these types, those of each type in the order of `list_nodes`."""
    by_type = _index_nodes(tree)
    return [node for each in types for node in by_type.get(each, ())]


@functools.cache
def _index_nodes(tree: ast.AST) -> dict[type[ast.AST], list[Any]]:
    found: dict[type[ast.AST], list[Any]] = {}
    for node in list_nodes(tree):
        found.setdefault(type(node), []).append(node)
    return found


def name_shared(item: pytest.Item) -> object:
    """Return what tests that one process should run have in common: their module, or the trees of all modules."""
    return getattr(getattr(item, "module", None), parse_module.__name__, item.path)
