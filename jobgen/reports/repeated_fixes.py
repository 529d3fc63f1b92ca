"""Leave out the fixes of texts that aliases repeat: an edit would change the other places, too, so none is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from jobgen.model.finding import Finding
from jobgen.yamlio.edit import list_repeated


def leave_out_repeated(findings: Sequence[Finding], read_text: Callable[[str], str]) -> list[Finding]:
    """Return the findings; those whose fix no edit can make have none."""

    @cache
    def find_places(file: str) -> frozenset[tuple[int, int]]:
        return list_repeated(read_text(file).encode("utf-8", "replace"), file)

    def is_repeated(finding: Finding) -> bool:
        edits = finding.fix.edits if finding.fix else ()
        return any(edit.op != "comment" and edit.location[1:3] in find_places(edit.location.file) for edit in edits)

    return [finding._replace(fix=None) if is_repeated(finding) else finding for finding in findings]
