"""Lines of specs and manifests: each distinct line once, and manifests as changes to another one."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.named_tuple import NamedTuple

_MAX_SKIPPED = 12
"""How many lines of the base are dropped to go on copying; a line that is equal by chance may be far away."""


# A page has hundreds of thousands of these. Tuples are sent to another process in a tenth of the time of named ones.
LineSource = tuple[str, str, int, str]
"""A layer that sets the value of a line, its file, which is empty if no file does, the line there, and the value.

The value is the one that another layer overrides; it is empty for the layer that wins.
"""

Line = tuple[str, tuple[LineSource, ...]]
"""The text of a line, and its sources: the first one wins, and the others are overridden."""


class Change(NamedTuple):
    """How many lines of the base are skipped, how many are then copied, and the lines that are then added."""

    skipped: int
    copied: int
    added: tuple[Line, ...]


def find_changes(lines: Sequence[Line], base: Sequence[Line] = ()) -> tuple[Change, ...]:
    """Find the changes that turn the lines of the base into other lines.

    One pass: a line is copied from the next place of the base that has it, if that is near.
    """
    if not base:
        return (Change(0, 0, tuple(lines)),)
    places: dict[Line, list[int]] = {}
    changes: list[Change] = []
    at, skipped, copied, added = 0, 0, 0, list[Line]()
    end = len(base)
    for line in lines:
        if at < end and base[at] == line:
            found = at
        else:
            if not places:
                for place, each in enumerate(base):
                    places.setdefault(each, []).append(place)
            found = next((place for place in places.get(line, ()) if place >= at), end)
            if found - at > _MAX_SKIPPED or found == end:
                added.append(line)
                continue
        if found > at or added:
            changes.append(Change(skipped, copied, tuple(added)))
            skipped, copied, added = found - at, 0, []
        copied += 1
        at = found + 1
    changes.append(Change(skipped, copied, tuple(added)))
    return tuple(change for change in changes if any(change))


def apply_changes(changes: Sequence[Change], base: Sequence[Line] = ()) -> list[Line]:
    """Apply changes to the lines of the base, as the page does."""
    lines: list[Line] = []
    at = 0
    for skipped, copied, added in changes:
        at += skipped
        lines += (*base[at : at + copied], *added)
        at += copied
    return lines
