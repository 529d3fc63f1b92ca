"""The Pod Security labels of a namespace: which level and version apply, and whether pods are refused or reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

PREFIX = "pod-security.kubernetes.io/"
"""The beginning of the labels."""

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
"""The levels, from the most permissive to the strictest."""

ENFORCE, WARN, AUDIT = MODES = ("enforce", "warn", "audit")
LABELS = tuple(f"{PREFIX}{mode}{suffix}" for mode in MODES for suffix in ("", "-version"))
LATEST = 1000
"""The minor version that `latest` stands for; no release has it."""

_VERSION = lazy_pattern(r"v1\.(0|[1-9][0-9]{0,17})\Z")


class Level(NamedTuple):
    """A level in one mode: `enforce` refuses pods, `warn` and `audit` report them."""

    mode: str
    level: str
    minor: int
    """The minor version whose checks apply; a newer one than the cluster's means the cluster's own."""
    label: str
    """The label that sets the level."""

    @property
    def version(self) -> str:
        """The version as a label states it."""
        return "latest" if self.minor == LATEST else f"v1.{self.minor}"


def parse_version(text: str) -> int | None:
    """Return the minor version of a label's value; None if it is not one."""
    if text == "latest":
        return LATEST
    found = _VERSION.match(text)
    return int(found[1]) if found else None


def list_levels(labels: Mapping[str, Node]) -> Iterator[Level]:
    """Yield the levels that a namespace sets, `enforce` first. The admission controller's defaults are unknown.

    An invalid level counts as `restricted` for `enforce`, and as none for the others; an invalid version as `latest`.
    """
    for mode in MODES:
        label = PREFIX + mode
        if label not in labels:
            continue
        level = as_text(labels[label])
        if level not in LEVELS:
            level = RESTRICTED if mode == ENFORCE else PRIVILEGED
        minor = parse_version(as_text(labels.get(f"{label}-version"))) if f"{label}-version" in labels else LATEST
        if level != PRIVILEGED:
            yield Level(mode, level, LATEST if minor is None else minor, label)
