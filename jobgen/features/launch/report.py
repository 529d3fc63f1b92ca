"""Report the faults of a launch as violations of the rules."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation
from jobgen.features.launch.judge import find_faults
from jobgen.k8s.objects import Manifest


def list_violations(manifest: Manifest, rule: str) -> Iterator[Violation]:
    """Yield the faults of a job that a rule reports."""
    if not manifest.pods:
        return
    for fault in find_faults(manifest):
        if fault.rule == rule:
            severity = ERROR if fault.is_error else WARNING
            yield Violation(fault.node, fault.message, fault.related, severity, fault.fix, safe=False)
