"""The house: rows of modules, each knowing only what lies below; and what one module alone may do."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "jobgen"
# From the ground up. A package stands in one row, and its modules know each other.
ROWS = """
    pattern bounds
    model fork lock git files memory budget
    resemblance shorthand glimpse
    output path quantity emit source report accelerators demands commandline imagename secretshapes
    mends
    merge schema amounts baseline blame written
    compare combinations suppress edit jsonpatch kinds normal explain admission crd homes listkeys cel devices
    crdvalues limits effects cmp krm runhash sweeps
    crdrules
    structural policy refusals
    foreignschema repo porter
    stamps
    overlay gitops
    view severities roadrules
    queues argocd footprint podnames ways outputs operators
    rules
    rulebook ruledocs
    policydocs
    judge
    expand pod
    render
    runs
    make
    places
    catalogue
    trace policyfiles importing
    jobs station migrate
    fleet ledger twins layerfaults
    pipeline
    sides
    pairing causes consequences
    difference
    diffreport transition
    commands
    terminal
    doors moves
    interface
    cli
    __main__
"""
ROW = {name: row for row, names in enumerate(ROWS.split("\n")) for name in names.split()}
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
    for path in ROOT.rglob("*.py")
    if path != ROOT / "__init__.py"
}
TREES = {name: ast.parse(text) for name, text in SOURCES.items()}
# What only some modules may do, by the names they would have to use.
RESERVED = {
    "yaml": {"source.events"},
    "click": {"interface", "doors", "moves"},
    "cel_expr_python": {"cel.engine"},
    "print": set(),
    "exit": set(),
    "SystemExit": set(),
    "sys.exit": set(),
    "os._exit": {"cli", "fork"},  # a child must not return into its parent's code
    "sys.stdout": {"terminal", "fork"},  # emptied before a fork, lest both print what is in it
    "sys.stderr": {"terminal", "fork"},
    "os.walk": set(),
    "os.listdir": {"rules"},  # what rules there are
    "os.scandir": {"repo", "memory"},  # memory: its own folder
    ".iterdir": {"output"},  # the tree that it writes
    ".glob": set(),
    ".rglob": set(),
}

every_module = pytest.mark.parametrize("name", SOURCES)


def imported(tree):
    """Our modules that a module imports, at the top or later."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names] if node.module == "jobgen" else [node.module]
        yield from (name.removeprefix("jobgen.") for name in names if name.startswith("jobgen."))


def used(tree):
    """What a module uses: libraries, functions, and attributes with what they are of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module.split(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield from (f".{node.attr}", f"{getattr(node.value, 'id', '')}.{node.attr}")


@every_module
def test_a_module_knows_only_what_lies_below_it(name):
    here = name.split(".")[0]

    assert here in ROW, f"{here} has no row yet"
    for other in imported(TREES[name]):
        there = other.split(".")[0]
        assert there in ("__version__", here) or ROW[there] < ROW[here], f"{name} imports {other}"


@every_module
def test_a_module_does_only_what_it_may(name):
    wrong = {word for word in used(TREES[name]) if name not in RESERVED.get(word, {name})}

    assert wrong == set()


@every_module
def test_a_module_is_small_and_has_a_name_that_says_something(name):
    assert len(SOURCES[name].splitlines()) <= 300
    assert not {"utils", "helpers", "base", "common", "manager"} & set(name.split("."))
