"""Imports point down one list of packages, and the core imports no feature; some libraries belong to one module."""

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
# The core, from bottom to top: a package imports those before it only. ARCHITECTURE.md shows the same list.
CORE = """model cache engine yamlio repo spec k8s schema reports kustomize recognize rendering explanation
    check pipeline compare api cli""".split()
# Features are above all of it. Each may import the core, and of the others only these.
FEATURES = {
    "convert": (),
    "editor": ("convert", "kueue", "page"),  # migrations that it offers, decisions about jobs, what jobs request
    "gitops": (),
    "helm": (),
    "kueue": (),
    "launch": ("convert",),  # the pods that operators create, with their variables
    "live": (),
    "model_context": (),
    "page": ("kueue",),  # the capacity of queues
    "second_opinion": (),
    "teams": (),
    "testing": (),
    "upgrade": ("convert", "kueue"),  # the pods of operators, decisions about jobs
}
PACKAGES = [*CORE, "features"]

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if path not in (ROOT / "__init__.py", ROOT / "__main__.py", ROOT / "kueue.py")  # the public names of the package
}
# The modules or packages that may use a name; an empty set forbids it everywhere.
RESERVED = {
    "yaml": {"yamlio.read.events"},
    "ruamel": {"yamlio.commented"},
    "click": {"cli", *(f"features.{name}.commands" for name in FEATURES)},
    "cel_expr_python": {"check.cel.engine", "model.re2"},
    "pygls": {"features.editor.server"},
    "lsprotocol": {"features.editor.server"},
    "deepdiff": {"compare.formats.delta"},
    "jsonschema": {"features.second_opinion.json_schema_process"},
    "referencing": {"features.second_opinion.json_schema_process"},
    "mcp": {"features.model_context.server"},
    "mcp_types": {"features.model_context.server"},
    "typing.NamedTuple": {"model.named_tuple"},  # whose classes take ten times as long to create
    "print": set(),
    "exit": set(),
    "SystemExit": set(),
    "sys.exit": set(),
    "os._exit": {
        "cli.main",
        "cli.complete",
        "engine.workers",
    },  # a child process must not return into its parent's code
    "sys.stdout": {
        "features.second_opinion.json_schema_process",  # a process of its own, which writes its results
        "features.editor.commands.lsp",  # the background process of the language server writes frames
        "cli.result",
        "engine.workers",
    },  # flushed before a fork
    "sys.stderr": {
        "features.editor.commands.lsp",  # what is printed by mistake must not come between messages
        "cli.result",
        "engine.workers",
    },
    "jobgen.cache": {"cli", "engine.store"},  # nothing else keeps anything on disk between runs
    # What a query learns of files is recorded, so it asks `engine.inputs`. These write files, or run before a query.
    **{
        look: {
            "api.baseline",
            "api.fix",
            "api.since",
            "api.render",
            "cache",
            "cli",
            "engine.inputs",
            "features",
            "kustomize.tool",  # the program that builds kustomizations
            "model.features",
            "repo",
        }
        for look in ("os.stat", "os.lstat", *map("os.path.{}".format, "exists isfile isdir islink lexists".split()))
    },
    "os.walk": set(),
    # these list their own modules
    "os.listdir": {
        "model.features",
        "repo.ready",
    },
    # the folders of a repository; schemas, temporary folders, the rendered tree and the cache, which list their own
    "os.scandir": {"engine.inputs", "repo.shipped", "repo.atomic", "cache", "repo.rendered_tree"},
    ".iterdir": {"repo.commit", "repo.root"},  # folders of a commit
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
    for node in find_nodes(tree, ast.Import, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        for name in (name.removeprefix("jobgen.") for name in names if name.startswith("jobgen.")):
            yield name if name in MODULES else name.rpartition(".")[0]


def used(tree):
    """The libraries, functions and attributes that a module uses."""
    for node in find_nodes(tree, ast.Import, ast.ImportFrom, ast.Name, ast.Attribute):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module.split(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield from (f".{node.attr}", f"{getattr(node.value, 'id', '')}.{node.attr}", ast.unparse(node))


@every_package
def test_imports_point_down(package):
    above = PACKAGES[PACKAGES.index(package) + 1 :]
    imports = {name: imported(path) for name, path in modules_of(package).items()}

    assert {(name, other) for name in imports for other in imports[name] if other.split(".")[0] in above} == set()


@pytest.mark.parametrize("feature", FEATURES)
def test_features_import_no_others(feature):
    allowed = {feature, *FEATURES[feature]}
    imports = {name: imported(path) for name, path in MODULES.items() if name.startswith(f"features.{feature}.")}
    others = {(name, other) for name in imports for other in imports[name] if other.startswith("features.")}

    assert {(name, other) for name, other in others if other.split(".")[1] not in allowed} == set()


def test_every_feature_is_listed():
    assert {name.split(".")[1] for name in MODULES if name.startswith("features.")} == set(FEATURES)


def test_architecture_lists_the_same_packages():
    rows = re.findall(r"^\| `(\w+)` \| ", (ROOT.parent / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)

    assert rows == [*PACKAGES[::-1][1:], *sorted(FEATURES)]


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
