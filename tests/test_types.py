"""mypy distinguishes traced data from plain data: each snippet below is checked as a module of its own."""

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parent.parent
HEAD = """
from jobgen.model.data import Node, Plain, TracedScalar, untraced, value_of, with_layer
from jobgen.yamlio.write import to_yaml

"""
WRONG = {
    "a node where plain data is wanted": (
        "def f(node: Node) -> None:\n    to_yaml(node)\n",
        'Argument 1 to "to_yaml" has incompatible type',
    ),
    "a traced scalar as a string": (
        "def f(leaf: TracedScalar) -> str:\n    return leaf.upper()\n",
        '"TracedScalar" has no attribute "upper"',
    ),
    "a node as a string": (
        "def f(node: Node) -> str:\n    return node\n",
        "Incompatible return value type",
    ),
    "a traced tree as plain data": (
        "def f(tree: dict[str, Node]) -> Plain:\n    return tree\n",
        "Incompatible return value type",
    ),
    "a traced layer as plain data": (
        "def f(tree: dict[str, Node]) -> Plain:\n    return with_layer(tree, 'defaults')\n",
        "Incompatible return value type",
    ),
    "changing data that others share": (
        "def f(tree: Plain) -> None:\n    if isinstance(tree, list):\n        return\n    tree['a'] = 1\n",
        "Unsupported target for indexed assignment",
    ),
}
RIGHT = {
    "plain data is a node": "def f(tree: Plain) -> Node:\n    return tree\n",
    "a traced scalar is a node": "def f(leaf: TracedScalar) -> Node:\n    return {'a': [leaf, 1]}\n",
    "a tree without its locations is plain": "def f(node: Node) -> Plain:\n    return untraced(node)\n",
    "the value of a leaf is a scalar": "def f(node: Node) -> str:\n    return str(value_of(node))\n",
    "plain data is written": "def f(tree: dict[str, Plain]) -> str:\n    return to_yaml(tree)\n",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The errors that mypy reports for each snippet."""
    folder = tmp_path_factory.mktemp("snippets")
    snippets = {name: text for name, (text, _) in WRONG.items()} | RIGHT
    files = {f"snippet_{number}.py": name for number, name in enumerate(snippets)}
    for file, name in files.items():
        (folder / file).write_text(HEAD + snippets[name])
    config = ["--strict", "--no-error-summary", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    output, fault, _ = api.run([*config, *(str(folder / file) for file in files)])
    assert not fault, fault
    found = {name: [] for name in snippets}
    for line in output.splitlines():
        path, _, message = line.partition(".py:")
        if ": error: " in message and Path(path).parent == folder:
            found[files[f"{Path(path).name}.py"]].append(message)
    return found


@pytest.mark.parametrize("name", WRONG)
def test_mixing_traced_and_plain_data_is_a_type_error(errors, name):
    assert [message for message in errors[name] if WRONG[name][1] in message]


@pytest.mark.parametrize("name", RIGHT)
def test_correct_use_is_no_type_error(errors, name):
    assert errors[name] == []
