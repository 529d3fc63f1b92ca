"""What becomes of findings between the checks and a report: the stages, in their order, and what each of them does."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module
from pagedata import PageData

import jobgen
from jobgen.api import lint_run
from jobgen.check.rules import all_rules, rule_names
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.page.report import report
from jobgen.model.finding import join_sentences
from jobgen.pipeline import finish, lint_checks
from jobgen.reports.environments import OF_CLUSTERS

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
explain_causes: - master-worker-gpu-mismatch pods.yaml:23
explain_causes: + wrong-type known.yaml:9
explain_causes: hidden by consequence: master-worker-gpu-mismatch pods.yaml
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
        calls = find_nodes(parse_module(path), ast.Call)
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


# One finding for one cause in all environments


ENVIRONMENTS = ("dev", "prod", "staging")
QUEUED = JOB.format(name="queued", tag="1.4.2", more="queue: {queue}").replace("gpu: 1", "gpu: {{gpus}}")
STATE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: train, namespace: ml-{env}}}
spec: {{clusterQueue: shared-{env}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: shared-{env}}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: a100
          resources:
            - {{name: cpu, nominalQuota: 160}}
            - {{name: memory, nominalQuota: 640Gi}}
            - {{name: nvidia.com/gpu, nominalQuota: {quota}}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {{name: {env}}}
spec:
  namespace: ml-{env}
  cluster: {{platforms: [kubeflow], state: state/{env}}}
"""


@pytest.fixture
def lint_queued(tmp_path):
    """Lint a job in three environments, each with its own namespace and quota."""

    def lint(queue: str, gpus: int, quotas: tuple[int, ...] = (8, 8, 8)) -> jobgen.LintResult:
        for env, quota in zip(ENVIRONMENTS, quotas, strict=True):
            (tmp_path / "overlays" / env).mkdir(parents=True, exist_ok=True)
            (tmp_path / "overlays" / env / "overlay.yaml").write_text(OVERLAY.format(env=env))
            (tmp_path / "state" / env).mkdir(parents=True, exist_ok=True)
            (tmp_path / "state" / env / "queues.yaml").write_text(STATE.format(env=env, quota=quota))
        (tmp_path / "jobs").mkdir(exist_ok=True)
        job = QUEUED.replace("{queue}", queue).replace("{{gpus}}", str(gpus)).replace(", namespace: ml", "")
        (tmp_path / "jobs/queued.yaml").write_text(job)
        return jobgen.lint(tmp_path)

    return lint


def list_errors(result: jobgen.LintResult) -> list[str]:
    return [line for line in result.to_text().splitlines() if ": error: " in line]


def test_a_wrong_queue_is_one_finding_in_all_environments(lint_queued):
    result = lint_queued("trian", 1)

    [line] = list_errors(result)
    assert "in namespace `ml-dev`, `ml-prod` and `ml-staging`; did you mean `train`? (in dev, prod, staging)" in line
    errors = [each for each in result.findings if each.severity == "error"]
    assert [each.env for each in errors] == [*ENVIRONMENTS]
    assert len({each.message for each in errors}) == 1


def test_a_quota_that_is_exceeded_is_one_finding_with_the_place_of_every_quota(lint_queued):
    result = lint_queued("train", 16)

    [line] = list_errors(result)
    assert "the quota of ClusterQueue `shared-dev`, `shared-prod` and `shared-staging`" in line
    [notes] = {each.related for each in result.findings if each.severity == "error"}
    assert {note.location.file for note in notes} >= {f"state/{env}/queues.yaml" for env in ENVIRONMENTS}


OF_NAMESPACE = """\
---
apiVersion: v1
kind: Namespace
metadata: {{name: ml-{env}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: datasets, namespace: ml-{env}}}
spec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus-{env}, namespace: ml-{env}}}
spec: {{hard: {{requests.nvidia.com/gpu: 4}}}}
---
apiVersion: v1
kind: LimitRange
metadata: {{name: limits-{env}, namespace: ml-{env}}}
spec: {{limits: [{{type: Container, max: {{memory: 8Gi}}}}]}}
"""
RULES_OF_NAMESPACE = ("exceeds-limit-range", "exceeds-quota", "unknown-reference")


def test_claims_quotas_and_limits_are_one_finding_wherever_they_are_shown(tmp_path, lint_queued):
    lint_queued("train", 8)
    for env in ENVIRONMENTS:
        (tmp_path / "state" / env / "namespace.yaml").write_text(OF_NAMESPACE.format(env=env))
    claim = "volumes: {data: {persistentVolumeClaim: {claimName: dataset}, mountPath: /data}}"
    (tmp_path / "jobs/queued.yaml").write_text((tmp_path / "jobs/queued.yaml").read_text() + f"  {claim}\n")
    result = jobgen.lint(tmp_path)

    # In a text, and in the words of JSON, which has a finding for each environment.
    own = [each for each in result.findings if each.rule in RULES_OF_NAMESPACE]
    lines = [
        line for line in result.to_text().splitlines() if line.endswith(tuple(f"[{r}]" for r in RULES_OF_NAMESPACE))
    ]
    assert [line.rpartition(" (in ")[2].partition(")")[0] for line in lines] == ["dev, prod, staging"] * 3
    assert len({(each.rule, each.message) for each in own}) == len(lines)
    assert len(own) == 9

    # On the page, of which the rows of one entry are shown as one, and in an editor.
    rows = [row for row in PageData(report(tmp_path).data).table("findings") if row["rule"] in RULES_OF_NAMESPACE]
    assert (len(rows), len({row["entry"] for row in rows})) == (9, 3)
    shown = WorkspaceLinter(tmp_path).lint({}, lambda *_: None).findings["jobs/queued.yaml"]
    words = {(each.rule, each.message) for each in shown.all if each.rule in RULES_OF_NAMESPACE}
    assert words == {(each.rule, each.message) for each in own}


def test_quotas_of_other_sizes_stay_apart(lint_queued):
    assert len(list_errors(lint_queued("train", 16, (8, 4, 2)))) == 3


@pytest.mark.parametrize(
    ("sentences", "names", "joined"),
    [
        (["no `a` in `x`", "no `a` in `y`"], (), "no `a` in `x` and `y`"),
        ([f"no `a` in `{name}`" for name in "vwxyz"], (), "no `a` in `v`, `w`, `x` and 2 others"),
        (["no `a` in `x`", "no `a` in `y`"], ("x",), ""),
        (["`x` needs `8`", "`y` needs `4`"], (), ""),
        (["no `a`", "`a` is not there"], (), ""),
        (["no `a`", "no `a` of `b`"], (), ""),
    ],
)
def test_sentences_are_joined_if_they_differ_in_names(sentences, names, joined):
    assert join_sentences(sentences, names) == joined


def test_every_rule_about_a_cluster_is_known_to_join():
    names = {rule.name for rule in all_rules() if rule.scope in ("cluster", "queue")}
    assert names <= OF_CLUSTERS <= rule_names()
