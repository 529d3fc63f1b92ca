"""One job on seven platforms: what it is rendered as, and that nothing of it is lost. docs/kinds.md has the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.features.convert.operators.compare import compare_pods
from jobgen.features.convert.operators.create import create_pods
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import count_pods
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.spec.overlay import Cluster

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [torchrun, train.py]
  env: {EPOCHS: "3"}
  resources: {cpu: 8, memory: 64Gi, gpu: 4}
  volumes: {data: {pvc: datasets, mountPath: /data}}
  shm: 16Gi
  queue: gpu-a
  roles: {master: {}, worker: {replicas: 3}}
"""
# The number of all pods, and the priority: a class, a number of TensorStack's scheduler, or a matter of the runtime.
# Kinds with a class have a number of restarts, too.
PLATFORMS = {
    "kubeflow": (4, "high"),
    "trainer": (4, ""),
    "tensorstack": (4, "50"),
    "kubernetes": (4, "high"),
    "jobset": (4, "high"),
    "ray": (5, "high"),
    "volcano": (4, "high"),
}
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {{platform: {platform}}}
  defaults: {{{priority}}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("platforms")
    (root / "jobs").mkdir()
    (root / "jobs/bert.yaml").write_text(JOB)
    for platform, (_, priority) in PLATFORMS.items():
        (root / f"overlays/{platform}").mkdir(parents=True)
        restarts = ", runPolicy: {backoffLimit: 3}" if priority == "high" else ""
        text = OVERLAY.format(platform=platform, priority=f"priority: {priority}{restarts}" if priority else "")
        (root / f"overlays/{platform}/overlay.yaml").write_text(text)
    project = config.load_own(root)
    made = render_jobs(project, project.environments())
    return project, made.objects, made.findings


def test_one_job_is_valid_on_every_platform(run):
    _, objects, findings = run

    assert [finding for finding in findings if finding.severity is Severity.ERROR] == []
    assert {made.env for made in objects} == set(PLATFORMS)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_one_job_keeps_its_pods_and_fields_on_every_platform(platform, run):
    project, objects, _ = run
    [first, *_] = [made.object for made in objects if made.env == platform]
    text = str(first)
    manifest = to_manifest(first, project.kinds)
    pods, priority = PLATFORMS[platform]

    assert (manifest.pod_count, manifest.gpus) == (pods, 16)
    assert sum(count * pod.gpus for pod, count in count_pods(manifest)) == 16
    for value in ("registry.example.com/bert:1.4.2", "EPOCHS", "datasets", "/data", "16Gi", "gpu-a", priority):
        assert value in text


@pytest.mark.parametrize("platform", ["kubernetes", "jobset", "volcano"])
def test_pods_are_equal_for_training_without_kubeflow(platform, run):
    """The pods that Kubernetes creates from the object of a platform have the world and ranks of those of Kubeflow."""
    before, after = (
        create_pods(first, (first, *others))
        for first, *others in ([made.object for made in run[1] if made.env == env] for env in ("kubeflow", platform))
    )
    differences = compare_pods(before, after)

    assert [difference for difference in differences if difference.training] == []
    assert not {"env WORLD_SIZE", "env RANK", "env EPOCHS"} & {difference.field for difference in differences}


def test_the_page_lists_the_platforms(run):
    _, objects, _ = run
    rows = [_format_row(platform, [made.object for made in objects if made.env == platform]) for platform in PLATFORMS]
    table = "\n".join(("| platform | objects | how `torchrun` gets ranks |", "|---|---|---|", *rows))

    assert table in (ROOT / "docs/kinds.md").read_text(), table


def _format_row(platform, objects):
    kinds = ", ".join(f"{made['kind']} (`{made['apiVersion']}`)" for made in objects)
    return f"| `{platform}` | {kinds} | {_describe_ranks(str(objects[0]))} |"


def _describe_ranks(text):
    if "PET_NODE_RANK" in text:
        return "the index of the pod"
    if "PET_RDZV_BACKEND" in text:
        return "it agrees on them (`c10d`)"
    if "batch.tensorstack.dev" in text:
        return "the operator starts it (`torchrunConfig`)"
    return "Ray Train starts the processes" if "rayClusterSpec" in text else "the operator sets them"


def to_manifest(made, kinds):
    kind = next(kind for kind in kinds if kind.describes(made["apiVersion"], made["kind"]))
    return Manifest(made, kind, Cluster())


POD = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"completions": 3}, 1),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 8}, 2),
        ({"parallelism": 0}, 0),
        ({"parallelism": 3, "suspend": True}, 0),
    ],
)
@pytest.mark.parametrize("replicas", [None, 1, 2, 0])
def test_pods_of_jobs_and_job_sets_are_counted_once(spec, pods, replicas, run):
    """The kind description and the table of all kinds count the same pods, also of what is suspended."""
    suspend = {"suspend": True} if spec.get("suspend") else {}
    inner = {key: value for key, value in spec.items() if key != "suspend"}
    item = {"name": "node", "template": {"spec": {**inner, "template": POD}}}
    item |= {} if replicas is None else {"replicas": replicas}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {**spec, "template": POD}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {"replicatedJobs": [item], **suspend},
    }
    for made, expected in ((job, pods), (job_set, pods * (1 if replicas is None else replicas))):
        described = to_manifest(made, run[0].kinds)
        counts = [count for _, count in count_pods(described)]

        assert counts == [count for _, count in count_pods(Manifest(made, None, Cluster()))] == [expected]
        if not suspend:
            assert (described.pod_count, described.gpus) == (expected, 2 * expected)


def test_the_documentation_lists_the_frameworks_of_every_platform():
    kinds = config.load_own(ROOT).kinds
    platforms = [*PLATFORMS, "mpi-operator"]
    head = f"| framework | {' | '.join(f'`{platform}`' for platform in platforms)} |\n|---{'|---' * len(platforms)}|\n"
    rows = []
    for framework in sorted({framework for kind in kinds for framework in kind.frameworks}):
        names = {kind.platform: kind.name for kind in kinds if framework in kind.frameworks}
        rows.append(f"| `{framework}` | {' | '.join(names.get(platform, '–') for platform in platforms)} |\n")
    table = head + "".join(rows)

    assert table in (ROOT / "docs/kinds.md").read_text(), table


@pytest.mark.parametrize(
    ("field", "is_rendered"),
    [
        ("suspend: false", True),
        ("runPolicy: {suspend: false}", True),
        ("suspend: true", False),
        ("runPolicy: {suspend: true}", False),
        ("runPolicy: {managedBy: a/b}", False),
    ],
)
def test_only_what_has_an_effect_is_unsupported(tmp_path, field, is_rendered):
    """A Job of Volcano cannot be suspended in its spec, and one that is not to be suspended needs nothing."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/prod").mkdir(parents=True)
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {platform: volcano}}\n"
    (tmp_path / "overlays/prod/overlay.yaml").write_text(overlay)
    (tmp_path / "jobs/bert.yaml").write_text(f"{JOB}  {field}\n")
    run = render_jobs(config.load_own(tmp_path), ["prod"])

    assert ("suspend" not in str([made.object for made in run.objects]), run.failed) == (True, not is_rendered)
