"""Advice that many files of a repository need alike is one decision: it is a warning once, and an info elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.finding import Finding, Severity, pluralize
from jobgen.recognize.image_lines import IMAGE_RULES, read_image
from jobgen.recognize.mild_findings import is_training
from jobgen.recognize.tree import FileTree

# What is decided for all objects of a kind. A fault, which each object has by itself, stays one for each.
_ADVICE = frozenset(
    """dangerous-capability host-namespaces host-path lost-logs mutable-image-tag privileged-container stale-image
    unmounted-volume untagged-image""".split()
)


def say_once(findings: Iterable[Finding], tree: FileTree) -> list[Finding]:
    """Return the findings; of warnings that say the same of several files, the first counts the others."""
    left = list(findings)
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, finding in enumerate(left):
        if finding.rule in _ADVICE and finding.severity is Severity.WARNING:
            groups.setdefault(_name_decision(finding, tree), []).append(number)
    for numbers in groups.values():
        if len(numbers) < 2:
            continue
        _, first = min([(left[number].location, number) for number in numbers])
        # Several rules may report one container, of which one is kept later.
        places = {number: _name_place(left[number]) for number in numbers}
        count = len({*places.values()}) - 1
        for number, place in places.items() if count else ():
            if place != places[first]:
                left[number] = left[number]._replace(severity=Severity.INFO)
            else:
                left[number] = left[number].add_words(f"the same holds in {pluralize(count, 'other place')}")
    return left


def _name_decision(finding: Finding, tree: FileTree) -> tuple[str, ...]:
    """Return what is decided: whether services pin images at all, which image jobs train with, and so on."""
    if finding.rule in IMAGE_RULES:
        image = read_image(finding, tree)
        if image and is_training(finding, tree):
            return (finding.rule, image)
        return ("images",) if tree.is_synced else (finding.rule, image)
    # A volume that is left over in copies of one template has the same place in all of them.
    place = finding.pointer if finding.rule == "unmounted-volume" else ""
    return (*finding.fault, place)


def _name_place(finding: Finding) -> tuple[str, str]:
    return finding.location.file, finding.pointer.rpartition("/")[0]
