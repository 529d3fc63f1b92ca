"""Differences between two objects, compared with those of deepdiff."""

import pytest
from deepdiff import DeepDiff
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.k8s.compare import FieldChange, compare_objects, narrow_change
from jobgen.model.path import NamedItem, format_dotted

SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "1", "1000m"])
NAMES = st.sampled_from(["a", "b", "c", "limits", "cpu"])
ITEMS = st.dictionaries(st.sampled_from(["a", "b", "c"]), SCALARS, min_size=1, max_size=3).map(
    lambda found: [{"name": name, "value": value} for name, value in found.items()]
)
TREES = st.recursive(
    SCALARS | st.lists(st.integers(0, 2), max_size=3),
    lambda below: st.dictionaries(NAMES, below, max_size=3) | st.fixed_dictionaries({"env": ITEMS, "x": below}),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, TREES, max_size=4)


def found(old, new):
    return [(format_dotted(change.path), change.op, change.old, change.new) for change in compare_objects(old, new)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": 1}}),
        ({"requests": {"memory": "1Gi"}}, {"requests": {"memory": "1024Mi"}}),
        ({"emptyDir": {"sizeLimit": "0.5Gi"}}, {"emptyDir": {"sizeLimit": "512Mi"}}),
        ({"a": None}, {}),
        ({"items": [{"limits": {"cpu": "1"}}]}, {"items": [{"limits": {"cpu": "1000m"}}]}),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"value": "1", "name": "A"}]}),
    ],
)
def test_equivalent_values_are_no_change(old, new):
    assert found(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"env": {"cpu": "1000m"}}, {"env": {"cpu": "1"}}, [("env.cpu", "changed", "1000m", "1")]),
        ({"a": True}, {"a": 1}, [("a", "changed", True, 1)]),
        ({"a": {}}, {}, [("a", "removed", {}, None)]),
        ({"args": [1, 2]}, {"args": [2, 1]}, [("args", "changed", [1, 2], [2, 1])]),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]},
            [
                ("env[name=B]", "added", None, {"name": "B", "value": "2"}),
                ("env[name=A].value", "changed", "1", "3"),
            ],
        ),
        (
            {"env": [{"name": "A"}, {"name": "B"}]},
            {"env": [{"name": "B"}, {"name": "A"}]},
            [("env", "changed", ["A", "B"], ["B", "A"])],
        ),
        (
            {"env": [{"name": "A"}, {"name": "A"}]},
            {"env": [{"name": "A"}]},
            [("env", "changed", [{"name": "A"}, {"name": "A"}], [{"name": "A"}])],
        ),
    ],
)
def test_changes_are_reported_at_the_deepest_path(old, new, expected):
    assert found(old, new) == expected


def test_added_value_is_reported_at_its_only_field():
    change = FieldChange(("spec", "runPolicy"), "added", None, {"suspend": True})

    assert narrow_change(change) == (("spec", "runPolicy", "suspend"), "added", None, True)
    assert narrow_change(change._replace(new={"a": 1, "b": 2})).path == ("spec", "runPolicy")
    assert narrow_change(FieldChange(("a",), "removed", {"b": 0}, None)) == (("a", "b"), "removed", 0, None)


@given(OBJECTS)
def test_equal_objects_have_no_changes(tree):
    assert list(compare_objects(tree, tree)) == []


@given(OBJECTS, OBJECTS)
def test_reverse_diff_undoes_every_change(old, new):
    back = {"added": "removed", "removed": "added", "changed": "changed"}

    assert {(change.path, change.op) for change in compare_objects(old, new)} == {
        (change.path, back[change.op]) for change in compare_objects(new, old)
    }


def as_deepdiff_reads_it(tree, field=""):
    """Nothing where we see nothing, lists by their keys, and other lists as one value."""
    if isinstance(tree, dict):
        return {key: as_deepdiff_reads_it(value, key) for key, value in tree.items() if value is not None}
    if isinstance(tree, list) and field == "env":
        return {f"[name={item['name']}]": as_deepdiff_reads_it(item) for item in tree}
    return repr(tree) if isinstance(tree, list) else tree


@laws(13)
@given(OBJECTS, OBJECTS)
def test_changes_agree_with_deepdiff(old, new):
    theirs = DeepDiff(as_deepdiff_reads_it(old), as_deepdiff_reads_it(new), view="tree", threshold_to_diff_deeper=0)
    paths = {tuple(level.path(output_format="list")) for levels in theirs.values() for level in levels}
    ours = {
        tuple(str(step) if isinstance(step, NamedItem) else step for step in change.path)
        for change in compare_objects(old, new)
        # The order of items is none of a mapping's business, and nothing of an amount is deepdiff's.
        if not (change.path[-1] == "env" and change.op == "changed" and isinstance(change.new, list))
    }
    amounts = {path for path in paths if len(path) > 1 and path[-2] == "limits"}

    assert ours - amounts <= paths
    assert paths - amounts <= ours
