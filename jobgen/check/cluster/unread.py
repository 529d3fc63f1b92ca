"""Documents of a repository that could not be rendered, and which objects of a cluster they may define."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from jobgen.check.cluster.state import NAMED_KINDS, RUNTIME_KINDS
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import may_mean
from jobgen.model.named_tuple import NamedTuple

if TYPE_CHECKING:
    from jobgen.check.cluster.state import Name

_START = lazy_pattern(r"(?m)^---(?=\s|\Z)")
_KIND = lazy_pattern(r"\bkind[\"']?\s*:\s*[\"']?(\w+)")
_LIST = lazy_pattern(r"\bkind[\"']?\s*:\s*[\"']?\w*List\b")
_HASHED = lazy_pattern(r"-[a-z0-9]{10}\Z")

_CREATING = {
    "Namespace": ("Profile",),
    "Secret": ("Certificate", "ExternalSecret", "SealedSecret"),
}
"""Kinds whose objects create one of this kind, the name of which they state."""

_NAMING = {
    "ConfigMap": ("TrainingJob",),
    "PersistentVolumeClaim": ("StatefulSet",),
    "ServiceAccount": ("Profile", "TrainingJob"),
    **dict.fromkeys(RUNTIME_KINDS, ("TrainingJob",)),
}
"""Kinds whose objects create one of this kind with a name that they do not state."""


class Unread(NamedTuple):
    """What is not known of a repository: the texts of documents that could not be rendered."""

    texts: tuple[str, ...] = ()
    is_unlimited: bool = False
    """True if something could not be read at all, so that it may define any object."""

    def may_define(self, name: Name) -> bool:
        """Return True if a document may define an object, or add something to it."""
        return self.is_unlimited or any(_may_define(text, name) for text in self.texts)

    def select(self, complete: Collection[str]) -> Unread:
        """Return what makes a difference in a cluster with these complete kinds, and is the same while a job is edited.

        Of objects that are named by what creates them, only complete kinds are compared.
        """
        kept: dict[str, None] = {}
        compared = NAMED_KINDS.union(complete)
        creating = sorted({maker for kind in complete for maker in _NAMING.get(kind, ())})
        for text in self.texts:
            if any(_states_kind(text, kind) for kind in compared):
                kept[text] = None
            kept.update((f"kind: {maker}", None) for maker in creating if _mentions(text, [maker]))
        return self._replace(texts=tuple(kept))


def split_unread(text: str, known: Collection[int]) -> Iterator[str]:
    """Yield the documents of a file in which no known line is; a list may be known in part only."""
    start, line = 0, 1
    for end in (*(found.start() for found in _START.finditer(text)), len(text)):
        part = text[start:end]
        last = line + part.count("\n")
        is_known = any(line <= each < last + (end == len(text)) for each in known)
        if part.strip() and (_LIST.search(part) or not is_known):
            yield part
        start, line = end, last


def _may_define(text: str, name: Name) -> bool:
    kind, _, own = name
    if _mentions(text, _NAMING.get(kind, ())) and (kind != "ConfigMap" or _HASHED.search(own)):
        return True
    states_name = re.search(rf"(?<![\w.-]){re.escape(own)}(?![\w.-])", text)
    return states_name is not None and _states_kind(text, kind)


def _states_kind(text: str, kind: str) -> bool:
    """Return True if a document may be of a kind, or of one that creates it: its kind may be misspelled."""
    bare = kind.partition(".")[0]
    wanted = (bare, "AppWrapper", *_CREATING.get(kind, ()))
    stated = _KIND.findall(text)
    return not stated or _mentions(text, wanted) or any(may_mean(one, other) for one in stated for other in wanted)


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in words)
