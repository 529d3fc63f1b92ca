"""The page shows for each line what `jobgen explain` says, and takes little time on top of rendering."""

import cProfile
import pstats
from collections import Counter

import pytest
from pagedata import PageData, apply_changes

from jobgen.api.explain import explain
from jobgen.api.project import load
from jobgen.api.render import render
from jobgen.compare.snapshot import snapshot_repository
from jobgen.features.page.fleet import build_fleet
from jobgen.features.page.report import build_pages, report
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout

TODAY = "2026-01-01"
ENVIRONMENTS = ("dev", "prod")
OVERLAYS = {
    "base": """\
  defaults:
    labels: {fleet: training}
    env: {NCCL_DEBUG: WARN, HF_HOME: /cache}
    tolerations: [{key: gpu, operator: Exists}]
    runPolicy: {cleanPodPolicy: Running}
""",
    "gpu": """\
  extends: [base]
  defaults: {labels: {fleet: gpu}}
  patches:
    - match: {frameworks: [pytorch]}
      merge: {nodeSelector: {pool: gpu}, env: {NCCL_DEBUG: VERSION}, imagePullSecrets: []}
""",
    "dev": """\
  extends: [gpu]
  namespace: ml-dev
  patches:
    - merge: {env: {NCCL_DEBUG: INFO, STAGE: dev}, tolerations: []}
    - match: {names: [copy-1]}
      merge: {roles: {worker: {replicas: 1}}}
""",
    "prod": """\
  extends: [gpu]
  namespace: ml-prod
  images: [{name: registry.example.com/train, newTag: 2.0.0}]
  patches:
    - merge: {env: {STAGE: prod, HF_HOME: null}, priority: high}
    - manifest: {spec: {runPolicy: {backoffLimit: 3}}}
""",
}
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: copy-{number}, labels: {{team: nlp, run: "{number}"}}}}
spec:
  framework: {framework}
  image: registry.example.com/train:1.{number}
  command: [python, train.py, --seed={number}]
  env: {{RUN: "{number}", NCCL_DEBUG: ERROR}}
  resources: {{cpu: {number}, memory: 8Gi, gpu: 4}}
  tolerations: [{{key: spot, operator: Exists}}]
  volumes: {{data: {{pvc: data-{number}, mountPath: /data}}, scratch: {{emptyDir: {{}}, mountPath: /scratch}}}}
  roles: {{worker: {{replicas: {number}}}}}
  podTemplate: {{spec: {{enableServiceLinks: false, hostAliases: []}}}}
  {more}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: raw-{number}, labels: {{team: vision}}}}
spec:
  runPolicy: {{backoffLimit: {number}}}
  pytorchReplicaSpecs:
    Worker:
      replicas: {number}
      template:
        spec:
          containers: [{{name: pytorch, image: "registry.example.com/train:1.{number}", args: []}}]
"""
FRAMEWORKS = ("pytorch", "tensorflow", "xgboost", "jax", "paddle")


def write_repository(folder, copies):
    """Specs of several frameworks, a sweep and raw manifests, below three overlays."""
    for name, text in OVERLAYS.items():
        path = folder / "overlays" / name / "overlay.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(f"apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {name}}}\nspec:\n{text}")
    (folder / "jobs").mkdir()
    (folder / "jobgen.yaml").write_text("")
    for number in range(1, copies + 1):
        framework = FRAMEWORKS[number % len(FRAMEWORKS)]
        more = "matrix: {seed: [1, 2]}" if number == 2 else ""
        spec = SPEC.format(number=number, framework=framework, more=more)
        (folder / f"jobs/copy-{number}.yaml").write_text(spec)
        (folder / f"jobs/raw-{number}.yaml").write_text(MANIFEST.format(number=number))
    return folder


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return write_repository(tmp_path_factory.mktemp("provenance") / "repo", 7)


def test_every_line_has_the_sources_of_explain(repository):
    project = load(repository, today=TODAY)
    data = PageData(report(project).data)
    compared = 0
    jobs, cells, manifests = data.table("jobs"), data.table("cells"), data.table("manifests")
    assert len(manifests) == len(cells) == len(jobs) * len(ENVIRONMENTS)
    for number, manifest in enumerate(manifests):
        cell = cells[manifest["cell"]]
        lines = [line for line in data.lines("manifests", number) if not line[0].endswith(":")]
        fields = explain(project, jobs[cell["job"]]["name"], environments=[cell["environment"]]).fields
        assert len(lines) == len(fields), jobs[cell["job"]]["name"]
        for (text, sources), field in zip(lines, fields, strict=True):
            expected = [(each.layer, each.location.file, each.location.line) for each in field.sources if each.location]
            assert [source[:3] for source in sources if source[1]] == expected, (cell["environment"], text)
            compared += 1
    assert compared > 700


def count_calls(work):
    """Count the calls of each function; the load of the machine does not change them, as it does times."""
    profile = cProfile.Profile()
    result = profile.runcall(work)
    calls = Counter()
    for (_, _, name), (_, count, *_) in pstats.Stats(profile).stats.items():
        calls[name] += count
    return result, calls


def test_tracing_costs_little_on_top_of_rendering(tmp_path):
    root = write_repository(tmp_path / "repo", 25)
    project = load(root, today=TODAY)
    render(project)
    _, rendering = count_calls(lambda: render(project))
    snapshot = snapshot_repository(project.root, "", (), TODAY)
    jobs = list(read_jobs(layout.find_jobs(project.root), project.config.kinds, []))
    fleet = build_fleet(snapshot, jobs)
    build_pages(snapshot, fleet, jobs)
    pages, tracing = count_calls(lambda: build_pages(snapshot, fleet, jobs))

    manifests = []
    for _, base, changes in pages.manifests:
        manifests.append(apply_changes(changes, manifests[base] if base >= 0 else ()))
    assert tracing["compose"] + tracing["add_locations"] == len(pages.specs), (
        "a file is read more than once with locations"
    )
    described = tracing["describe_line"] / sum(map(len, manifests))
    assert 0.5 < described < 0.9, "mappings and lists that environments share are described again"
    assert tracing.total() < 2.4 * rendering.total()
