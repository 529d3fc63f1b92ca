"""RayJobs: totals of pods and GPUs, and what jobgen renders passes the checks of KubeRay and Kueue."""

import re

import pytest
import yaml
from transcripts import find_transcripts, read_transcript

from jobgen import lint
from jobgen.features.convert.importing.collect import ImportedSpec, import_manifest
from jobgen.features.convert.importing.verify import is_equivalent, render_spec, renderer_for
from jobgen.features.convert.migrate.migrate_job import migrate_job
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_gpus, count_pods
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster

GPU = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
RENDERED = [path for path in find_transcripts("render") if "rayjob" in path.stem and "errors" not in path.stem]


def template(**container):
    return {"spec": {"containers": [{"name": "ray", "image": "ray:2.52.0", **container}]}}


def group(name="worker", **fields):
    return {"groupName": name, "template": template(**GPU), **fields}


def ray_job(*groups, **spec):
    cluster = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": list(groups)}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "a"},
        "spec": {"rayClusterSpec": cluster, **spec},
    }


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return config.load_own(tmp_path_factory.mktemp("repository")).kinds


@pytest.fixture(scope="module")
def kind(kinds):
    return next(kind for kind in kinds if kind.name == "RayJob")


# The pods of the head and of all groups, and their GPUs.
COUNTS = [
    (ray_job(), 1, 0),
    (ray_job(group()), 1, 0),
    (ray_job(group(replicas=2)), 3, 8),
    (ray_job(group(replicas=2, numOfHosts=4)), 9, 32),
    (ray_job(group(replicas=0, minReplicas=2)), 3, 8),
    (ray_job(group(minReplicas=2)), 3, 8),
    (ray_job(group(replicas=5, maxReplicas=3)), 4, 12),
    (ray_job(group("a", replicas=1), group("b", replicas=2)), 4, 12),
    (ray_job(group("head", replicas=2)), 3, 8),
    (ray_job(group(replicas="2")), 1, 0),
]


@pytest.mark.parametrize(("obj", "pods", "gpus"), COUNTS)
def test_totals_of_a_ray_job(obj, pods, gpus, kind):
    described, plain = (Manifest(obj, each, Cluster()) for each in (kind, None))

    assert (described.pod_count, described.gpus) == (pods, gpus)
    assert [count for _, count in count_pods(described)] == [count for _, count in count_pods(plain)]
    assert sum(count for _, count in count_pods(described)) == pods
    assert count_gpus(described) == count_gpus(plain) == gpus


def test_group_named_like_the_head_is_a_group_of_workers(kind):
    roles = Manifest(ray_job(group("head", replicas=2)), kind, Cluster()).roles

    assert [(role.count, bool(role.definition.at)) for role in roles] == [(1, True), (2, False)]


def test_replicas_outside_of_the_bounds_are_no_error(tmp_path):
    obj = ray_job(group("head", replicas=2, rayStartParams={}), group(replicas=-1, rayStartParams={}), entrypoint="a")
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(obj))
    found = [(each.rule, str(each.severity)) for each in lint(tmp_path, ["."]).findings]

    assert ("invalid-replica-count", "warning") in found
    assert [rule for rule, severity in found if severity == "error"] == []


@pytest.mark.parametrize(("mode", "gpus"), [(None, 12), ("K8sJobMode", 12), ("HTTPMode", 8)])
def test_submitter_counts_as_a_pod_if_there_is_one(mode, gpus, kind):
    own = {} if mode is None else {"submissionMode": mode}
    obj = ray_job(group(replicas=2), submitterPodTemplate=template(**GPU), **own)
    described = Manifest(obj, kind, Cluster())

    assert count_gpus(described) == gpus
    assert sum(count for _, count in count_pods(described)) == 3 + (gpus == 12)


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_rendered_ray_jobs_have_no_errors(path, tmp_path):
    manifests = read_transcript(path).expected["manifests"].decode()
    (tmp_path / "jobgen.yaml").write_text("cluster: {operators: {kuberay: 1.7.0, kueue: 0.19.0}}\n")
    (tmp_path / "jobs").mkdir()
    objects = list(yaml.safe_load_all(manifests))
    for obj in objects:
        if "rayClusterSpec" in obj["spec"] and obj["spec"].get("shutdownAfterJobFinishes"):
            obj["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpu-a"}
            if obj["spec"]["rayClusterSpec"].get("enableInTreeAutoscaling"):
                obj["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    (tmp_path / "jobs" / "a.yaml").write_text(yaml.safe_dump_all(objects))

    assert len(objects) > 0
    assert [found.message for found in lint(tmp_path).findings if found.severity == "error"] == []


def with_cluster(obj, **fields):
    return {**obj, "spec": {**obj["spec"], "rayClusterSpec": {**obj["spec"]["rayClusterSpec"], **fields}}}


# Fields of the import, or None for any.
IMPORTED = [
    (ray_job(group(replicas=2), entrypoint="python train.py --name 'two words'"), "command"),
    (ray_job(group(replicas=2), entrypoint="python train.py && echo $HOME"), "ray"),
    (ray_job(group(replicas=2), entrypoint="python train.py\n"), "ray"),
    (ray_job(group(replicas=2), entrypoint="python 'train.py"), "ray"),
    (ray_job(group(replicas=2), entrypoint="echo '$(A)'"), "ray"),
    (ray_job(group(replicas=2), entrypoint=""), None),
    (ray_job(group(replicas=2, command=["sh"])), None),
    (
        ray_job({**group(), "template": template(command=["sh", "-c"], args=["ulimit -n 65536"])}, entrypoint="a b"),
        None,
    ),
    (ray_job(group(), shutdownAfterJobFinishes=True), None),
    (ray_job(group(), shutdownAfterJobFinishes=False), "ray"),
    (ray_job(group(rayStartParams={"num-gpus": "4"})), "ray"),
    (ray_job(group(rayStartParams={"num-gpus": 4})), None),
    (ray_job(group(rayStartParams={})), None),
    (ray_job(group(replicas=1, minReplicas=1, maxReplicas=5, numOfHosts=4)), "roles"),
    (ray_job(group(replicas=0, minReplicas=2, maxReplicas=5)), "roles"),
    (ray_job(group(minReplicas="1")), None),
    (ray_job(group("a"), group("b")), "roles"),
    (ray_job(group("head")), None),
    (ray_job(group(["a"])), None),
    (ray_job(group("worker", template=template(restartPolicy="Never"))), None),
    (ray_job(group("a", template={"spec": {"restartPolicy": "Never", "containers": []}})), None),
    (ray_job(group("a", template={})), None),
    (ray_job({"groupName": "a"}), None),
    (ray_job(submitterPodTemplate=template(), submitterConfig={"backoffLimit": 0}), "ray"),
    (ray_job(submitterPodTemplate={}), None),
    (
        ray_job(deletionStrategy={"deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}]}),
        "ray",
    ),
    (
        ray_job(suspend=True, backoffLimit=2, ttlSecondsAfterFinished=5, managedBy="ray.io/kuberay-operator"),
        "runPolicy",
    ),
    (with_cluster(ray_job(group()), enableInTreeAutoscaling=True), "ray"),
    (with_cluster(ray_job(group()), enableInTreeAutoscaling=True, autoscalerOptions={"version": "v2"}), "ray"),
    (with_cluster(ray_job(group()), autoscalerOptions={"version": "v2"}), "manifest"),
    (with_cluster(ray_job(group()), enableInTreeAutoscaling=False), "manifest"),
    (with_cluster(ray_job(), workerGroupSpecs=[]), "manifest"),
    (with_cluster(ray_job(), headGroupSpec={"serviceType": "ClusterIP", "template": template(**GPU)}), "roles"),
    (with_cluster(ray_job(), headGroupSpec=None), None),
    ({**ray_job(), "spec": {"entrypoint": "a", "clusterSelector": {"ray.io/cluster": "shared"}}}, "ray"),
    ({**ray_job(), "spec": {}}, None),
    ({**ray_job(), "metadata": {"name": "a", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}, "queue"),
]


@pytest.mark.parametrize(("obj", "field"), IMPORTED)
def test_imported_ray_job_renders_to_itself(obj, field, kind, kinds):
    imported = import_manifest(obj, kind, kinds)

    assert isinstance(imported, ImportedSpec), imported
    assert field is None or field in imported.document["spec"]
    rendered, problems = render_spec(imported.document, renderer_for("ray", kinds))
    assert problems == []
    assert is_equivalent(rendered, imported.manifest)


@pytest.mark.parametrize("groups", [(group("a"), group("a")), (group(None), group(7))])
def test_ray_job_without_distinct_groups_is_not_imported(groups, kind, kinds):
    assert not isinstance(import_manifest(ray_job(*groups), kind, kinds), ImportedSpec)


# Kinds of other platforms, their framework, and roles with four nodes.
MIGRATED = [
    ("PyTorchJob", "pytorch", {"master": {}, "worker": {"replicas": 3}}),
    ("PyTorchTrainingJob", "pytorch", {"master": {}, "worker": {"replicas": 3}}),
    ("TrainJob", "pytorch", {"node": {"replicas": 4}}),
    ("batch/v1 Job", "pytorch", {"node": {"replicas": 4}}),
    ("batch.volcano.sh/v1alpha1 Job", "pytorch", {"master": {}, "worker": {"replicas": 3}}),
    ("JobSet", "pytorch", {"worker": {"replicas": 4}}),
    ("TFJob", "tensorflow", {"chief": {}, "worker": {"replicas": 3}}),
    ("XGBoostJob", "xgboost", {"master": {}, "worker": {"replicas": 3}}),
    ("JAXJob", "jax", {"worker": {"replicas": 4}}),
]


@pytest.mark.parametrize(("name", "framework", "roles"), MIGRATED)
def test_jobs_migrate_to_ray_jobs_and_back(name, framework, roles, kind, kinds):
    names = {f"{each.api_version} {each.name}": each for each in kinds if framework in each.frameworks}
    other = next(each for key, each in names.items() if name in (key, each.name))
    spec = {"framework": framework, "replicas": 4, "image": "x", "command": ["python", "train.py"], "roles": roles}
    document = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"}, "spec": spec}
    there = migrate_job(document, other, kind, framework, kinds)
    back = migrate_job(there.document, kind, other, framework, kinds)

    assert (there.problems, back.problems) == ((), ())
    assert there.rendered["spec"]["entrypoint"] == "python train.py"
    assert Manifest(there.rendered, kind, Cluster()).pod_count == 5
    assert Manifest(back.rendered, other, Cluster()).pod_count == 4
    # Ray runs the program once, and has a head, so these differ in both directions, and nothing else does.
    for result, starts in ((there, "`4` before, `1` after"), (back, "`1` before, `4` after")):
        assert {each.name for each in result.differences} == {"ray"}
        assert f"job: pods that start the program: {starts}" in [each.text for each in result.differences]
        assert not [each.text for each in result.differences if re.search(r"image|resources|command|mount", each.text)]
    assert {("roles", "head"), ("command",)} <= {note.field for note in there.notes if note.change == "check"}
    assert [note.field for note in there.notes if note.change == "lost"] == []
    assert ("roles", "head") in [note.field for note in back.notes if note.change == "lost"]
