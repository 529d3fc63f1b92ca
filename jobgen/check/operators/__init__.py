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
    "batch": {"cron_job": "CronJob", "kueue": "Job"},
    "batch.tensorstack.dev": {"tensorstack": "BeamJob ColossalAIJob DeepSpeedJob GenericJob MPIJob"},
    "batch.volcano.sh": {"volcano": "CronJob Job"},
    "flow.volcano.sh": {"volcano": "JobTemplate"},
    "gateway.networking.k8s.io": {"gateway_api": "GRPCRoute Gateway HTTPRoute TCPRoute TLSRoute UDPRoute"},
    "jobset.x-k8s.io": {"jobset": "JobSet", "kueue": "JobSet"},
    "keda.sh": {"keda": "ScaledJob ScaledObject"},
    "kubeflow.org": {"katib": "Experiment"},
    "kueue.x-k8s.io": {"kueue": "ClusterQueue Cohort ResourceFlavor"},
    "leaderworkerset.x-k8s.io": {"lws": "LeaderWorkerSet"},
    "ray.io": {
        "ray_cluster": "RayCluster",
        "ray_job": "RayCronJob RayJob RayService",
        "kueue": "RayCluster RayJob RayService",
    },
    "scheduling.volcano.sh": {"volcano": "PodGroup Queue"},
    "topology.volcano.sh": {"volcano": "HyperNode"},
    "trainer.kubeflow.org": {
        "jobset": "ClusterTrainingRuntime TrainingRuntime",
        "trainer": "ClusterTrainingRuntime TrainingRuntime",
    },
    "workload.codeflare.dev": {"app_wrapper": "AppWrapper"},
}

KINDS = tuple(sorted({kind for modules in _MODULES.values() for kind in " ".join(modules.values()).split()}))
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
    declared = dict(versions)
    selected: list[FindViolations] = []
    for name in (name for name, kinds in _MODULES.get(group, {}).items() if kind in kinds.split()):
        module = cast(OperatorChecks, import_module(f"{__name__}.{name}"))
        version = str(declared.get(module.OPERATOR, ""))
        checks = module.CHECKS[kind]
        selected += (check.find for check in checks if check.rule == rule and check.applies_to(version))
    return tuple(selected)
