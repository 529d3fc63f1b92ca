"""Properties that are computed once, like those of `functools`, without a lock.

In Python 3.11, `functools.cached_property` takes a lock and looks twice before it computes a value. The views of an
object have dozens of such properties, and what they compute does not depend on who asks first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import cached_property as cached_property  # noqa: PLC0414 -- type checkers know this one
    from typing import Any
else:

    class cached_property:  # noqa: N801 -- the name of the one that it replaces
        """A property whose value is stored in the instance when it is first read."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            # The instance has an attribute of this name from now on, so this method is not called again.
            value = instance.__dict__[self.name] = self.compute(instance)
            return value
