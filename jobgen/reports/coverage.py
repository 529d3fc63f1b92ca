"""What a lint checked: a suppression or a baseline entry is obsolete only if all it could apply to was checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobgen.repo.root import LAYER_FOLDERS, SETTINGS

NO_SCHEMA_RULES = frozenset(("broken-schema", "kind-without-crd", "missing-schema", "old-api-version"))
"""Rules whose findings mean that an object was not compared with a schema; its other checks ran."""

HIDING_RULES = NO_SCHEMA_RULES | {"internal-error", "policy-not-evaluated", "too-many-errors", "wrong-type"}
"""Rules whose findings mean that other checks of the same object did not run."""

_LAYERS = (*(f"{folder}/" for folder in LAYER_FOLDERS), SETTINGS)


class Coverage(NamedTuple):
    """What a lint checked."""

    complete: bool
    """Whether settings, overlays, kinds and policies are valid, and every environment was checked."""
    files: frozenset[str] = frozenset()
    """Files in which an object was not checked, or not by every check."""
    rules: frozenset[str] = frozenset()
    """Rules that did not run, or not everywhere."""
    cross_file: frozenset[str] = frozenset()
    """Rules that compare objects of several files."""
    without_schema: frozenset[str] = frozenset()
    """Objects that were not compared with a schema, as a baseline names them, and their files."""
    schema_rules: frozenset[str] = frozenset()
    """Rules that compare an object with its schema."""

    def includes(self, file: str, rule: str, obj: str = "") -> bool:
        """Return True if everything was checked in which a rule could find something in a file, or in an object.

        Without a file, the object may be in any file.
        """
        if not self.complete or rule in self.rules or file in self.files:
            return False
        if not self.without_schema.isdisjoint((file, obj)):
            return False
        if self.without_schema and file.startswith(_LAYERS) and rule in self.schema_rules:
            return False
        # A value of a layer, or a comparison of jobs, may lead to findings in any file.
        return not self.files or (bool(file) and not file.startswith(_LAYERS) and rule not in self.cross_file)


def join_coverage(parts: Iterable[Coverage]) -> Coverage:
    """The coverage of several lints together."""
    every = list(parts)
    return Coverage(
        all(part.complete for part in every),
        frozenset().union(*(part.files for part in every)),
        frozenset().union(*(part.rules for part in every)),
        frozenset().union(*(part.cross_file for part in every)),
        frozenset().union(*(part.without_schema for part in every)),
        frozenset().union(*(part.schema_rules for part in every)),
    )
