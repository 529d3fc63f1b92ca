"""How much work may be put into what a stranger wrote: in steps, because a clock says something else each time."""

from __future__ import annotations

BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What is raised by a walk over data that has not the shape it should have."""


class SpentError(Exception):
    """The work is more than anything honest needs."""


class Budget:
    """So many steps and no more, until it is renewed."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def renew(self) -> None:
        """Begin anew, with the next object."""
        self.left = self.most

    def spend(self, steps: int = 1) -> None:
        """Take steps, or say that there are none left."""
        self.left -= steps
        if self.left < 0:
            raise SpentError
