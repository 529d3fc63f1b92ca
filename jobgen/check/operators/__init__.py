"""What operators reject, or accept and never start: the rules of their webhooks and controllers, by version.

A module has the name of its operator, as users write it in `cluster.operators`, and tables of checks by kind. It is
imported when the first object of its kinds is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Protocol, cast

from jobgen.check.operators.checks import Checks, FindViolations
from jobgen.check.rules import Violation
from jobgen.k8s.objects import Manifest

_MODULES = {
    ("batch", "CronJob"): ("cron_job",),
    ("batch", "Job"): ("kueue",),
    ("batch.tensorstack.dev", "BeamJob"): ("tensorstack",),
    ("batch.tensorstack.dev", "ColossalAIJob"): ("tensorstack",),
    ("batch.tensorstack.dev", "DeepSpeedJob"): ("tensorstack",),
    ("batch.tensorstack.dev", "GenericJob"): ("tensorstack",),
    ("batch.tensorstack.dev", "MPIJob"): ("tensorstack",),
    ("batch.volcano.sh", "CronJob"): ("volcano",),
    ("batch.volcano.sh", "Job"): ("volcano",),
    ("jobset.x-k8s.io", "JobSet"): ("jobset", "kueue"),
    ("kueue.x-k8s.io", "ClusterQueue"): ("kueue",),
    ("kueue.x-k8s.io", "Cohort"): ("kueue",),
    ("kueue.x-k8s.io", "ResourceFlavor"): ("kueue",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("lws",),
    ("ray.io", "RayCluster"): ("ray_cluster", "kueue"),
    ("ray.io", "RayCronJob"): ("ray_job",),
    ("ray.io", "RayJob"): ("ray_job", "kueue"),
    ("ray.io", "RayService"): ("ray_job", "kueue"),
    ("scheduling.volcano.sh", "PodGroup"): ("volcano",),
    ("scheduling.volcano.sh", "Queue"): ("volcano",),
    ("topology.volcano.sh", "HyperNode"): ("volcano",),
    ("workload.codeflare.dev", "AppWrapper"): ("app_wrapper",),
}

KINDS = tuple(sorted({kind for _, kind in _MODULES}))
"""The kinds that have checks."""


class OperatorChecks(Protocol):
    """A module with the checks of an operator."""

    OPERATOR: str
    """The name of the operator in `cluster.operators`."""
    CHECKS: Checks
    """What the operator checks, by kind."""


def find_violations(manifest: Manifest, rule: str) -> Iterator[Violation]:
    """Yield what one rule reports about an object, for the declared versions of its operators."""
    versions = tuple(manifest.cluster.operators.items())
    for find in _select_checks(manifest.group, manifest.kind_name, rule, versions):
        yield from find(manifest)


@lru_cache(maxsize=1024)
def _select_checks(
    group: str, kind: str, rule: str, versions: tuple[tuple[str, str], ...]
) -> tuple[FindViolations, ...]:
    """Return the checks of a kind that one rule reports, for these versions of operators."""
    declared = dict(versions)
    selected: list[FindViolations] = []
    for name in _MODULES.get((group, kind), ()):
        module = cast(OperatorChecks, import_module(f"{__name__}.{name}"))
        version = str(declared.get(module.OPERATOR, ""))
        checks = module.CHECKS[kind]
        selected += (check.find for check in checks if check.rule == rule and check.applies_to(version))
    return tuple(selected)
