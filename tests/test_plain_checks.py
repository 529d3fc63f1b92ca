"""Checks see plain data: their modules name neither data that may have locations nor what reads it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
PACKAGES = ("check", "features/kueue", "features/launch", "k8s")
DATA = "jobgen.model.data"
WITH_LOCATIONS = frozenset(("Node", "value_of", "type_of", "is_null"))


def list_imported(path):
    """The names that a module imports from the module of data trees."""
    imports = (node for node in find_nodes(parse_module(path), ast.ImportFrom) if node.module == DATA)
    return {each.name for node in imports for each in node.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_checks_see_plain_data(package):
    modules = sorted((ROOT / package).rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): sorted(list_imported(path) & WITH_LOCATIONS) for path in modules}

    assert len(modules) > 30
    assert {path: names for path, names in found.items() if names} == {}


def test_data_with_locations_has_these_names():
    assert {"Node", "value_of", "type_of", "is_null"} <= vars(__import__(DATA, fromlist=["data"])).keys()
    assert "Node" in list_imported(ROOT / "rendering/build.py")
