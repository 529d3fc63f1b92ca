"""Claims for devices (DRA) count as the devices that they request: in GPU totals, budgets, queues and diffs."""

import json
from pathlib import Path

import pytest

import jobgen
from jobgen import cache
from jobgen.check.checker import Checker
from jobgen.k8s.devices import build_catalog
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

PROJECT = config.load_own(Path(__file__).parent)

OVERLAY = """
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  namespace: ml
  cluster:
    queues: {small: {gpus: 31}}
    budgets: {namespaces: {ml: {gpus: 31}}}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: eight-gpus, namespace: ml}
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly: {deviceClassName: gpu.nvidia.com, count: 8}
"""
SPEC = """
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  queue: small
  shm: 16Gi
  roles: {master: {}, worker: {replicas: 3}}
  resources: {cpu: 8, memory: 64Gi, DEVICES}
"""
SPEC_CLAIMS = """  podTemplate: {spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: eight-gpus}]}}
"""
RAW = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml, labels: {kueue.x-k8s.io/queue-name: small}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
      template:
        spec:CLAIMS
          volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]
          containers:
          - name: pytorch
            image: registry.example.com/bert:1.4.2
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
            resources: {requests: {cpu: 8, memory: 64Gi}, DEVICES}
"""
RAW_CLAIMS = """
          resourceClaims: [{name: gpus, resourceClaimTemplateName: eight-gpus}]"""
RESOURCES = {
    "rendered": SPEC.replace("DEVICES", "gpu: 8"),
    "raw": RAW.replace("DEVICES", "limits: {nvidia.com/gpu: 8}").replace("CLAIMS", ""),
}
CLAIMS = {
    "rendered": SPEC.replace("DEVICES", "claims: [{name: gpus}]") + SPEC_CLAIMS,
    "raw": RAW.replace("DEVICES", "claims: [{name: gpus}]").replace("CLAIMS", RAW_CLAIMS),
}


def write_repository(root, *jobs, template=TEMPLATE):
    for path, text in {"overlays/prod/overlay.yaml": OVERLAY, "jobs/template.yaml": template}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for number, job in enumerate(jobs):
        (root / f"jobs/job-{number}.yaml").write_text(job)
    return root


def lint_totals(root):
    """The findings about numbers of GPUs."""
    rules = ("gpu-budget-exceeded", "queue-quota-exceeded", "uncounted-devices")
    return [(found.rule, found.message) for found in jobgen.lint(root).findings if found.rule in rules]


@pytest.mark.parametrize("form", ["rendered", "raw"])
def test_lint_counts_a_claim_for_eight_as_eight(tmp_path, form):
    before = lint_totals(write_repository(tmp_path / "before", RESOURCES[form]))
    after = lint_totals(write_repository(tmp_path / "after", CLAIMS[form]))

    assert {rule for rule, _ in before} == {"queue-quota-exceeded", "gpu-budget-exceeded"}
    assert all("32 GPUs" in message for _, message in before)
    assert after == before


@pytest.mark.parametrize("form", ["rendered", "raw"])
def test_totals_of_a_diff_do_not_change(tmp_path, form):
    write_repository(tmp_path / "old", RESOURCES[form])
    write_repository(tmp_path / "new", CLAIMS[form])
    found = json.loads(jobgen.diff(tmp_path, folders=("old", "new"), format="json").text)

    assert len(found["objects"]) == 1
    for total in (*found["totals"], *found["objects"]):
        assert total["before"] == total["after"], total
        assert total["after"]["gpus"] == 32


def test_a_changed_template_changes_the_totals_of_its_jobs(tmp_path):
    write_repository(tmp_path / "old", CLAIMS["raw"])
    write_repository(tmp_path / "new", CLAIMS["raw"], template=TEMPLATE.replace("count: 8", "count: 4"))
    found = json.loads(jobgen.diff(tmp_path, folders=("old", "new"), format="json").text)

    assert {(total["before"]["gpus"], total["after"]["gpus"]) for total in found["totals"]} == {(32, 16)}


def test_totals_of_rendered_trees_count_claims(tmp_path):
    for name, jobs in (("old", RESOURCES), ("new", CLAIMS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.yaml").write_text(f"{TEMPLATE}---{jobs['raw']}")
    found = json.loads(jobgen.diff(tmp_path, folders=("old", "new"), format="json").text)

    assert {(total["before"]["gpus"], total["after"]["gpus"]) for total in found["totals"]} == {(32, 32)}


def test_jobs_that_share_a_claim_count_it_once(tmp_path):
    claim = TEMPLATE.replace("ResourceClaimTemplate", "ResourceClaim").replace("spec:\n  spec:", "spec:")
    shared = CLAIMS["raw"].replace("resourceClaimTemplateName", "resourceClaimName")
    root = write_repository(tmp_path / "new", shared, shared.replace("name: bert", "name: gpt"), template=claim)
    write_repository(tmp_path / "old", template=claim)
    found = json.loads(jobgen.diff(tmp_path, folders=("old", "new"), format="json").text)

    assert [one["after"]["gpus"] for one in found["objects"]] == [8, 8]
    assert {total["after"]["gpus"] for total in found["totals"]} == {8}
    assert lint_totals(root) == []


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: gpus, FIELD: eight-gpus}]
      containers:
      - name: a
        image: registry.example.com/bert:1.4.2
        resources: {requests: {cpu: 8, memory: 64Gi}, claims: [{name: gpus}]}
"""


@pytest.mark.parametrize(("field", "gpus"), [("resourceClaimTemplateName", 24), ("resourceClaimName", 8)])
def test_kinds_without_a_description_count_claims(tmp_path, field, gpus):
    claim = TEMPLATE.replace("ResourceClaimTemplate", "ResourceClaim").replace("spec:\n  spec:", "spec:")
    jobs = [claim, JOB.replace("FIELD", field)]
    root = write_repository(tmp_path / "new", *jobs)
    overlay = root / "overlays/prod/overlay.yaml"
    overlay.write_text(overlay.read_text().replace("{gpus: 31}", "{gpus: 7}"))
    write_repository(tmp_path / "old", claim)
    found = json.loads(jobgen.diff(tmp_path, folders=("old", "new"), format="json").text)
    [(rule, message)] = lint_totals(root)

    assert {total["after"]["gpus"] for total in found["totals"]} == {gpus}
    assert rule == "gpu-budget-exceeded"
    assert f"{gpus} GPUs" in message


def test_claims_of_kinds_without_a_description_that_are_not_there(tmp_path):
    root = write_repository(tmp_path, JOB.replace("FIELD", "resourceClaimName"))

    assert [rule for rule, _ in lint_totals(root)] == ["uncounted-devices"]


def test_a_cached_lint_reads_claims_again(tmp_path):
    root = write_repository(tmp_path / "repository", CLAIMS["raw"])
    cache.enable(tmp_path / "memory", "test")
    try:
        first, second = lint_totals(root), lint_totals(root)
        (root / "jobs/template.yaml").write_text(TEMPLATE.replace("count: 8", "count: 80"))
        third = lint_totals(root)
        (root / "jobs/template.yaml").unlink()
        last = lint_totals(root)
    finally:
        cache.disable()

    assert first == second
    assert all("320 GPUs" in message for _, message in third)
    assert len(third) == 2
    assert [rule for rule, _ in last] == ["uncounted-devices"]


def test_the_exported_state_has_classes_and_claims(tmp_path):
    root = write_repository(tmp_path / "repository", CLAIMS["raw"])
    (root / "cluster").mkdir()
    (root / "jobs/template.yaml").rename(root / "cluster/template.yaml")
    overlay = root / "overlays/prod/overlay.yaml"
    without = lint_totals(root)
    overlay.write_text(overlay.read_text().replace("cluster:", "cluster:\n    state: cluster"))

    assert [rule for rule, _ in without] == ["uncounted-devices"]
    assert all("32 GPUs" in message for _, message in lint_totals(root))


NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: ml, labels: {resource.kubernetes.io/admin-access: "true"}}
"""


@pytest.mark.parametrize(
    ("namespace", "count"),
    [(NAMESPACE, 0), (NAMESPACE.replace("true", "yes"), 1), (NAMESPACE.replace("name: ml", "name: other"), 0)],
)
def test_admin_access_needs_a_labeled_namespace(tmp_path, namespace, count):
    template = TEMPLATE.replace("count: 8", "adminAccess: true")
    root = write_repository(tmp_path, namespace, template=template)
    found = [found for found in jobgen.lint(root).findings if found.rule == "invalid-resource-claim"]

    assert [(one.location.file, one.location.line) for one in found] == [("jobs/template.yaml", 10)] * count


def test_a_cached_lint_of_one_file_reads_claims_of_others_again(tmp_path):
    root = write_repository(tmp_path / "repository", CLAIMS["raw"])
    cache.enable(tmp_path / "memory", "test")
    found = []
    try:
        for count in (8, 80, 8):
            (root / "jobs/template.yaml").write_text(TEMPLATE.replace("count: 8", f"count: {count}"))
            messages = [one.message for one in jobgen.lint(root, ["jobs/job-0.yaml"]).findings]
            found.append([f"{count * 4} GPUs" in message for message in messages if "requests" in message])
    finally:
        cache.disable()

    assert found == [[True]] * 3


def test_results_with_claims_are_cached(tmp_path, monkeypatch):
    """Only a change of a file with claims lets jobs that use claims be checked again."""
    root = write_repository(tmp_path / "repository", CLAIMS["raw"], RESOURCES["raw"].replace("name: bert", "name: gpt"))
    checked = []
    find_problems = Checker.find_problems

    def count_check(self, manifest):
        checked.append(manifest.name)
        return find_problems(self, manifest)

    monkeypatch.setattr(Checker, "find_problems", count_check)
    cache.enable(tmp_path / "memory", "test")
    found = []
    try:
        for path in ("", "jobs/job-1.yaml", "jobs/template.yaml"):
            if path:
                (root / path).write_text((root / path).read_text() + "\n")
            lint_totals(root)
            found.append(sorted(set(checked)))
            checked.clear()
    finally:
        cache.disable()

    assert found == [["bert", "eight-gpus", "gpt"], ["gpt"], ["bert", "eight-gpus"]]


def make_claim(*requests, kind="ResourceClaimTemplate", version="v1", name="a"):
    devices = {"devices": {"requests": list(requests)}}
    spec = {"spec": devices} if kind == "ResourceClaimTemplate" else devices
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def make_class(name, **spec):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


GPU = {"deviceClassName": "gpu.nvidia.com"}
SELECTOR = {"cel": {"expression": "device.driver == 'gpu.nvidia.com' && device.attributes['a'].b == 'H100'"}}


@pytest.mark.parametrize(
    ("request_", "objects", "expected"),
    [
        ({"exactly": GPU}, [], {"nvidia.com/gpu": 1}),
        ({"exactly": {**GPU, "count": 8}}, [], {"nvidia.com/gpu": 8}),
        ({"exactly": {**GPU, "count": 0}}, [], {"nvidia.com/gpu": 1}),
        ({"exactly": {**GPU, "adminAccess": True}}, [], {}),
        (
            {"exactly": {**GPU, "allocationMode": "All"}},
            [],
            "it requests all devices of a node (`allocationMode: All`)",
        ),
        ({"exactly": {"deviceClassName": "x"}}, [], "the DeviceClass `x` is not in the repository"),
        ({"exactly": {"deviceClassName": "x"}}, [make_class("x")], {}),
        (
            {"exactly": {"deviceClassName": "x"}},
            [make_class("x", extendedResourceName="amd.com/gpu")],
            {"amd.com/gpu": 1},
        ),
        ({"exactly": {"deviceClassName": "x"}}, [make_class("x", extendedResourceName="own/gpu")], {"own/gpu": 1}),
        ({"exactly": {"deviceClassName": "x"}}, [make_class("x", selectors=[SELECTOR])], {"nvidia.com/gpu": 1}),
        ({"exactly": {"deviceClassName": "tpu.google.com", "count": 4}}, [], {"google.com/tpu": 4}),
        (
            {"firstAvailable": [{**GPU, "name": "big", "count": 2}, {**GPU, "name": "small", "count": 4}]},
            [],
            {"nvidia.com/gpu": 4},
        ),
        ({**GPU, "count": 2}, ["v1beta1"], {"nvidia.com/gpu": 2}),
        ({"exactly": "x"}, [], "the DeviceClass `` is not in the repository"),
    ],
)
def test_devices_of_a_request(request_, objects, expected):
    version = "v1beta1" if objects == ["v1beta1"] else "v1"
    claim = make_claim({"name": "gpus", **request_}, version=version)
    found = build_catalog([claim, *(obj for obj in objects if isinstance(obj, dict))], "own/gpu").templates["", "a"]

    assert (found.uncounted or found.list_devices()) == expected


def test_claims_that_differ_are_not_counted():
    claims = [make_claim({"name": "a", "exactly": {**GPU, "count": count}}) for count in (1, 2)]

    assert build_catalog([claims[0], claims[0]], "").templates["", "a"].uncounted == ""
    assert "more than once" in build_catalog(claims, "").templates["", "a"].uncounted


def test_channels_between_gpus_are_no_devices():
    channel = {"channel": {"resourceClaimTemplate": {"name": "channel"}}}
    domain = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {}, "spec": channel}

    assert build_catalog([domain], "").templates == {("", "channel"): ({}, "")}


def make_manifest(objects, uses, limits=None, gpu_resource="nvidia.com/gpu"):
    """A job of one pod, whose container uses claims."""
    container = {"name": "pytorch", "image": "a:1", "resources": {"claims": uses, "limits": limits or {}}}
    claims = [
        {"name": "own", "resourceClaimTemplateName": "a"},
        {"name": "shared", "resourceClaimName": "b"},
        {"name": "unknown", "resourceClaimTemplateName": "c"},
    ]
    template = {"spec": {"containers": [container, {"name": "sidecar"}], "resourceClaims": claims}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "a"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": template}}},
    }
    cluster = Cluster(gpu_resource=gpu_resource)
    checker = Checker(PROJECT.layers, PROJECT.kinds, cluster, read_catalog=lambda: build_catalog(objects, gpu_resource))
    return checker.manifest(job)


OBJECTS = [
    make_claim({"name": "x", "exactly": {**GPU, "count": 2}}, {"name": "y", "exactly": GPU}),
    make_claim({"name": "x", "exactly": {**GPU, "count": 4}}, kind="ResourceClaim", name="b"),
]


@pytest.mark.parametrize(
    ("uses", "container", "pod", "job"),
    [
        ([], 0, 3, 13),
        ([{"name": "own"}], 3, 3, 13),
        ([{"name": "own", "request": "y"}], 1, 3, 13),
        ([{"name": "own"}, {"name": "shared"}, {"name": "unknown"}], 7, 3, 13),
    ],
)
def test_gpus_of_containers_pods_and_jobs(uses, container, pod, job):
    manifest = make_manifest(OBJECTS, uses)
    [role] = manifest.roles

    assert (role.pod.main_container.gpus, role.pod.gpus, manifest.gpus) == (container, pod, job)
    assert manifest.has_devices


def test_resources_of_classes_count():
    limits = {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 2, "nvidia.com/gpu": "1", "rdma/hca": 1}
    manifest = make_manifest([], [], limits)

    assert manifest.roles[0].pod.gpus == 3
    assert manifest.gpus == 9


def test_other_accelerators_are_no_gpus():
    objects = [make_claim({"name": "x", "exactly": {"deviceClassName": "tpu.google.com", "count": 4}})]

    assert make_manifest(objects, [{"name": "own"}]).gpus == 0
    assert make_manifest(objects, [{"name": "own"}]).has_devices
    assert make_manifest(objects, [{"name": "own"}], gpu_resource="google.com/tpu").gpus == 12


def test_devices_of_master_and_workers_are_compared_with_claims(tmp_path):
    """A worker that gets its GPUs by a claim has the GPUs of a master that gets them by a resource."""
    text = CLAIMS["raw"].replace("    Worker:\n      replicas: 4", "    Worker:\n      replicas: 1")
    [document] = read(text.encode(), "job.yaml").documents
    specs = document.data["spec"]["pytorchReplicaSpecs"]
    [other] = read(RESOURCES["raw"].encode(), "job.yaml").documents
    specs["Master"] = {**other.data["spec"]["pytorchReplicaSpecs"]["Worker"], "replicas": 1}
    root = write_repository(tmp_path, json.dumps(document.data))

    assert "master-worker-gpu-mismatch" not in {found.rule for found in jobgen.lint(root).findings}
