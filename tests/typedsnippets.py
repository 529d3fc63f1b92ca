"""What mypy must tell apart, such as traced data from plain data: checked with jobgen, and never run.

A fault that mypy does not see is an unused comment, and that is an error of mypy.
"""

from __future__ import annotations

from pathlib import Path

from jobgen.model.data import Node, Plain, TracedScalar, untraced, value_of, with_layer
from jobgen.rendering import config
from jobgen.repo import layout
from jobgen.yamlio.write import to_yaml


def forget_whose_rules_decide(root: Path) -> None:
    config.load(root)  # type: ignore[arg-type]
    layout.read_settings(root)  # type: ignore[arg-type]
    layout.Layers(root)  # type: ignore[call-arg]


def give_a_node_where_plain_data_is_wanted(node: Node) -> None:
    to_yaml(node)  # type: ignore[arg-type]


def use_a_traced_scalar_as_a_string(leaf: TracedScalar) -> str:
    return leaf.upper()  # type: ignore[attr-defined, no-any-return]


def use_a_node_as_a_string(node: Node) -> str:
    return node  # type: ignore[return-value]


def use_a_traced_tree_as_plain_data(tree: dict[str, Node]) -> Plain:
    return tree  # type: ignore[return-value]


def use_a_traced_layer_as_plain_data(tree: dict[str, Node]) -> Plain:
    return with_layer(tree, "defaults")  # type: ignore[return-value]


def change_data_that_others_share(tree: Plain) -> None:
    if isinstance(tree, list):
        return
    tree["a"] = 1  # type: ignore[index]


def use_plain_data_as_a_node(tree: Plain) -> Node:
    return tree


def use_a_traced_scalar_as_a_node(leaf: TracedScalar) -> Node:
    return {"a": [leaf, 1]}


def use_a_tree_without_its_locations_as_plain_data(node: Node) -> Plain:
    return untraced(node)


def use_the_value_of_a_leaf(node: Node) -> str:
    return str(value_of(node))


def write_plain_data(tree: dict[str, Plain]) -> str:
    return to_yaml(tree)
