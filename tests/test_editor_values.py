"""Values on hover in spite of errors elsewhere, and those of all jobs of a sweep."""

import re

import pytest
from navigationfiles import find_mark
from test_editor_lenses import SWEEP, make_job
from test_editor_lint import write
from test_lsp import OVERLAY

from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.definition import find_definitions
from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.rendered import list_lenses
from jobgen.features.editor.values import read_valid_jobs
from jobgen.features.editor.workspace import Workspace
from jobgen.repo.files import read_file

PATCHES = """\
  patches:
    - {match: {names: [half]}, merge: {roles: {chief: {replicas: 1}}}}
    - {match: {names: ["sweep-*2"]}, merge: {resources: {gpu: 4}}}
    - {match: {kinds: [ConfigMap]}, manifest: {data: {mode: prod}}}
    - match: {names: [aliases]}
      jsonPatch:
        - {op: replace, path: /spec/pytorchReplicaSpecs/Worker/replicas, value: 7}
"""
HEAD = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: many-errors, labels: {team: nlp}}\n"
ERRORS = """\
spec:
  framework: pytorch
  backofLimit: 3
  image: registry.example.com/train:1.2  # ünïcode
  resources: {memory: 16Gi, cpu: many, gpu: 1}
  env:
    - WRONG
  volumes:
    - name: data
      pvc: 5
  roles:
    worker: {replicas: many, restartPolicy: Never}
    chief:
      replicas: 3
  queue: team-a
"""
ALIASES = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: aliases, labels: {team: nlp, example.com/tier: gold}}
spec:
  framework: pytorch
  image: registry.example.com/train:1.2
  resources: &small {cpu: 4, memory: 16Gi}
  env: &env {SEED: "1"}
  roles:
    master: {resources: *small}
    worker:
      replicas: 4
      env: {<<: *env, EXTRA: a}
      command: [python, train.py, "3"]
      nodeSelector: {pool: gpu}
"""
LIST = """\
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Secret
    metadata: {name: token}
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: one}
    spec: &spec
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: "registry.example.com/train:1.2", envFrom: [{secretRef: {name: token}}]}
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: two}
    spec: *spec
"""
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\n",
    "overlays/dev/overlay.yaml": OVERLAY.replace("ml-prod", "ml-dev"),
    "overlays/prod/overlay.yaml": OVERLAY + PATCHES,
    "jobs/errors.yaml": HEAD + ERRORS,
    "jobs/half.yaml": make_job("half"),
    "jobs/hopeless.yaml": make_job("hopeless", framework="pytorhc"),
    "jobs/several.yaml": make_job("good") + "---\n# about the job\n\n" + make_job("bad", replicas="many"),
    "jobs/aliases.yaml": ALIASES,
    "jobs/list.yaml": LIST,
    "jobs/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: dev, other: x}\n",
    "jobs/sweep.yaml": SWEEP.replace("[1, 2, 3]", str(list(range(1, 13)))),
    "jobs/wrong-sweep.yaml": SWEEP.replace("name: sweep", "name: wrong").replace("memory: 16Gi", "memory: [1]"),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(write(tmp_path_factory.mktemp("repository"), FILES))


def find_context(workspace, file, marked):
    return make_context(workspace, file, find_cursor(FILES[file], *find_mark(FILES[file], marked), file))


def list_rows(workspace, file, marked):
    """The rows of the table, with the lines of links: `job:8`."""
    found = find_hover(find_context(workspace, file, marked))
    heads = ("| environment", "| job |", "| ---")
    lines = [line for line in found.markdown.split("\n") if not line.startswith(heads)]
    return [re.sub(r"\[([^\]]*)\]\([^)#]*#L(\d+)\)", r"\1:\2", line) for line in lines if line.startswith(("|", "In"))]


@pytest.mark.parametrize(
    ("file", "marked", "row"),
    [
        ("jobs/errors.yaml", "ima¦ge", "| dev, prod | `registry.example.com/train:1.2` | job:7 |"),
        ("jobs/errors.yaml", "gp¦u: 1", "| dev, prod | `1` | job:8 |"),
        ("jobs/errors.yaml", "mem¦ory", "| dev, prod | `16Gi` | job:8 |"),
        ("jobs/errors.yaml", "que¦ue", "| dev, prod | `team-a` | job:18 |"),
        (
            "jobs/errors.yaml",
            "restart¦Policy",
            "| dev, prod | `Never` | job:15, overrides `OnFailure` of kind PyTorchJob:22 |",
        ),
        ("jobs/half.yaml", "ima¦ge", "| dev | `registry.example.com/train:1.2` | job:6 |"),
        ("jobs/half.yaml", "ima¦ge", "| prod | cannot be rendered |  |"),
        ("jobs/several.yaml", "name: go¦od", "| dev, prod | `good` | job:3 |"),
        ("jobs/wrong-sweep.yaml", "gp¦u: 2", "| dev, prod | `2` | job:7 |"),
    ],
)
def test_a_field_has_values_in_spite_of_errors_in_others(workspace, file, marked, row):
    assert row in list_rows(workspace, file, marked)


def test_a_field_with_an_error_has_no_value(workspace):
    assert list_rows(workspace, "jobs/errors.yaml", "cp¦u: many") == []
    assert list_rows(workspace, "jobs/errors.yaml", "chi¦ef") == []
    assert list_rows(workspace, "jobs/hopeless.yaml", "ima¦ge") == []


def test_fields_stay_in_place_when_others_are_left_out(workspace):
    entry = workspace.find_entry("jobs/errors.yaml")
    [job] = read_valid_jobs(workspace.load(), entry, 0)

    before, after = (content.decode().split("\n") for content in (read_file(entry).content, job.file.content))
    assert list(map(len, before)) == list(map(len, after))
    assert after[7] == "  resources: {memory: 16Gi,            gpu: 1}"
    assert [number for number, line in enumerate(before, 1) if line != after[number - 1]] == [
        *(6, 8),
        *range(9, 14),
        *(15, 16, 17),
    ]


def test_sweep_shows_the_values_of_all_jobs(workspace):
    rows = list_rows(workspace, "jobs/sweep.yaml", "--l¦r")
    assert rows[:2] == ["In the 12 jobs of the sweep:", "| dev, prod | `--lr=1` | 1 | job:8 with matrix:9 |"]
    assert len(rows) == 9
    assert "and 4 more" in find_hover(find_context(workspace, "jobs/sweep.yaml", "--l¦r")).markdown
    assert list_rows(workspace, "jobs/sweep.yaml", "gp¦u") == [
        "In the 12 jobs of the sweep:",
        "| dev | `2` | 12 | job:7 |",
        "| prod | `2` | 10 | job:7 |",
        "| prod | `4` | 2 | patch of prod:9, overrides `2` of job:7 |",
    ]
    assert list_rows(workspace, "jobs/sweep.yaml", "comm¦and")[-1] == (
        "| dev, prod | `command[2]` | `--lr=1`, `--lr=2`, `--lr=3` and 9 more | job:8 with matrix:9 |"
    )
    places = find_definitions(find_context(workspace, "jobs/sweep.yaml", "--l¦r"))
    assert [(place.file, place.line) for place in places] == [("jobs/sweep.yaml", 9)]


def test_a_job_with_errors_does_not_hide_the_lenses_of_others(workspace):
    lenses = [(lens.location.line, lens.text) for lens in list_lenses(workspace, "jobs/several.yaml")]
    assert lenses == [
        (14, "the job cannot be rendered; see the findings"),
        (1, "dev: 4 pods, 32 GPUs"),
        (1, "prod: 4 pods, 32 GPUs"),
    ]


def test_environment_with_errors_in_its_overlay(tmp_path):
    files = FILES | {"overlays/prod/overlay.yaml": OVERLAY + "  patchs: []\n"}
    workspace = Workspace(write(tmp_path, files))
    assert "| prod | cannot be rendered |  |" in list_rows(workspace, "jobs/half.yaml", "ima¦ge")


@pytest.mark.parametrize(
    ("file", "marked", "rows"),
    [
        ("jobs/aliases.yaml", "comm¦and", ['| dev, prod | `["python", "train.py", "3"]` | job:14 |']),
        ("jobs/aliases.yaml", "nodeSel¦ector", ["| dev, prod | `pool` | `gpu` | job:15 |"]),
        ("jobs/aliases.yaml", "example.com/ti¦er", ["| dev, prod | `gold` | job:3 |"]),
        (
            "jobs/aliases.yaml",
            "cp¦u",
            [f"| dev, prod | `roles.{role}.resources.cpu` | `4` | job:7 |" for role in ("master", "worker")],
        ),
        ("jobs/aliases.yaml", "<<: *e¦nv", None),
        (
            "jobs/settings.yaml",
            "mo¦de",
            [
                "| dev | `dev` | manifest:4 |",
                "| prod | `prod` | patch of prod:10, overrides `dev` of manifest:4 |",
            ],
        ),
        ("jobs/settings.yaml", "oth¦er", []),
    ],
)
def test_tables_of_values(workspace, file, marked, rows):
    context = find_context(workspace, file, marked)
    assert (None if find_hover(context) is None else list_rows(workspace, file, marked)) == rows


def test_definition_of_an_alias_is_its_anchor(workspace):
    for marked, line in (("*sm¦all", 7), ("<<: *e¦nv", 8)):
        places = find_definitions(find_context(workspace, "jobs/aliases.yaml", marked))
        assert [(place.file, place.line) for place in places] == [("jobs/aliases.yaml", line)]
    assert find_definitions(find_context(workspace, "jobs/aliases.yaml", "cp¦u")) == []


def test_overlay_shows_the_values_of_the_jobs_it_reaches(workspace):
    workspace.take(WorkspaceLinter(workspace.root).lint({}, lambda *_: None))
    file = "overlays/prod/overlay.yaml"

    assert list_rows(workspace, file, "gp¦u: 4") == [
        "| sweep:1 | prod | `4` | patch of prod:9, overrides `2` of job:7 |",
    ]
    expected = ["| aliases:1 | prod | `7` | patch of prod:13, overrides `4` of job:12, `1` of kind PyTorchJob:13 |"]
    assert list_rows(workspace, file, "value: ¦7") == list_rows(workspace, file, "/Work¦er/replicas") == expected
    assert list_rows(workspace, file, "mode: pr¦od") == [
        "| settings:1 | prod | `prod` | patch of prod:10, overrides `dev` of manifest:4 |"
    ]
    assert list_rows(workspace, file, "team: n¦lp")[0] == "| aliases:1 | prod | `nlp` | defaults of prod:6 |"


def test_items_of_a_list_are_jobs_of_their_own(workspace):
    workspace.take(WorkspaceLinter(workspace.root).lint({}, lambda *_: None))
    file = "jobs/list.yaml"

    lenses = [(lens.location.line, lens.text) for lens in list_lenses(workspace, file)]
    assert lenses == [(line, f"{env}: 1 pod") for line in (7, 16) for env in ("dev", "prod")]
    places = find_definitions(find_context(workspace, file, "secretRef: {name: tok¦en}"))
    assert [(place.file, place.line) for place in places] == [(file, 4)]
    for marked in ("metadata: {name: tok¦en}", "templ¦ate", "sp¦ec: &spec", "name: o¦ne"):
        assert find_definitions(find_context(workspace, file, marked)) == [], marked
