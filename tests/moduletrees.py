"""The syntax trees of modules, each parsed when a test first needs it: all of jobgen takes seconds to parse."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

import pytest


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
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [each for each in value if isinstance(each, ast.AST)]
    return nodes


def name_shared(item: pytest.Item) -> object:
    """Return what tests that one process should run have in common: their module, or the trees of all modules."""
    return getattr(getattr(item, "module", None), parse_module.__name__, item.path)
