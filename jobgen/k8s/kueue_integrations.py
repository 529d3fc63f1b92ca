"""The kinds that a version of Kueue manages, and the operators that it works with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

_NEVER: Final = (10**6,)
STARTS: Final = "so it starts at once, without quota"
"""What becomes of a job with a queue that Kueue does not manage."""
SELECTOR_SINCE: Final = "0.14.2"
"""The first version of Kueue that accepts a RayJob with a queue that uses an existing RayCluster, and ignores it."""
Version = tuple[int, ...]


def parse_release(text: str) -> Version:
    """Return the numbers of a version, with the patch if it has one; empty if it has none."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")[:3]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def is_release_since(version: Version, since: str) -> bool:
    """Return True if a version is `since` or later. Without a patch, it is its last release; empty, the newest."""
    return not version or (version + _NEVER * 3)[:3] >= parse_version(since)


class Integration(NamedTuple):
    """The part of Kueue that manages a kind. The manifests and the chart of each release enable a list of them."""

    framework: str
    since: Version
    on_since: Version = _NEVER
    """The first release whose configuration enables it."""
    off_since: Version = _NEVER
    """The first release whose configuration no longer enables it."""


INTEGRATIONS: Final[Mapping[tuple[str, str], Integration]] = {
    ("apps/v1", "Deployment"): Integration("deployment", (0, 9), (0, 16)),
    ("apps/v1", "StatefulSet"): Integration("statefulset", (0, 9), (0, 16)),
    ("batch/v1", "Job"): Integration("batch/job", (0, 1), (0, 1)),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): Integration("jobset.x-k8s.io/jobset", (0, 4), (0, 4)),
    ("kubeflow.org/v1", "JAXJob"): Integration("kubeflow.org/jaxjob", (0, 12), (0, 12), (0, 19)),
    ("kubeflow.org/v1", "PaddleJob"): Integration("kubeflow.org/paddlejob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "PyTorchJob"): Integration("kubeflow.org/pytorchjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "TFJob"): Integration("kubeflow.org/tfjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "XGBoostJob"): Integration("kubeflow.org/xgboostjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v2beta1", "MPIJob"): Integration("kubeflow.org/mpijob", (0, 3), (0, 4)),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): Integration(
        "leaderworkerset.x-k8s.io/leaderworkerset", (0, 11), (0, 16)
    ),
    ("ray.io/v1", "RayCluster"): Integration("ray.io/raycluster", (0, 6), (0, 6)),
    ("ray.io/v1", "RayJob"): Integration("ray.io/rayjob", (0, 4), (0, 4)),
    ("ray.io/v1", "RayService"): Integration("ray.io/rayservice", (0, 17), (0, 17)),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): Integration("sparkoperator.k8s.io/sparkapplication", (0, 17)),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): Integration("trainer.kubeflow.org/trainjob", (0, 14), (0, 14)),
    ("v1", "Pod"): Integration("pod", (0, 5), (0, 16)),
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): Integration(
        "workload.codeflare.dev/appwrapper", (0, 11), (0, 11)
    ),
}


MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
"""The controller of the admission checks of MultiKueue, and the value of `managedBy`."""
_DISPATCHED_SINCE: Final[Mapping[str, Version]] = {
    **dict.fromkeys(("Job", "JobSet"), (0, 8)),
    **dict.fromkeys(("MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"), (0, 9)),
    **dict.fromkeys(("AppWrapper", "Deployment", "Pod", "RayCluster", "RayJob", "StatefulSet"), (0, 11)),
    "JAXJob": (0, 12),
    "TrainJob": (0, 14),
    **dict.fromkeys(("LeaderWorkerSet", "RayService"), (0, 17)),
}
"""The kinds that MultiKueue sends to worker clusters, and the first version of Kueue that does."""
_OF_PODS: Final = frozenset(("Deployment", "LeaderWorkerSet", "Pod", "StatefulSet"))
_FIELD_DEFAULTED: Final = (0, 11)
"""The first version whose webhooks set `managedBy` in a queue of MultiKueue."""
_FIELD_OF_JOBS: Final = (0, 15)
"""The first version that reads `managedBy` of a Job by default."""
_OWN_CONTROLLERS: Final = frozenset(
    """jobset.sigs.k8s.io/jobset-controller kubeflow.org/mpi-operator kubeflow.org/training-operator
    kubernetes.io/job-controller ray.io/kuberay-operator trainer.kubeflow.org/trainjob-controller
    workload.codeflare.dev/appwrapper-controller""".split()
)
"""Values of `managedBy` that webhooks replace, because they mean the same as none."""


def explain_dispatch(
    kind: str, managed_by: str, version: Version, others: Collection[str] = ()
) -> tuple[str, str] | None:
    """Explain why MultiKueue rejects a job: why, and what to change; None if it sends the job to worker clusters.

    `managed_by` is the field of the job, empty without it; `others` are kinds that the Configuration adds.
    """
    since, shown = _DISPATCHED_SINCE.get(kind), ".".join(map(str, version[:2]))
    if kind not in others and (since is None or version < since):
        change = f"update Kueue to {'.'.join(map(str, since))} or later, or use" if since else "use"
        return f"MultiKueue of Kueue {shown} does not send {kind}s to worker clusters", f"{change} another queue"
    if kind in _OF_PODS or (kind == "Job" and version < _FIELD_OF_JOBS):
        return None
    is_defaulted = version >= _FIELD_DEFAULTED and kind not in others
    if managed_by == MULTIKUEUE or (is_defaulted and (not managed_by or managed_by in _OWN_CONTROLLERS)):
        return None
    wrong = f"`managedBy` is `{managed_by}`" if managed_by else "`managedBy` is not set"
    return f"MultiKueue rejects it, because {wrong}", f"set `managedBy: {MULTIKUEUE}`"


def explain_integration(
    kind: str, integration: Integration, version: Version, frameworks: Collection[str] | None
) -> tuple[str, str] | None:
    """Explain that an integration does not exist or is off: why, and what to change; None if Kueue manages the kind."""
    name, shown = integration.framework, ".".join(map(str, version[:2]))
    if version < integration.since:
        since = ".".join(map(str, integration.since))
        return f"Kueue {shown} does not manage {kind}s, {STARTS}", f"update Kueue to {since} or later"
    if frameworks is not None:
        reason = f"Kueue does not manage {kind}s, because `{name}` is not among its `frameworks`, {STARTS}"
        return None if name in frameworks else (reason, f"add `{name}` to `frameworks`")
    if integration.on_since <= version < integration.off_since:
        return None
    change = f"enable `{name}` in the configuration of Kueue, and list it in `cluster.kueue.frameworks`"
    return f"Kueue {shown} does not manage {kind}s by default, {STARTS}", change


def explain_declared(api_version: str, kind: str, cluster: Cluster) -> tuple[str, str] | None:
    """Explain why the declared Kueue does not manage a kind, as `explain_integration`; None if it may."""
    frameworks = cluster.kueue.get("frameworks")
    declared = cluster.find_version("kueue")
    integration = INTEGRATIONS.get((api_version, kind))
    if integration is None or (not declared and frameworks is None):
        return None
    return explain_integration(kind, integration, parse_version(declared) if declared else _NEVER, frameworks)


def explain_conflict(kind: str, cluster: Cluster) -> tuple[str, str] | None:
    """Explain why the declared Kueue never starts jobs of the declared operator, and what to change; else None.

    Since 0.17, Kueue starts a TrainJob by its `runtimePatches`. Before Trainer 2.2 the API server drops them.
    """
    kueue, trainer = cluster.find_version("kueue"), cluster.find_version("trainer")
    if kind != "TrainJob" or not (kueue and trainer):
        return None
    if parse_version(kueue) < (0, 17) or parse_version(trainer) >= (2, 2):
        return None
    reason = f"Kueue {kueue} starts TrainJobs by `runtimePatches`, which Trainer {trainer} does not have"
    return reason, "update Trainer to 2.2 or later, or use Kueue 0.16"
