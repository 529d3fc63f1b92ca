"""Properties that are computed once."""

from jobgen.model.cached_property import cached_property


class Counter:
    def __init__(self):
        self.calls = 0

    @cached_property
    def square(self):
        """The square of the calls."""
        self.calls += 1
        return self.calls**2


def test_a_value_is_computed_once_for_each_instance():
    one, other = Counter(), Counter()
    assert (one.square, one.square, one.calls, other.calls) == (1, 1, 1, 0)


def test_a_value_can_be_set_and_deleted():
    counter = Counter()
    counter.square = 9
    assert (counter.square, counter.calls) == (9, 0)
    del counter.square
    assert (counter.square, counter.calls) == (1, 1)


def test_the_class_shows_the_property_and_its_documentation():
    assert Counter.square.__doc__ == "The square of the calls."
