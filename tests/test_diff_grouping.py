"""Text and Markdown of `jobgen diff` say once what several environments have in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobgen.cli.commands.diff import diff_states

ENVIRONMENTS = ("dev", "prod", "prod-eu", "staging")
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-{env}
  cluster: {{gitops: argocd, state: cluster/{env}, kueue: {{version: "0.19", frameworks: [kubeflow.org/pytorchjob]}}}}
  patches: [{{match: {{names: [resized]}}, merge: {{roles: {{worker: {{replicas: {replicas}}}}}}}}}]
"""
QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: any}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: all}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: any
          resources:
            - {{name: cpu, nominalQuota: 400}}
            - {{name: memory, nominalQuota: 2Ti}}
            - {{name: nvidia.com/gpu, nominalQuota: 12}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: gpus, namespace: ml-{env}}}
spec: {{clusterQueue: all}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: pytorch
  image: registry.example.com/train:{image}
  command: [python, train.py, --epochs, "{epochs}"]
  resources: {{cpu: 2, memory: {memory}, gpu: {gpus}}}
  roles: {{worker: {{replicas: {replicas}}}}}
{rest}"""
# The names of jobs, and what is edited in each; one is removed and one is added.
EDITS = {
    "image": {"image": "2"},
    "another-image": {"image": "2"},
    "epochs": {"epochs": "20"},
    "memory": {"memory": "16Gi"},
    "gpus": {"gpus": "2"},
    "replicas": {"replicas": "3"},
    "relabeled": {"team": "vision"},
    "variable": {"rest": "  env: {NCCL_DEBUG: INFO}\n"},
    "suspended": {"rest": "  suspend: true\n"},
    "deadline": {"rest": "  runPolicy: {activeDeadlineSeconds: 3600}\n"},
    "added": {"rest": "  queue: gpus\n"},
    "removed": {},
}
DEFAULTS = {"team": "nlp", "image": "1", "epochs": "10", "memory": "8Gi", "gpus": "1", "replicas": "1", "rest": ""}


def write_fleet(folder: Path, *, is_new: bool, environments: tuple[str, ...] = ENVIRONMENTS) -> None:
    files = {"jobgen.yaml": ""}
    for env in environments:
        files[f"overlays/{env}/overlay.yaml"] = OVERLAY.format(env=env, replicas=8 if env == "prod" else 2)
        files[f"cluster/{env}/queues.yaml"] = QUEUES.format(env=env)
    for name, edit in (*EDITS.items(), ("resized", {"gpus": "2"}), ("same", {})):
        if name != ("removed" if is_new else "added"):
            fields = DEFAULTS | (edit if is_new else {})
            files[f"jobs/{name}.yaml"] = JOB.format(name=name, **fields)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("fleet")
    for side in ("old", "new"):
        write_fleet(home / side, is_new=side == "new")
    return home


def compare(home: Path, format_: str = "text", envs: tuple[str, ...] = ()) -> str:
    return diff_states(home, "", envs, folders=("old", "new"), format_=format_, exit_code=False).out


def test_four_environments_take_hardly_more_lines_than_one(fleet: Path) -> None:
    alone, together = (compare(fleet, envs=envs).splitlines() for envs in (("dev",), ()))

    # With a block for each environment, there were 293.
    assert len(alone) == 76
    assert len(together) == 78
    headlines = [line for line in together if line.startswith(("added ", "removed ", "changed "))]
    assert len(headlines) == 11
    assert all(" in all environments" in line for line in headlines)


def test_markdown_says_equal_effects_once(fleet: Path) -> None:
    sections = [line for line in compare(fleet, "markdown").splitlines() if "<details>" in line]

    assert len(sections) == 11
    assert all(" in all environments" in line for line in sections)


def test_json_has_an_entry_for_each_environment(fleet: Path) -> None:
    found = json.loads(compare(fleet, "json"))
    removed = [each["env"] for each in found["objects"] if each["happening"] == "removed"]

    assert removed == list(ENVIRONMENTS)
    assert [each["env"] for each in found["queues"]] == list(ENVIRONMENTS)


def test_equal_totals_and_queues_are_one(fleet: Path) -> None:
    lines = compare(fleet).splitlines()

    totals = [line.split("  ")[0] for line in lines if "→" in line and line.startswith(("all ", *ENVIRONMENTS))]
    assert totals == [
        "dev, prod-eu, staging environment (each)",
        "dev, prod-eu, staging team nlp (each)",
        "all environments team vision (each)",
        "all environments queue gpus (each)",
        "prod environment",
        "prod team nlp",
    ]
    assert [line for line in lines if line.startswith("queues in")] == ["queues in all environments: 1 new"]
    assert "    added: new, admitted" in lines


def test_selected_environments_are_named(fleet: Path) -> None:
    lines = compare(fleet, envs=("dev", "prod", "staging")).splitlines()

    assert lines[0] == "removed PyTorchJob removed in dev, prod, staging (jobs/removed.yaml:1): stops-running"


def test_environments_with_other_values_or_effects_are_apart(tmp_path: Path) -> None:
    for side in ("old", "new"):
        write_fleet(tmp_path / side, is_new=False)
    for env, memory in (("dev", "1Gi"), ("staging", "1Gi"), ("prod", "2Gi")):
        path = tmp_path / f"new/overlays/{env}/overlay.yaml"
        patch = f", {{match: {{names: [same]}}, merge: {{resources: {{memory: {memory}}}}}}}]"
        path.write_text(path.read_text().replace("]\n", f"{patch}\n"))
    lines = compare(tmp_path).splitlines()

    headlines = [line for line in lines if line.startswith("changed ")]
    assert headlines == [
        "changed PyTorchJob same in dev, staging: next run only",
        "changed PyTorchJob ml-prod/same in prod: next run only",
    ]
    # Each environment has a line of its own that is the cause.
    causes = [line for line in lines if "next run only; " in line]
    assert causes[0] == (
        "        next run only; overlays/dev/overlay.yaml:6, overlays/staging/overlay.yaml:6, was jobs/same.yaml:8"
    )


def test_namesakes_of_one_environment_keep_their_namespaces(tmp_path: Path) -> None:
    for side, image in (("old", "1"), ("new", "2")):
        write_fleet(tmp_path / side, is_new=False, environments=("dev", "prod"))
        for namespace in ("a", "b"):
            job = JOB.format(name="twin", **DEFAULTS | {"image": image})
            (tmp_path / side / f"jobs/{namespace}.yaml").write_text(
                job.replace("name: twin", f"name: twin, namespace: {namespace}")
            )
    lines = compare(tmp_path).splitlines()

    assert lines[0] == "changed PyTorchJob a/twin in dev, prod: next run only"
    assert lines[1] == "    also affected: PyTorchJob b/twin in dev, prod"
