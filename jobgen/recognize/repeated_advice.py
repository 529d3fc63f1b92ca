"""What many files of a repository need alike is one decision: it is a warning once, and an info elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.builtin_rules import COUNTED_RULES
from jobgen.model.finding import Finding, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.image_lines import IMAGE_RULES, read_image
from jobgen.recognize.mild_findings import is_training
from jobgen.recognize.tree import FileTree

# What is decided for all objects of a kind.
_ADVICE = frozenset(
    """dangerous-capability host-namespaces host-path lost-logs mutable-image-tag stale-image unmounted-volume
    untagged-image""".split()
)
# What is decided for all files, whatever names they have: who runs them, and how they are built.
_FOR_ALL = frozenset(("kustomization-load-restricted", "privileged-container"))
# What is said at each of several objects, of which one must change; the message names the others.
_OF_SEVERAL = frozenset(("conflicting-copies",))
_INDEX = lazy_pattern(r"\[[0-9]+\]")
_COPIES = 3
"""A fault that so many files have, with the same values, was copied with its file: it has one cause."""


def say_once(findings: Iterable[Finding], tree: FileTree, *, is_jobs_repository: bool) -> list[Finding]:
    """Return the findings; of warnings that say the same of several files, the first counts the others.

    In a jobs repository, a fault stays one for each file, because the objects are rendered from one text.
    """
    left = list(findings)
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, finding in enumerate(left):
        is_fault = finding.category != "meta" and finding.rule not in COUNTED_RULES and not is_jobs_repository
        if finding.severity is Severity.WARNING and (is_fault or finding.rule in _ADVICE):
            groups.setdefault(_name_decision(finding, tree), []).append(number)
    for numbers in groups.values():
        if len(numbers) < 2:
            continue
        _, first = min([(left[number].location, number) for number in numbers])
        # Several rules may report one container, of which one is kept later.
        places = {number: _name_place(left[number]) for number in numbers}
        count = len({*places.values()}) - 1
        if not count or not _is_one_decision([left[number] for number in numbers]):
            continue
        names_others = left[first].rule in _OF_SEVERAL
        for number, place in places.items():
            if place != places[first]:
                left[number] = left[number]._replace(severity=Severity.INFO)
            elif not names_others:
                left[number] = left[number].add_words(f"the same holds in {pluralize(count, 'other place')}")
    return left


def _name_decision(finding: Finding, tree: FileTree) -> tuple[str, ...]:
    """Return what is decided: whether services pin images at all, which image jobs train with, and so on."""
    if finding.rule in IMAGE_RULES:
        image = read_image(finding, tree)
        if image and is_training(finding, tree):
            return (finding.rule, image)
        return ("images",) if tree.is_synced else (finding.rule, image)
    if finding.rule in _FOR_ALL:
        return (finding.rule,)
    if finding.rule in _OF_SEVERAL:
        return (finding.rule, *finding.values[:1])
    # A volume that is left over in copies of one template has the same place in all of them.
    place = finding.pointer if finding.rule == "unmounted-volume" else ""
    message = finding.message
    return (finding.rule, _INDEX.sub("[]", message) if "[" in message else message, place)


def _is_one_decision(several: list[Finding]) -> bool:
    """Return True for advice, and for a fault that enough files have."""
    if several[0].rule in _ADVICE | _FOR_ALL | _OF_SEVERAL:
        return True
    return len({finding.location.file for finding in several}) >= _COPIES


def _name_place(finding: Finding) -> tuple[str, str]:
    place = str(finding.location.line) if finding.rule in _OF_SEVERAL else finding.pointer.rpartition("/")[0]
    return finding.location.file, place
