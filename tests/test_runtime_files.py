"""Runtimes in runtimes/: rendered with the jobs that refer to them, patched, checked, and reported if no job does."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobgen
from jobgen.features.gitops.commands.gitops import argocd

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [torchrun, train.py]
  resources: {{cpu: 4, memory: 8Gi, gpu: 1}}
  pytorch: {{runtime: {runtime}}}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: {kind}
metadata: {{name: {name}}}
spec:
  mlPolicy: {{numNodes: 1, torch: {{}}}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
            spec:
              template:
                spec:
                  restartPolicy: OnFailure
                  initContainers: [{{name: fetch, image: "registry.example.com/fetch:1.2.3"}}]
                  containers: [{{name: node, imagePullPolicy: Always}}]
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: prod}}
spec:
  cluster: {{platform: trainer, operators: {{trainer: 2.2.0}}{gitops}}}
{rest}"""
PATCH = """\
  patches:
    - match: {kinds: [TrainingRuntime], names: [shared]}
      manifest: {spec: {template: {spec: {failurePolicy: {maxRestarts: 3}}}}}
"""
IMAGES = """\
  images: [{name: registry.example.com/fetch, newName: mirror.example.com/fetch}]
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in {"jobgen.yaml": "", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def repository(root: Path, *, rest: str = "", gitops: str = "", kind: str = "TrainingRuntime", **more: str) -> Path:
    files = {
        "overlays/prod/overlay.yaml": OVERLAY.format(rest=rest, gitops=gitops),
        "jobs/a.yaml": JOB.format(name="a", namespace="one", runtime="shared"),
        "jobs/b.yaml": JOB.format(name="b", namespace="one", runtime="shared"),
        "jobs/c.yaml": JOB.format(name="c", namespace="two", runtime="shared"),
        "jobs/d.yaml": JOB.format(name="d", namespace="two", runtime="torch-distributed"),
        "runtimes/shared.yaml": RUNTIME.format(kind=kind, name="shared"),
    }
    return write(root, {**files, **{key.replace("__", "/") + ".yaml": text for key, text in more.items()}})


def render(root: Path) -> dict[tuple[str, str, str], dict]:
    result = jobgen.render(root, environments=["prod"])
    assert not result.failed, result.findings
    objects = [each.manifest for each in result.objects]
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}


def lint(root: Path) -> list[tuple[str, str]]:
    findings = jobgen.lint(root).findings
    return sorted({(each.rule, each.location.file) for each in findings if each.severity.value != "info"})


def test_runtime_is_rendered_once_in_each_namespace_of_its_jobs(tmp_path):
    objects = render(repository(tmp_path))

    assert [key for key in objects if key[0] == "TrainingRuntime"] == [
        ("TrainingRuntime", "one", "shared"),
        ("TrainingRuntime", "two", "shared"),
    ]
    assert objects["TrainJob", "one", "a"]["spec"]["runtimeRef"] == {"kind": "TrainingRuntime", "name": "shared"}
    assert objects["TrainJob", "two", "d"]["spec"]["runtimeRef"] == {"name": "torch-distributed"}


def test_cluster_runtime_is_rendered_once_without_a_namespace(tmp_path):
    objects = render(repository(tmp_path, kind="ClusterTrainingRuntime"))

    assert [key for key in objects if "Runtime" in key[0]] == [("ClusterTrainingRuntime", "", "shared")]
    assert objects["TrainJob", "one", "a"]["spec"]["runtimeRef"] == {"name": "shared"}


def test_overlays_change_runtimes(tmp_path):
    objects = render(repository(tmp_path, rest=PATCH + IMAGES, gitops=", gitops: argocd"))
    runtime = objects["TrainingRuntime", "one", "shared"]
    pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]

    assert runtime["spec"]["template"]["spec"]["failurePolicy"] == {"maxRestarts": 3}
    assert pod["initContainers"][0]["image"] == "mirror.example.com/fetch:1.2.3"
    # Trainer refuses a TrainJob before its runtime exists.
    assert runtime["metadata"]["annotations"] == {"argocd.argoproj.io/sync-wave": "-1"}


def test_patch_for_all_jobs_does_not_change_runtimes(tmp_path):
    objects = render(repository(tmp_path, rest="  patches: [{match: {}, manifest: {metadata: {labels: {a: b}}}}]\n"))

    assert objects["TrainJob", "one", "a"]["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in objects["TrainingRuntime", "one", "shared"]["metadata"]


@pytest.mark.parametrize(
    ("files", "rest", "expected"),
    [
        ({}, PATCH, []),
        ({"runtimes__odd": RUNTIME.format(kind="TrainingRuntime", name="odd")}, "", [("unused-runtime", "odd")]),
        ({"runtimes__odd": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"}, "", [("misplaced-document", "odd")]),
        ({"runtimes__odd": "a: 1\n"}, "", [("misplaced-document", "odd")]),
        (
            {"runtimes__odd": RUNTIME.format(kind="TrainingRuntime", name="shared")},
            "",
            [("duplicate-identity", "shared")],
        ),
        (
            {"runtimes__shared": RUNTIME.format(kind="TrainingRuntime", name="shared").replace("mlPolicy", "mlPolice")},
            "",
            [("unknown-field", "shared")],
        ),
        (
            {"runtimes__shared": RUNTIME.format(kind="TrainingRuntime", name="shared, namespace: a")},
            "",
            [("invalid-value", "shared")],
        ),
    ],
)
def test_faults_of_runtimes_are_found_in_their_files(files, rest, expected, tmp_path):
    found = lint(repository(tmp_path, rest=rest, **files))

    assert [(rule, Path(file).stem) for rule, file in found if file.startswith("runtimes/")] == expected


def test_result_cache_depends_on_runtimes(tmp_path):
    root = repository(tmp_path)
    before = lint(root)
    path = root / "runtimes/shared.yaml"
    path.write_text(path.read_text().replace("fetch:1.2.3", "fetch:latest"))

    assert before == []
    assert lint(root) == [("mutable-image-tag", "runtimes/shared.yaml")]


def test_argocd_renders_again_when_a_runtime_changes(tmp_path):
    done = argocd(repository(tmp_path), (), "paths", "https://git.example.com/jobs.git", "main")

    assert ";/policies;/runtimes;/schemas" in done.out


def test_diff_compares_a_job_with_its_successor_of_another_kind(tmp_path):
    after = repository(tmp_path / "after")
    before = repository(tmp_path / "before")
    overlay = OVERLAY.format(rest="", gitops="").replace("platform: trainer", "platform: kubeflow")
    (before / "overlays/prod/overlay.yaml").write_text(overlay)
    for path in (before / "jobs").iterdir():
        path.write_text("\n".join(line for line in path.read_text().splitlines() if "runtime" not in line) + "\n")
    result = jobgen.diff(after, folders=(str(before), str(after)))
    actions = sorted((each.identity.kind, each.action) for each in result.objects)

    assert "PyTorchJob one/a → TrainJob one/a in prod" in result.text
    assert actions == [("TrainJob", "changed")] * 4 + [("TrainingRuntime", "added")] * 2
