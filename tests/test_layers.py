"""Imports point down one list of packages, without cycles; some functions and libraries belong to one module."""

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest
from moduletrees import parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
# A package may import what is below it. ARCHITECTURE.md shows the same list.
PACKAGES = """cli model_context editor api gitops convert site testing diff queues teams pipeline recognize report
    render check operators kueue kustomize k8s spec repo yamlio cache model""".split()

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if path not in (ROOT / "__init__.py", ROOT / "__main__.py")
}
# The modules or packages that may use a name; an empty set forbids it everywhere.
RESERVED = {
    "yaml": {"yamlio.read.events"},
    "click": {"cli"},
    "cel_expr_python": {"check.cel.engine"},
    "pygls": {"editor.server"},
    "lsprotocol": {"editor.server"},
    "deepdiff": {"diff.formats.delta"},
    "jsonschema": {"api.json_schema_process"},
    "referencing": {"api.json_schema_process"},
    "mcp": {"model_context.server"},
    "mcp_types": {"model_context.server"},
    "print": set(),
    "exit": set(),
    "SystemExit": set(),
    "sys.exit": set(),
    "os._exit": {"cli.main", "pipeline.parallel"},  # a child process must not return into its parent's code
    "sys.stdout": {
        "api.json_schema_process",  # a process of its own, which writes its results
        "cli.commands.lsp",  # the background process of the language server writes frames
        "cli.terminal",
        "pipeline.parallel",
    },  # flushed before a fork
    "sys.stderr": {
        "cli.commands.lsp",  # what is printed by mistake must not come between messages
        "cli.terminal",
        "pipeline.parallel",
    },
    "os.walk": set(),
    # these list their own modules
    "os.listdir": {
        "check.rules",
        "check.validation",
        "cli.app",
        "diff.formats",
        "queues.formats",
        "report.formats",
        "teams.formats",
        "testing.formats",
    },
    # the folders of a repository; schemas, temporary folders, the rendered tree and the cache, which list their own
    "os.scandir": {"repo.walk", "repo.shipped", "repo.scratch", "cache", "repo.tree_files"},
    ".iterdir": {"repo.tree_files", "repo.root"},  # lists the tree that it writes, and a folder of a commit
    ".glob": set(),
    ".rglob": set(),
}

every_package = pytest.mark.parametrize("package", PACKAGES)


def modules_of(package):
    """The modules of a package, the package itself included."""
    return {name: path for name, path in MODULES.items() if name.split(".")[0] == package}


def test_every_module_is_in_a_package():
    assert {name.split(".")[0] for name in MODULES} == set(PACKAGES)


@functools.cache
def imported(path):
    """The modules of this package that a module imports, at the top or inside a function."""
    return frozenset(_imported(parse_module(path)))


def _imported(tree):
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        for name in (name.removeprefix("jobgen.") for name in names if name.startswith("jobgen.")):
            yield name if name in MODULES else name.rpartition(".")[0]


def used(tree):
    """The libraries, functions and attributes that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module.split(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield from (f".{node.attr}", f"{getattr(node.value, 'id', '')}.{node.attr}")


@every_package
def test_imports_point_down(package):
    above = PACKAGES[: PACKAGES.index(package)]
    imports = {name: imported(path) for name, path in modules_of(package).items()}

    assert {(name, other) for name in imports for other in imports[name] if other.split(".")[0] in above} == set()


def test_architecture_lists_the_same_packages():
    rows = re.findall(r"^\| `(\w+)` \| ", (ROOT.parent / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)

    assert rows == PACKAGES


def test_imports_have_no_cycle():
    graph = {name: imported(path) - {name, ""} for name, path in MODULES.items()}

    assert list(graphlib.TopologicalSorter(graph).static_order())


@every_package
def test_reserved_names(package):
    assert {(name, word) for name, path in modules_of(package).items() for word in misused(name, path)} == set()


def misused(name, path):
    """The names that a module uses and that belong to others."""
    parts = name.split(".")
    homes = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return {word for word in used(parse_module(path)) if not homes & RESERVED.get(word, homes)}


def test_module_names_say_what_they_hold():
    vague = {"utils", "helpers", "base", "common", "manager"}

    assert [name for name in MODULES if vague & set(name.split("."))] == []
