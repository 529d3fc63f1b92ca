"""All offers for a range of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jobgen.features.editor.actions.extract import list_extractions
from jobgen.features.editor.actions.fix import list_fix_all, list_fixes
from jobgen.features.editor.actions.migrate import list_migrations
from jobgen.features.editor.actions.offer import EXTRACT, FIX_ALL, QUICK_FIX, REWRITE, ActionRequest, Offer
from jobgen.features.editor.actions.quote import list_quotes
from jobgen.features.editor.actions.suppress import list_suppressions

_SOURCES: tuple[tuple[str, Callable[[ActionRequest], Iterator[Offer]]], ...] = (
    (QUICK_FIX, list_fixes),
    (QUICK_FIX, list_suppressions),
    (FIX_ALL, list_fix_all),
    (EXTRACT, list_extractions),
    (REWRITE, list_quotes),
    (REWRITE, list_migrations),
)
"""The functions that list offers, each with the kind of these."""


def list_offers(request: ActionRequest, only: Sequence[str] = ()) -> list[Offer]:
    """Return the offers of some kinds, or of all: `source` stands for `source.fixAll` and everything below."""
    return [
        offer
        for kind, list_some in _SOURCES
        if not only or any(f"{kind}.".startswith(f"{wanted}.") for wanted in only)
        for offer in list_some(request)
    ]
