"""Who stands before the policies: what they have let pass before is known by sight, and they need not be called.

Policies take long to be read and compiled. What of an object they look at they may say themselves (`glimpse`); which
glimpses were fine is remembered from one run to the next.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from jobgen import cache
from jobgen.check.policy.field_mask import Sight, seen
from jobgen.model.data import Data, TracedScalar, value_of
from jobgen.model.finding import Problem

if TYPE_CHECKING:
    from jobgen.check.policy import Policies, PolicyEvaluator

_REMEMBERED = 4096


class Door(NamedTuple):
    """The policies of a repository, by what tells them from others, and how to get them."""

    key: str
    load: Callable[[], Policies]


class Porter:
    """Knows what the guard of one cluster has let pass; calls him for everything else."""

    def __init__(self, key: str, call: Callable[[], PolicyEvaluator]) -> None:
        self._key = key
        self._call = call
        self._guard: PolicyEvaluator | None = None
        self._sights: dict[tuple[str, str], Sight | None] = {}
        self._fine: set[bytes] = set()
        self._saved = 0
        known = cache.get(key)
        if known is not None:
            sights, fine = marshal.loads(known)  # noqa: S302 -- only our own words come back
            self._sights, self._fine, self._saved = sights, set(fine), len(fine)

    def problems(self, made: Data) -> Iterable[Problem]:
        """Everything that the policies have against the creation of an object."""
        if type(made.get("kind")) is TracedScalar or type(made.get("apiVersion")) is TracedScalar:
            return self.evaluator.problems(made)
        kind = _kind_of(made)
        sight = self._sight(kind)
        if not sight:
            return self.evaluator.problems(made)
        glimpse = blake2b(marshal.dumps((kind, seen(made, sight)), 2), digest_size=16).digest()
        if glimpse in self._fine:
            return ()
        found = list(self.evaluator.problems(made))
        if not found and len(self._fine) < _REMEMBERED:
            self._fine.add(glimpse)
        return found

    def fields_read(self, made: Data) -> Data:
        """The part of an object on which the word of the policies depends: all of it, unless they say otherwise."""
        sight = self._sight(_kind_of(made))
        return seen(made, sight) if sight else self.evaluator.fields_read(made)

    def save(self) -> None:
        """Remember whom the guard let pass."""
        if len(self._fine) > self._saved:
            cache.put(self._key, marshal.dumps((self._sights, sorted(self._fine))))

    @property
    def evaluator(self) -> PolicyEvaluator:
        """The policies themselves."""
        if self._guard is None:
            self._guard = self._call()
        return self._guard

    def _sight(self, kind: tuple[str, str]) -> Sight | None:
        if kind not in self._sights:
            self._sights[kind] = self.evaluator.sight(*kind)
        return self._sights[kind]


def _kind_of(made: Data) -> tuple[str, str]:
    return str(value_of(made.get("apiVersion"))), str(value_of(made.get("kind")))
