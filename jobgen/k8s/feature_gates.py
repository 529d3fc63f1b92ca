"""Fields of Kubernetes behind feature gates: the API server drops them in releases whose gate is off by default.

Which release turns a gate on is what `pkg/features/kube_features.go` says at the newest patch of each release from 1.30
to 1.36; which field a gate drops is in `pkg/api/pod/util.go`, and in the `strategy.go` of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At


class Gate(NamedTuple):
    """A feature gate: the first release that has its fields, and the first in which it is on by default."""

    exists: Release
    on: Release | None


_OLD: Release = (1, 0)
GATES = {
    "ClusterTrustBundleProjection": Gate(_OLD, None),
    "ContainerRestartRules": Gate((1, 34), (1, 35)),
    "ContainerStopSignals": Gate((1, 33), None),
    "EnvFiles": Gate((1, 34), (1, 35)),
    "GenericWorkload": Gate((1, 36), None),
    "HPAConfigurableTolerance": Gate((1, 33), (1, 35)),
    "HostnameOverride": Gate((1, 34), (1, 35)),
    "ImageVolume": Gate((1, 31), (1, 35)),
    "InPlacePodVerticalScaling": Gate(_OLD, (1, 33)),
    "JobSuccessPolicy": Gate((1, 30), (1, 31)),
    "MatchLabelKeysInPodAffinity": Gate(_OLD, (1, 31)),
    "MaxUnavailableStatefulSet": Gate(_OLD, None),
    "PodCertificateRequest": Gate((1, 34), None),
    "PodLevelResources": Gate((1, 32), (1, 34)),
    "ProcMountType": Gate(_OLD, (1, 33)),
    "RecursiveReadOnlyMounts": Gate((1, 30), (1, 31)),
    "SELinuxChangePolicy": Gate((1, 32), (1, 33)),
    "ServiceTrafficDistribution": Gate((1, 30), (1, 31)),
    "SupplementalGroupsPolicy": Gate((1, 31), (1, 33)),
    "UserNamespacesSupport": Gate(_OLD, (1, 33)),
    "VolumeAttributesClass": Gate(_OLD, (1, 34)),
}


class GatedField(NamedTuple):
    """A field of a kind, or of pods if there is no kind, and its gate."""

    path: str
    gate: str
    kind: str = ""
    default: Any = None
    """A value that means the same as no field."""


_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_TERMS = (
    "requiredDuringSchedulingIgnoredDuringExecution[]",
    "preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm",
)
GATED_FIELDS = (
    *(
        GatedField(f"{owner}[].{path}", gate, default=default)
        for owner in _CONTAINERS
        for path, gate, default in (
            ("env[].valueFrom.fileKeyRef", "EnvFiles", None),
            ("lifecycle.stopSignal", "ContainerStopSignals", None),
            ("resizePolicy", "InPlacePodVerticalScaling", None),
            ("restartPolicyRules", "ContainerRestartRules", None),
            ("securityContext.procMount", "ProcMountType", "Default"),
            ("volumeMounts[].recursiveReadOnly", "RecursiveReadOnlyMounts", "Disabled"),
        )
    ),
    *(
        GatedField(f"affinity.{kind}.{term}.{field}", "MatchLabelKeysInPodAffinity")
        for kind in ("podAffinity", "podAntiAffinity")
        for term in _TERMS
        for field in ("matchLabelKeys", "mismatchLabelKeys")
    ),
    GatedField("hostUsers", "UserNamespacesSupport", default=True),
    GatedField("hostnameOverride", "HostnameOverride"),
    GatedField("resources", "PodLevelResources"),
    GatedField("schedulingGroup", "GenericWorkload"),
    GatedField("securityContext.seLinuxChangePolicy", "SELinuxChangePolicy", default="MountOption"),
    GatedField("securityContext.supplementalGroupsPolicy", "SupplementalGroupsPolicy", default="Merge"),
    GatedField("volumes[].image", "ImageVolume"),
    GatedField("volumes[].projected.sources[].clusterTrustBundle", "ClusterTrustBundleProjection"),
    GatedField("volumes[].projected.sources[].podCertificate", "PodCertificateRequest"),
    GatedField("spec.successPolicy", "JobSuccessPolicy", "Job"),
    GatedField("spec.jobTemplate.spec.successPolicy", "JobSuccessPolicy", "CronJob"),
    GatedField("spec.behavior.scaleUp.tolerance", "HPAConfigurableTolerance", "HorizontalPodAutoscaler"),
    GatedField("spec.behavior.scaleDown.tolerance", "HPAConfigurableTolerance", "HorizontalPodAutoscaler"),
    GatedField("spec.trafficDistribution", "ServiceTrafficDistribution", "Service"),
    GatedField("spec.updateStrategy.rollingUpdate.maxUnavailable", "MaxUnavailableStatefulSet", "StatefulSet"),
    GatedField("spec.volumeAttributesClassName", "VolumeAttributesClass", "PersistentVolumeClaim"),
)


def is_on(gate: str, release: Release) -> bool:
    """Return True if a gate is on by default in a release."""
    on = GATES[gate].on
    return on is not None and release >= on


@lru_cache(maxsize=64)
def list_dropped(kind: str, release: Release = NEWEST_RELEASE) -> tuple[tuple[str, GatedField], ...]:
    """The fields of a kind, or of pods, that exist in a release but are dropped there by default, with their names."""
    return tuple(
        (each.path.rpartition(".")[2], each)
        for each in GATED_FIELDS
        if each.kind == kind and release >= GATES[each.gate].exists and not is_on(each.gate, release)
    )


def find_places(holder: Plain, path: str) -> Iterator[At]:
    """The places of the keys at a path in which `[]` stands for each item of a list."""
    step, _, rest = path.partition(".")
    name = step.removesuffix("[]")
    found = as_mapping(holder)
    if name not in found:
        return
    if not rest:
        yield At(found, name, is_key=True)
        return
    for child in as_list(found[name]) if step.endswith("[]") else (found[name],):
        yield from find_places(child, rest)
