"""docs/dependencies.md names every dependency with what imports it, its license and its reason; nothing else."""

import ast
import functools
import re
import sys
import tomllib
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from moduletrees import find_nodes, parse_module

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/dependencies.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RUN_TIME = ("delta", "lsp", "mcp", "second-opinion")
"""The extras that commands need."""
LICENSES = {
    "Apache": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "MIT style": "MIT",
}
"""What packages write, and its identifier."""
DESIGN_CARD = "ruamel.yaml jsonschema kubeconform click deepdiff pytest pre-commit".split()


class Row(NamedTuple):
    name: str
    cells: dict[str, str]

    @property
    def places(self):
        """The files and folders that the row names as its place."""
        where = next(self.cells[key] for key in ("imported by", "used in", "used by", "where") if key in self.cells)
        return re.findall(r"`([^`]+)`", where)


def rows(heading):
    """The rows of the table below a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line] for line in lines]
    return [Row(cells[0].strip("`"), dict(zip(head, cells, strict=True))) for cells in body]


INSTALLED, EXTRAS, PROGRAMS = rows("Installed with jobgen"), rows("Extras"), rows("Programs")
DEVELOPERS, WRITTEN = rows("For developers"), rows("Written by hand")


def names(requirements):
    found = [re.match(r"[A-Za-z0-9._-]+", requirement)[0] for requirement in requirements]
    return sorted(name for name in found if name != "jobgen")


def test_page_lists_what_pyproject_requires():
    extras = PROJECT["optional-dependencies"]
    listed = {extra: [row.name for row in EXTRAS if row.cells["extra"] == f"`{extra}`"] for extra in extras}

    assert sorted(row.name for row in INSTALLED) == names(PROJECT["dependencies"])
    assert sorted(row.name for row in DEVELOPERS) == names(extras["dev"])
    assert {extra: sorted(found) for extra, found in listed.items() if extra != "dev"} == {
        extra: names(requirements) for extra, requirements in extras.items() if extra != "dev"
    }


@functools.cache
def imported_modules():
    """What each module of jobgen imports, by the first part of its name."""
    found = {}
    for path in sorted((ROOT / "jobgen").rglob("*.py")):
        tree = parse_module(path)
        direct = {alias.name for node in find_nodes(tree, ast.Import) for alias in node.names}
        direct |= {node.module for node in find_nodes(tree, ast.ImportFrom) if node.module and not node.level}
        found[path.relative_to(ROOT).as_posix()] = {name.partition(".")[0] for name in direct}
    return found


@functools.cache
def import_names(package):
    """The names of the modules of a package."""
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        return frozenset()
    tops = {file.parts[0] for file in files if file.suffix in (".py", ".so")}
    return frozenset(top.partition(".")[0] for top in tops if "-" not in top)


@pytest.mark.parametrize(
    "row",
    [*INSTALLED, *(row for row in EXTRAS if row.cells["extra"].strip("`") in RUN_TIME)],
    ids=lambda row: row.name,
)
def test_package_is_imported_where_the_page_says_and_nowhere_else(row):
    importing = [path for path, modules in imported_modules().items() if modules & import_names(row.name)]

    assert importing
    assert [path for path in importing if not any(fnmatchcase(path, f"{place}*") for place in row.places)] == []
    assert [place for place in row.places if not any(fnmatchcase(path, f"{place}*") for path in importing)] == []


def test_no_other_package_is_imported():
    """All imports are of jobgen, of Python, or of a package that is listed, or of what such a package comes with."""
    listed = {name for row in (*INSTALLED, *EXTRAS) for name in import_names(row.name)}
    # `referencing` is part of jsonschema's interface; lsprotocol of pygls'; mcp_types of mcp's.
    known = {"jobgen", "referencing", "lsprotocol", "mcp_types"} | set(sys.stdlib_module_names) | listed
    unknown = {path: modules - known for path, modules in imported_modules().items() if modules - known}

    assert unknown == {}


@pytest.mark.parametrize("row", [*DEVELOPERS, *PROGRAMS], ids=lambda row: row.name)
def test_place_of_a_tool_mentions_it(row):
    words = {row.name, row.name.replace("-bin", ""), row.name.replace("-cli-bin", ""), *import_names(row.name)}
    words |= {row.name, row.name.replace("-", "_")}
    (place,) = row.places
    text = (ROOT / place).read_text("utf-8")

    assert any(re.search(rf"(?i)(?<![\w]){re.escape(word)}", text) for word in words), words


@pytest.mark.parametrize("row", [*INSTALLED, *EXTRAS, *DEVELOPERS], ids=lambda row: row.name)
def test_license_is_that_of_the_installed_package(row):
    try:
        found = metadata(row.name)
    except PackageNotFoundError:
        pytest.skip("the package is not installed")
    classifiers = [
        each.rpartition(":: ")[2] for each in found.get_all("Classifier") or () if each.startswith("License")
    ]
    stated = [found.get("License-Expression"), found.get("License"), *classifiers]
    known = [LICENSES.get(each, each) for each in stated if each and "\n" not in each]

    assert not known or row.cells["license"] in known


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: row.name)
def test_what_is_written_by_hand_exists_and_has_a_reason(row):
    (place,) = row.places

    assert (ROOT / place).exists()
    assert len(row.cells["why no library does it"]) > 40


@pytest.mark.parametrize("name", DESIGN_CARD)
def test_design_card_is_kept(name):
    [row] = [row for row in (*INSTALLED, *EXTRAS, *PROGRAMS, *DEVELOPERS) if row.name == name]

    assert row.places
    assert len(row.cells["why"]) > 40
