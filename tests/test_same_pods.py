"""One job spec trains the same on every platform: the pods that the operators create are equal for training."""

import itertools

import pytest
import yaml

import jobgen
from jobgen.features.convert.operators.compare import compare_pods
from jobgen.features.convert.operators.create import create_pods

PLATFORMS = ("kubeflow", "trainer", "kubernetes", "jobset", "volcano", "tensorstack")
ENVIRONMENTS = (*PLATFORMS, "mpi-operator")
# A failed Job ends a JobSet, unless the job says how often the set may restart; other operators retry by default.
DEFAULTS = {"jobset": {"runPolicy": {"backoffLimit": 3}}}
CONTAINER = {
    "image": "registry.example.com/nlp/bert:1.4",
    "command": ["python", "train.py"],
    "env": {"NCCL_DEBUG": "INFO", "HF_TOKEN": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    "resources": {"cpu": 8, "memory": "64Gi", "gpu": 4},
    "volumes": {"data": {"pvc": "datasets", "mountPath": "/data", "readOnly": True}},
    "shm": "16Gi",
    "nodeSelector": {"pool": "a100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "serviceAccount": "trainer",
}
# The roles of each job, the platforms that support it, and fields of its own. The first platform is the reference.
JOBS = {
    "pytorch-workers": ("pytorch", {"worker": {"replicas": 4}}, PLATFORMS, {}),
    "pytorch-torchrun": (
        "pytorch",
        {"master": {}, "worker": {"replicas": 3}},
        PLATFORMS,
        {"command": ["torchrun", "train.py"]},
    ),
    "pytorch-single": ("pytorch", {"master": {}}, ("kubeflow", "kubernetes", "jobset", "volcano", "tensorstack"), {}),
    # Without a policy, training-operator does not restart JAXJobs, XGBoostJobs and TFJobs.
    "jax": ("jax", {"worker": {"replicas": 3}}, ("trainer", "kubernetes", "jobset", "volcano"), {}),
    "jax-restarts": (
        "jax",
        {"worker": {"replicas": 3}},
        ("kubeflow", "kubernetes", "jobset", "volcano"),
        {"restartPolicy": "OnFailure"},
    ),
    "xgboost": (
        "xgboost",
        {"master": {}, "worker": {"replicas": 3}},
        ("kubeflow", "kubernetes", "jobset", "volcano", "tensorstack"),
        {"restartPolicy": "OnFailure"},
    ),
    "tensorflow": (
        "tensorflow",
        {"chief": {}, "worker": {"replicas": 2}},
        ("kubeflow", "kubernetes", "jobset", "volcano", "tensorstack"),
        {"restartPolicy": "OnFailure"},
    ),
    "mpi": (
        "mpi",
        {"launcher": {"command": ["mpirun", "-np", "2", "python", "train.py"]}, "worker": {"replicas": 2}},
        ("kubeflow", "mpi-operator", "volcano"),
        {"restartPolicy": "OnFailure", "resources": {"cpu": 8, "memory": "64Gi"}, "command": None},
    ),
    "paddle": ("paddle", {"worker": {"replicas": 2}}, ("kubeflow", "kubernetes", "jobset", "volcano"), {}),
}


@pytest.fixture(scope="module")
def pods(tmp_path_factory):
    """The pods of each job on each platform that supports it."""
    root = tmp_path_factory.mktemp("platforms")
    (root / "jobs").mkdir()
    (root / "jobgen.yaml").write_text("{}\n")
    for name, (framework, roles, _, fields) in JOBS.items():
        own = {"framework": framework, **CONTAINER, "roles": roles, **fields}
        spec = {field: value for field, value in own.items() if value is not None}
        job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}
        (root / "jobs" / f"{name}.yaml").write_text(yaml.safe_dump(job))
    for platform in ENVIRONMENTS:
        names = [name for name, (_, _, supported, _) in JOBS.items() if platform in supported]
        cluster = {"cluster": {"platform": platform}, "namespace": "team", "jobs": {"names": names}}
        spec = {**cluster, **({"defaults": DEFAULTS[platform]} if platform in DEFAULTS else {})}
        overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": platform}, "spec": spec}
        (root / "overlays" / platform).mkdir(parents=True)
        (root / "overlays" / platform / "overlay.yaml").write_text(yaml.safe_dump(overlay))
    return _create_pods(jobgen.load(str(root)))


def _create_pods(project):
    found = {}
    for platform in ENVIRONMENTS:
        result = jobgen.render(project, environments=[platform])
        assert not result.findings, (platform, [finding.message for finding in result.findings])
        objects = [rendered.manifest for rendered in result.objects]
        for obj in objects:
            if obj["metadata"]["name"] in JOBS and create_pods(obj, objects):
                found[obj["metadata"]["name"], platform] = create_pods(obj, objects)
    return found


PAIRS = [
    (name, *pair)
    for name, (_, _, supported, _) in JOBS.items()
    for pair in itertools.product(supported[:1], supported[1:])
]


@pytest.mark.parametrize(("name", "one", "other"), PAIRS)
def test_pods_are_equal_for_training(pods, name, one, other):
    found = compare_pods(pods[name, one], pods[name, other])

    assert [each for each in found if each.training] == []
    assert found
