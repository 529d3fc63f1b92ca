"""The syntax trees of modules, each parsed when a test first needs it: all of jobgen takes seconds to parse."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path


@functools.cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which must not be changed."""
    gc.disable()
    tree = ast.parse(path.read_text("utf-8"))
    gc.freeze()  # trees live as long as the process and contain no garbage
    gc.enable()
    return tree
