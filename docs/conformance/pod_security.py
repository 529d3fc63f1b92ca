"""The tests of pod-security-admission, for each level and minor version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict
from jobgen.check.pod_security.checks import find_breaches, parse_version


def run(data: Any) -> Iterator[Verdict]:
    """Compare verdicts."""
    for case in data["cases"]:
        pod = case["pod"]
        for level, version, expected in case["expect"]:
            minor = parse_version(version)
            assert minor is not None, version
            found = find_breaches(pod.get("metadata"), pod.get("spec"), level, minor)
            agrees = bool(found) == (expected == "fail")
            details = f"expected {expected}, got {[breach.fault for breach in found]}"
            yield Verdict(f"{case['id']}/{level}/{version}", agrees, details, level)
