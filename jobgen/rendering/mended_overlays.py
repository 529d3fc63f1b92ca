"""What a lint finds behind the errors of overlays and settings.

An overlay is mended twice, see `jobgen.model.mend`. What a lint finds with both is reported beside the errors. With one
copy, warnings would have to be left out with the errors, or consequences such as an empty patch would be reported. The
results of environments without errors are used again, so both copies together cost little more than a valid overlay.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.rendering.environment import name_overlay
from jobgen.repo.root import SETTINGS

_NEED_ALL_FIELDS = ("missing-", "replica-totals", "unlisted-overlay", "empty-patch")
"""How the names of rules start that are about what a job or an overlay does not have."""


def keep_independent(
    first: Sequence[Finding],
    left_out: Sequence[Finding],
    filled: Sequence[Finding],
    layers: Sequence[Finding],
    *,
    has_gaps: bool,
) -> list[Finding]:
    """Return the findings of a lint, with those behind the errors of overlays, and without what follows from these.

    `first` are the findings of a lint without the overlays that have errors, the others those of lints with both of
    their mended copies. `layers` is what is wrong with the layers themselves. With `has_gaps`, both copies lack
    something, so only errors count that are not about what is missing.
    """
    errors = [each for each in layers if each.severity is Severity.ERROR and name_overlay(each)]
    copies = [{each.key: each for each in copy} for copy in (left_out, filled)]
    both = copies[0].keys() & copies[1].keys()
    # Jobs that one of the copies cannot render, because of what it lacks, are only known from the other one.
    stopped = [{each.env for key, each in copy.items() if _stops(each) and key not in both} for copy in copies]
    one_sided = stopped[0] ^ stopped[1]
    for copy, lost in zip(copies, reversed(stopped), strict=True):
        both |= {key for key, each in copy.items() if each.env in lost & one_sided and not _stops(each)}
    # Without its faulty settings, an environment may be another one.
    is_certain = not any(each.location.file == SETTINGS for each in layers)
    kept = [
        each
        for each in first
        if each.key in both or each in layers or (is_certain and (each.env or not _is_layer(each.location)))
    ]
    known = {each.key for each in kept}
    faults = {each.location for each in errors}
    slips = {each.location[:2] for each in errors if each.rule == "yaml-syntax"}
    for each in {**copies[1], **copies[0]}.values():
        is_hidden = each.location in faults or each.location[:2] in slips
        if has_gaps or each.env in one_sided:
            is_guess = each.severity is not Severity.ERROR or each.rule.startswith(_NEED_ALL_FIELDS)
            is_hidden = is_hidden or is_guess
        if each.key in both - known and not is_hidden:
            kept.append(each)
    return kept


def _stops(found: Finding) -> bool:
    """Return True if a finding in a layer says why the jobs of an environment are not rendered."""
    return bool(found.env) and found.category == "spec" and _is_layer(found.location)


def _is_layer(location: Location) -> bool:
    return not location.file.startswith("jobs/")
