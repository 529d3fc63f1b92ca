"""Named tuples of jobgen, which must do what those of `typing` do."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobgen.model.named_tuple import NamedTuple


class Point(NamedTuple):
    """A point."""

    x: int
    y: int = 0
    """The second coordinate."""
    label: str | None = None

    @property
    def is_origin(self) -> bool:
        return (self.x, self.y) == (0, 0)

    @classmethod
    def at(cls, text: str) -> Point:
        return cls(*map(int, text.split(",")))


class Expected(typing.NamedTuple):
    """A point."""

    x: int
    y: int = 0
    label: str | None = None


class Empty(NamedTuple):
    """No fields."""


class Special(Point):
    """A subclass that adds a method."""

    def double(self) -> Special:
        return self._replace(x=2 * self.x)


VALUES = st.one_of(st.integers(), st.text(max_size=3), st.none())
ARGUMENTS = st.lists(VALUES, max_size=4)
NAMED = st.dictionaries(st.sampled_from(["x", "y", "label", "z"]), VALUES, max_size=3)


def call(function, *args, **kwargs):
    """What a call returns as a plain tuple, or the type of its exception."""
    try:
        return tuple(function(*args, **kwargs))
    except (TypeError, ValueError) as error:
        return type(error)


@given(ARGUMENTS, NAMED)
def test_constructor_takes_what_that_of_typing_takes(args, kwargs):
    assert call(Point, *args, **kwargs) == call(Expected, *args, **kwargs)


@given(ARGUMENTS)
def test_make_takes_what_that_of_typing_takes(values):
    assert call(Point._make, values) == call(Expected._make, values)


@given(VALUES, VALUES, NAMED)
def test_values_behave_as_those_of_typing(x, y, changes):
    point, expected = Point(x, y), Expected(x, y)
    replaced = call(expected._replace, **changes)
    # Python 3.13 raises a TypeError for the name of another field, as a call does.
    assert call(point._replace, **changes) == (ValueError if replaced is TypeError else replaced)
    assert point == expected
    assert hash(point) == hash(expected)
    assert point._asdict() == expected._asdict()
    assert repr(point) == repr(expected).replace("Expected", "Point")
    assert (point.x, point.y, point.label) == (x, y, None)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [Point(1, 2, "a"), Empty(), Special(3)], ids=repr)
def test_values_are_pickled_and_copied(value, protocol):
    for other in (pickle.loads(pickle.dumps(value, protocol)), copy.copy(value), copy.deepcopy(value)):
        assert other == value
        assert type(other) is type(value)


def test_class_describes_its_fields():
    assert Point._fields == Point.__match_args__ == Expected._fields
    assert Point._field_defaults == Expected._field_defaults
    assert typing.get_type_hints(Point) == typing.get_type_hints(Expected)
    assert inspect.signature(Point(1).__class__).parameters.keys() == {"x", "y", "label"}
    assert not hasattr(Point(1), "__dict__")


def test_methods_properties_and_subclasses():
    assert Point.at("0,0").is_origin
    assert Special(2).double() == (4, 0, None)
    assert type(Special(2).double()) is Special
    assert Empty() == ()


def test_fields_cannot_be_set():
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]


def test_values_match_patterns():
    match Point(1, 2):
        case Point(x, y, None):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("the pattern does not match")


def test_a_field_without_a_default_cannot_follow_one_with_a_default():
    with pytest.raises(TypeError, match="without a default"):
        type(NamedTuple)("Wrong", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
