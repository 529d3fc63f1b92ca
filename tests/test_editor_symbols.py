"""Symbols of documents and of the workspace."""

from pathlib import Path

import pytest
from growth import grows_with_the_square

from jobgen.features.editor.index import FileIndex, IndexedJob
from jobgen.features.editor.symbols import MAX_FOUND, find_symbols, list_symbols
from jobgen.features.editor.workspace import Workspace
from jobgen.model.data import Location

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  sidecars: {logs: {image: x}}
  roles:
    master: {}
    worker:
      replicas: 2
      initContainers:
        - {name: fetch, image: y}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: raw}
spec:
  pytorchReplicaSpecs:
    Master:
      template: {spec: {containers: [{name: pytorch}, {image: z}]}}
---
kind: List
items:
  - {kind: ConfigMap, metadata: {name: one}}
  - {kind: Pod, metadata: {name: two}, spec: {containers: [{name: main}]}}
"""
POLICY = """\
kind: ValidatingAdmissionPolicy
metadata: {name: limits}
spec:
  variables: [{name: pods, expression: "1"}]
  validations: [{expression: "x > 1", message: too small}, {expression: "y"}, 3]
"""
OVERLAY = """\
kind: Overlay
spec:
  extends: [base]
  patches:
    - match: {names: [bert, "gp*"], labels: {team: nlp}}
      merge: {}
    - manifest: {}
"""
CASES = {
    "job": ("jobs/a.yaml", JOB, "bert[logs master worker[fetch]]"),
    "manifests": ("jobs/a.yaml", MANIFEST, "raw[Master[pytorch]] one two[main]"),
    "policy": ("policies/a.yaml", POLICY, "limits[pods too small y]"),
    "overlay": ("overlays/prod/a.yaml", OVERLAY, "prod[extends patch 1 patch 2]"),
    "kind": ("schemas/g/a.yaml", "kind: Run\nframeworks: {x: }\nroles: {z: {}}\n", "Run[frameworks[x] roles[z]]"),
    "settings": ("jobgen.yaml", "environments: [prod]\nrules: {a: off}\n", "jobgen.yaml[environments rules]"),
    "half typed": (
        "jobs/a.yaml",
        f"{JOB}    ps\n---\n{JOB}",
        "bert[logs master worker[fetch] ps] bert[logs master worker[fetch]]",
    ),
    "wrong types": ("jobs/a.yaml", "kind: [TrainingJob]\nmetadata: 3\nspec: x\n", "a.yaml[kind metadata spec]"),
    "wrong roles": ("jobs/a.yaml", "kind: TrainingJob\nspec: {roles: [x], sidecars: 1}\n", "TrainingJob"),
    "empty": ("jobs/a.yaml", "", ""),
    "list": ("jobs/a.yaml", "- a\n- b\n", ""),
    "json": ("jobs/a.json", '{"kind": "Pod", "metadata": {"name": "p"}}', "p"),
    "anchors": ("jobs/a.yaml", "kind: Pod\nmetadata: &m {name: p}\nspec: *m\n", "p"),
}


def show(symbols):
    return " ".join(each.name + (f"[{show(each.children)}]" if each.children else "") for each in symbols)


@pytest.mark.parametrize("case", CASES)
def test_symbols_of_a_document(case):
    file, text, expected = CASES[case]
    assert show(list_symbols(text, file)) == expected
    assert show(list_symbols(text.replace("\n", "\r\n"), file)) == expected


def check_ranges(symbols, outer):
    for each in symbols:
        start, end = each.location[1:3], each.location[3:5]
        assert outer[0] <= start <= each.selection[1:3] <= each.selection[3:5] <= end <= outer[1], each.name
        check_ranges(each.children, (start, end))


@pytest.mark.parametrize("text", [JOB, MANIFEST, POLICY, OVERLAY])
def test_ranges_of_symbols_are_nested_in_truncated_texts_too(text):
    for end in range(len(text) + 1):
        symbols = list_symbols(text[:end], "jobs/a.yaml")
        check_ranges(symbols, ((0, 0), (10**6, 0)))
    assert len(symbols) > 0


def make_workspace(tmp_path, jobs):
    (tmp_path / "overlays/production").mkdir(parents=True)
    (tmp_path / "overlays/production/a.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    workspace = Workspace(tmp_path)
    for number in range(jobs):
        file = f"jobs/{number}.yaml"
        job = IndexedJob(f"train-bert-{number}", "TrainingJob", "pytorch", "", Location(file), 0, -1, ())
        workspace.index[file] = FileIndex((job,))
    return workspace


def test_symbols_of_the_workspace_match_letters_in_order(tmp_path):
    workspace = make_workspace(tmp_path, 3)
    sweep = [
        IndexedJob(f"lr-{n}", "TrainingJob", "pytorch", "lr", Location("jobs/s.yaml"), 0, -2 - n, ()) for n in range(4)
    ]
    workspace.index["jobs/s.yaml"] = FileIndex(tuple(sweep))

    def names(query):
        return [each.name for each in find_symbols(workspace, query)]

    assert names("trbt2") == ["train-bert-2"]
    assert names("PRODuction") == ["production"]
    assert names("lr")[0] == "lr"
    assert names("pytorchjob")[0] == "PyTorchJob"
    assert names("gpu-limits")[0] == "gpu-limits-match-requests"
    assert names("zzzz") == []
    [policy] = find_symbols(workspace, "gpu-limits-match-requests")
    assert Path(policy.location.file).is_file()


def test_symbols_of_many_jobs_are_found_in_linear_time(tmp_path):
    def prepare(count):
        workspace = make_workspace(tmp_path / str(count), count)
        assert len(find_symbols(workspace, "bert")) == MAX_FOUND
        return lambda: find_symbols(workspace, "bert")

    assert not grows_with_the_square(prepare, 1_200)


def test_symbols_of_a_workspace_with_broken_settings_are_its_jobs(tmp_path):
    workspace = make_workspace(tmp_path, 2)
    (tmp_path / "jobgen.yaml").write_text("rules: 3\n")

    assert [each.name for each in find_symbols(workspace, "bert")] == ["train-bert-0", "train-bert-1"]
