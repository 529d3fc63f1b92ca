"""Changes of mutating policies, carried over to the rendered object: its values keep their locations."""

import copy
import random

import pytest
from sampling import sample

from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar, location_of, untraced
from jobgen.model.mutated import Change, Source, carry_over, is_same, list_changed_paths

POLICY = Location("policies/m.yaml", 7, 1)
SOURCE = Source("m", POLICY)


def trace(tree, counter=None):
    """A tree with a line of its own for every key and scalar."""
    counter = counter if counter is not None else iter(range(1, 10**6))
    if isinstance(tree, dict):
        if not tree:
            return TracedMapping(Location("j.yaml", next(counter)))
        return {
            TracedKey.at(key, Location("j.yaml", next(counter)), "job"): trace(value, counter)
            for key, value in tree.items()
        }
    if isinstance(tree, list):
        return TracedList([trace(item, counter) for item in tree], Location("j.yaml", next(counter)), "job")
    return TracedScalar(tree, Location("j.yaml", next(counter)), "job")


def carry(node, before, after, removals=None, *, is_traced=True):
    found = [] if removals is None else removals
    return carry_over(node, Change(SOURCE, before, after), found, is_traced=is_traced)


def test_a_value_that_is_replaced_has_the_location_of_the_policy_and_its_history():
    node = trace({"a": 1, "b": 2})

    made = carry(node, {"a": 1, "b": 2}, {"a": 3, "b": 2})

    assert (made["a"].value, made["a"].location, made["a"].layer) == (3, POLICY, "policy m")
    assert made["a"].overridden is node["a"]
    assert made["b"] is node["b"]


def test_defaults_of_the_cluster_are_left_out_and_changed_ones_are_kept():
    before = {"a": 1, "filled": {"x": 1, "y": 2}, "other": 5}

    made = carry({"a": 1}, before, {**before, "filled": {"x": 1, "y": 3}}, is_traced=False)

    assert made == {"a": 1, "filled": {"y": 3}}


def test_what_the_cluster_drops_stays_in_the_rendered_object():
    node = trace({"a": 1, "unknown": 2, "empty": None})

    assert untraced(carry(node, {"a": 1}, {"a": 2})) == {"a": 2, "unknown": 2, "empty": None}


def test_items_of_lists_are_found_again_after_others_were_added_or_removed():
    before = {"c": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]}
    node, removals = trace(before), []
    after = {"c": [{"name": "new"}, {"name": "b", "x": 3}]}

    made = carry(node, before, after, removals)

    assert untraced(made) == after
    assert location_of(made["c"][0]) == POLICY
    assert made["c"][1]["name"] is node["c"][1]["name"]
    assert made["c"][1]["x"].location == POLICY
    assert [(removal.path, removal.node) for removal in removals] == [(("c", 0), node["c"][0])]


@pytest.mark.parametrize(("before", "after"), [(True, 1), (1, 1.0), (0, False), ("1", 1), (None, {})])
def test_values_of_other_types_differ(before, after):
    assert not is_same(before, after)
    assert list(list_changed_paths({"a": before}, {"a": after})) == [("/a", "changes")]


def make_tree(rng, depth=0):
    kind = rng.random()
    if depth < 4 and kind < 0.4:
        return {rng.choice("abcdef/~"): make_tree(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 4 and kind < 0.6:
        named = rng.random() < 0.5
        items = [make_tree(rng, depth + 1) for _ in range(rng.randrange(4))]
        return [{"name": rng.choice("xyz"), "v": item} for item in items] if named else items
    return rng.choice([None, True, False, 0, 1, 1.0, "", "s", "1"])


def change_tree(rng, tree):
    """The tree with some values replaced, added, moved and removed."""
    if rng.random() < 0.08:
        return make_tree(rng, 2)
    if isinstance(tree, dict):
        made = {key: change_tree(rng, value) for key, value in tree.items() if rng.random() > 0.1}
        return {**made, "new": make_tree(rng, 2)} if rng.random() < 0.15 else made
    if isinstance(tree, list):
        made = [change_tree(rng, item) for item in tree if rng.random() > 0.1]
        if rng.random() < 0.2:
            made.insert(rng.randrange(len(made) + 1), make_tree(rng, 2))
        return made
    return tree


def list_scalars(tree):
    if isinstance(tree, dict):
        return [found for value in tree.values() for found in list_scalars(value)]
    if isinstance(tree, list):
        return [found for value in tree for found in list_scalars(value)]
    return [tree]


@pytest.mark.parametrize("seed", sample(range(20), 3))
def test_any_change_is_carried_over_whole_and_the_same_with_and_without_locations(seed):
    rng = random.Random(seed)
    for _ in range(100):
        before = {"root": make_tree(rng)}
        after = {"root": change_tree(rng, copy.deepcopy(before["root"]))}
        node = trace(before)
        own = {id(scalar) for scalar in list_scalars(node)}

        made = carry(node, before, after)

        assert is_same(untraced(made), after)
        assert is_same(carry(before, before, after, is_traced=False), after)
        for scalar in list_scalars(made):
            assert scalar.location == POLICY or id(scalar) in own
        assert bool(list(list_changed_paths(before, after))) == (not is_same(before, after))
