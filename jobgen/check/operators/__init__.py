"""What operators reject, or accept and never start: the rules of their webhooks and controllers, by version.

Each kind has a module with the name of its operator, as users write it in `cluster.operators`, and a table of checks.
A module is imported when the first object of its kind is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from jobgen.check.operators.checks import Check
from jobgen.check.rules import Violation
from jobgen.k8s.objects import Manifest, as_text

_MODULES = {
    ("jobset.x-k8s.io", "JobSet"): "jobset",
    ("ray.io", "RayCluster"): "ray_cluster",
    ("ray.io", "RayJob"): "ray_job",
    ("ray.io", "RayService"): "ray_service",
}

KINDS = tuple(sorted({kind for _, kind in _MODULES}))
"""The kinds that have checks."""


class KindChecks(Protocol):
    """The module of a kind."""

    OPERATOR: str
    """The name of the operator in `cluster.operators`."""
    CHECKS: tuple[Check, ...]
    """What the operator checks, by rule and version."""


def find_violations(manifest: Manifest, rule: str) -> Iterator[Violation]:
    """Yield what one rule reports about an object, for the declared version of its operator."""
    checks = _find_checks(manifest)
    if checks is None:
        return
    version = str(manifest.cluster.operators.get(checks.OPERATOR, ""))
    for check in checks.CHECKS:
        if check.rule == rule and check.applies_to(version):
            yield from check.find(manifest)


def _find_checks(manifest: Manifest) -> KindChecks | None:
    group = as_text(manifest.object.get("apiVersion")).rpartition("/")[0]
    name = _MODULES.get((group, manifest.kind_name))
    return cast(KindChecks, import_module(f"{__name__}.{name}")) if name else None
