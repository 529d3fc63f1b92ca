"""The runtimes that Kubeflow Trainer installs, by version, and the strategic merge of patches into them.

Source: kubeflow/trainer 2.0 to 2.3, manifests/base/runtimes and manifests/overlays/runtimes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobgen.features.convert.operators.created import Fields

STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
_GROUP = "trainer.kubeflow.org"
_IMAGES = "ghcr.io/kubeflow/trainer"
_NEWEST = (2, 3)
_PATCHES = {(2,): "2.0.1", (2, 1): "2.1.0", (2, 2): "2.2.1", (2, 3): "2.3.0"}
_TORCH_IMAGES = {
    (2,): "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
    (2, 1): "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
    (2, 2): "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime",
    (2, 3): "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
}
_JAX_IMAGE = "nvcr.io/nvidia/jax:25.10-py3"
_USER = 1000
_SSHD = {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}
_PROBE = {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5}
_DEMO = "<prints the versions of the runtime>"
"""In 2.0, the runtimes have a script that runs if a TrainJob has no command."""


def find_shipped_runtime(name: str, version: tuple[int, ...]) -> Fields:
    """Return the ClusterTrainingRuntime that Trainer installs under this name; empty if there is none."""
    return next((runtime for runtime in _list_runtimes(version) if runtime["metadata"]["name"] == name), {})


def _list_runtimes(version: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    minor = _select_minor(version)
    text = ".".join(map(str, version)) if len(version) == 3 else _PATCHES[minor]
    demo: dict[str, Any] = {"command": ["/bin/bash", "-c", _DEMO]} if minor == (2,) else {}
    torch = {"numProcPerNode": "auto"} if minor < (2, 2) else {}
    yield _make_runtime("torch-distributed", {"torch": torch}, [_make_trainer(_TORCH_IMAGES[minor], demo)])
    for framework in ("deepspeed", "mlx"):
        yield _make_mpi_runtime(framework, f"{_IMAGES}/{framework}-runtime:v{text}", minor)
    if minor == (2,):
        yield _make_mpi_runtime("mpi", "mpioperator/mpi-pi:openmpi", minor)
    elif minor >= (2, 2):
        yield _make_runtime("jax-distributed", {"jax": {}}, [_make_trainer(_JAX_IMAGE, {})])
        image = f"{_IMAGES}/xgboost-runtime:v{text}"
        yield _make_runtime("xgboost-distributed", {"xgboost": {}}, [_make_trainer(image, {})])


def _select_minor(version: tuple[int, ...]) -> tuple[int, ...]:
    """Return the newest known minor version that is not newer; without a version, the newest."""
    minor = version[:2] or _NEWEST
    return max((known for known in _PATCHES if known <= minor), default=(2,))


def _make_runtime(name: str, policy: Fields, jobs: list[Fields], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1, **policy}, "template": {"spec": {**spec, "replicatedJobs": jobs}}},
    }


def _make_trainer(image: str, container: Fields, name: str = "node", **pod: Any) -> dict[str, Any]:
    return _make_job(name, {"name": "node", "image": image, **container}, {"labels": {STEP_LABEL: "trainer"}}, pod)


def _make_job(name: str, container: Fields, metadata: Fields, pod: Fields) -> dict[str, Any]:
    spec = {"template": {"spec": {**pod, "containers": [container]}}}
    return {"name": name, "template": {**({"metadata": metadata} if metadata else {}), "spec": spec}}


def _make_mpi_runtime(framework: str, image: str, minor: tuple[int, ...]) -> dict[str, Any]:
    user = {"securityContext": {"runAsUser": _USER}}
    demo: dict[str, Any] = {}
    if minor == (2,):
        demo = {"command": ["mpirun"], "args": ["/home/mpiuser/pi"]}
        if framework != "mpi":
            demo = {"command": ["mpirun", "-n", "1", "bash", "-c", _DEMO]}
    pod = {"securityContext": {"fsGroup": _USER}} if minor >= (2, 3) else {}
    launcher = _make_trainer(image, {**user, **demo}, "launcher", **pod)
    container = {"name": "node", "image": image, **user, **_SSHD, "readinessProbe": _PROBE}
    node = _make_job("node", container, {}, pod)
    jobs: list[Fields] = [launcher, node]
    if minor >= (2, 3):
        jobs = [node, {**launcher, "dependsOn": [{"name": "node", "status": "Ready"}]}]
    policy = {
        "numProcPerNode": 4 if framework == "deepspeed" and minor == (2,) else 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "runLauncherAsNode": True,
    }
    return _make_runtime(
        f"{framework}-distributed",
        {"mpi": policy},
        jobs,
        network={"publishNotReadyAddresses": True},
        successPolicy={"operator": "All", "targetReplicatedJobs": ["launcher"]},
    )


_MERGE_KEYS = {
    "containers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "replicatedJobs": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The fields with lists that are merged, and the field that identifies an item. Other lists are replaced."""


def merge_strategically(target: Any, patch: Any, field: str = "") -> Any:
    """Return the target with a patch merged into it. Trainer decodes a patch before, which drops null."""
    if isinstance(target, dict) and isinstance(patch, dict):
        merged = dict(target)
        for name, value in patch.items():
            if value is not None:
                merged[name] = merge_strategically(merged[name], value, name) if name in merged else _drop_null(value)
        return merged
    if isinstance(target, list) and isinstance(patch, list):
        key = "containerPort" if field == "ports" else _MERGE_KEYS.get(field)
        if key and all(isinstance(item, dict) and item.get(key) is not None for item in (*target, *patch)):
            # Merge items with the same key. New items are first, and items of the patch keep their order.
            order = [item[key] for item in target]
            own = {str(item[key]) for item in patch}
            by_key = {str(item[key]): item for item in target}
            changed = [
                merge_strategically(by_key[str(item[key])], item) if str(item[key]) in by_key else _drop_null(item)
                for item in patch
            ]
            return _interleave([item for item in target if str(item[key]) not in own], changed, order, key)
    return _drop_null(patch)


def _interleave(kept: list[Any], changed: list[Any], order: Sequence[Any], key: str) -> list[Any]:
    merged: list[Any] = []
    left, right = list(kept), list(changed)
    while left and right:
        known = right[0][key] in order
        first = known and order.index(left[0][key]) < order.index(right[0][key])
        merged.append(left.pop(0) if first else right.pop(0))
    return [*merged, *left, *right]


def _drop_null(value: Any) -> Any:
    """Return a new value without fields that are null."""
    if isinstance(value, dict):
        return {name: _drop_null(item) for name, item in value.items() if item is not None}
    return [_drop_null(item) for item in value] if isinstance(value, list) else value
