"""The documents of a run that could not be rendered, for the rules about references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.check.cluster.unread import Unread, split_unread
from jobgen.pipeline.cluster_groups import read_text
from jobgen.repo.files import read_file

if TYPE_CHECKING:
    from collections.abc import Collection

    from jobgen.rendering.run_values import FileResults


def find_unread(results: FileResults, env: str, complete: Collection[str]) -> Unread | None:
    """Find what could not be rendered in an environment with these complete kinds; None if it makes no difference."""
    if not results.request.project.teams.is_complete:
        return Unread(is_unlimited=True)
    texts: list[str] = []
    for entry, part in zip(results.request.files.entries, results.parts, strict=True):
        if part.unrendered:
            if entry.build is not None or read_file(entry).finding is not None:
                return Unread(is_unlimited=True)
            text = read_text(entry)
            # What is not UTF-8 may be any text.
            if "\ufffd" in text or "\0" in text:
                return Unread(is_unlimited=True)
            known = {each.location.line for each in part.made if each.env == env}
            texts += split_unread(text, known)
    unread = Unread(tuple(texts)).select(complete)
    return unread if unread.texts else None
