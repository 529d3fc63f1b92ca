"""What becomes of findings between the checks and a report: the stages, in their order, and what each of them does."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from moduletrees import parse_module

import jobgen
from jobgen.api import lint_run
from jobgen.pipeline import finish, lint_checks

ROOT = Path(__file__).parent.parent / "jobgen"

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec:
  framework: pytorch
  image: registry.example.com/{name}:{tag}
  resources: {{cpu: 4, memory: 16Gi, gpu: 1}}
  shm: 8Gi
  {more}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: pods, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/pods:1.4.2
              resourcess: {limits: {cpu: 4, memory: 16Gi}}
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/pods:1.4.2
              resources: {requests: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 1}, limits: {cpu: 4, memory: 16Gi}}
"""
FILES = {
    "jobgen.yaml": """\
rules:
  stale-image: "off"
  missing-shm: info
exceptions:
  - {rule: mutable-image-tag, jobs: [excepted], reason: a demo, owner: ml, expires: 2030-01-01}
""",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec: {cluster: {platforms: [kubeflow]}}
""",
    "jobs/excepted.yaml": JOB.format(name="excepted", tag="latest", more="replicas: 1"),
    "jobs/commented.yaml": JOB.format(
        name="commented", tag="latest # jobgen: ignore[mutable-image-tag] -- a demo", more="replicas: 1"
    ),
    "jobs/unused.yaml": JOB.format(
        name="unused", tag="1.4.2 # jobgen: ignore[missing-shm] -- not needed", more="replicas: 1"
    ),
    "jobs/template.yaml": JOB.format(name="template", tag="<tag>", more="priority: <priority>"),
    "jobs/misspelled.yaml": JOB.format(name="misspelled", tag="1.4.2", more="replica: 4").replace(
        "resources", "resouces"
    ),
    "jobs/pods.yaml": MANIFEST,
    **{
        f"jobs/{name}.yaml": f"apiVersion: a.example/v1\nkind: Odd\nmetadata: {{name: {name}}}\n" for name in ("a", "b")
    },
    "jobs/known.yaml": JOB.format(name="known", tag="latest", more="command: [python, train.py, --gpus=0,1,2]"),
}


KNOWN = """{"version": 2, "findings": [{
    "rule": "mutable-image-tag", "env": "prod", "object": "kubeflow.org/PyTorchJob ml/known",
    "pointer": "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/image"
}]}"""
DONE = """\
apply_severities: - mutable-image-tag excepted.yaml:6
apply_severities: hidden by exception: mutable-image-tag excepted.yaml
hide_commented: - mutable-image-tag commented.yaml:6
hide_commented: hidden by comment: mutable-image-tag commented.yaml
explain_causes: - split-argument known.yaml:9
explain_causes: - wrong-type known.yaml:9
explain_causes: - wrong-type known.yaml:9
explain_causes: + wrong-type known.yaml:9
group_templates: - malformed-image template.yaml:6
group_templates: - unfilled-placeholder template.yaml:6
group_templates: - invalid-object-name template.yaml:9
group_templates: - unfilled-placeholder template.yaml:9
group_templates: + unfilled-placeholder template.yaml:6
group_templates: hidden by template: malformed-image template.yaml
group_templates: hidden by template: unfilled-placeholder template.yaml
group_templates: hidden by template: invalid-object-name template.yaml
group_templates: hidden by template: unfilled-placeholder template.yaml
report_comments: + unused-suppression unused.yaml:6
hide_known: - mutable-image-tag known.yaml:6
hide_known: hidden by baseline: mutable-image-tag known.yaml
merge: - missing-schema a.yaml:2
merge: - missing-schema b.yaml:2
merge: - missing-resource-limit pods.yaml:23
merge: - gpu-limits-match-requests pods.yaml:23
merge: + missing-schema a.yaml:2
merge: + missing-resource-limit pods.yaml:23
merge: hidden by rule: gpu-limits-match-requests pods.yaml
merge: hidden by group: missing-schema b.yaml
"""


@pytest.fixture
def trace(monkeypatch):
    """Record what each stage takes away and adds."""
    lines: list[str] = []

    def wrap(stage):
        def run(findings, context):
            before, hidden = list(findings), len(context.hidden)
            left = stage(findings, context)
            new = [each for each in left if not any(each is other for other in before)]
            gone = [each for each in before if not any(each is other for other in left)]
            lines.extend(
                f"{stage.__name__}: {sign} {each.rule} {Path(each.location.file).name}:{each.location.line}"
                for sign, several in (("-", gone), ("+", new))
                for each in several
            )
            lines.extend(
                f"{stage.__name__}: hidden by {each.by}: {each.finding.rule} {Path(each.finding.location.file).name}"
                for each in context.hidden[hidden:]
            )
            return left

        return run

    for module, name in (
        (lint_checks, "OF_RUN"),
        (lint_run, "OF_LINT"),
        (importlib.import_module("jobgen.api.lint"), "OF_REPORT"),
    ):
        monkeypatch.setattr(module, name, tuple(map(wrap, getattr(finish, name))))
    return lines


def test_stages_do_what_is_recorded(tmp_path, trace):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "known.json").write_text(KNOWN)

    result = jobgen.lint(tmp_path, baseline="known.json", today="2025-01-31")

    assert trace == DONE.splitlines()
    assert [(each.finding.rule, each.by) for each in result.suppressed] == [
        ("mutable-image-tag", "comment"),
        ("mutable-image-tag", "exception"),
        ("mutable-image-tag", "baseline"),
    ]
    assert [each.rule for each in result.merged] == ["gpu-limits-match-requests", "missing-schema"]


def test_only_the_stages_decide_what_is_shown():
    """A second way to hide or to merge findings would give other answers in the editor, in `fn` or in a report."""
    deciding = {
        "CommentFilter",
        "find_exception",
        "group_by_kind",
        "group_placeholders",
        "group_tree_faults",
        "join_members",
        "join_unindented",
        "explain_misread",
        "leave_out_consequences",
        "merge_duplicates",
    }
    for path in ROOT.rglob("*.py"):
        module = path.relative_to(ROOT).as_posix()
        calls = (node for node in ast.walk(parse_module(path)) if isinstance(node, ast.Call))
        names = {getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls}
        allowed = module in ("pipeline/finish.py", "reports/severities.py")
        assert allowed or deciding.isdisjoint(names), module


def test_every_stage_is_in_the_tuple():
    tree = parse_module(ROOT / "pipeline/finish.py")
    stages = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and [each.arg for each in node.args.args] == ["findings", "context"]
    }
    assert {stage.__name__ for stage in finish.STAGES} == stages


def test_an_empty_context_changes_nothing():
    assert finish.finish([], finish.Finishing()) == []
