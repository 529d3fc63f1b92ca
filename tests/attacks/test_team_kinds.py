"""The kinds that a team may have: an allow-list, what its file adds, and kinds whose pods only its file can count."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gitrepository import Repository
from hypothesis import given
from hypothesis import strategies as st

import jobgen
from jobgen.cli.doctor.repository import check_teams
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.team_kinds import (
    DEFAULT_KINDS,
    GRANTING_KINDS,
    counts_pods,
    covers,
    explain_refusal,
    is_kind_allowed,
    list_default_kinds,
)
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES
from jobgen.model.data import value_of
from jobgen.rendering import config
from jobgen.spec.teams import Budget, TeamScope

HERE = Path(__file__).parents[2]
RULE = "kind-not-allowed"
LABELS = {"kueue.x-k8s.io/queue-name": "t"}
IMAGE = "registry.example.com/a:1"
GPUS = {"limits": {"nvidia.com/gpu": 8}}
G: dict[str, Any] = {"name": "main", "image": IMAGE, "resources": GPUS}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [G], "restartPolicy": "Never"}}
TEAM: dict[str, Any] = {
    "folders": ["jobs/t"],
    "namespaces": ["t"],
    "queues": ["t"],
    "serviceAccounts": ["t-*"],
    "budget": {"gpus": 16},
}


def make(api_version: str, kind: str, spec: Any = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "t", "labels": LABELS, **fields.pop("metadata", {})}
    body = {} if spec is None else {"spec": spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body, **fields}


JOB = make("batch/v1", "Job", {"template": TEMPLATE})
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "a"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "t", "namespace": "t"}],
}


def write(root: Path, *objects: Any, **team: Any) -> Path:
    """A repository with a team and objects in its folder."""
    (root / "jobs/t").mkdir(parents=True, exist_ok=True)
    (root / "jobgen.yaml").write_text(json.dumps({"teams": {"t": {**TEAM, **team}, "v": {"folders": ["jobs/v"]}}}))
    for number, obj in enumerate(objects):
        (root / f"jobs/t/{number}.json").write_text(json.dumps(obj))
    return root


def find(root: Path, rule: str = RULE) -> list[str]:
    return [each.message for each in jobgen.lint(root).findings if each.rule == rule]


# The table.


def load_kinds() -> dict[tuple[str, str], Any]:
    return {
        (str(value_of(each.api_version)).rpartition("/")[0], each.name): each for each in config.load_own(HERE).kinds
    }


def test_every_kind_of_the_default_is_counted_or_has_no_pods() -> None:
    described = load_kinds()
    for group, kind in list_default_kinds(TeamScope("t")):
        own = described.get((group, kind))
        is_counted = (group, kind) in POD_SETS or (group, kind) in REPLICA_TYPES or bool(own and own.roles)
        is_podless = kind in "ConfigMap PersistentVolumeClaim Service".split() and not group
        assert is_counted or is_podless or kind == "AppWrapper", kind


def test_the_default_has_every_kind_that_jobs_become() -> None:
    rendered = {name for name, kind in load_kinds().items() if kind.frameworks}

    assert rendered <= set(list_default_kinds(TeamScope("t")))


def test_what_was_refused_before_there_was_a_default_stays_refused() -> None:
    groups = {*DEFAULT_KINDS, "example.com", "external-secrets.io", "bitnami.com"}
    for kind in {*GRANTING_KINDS, *CLUSTER_SCOPED, "ClusterAnything"}:
        for group in groups:
            for patterns in ((), ("default",), ("*",), ("default", "*")):
                scope = TeamScope("t", {"kinds": patterns} if patterns else {})
                assert not is_kind_allowed(scope, group, kind), (kind, group, patterns)


def test_documentation_prints_the_default() -> None:
    text = (HERE / "docs/teams.md").read_text()
    rows = re.findall(r"^\| `?([\w.-]+)`? \| ((?:`\w+`(?:, )?)+) \|$", text, re.MULTILINE)
    printed = {group if group != "core" else "": set(re.findall(r"\w+", kinds)) for group, kinds in rows}

    assert printed == {group: set(kinds.split()) for group, kinds in DEFAULT_KINDS.items()}


KIND_NAMES = st.sampled_from(["Job", "Service", "PyTorchJob", "Secret", "Workflow", "ClusterRole", "job", "SERVICE"])
GROUPS = st.sampled_from(["", "batch", "batch.volcano.sh", "serving.knative.dev", "kubeflow.org", "argoproj.io"])
ENTRIES = st.sampled_from(["default", "*", "Job", "Service", "PyTorchJob.kubeflow.org", "Workflow", "*Job", "Secret"])


@given(KIND_NAMES, GROUPS, st.lists(ENTRIES, min_size=1), st.lists(ENTRIES, min_size=1))
def test_a_list_that_another_covers_allows_no_more(kind: str, group: str, old: list[str], new: list[str]) -> None:
    before, after = (is_kind_allowed(TeamScope("t", {"kinds": tuple(each)}), group, kind) for each in (old, new))

    if all(covers(old, each) for each in new):
        assert before or not after


@pytest.mark.parametrize(
    ("patterns", "group", "kind", "expected"),
    [
        ((), "", "Service", True),
        ((), "serving.knative.dev", "Service", False),
        (("Service",), "serving.knative.dev", "Service", False),
        (("Service.serving.knative.dev",), "serving.knative.dev", "Service", True),
        ((), "batch", "job", False),
        ((), "batch", "JOB", False),
        ((), "batch.example.com", "Job", False),
        (("*",), "batch.example.com", "Job", True),
        (("*", "Secret"), "", "Secret", True),
        (("default", "Ingress.networking.k8s.io"), "networking.k8s.io", "Ingress", True),
        (("Ingress",), "", "Pod", False),
    ],
)
def test_names_mean_the_kinds_of_their_groups(patterns: tuple[str, ...], group: str, kind: str, expected: bool) -> None:
    assert is_kind_allowed(TeamScope("t", {"kinds": patterns} if patterns else {}), group, kind) is expected


# What got through before. Each is the only object of its file; what it names exists.

TASK = {"steps": [{"image": IMAGE, "computeResources": {"limits": {"nvidia.com/gpu": "64"}}}]}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
CASES: dict[str, tuple[str, str, Any]] = {
    "M4.1 Rollout of a Deployment": (
        "argoproj.io/v1alpha1",
        "Rollout",
        {"replicas": 50, "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    ),
    "M4.2 ScaledObject that is paused with many": (
        "keda.sh/v1alpha1",
        "ScaledObject",
        {"scaleTargetRef": SCALED, "maxReplicaCount": 1},
    ),
    "M4.3 autoscaler of a PyTorchJob": (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        {"scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "a"}, "maxReplicas": 100},
    ),
    "M4.4 CloneSet": ("apps.kruise.io/v1alpha1", "CloneSet", {"replicas": 1, "template": TEMPLATE}),
    "M4.5 JobTemplate": (
        "flow.volcano.sh/v1alpha1",
        "JobTemplate",
        {"tasks": [{"name": "a", "replicas": 100, "template": TEMPLATE}]},
    ),
    "M4.5 JobFlow": ("flow.volcano.sh/v1alpha1", "JobFlow", {"flows": [{"name": "a"}]}),
    "M4.6 Workflow with a manifest that it downloads": (
        "argoproj.io/v1alpha1",
        "Workflow",
        {
            "entrypoint": "a",
            "templates": [
                {
                    "name": "a",
                    "resource": {
                        "action": "create",
                        "manifestFrom": {"artifact": {"name": "a", "raw": {"data": json.dumps(BINDING)}}},
                    },
                }
            ],
        },
    ),
    "M4.7 Workflow with flags": (
        "argoproj.io/v1alpha1",
        "Workflow",
        {"templates": [{"name": "a", "resource": {"action": "create", "flags": ["--namespace=v"]}}]},
    ),
    "M4.8 Workflow with a sequence": (
        "argoproj.io/v1alpha1",
        "Workflow",
        {"templates": [{"name": "a", "steps": [[{"name": "b", "template": "b", "withSequence": {"count": "100"}}]]}]},
    ),
    "M4.9 Experiment": (
        "kubeflow.org/v1beta1",
        "Experiment",
        {"parallelTrialCount": 100, "trialTemplate": {"trialSpec": JOB}},
    ),
    "M4.10 InferenceService": (
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": {"workerSpec": {"pipelineParallelSize": 64, "containers": [G]}}},
    ),
    "M4.11 Service of Knative": (
        "serving.knative.dev/v1",
        "Service",
        {"template": {"metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "100"}}, **TEMPLATE}},
    ),
    "M4.12 TaskRun": ("tekton.dev/v1", "TaskRun", {"taskSpec": TASK}),
    "M4.13 PipelineRun": (
        "tekton.dev/v1",
        "PipelineRun",
        {"taskRunSpecs": [{"pipelineTaskName": "a", "taskServiceAccountName": "v"}]},
    ),
    "M4.15 ResourceSet": (
        "fluxcd.controlplane.io/v1",
        "ResourceSet",
        {"resourcesTemplate": json.dumps(BINDING)},
    ),
    "M4.16 PodMonitor": ("monitoring.coreos.com/v1", "PodMonitor", {"namespaceSelector": {"matchNames": ["v"]}}),
    "M4.17 SparkApplication": (
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"sparkConf": {"spark.kubernetes.node.selector.gpu": "a100"}},
    ),
    "Workload without a job": (
        "kueue.x-k8s.io/v1beta1",
        "Workload",
        {"queueName": "t", "priority": 1000000000, "podSets": [{"name": "main", "count": 100, "template": TEMPLATE}]},
    ),
    "CatalogSource": ("operators.coreos.com/v1alpha1", "CatalogSource", {"sourceType": "grpc", "image": IMAGE}),
    "Subscription of OLM": ("operators.coreos.com/v1alpha1", "Subscription", {"name": "a", "channel": "stable"}),
    "Plan": ("upgrade.cattle.io/v1", "Plan", {"upgrade": {"image": IMAGE}, "serviceAccountName": "t-a"}),
    "IAMPolicyMember": (
        "iam.cnrm.cloud.google.com/v1beta1",
        "IAMPolicyMember",
        {"member": "user:a@example.com", "role": "roles/owner"},
    ),
    "VirtualService": ("networking.istio.io/v1", "VirtualService", {"hosts": ["api.v.example.com"]}),
    "TrainingRuntime": ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", {"template": {"spec": {}}}),
    "ServiceAccount": ("v1", "ServiceAccount", None),
    "Notebook": ("kubeflow.org/v1", "Notebook", {"template": TEMPLATE}),
    "ProvisioningRequest": ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", {"podSets": []}),
    "wrong case": ("v1", "pod", {"containers": [G]}),
    "group of another operator": ("batch.example.com/v1", "Job", {"template": TEMPLATE}),
}


@pytest.mark.parametrize("case", CASES)
def test_other_kinds_are_refused(tmp_path: Path, case: str) -> None:
    api_version, kind, spec = CASES[case]
    write(tmp_path, make(api_version, kind, spec))

    (message,) = [each for each in find(tmp_path) if f"kind `{kind}`" in each]
    group = api_version.rpartition("/")[0]
    assert f"`kinds: [default, {f'{kind}.{group}' if group else kind}]`" in message


UNCOUNTED = [
    "M4.1 Rollout of a Deployment",
    "M4.4 CloneSet",
    "M4.5 JobTemplate",
    "M4.5 JobFlow",
    "M4.9 Experiment",
    "M4.10 InferenceService",
    "M4.11 Service of Knative",
    "M4.12 TaskRun",
    "M4.13 PipelineRun",
    "M4.15 ResourceSet",
    "Workload without a job",
    "CatalogSource",
    "Plan",
    "TrainingRuntime",
    "Notebook",
]


@pytest.mark.parametrize("kinds", ["*", "listed"])
@pytest.mark.parametrize("case", UNCOUNTED)
def test_kinds_whose_pods_are_not_counted_are_refused_for_a_budget(tmp_path: Path, case: str, kinds: str) -> None:
    api_version, kind, spec = CASES[case]
    named = f"{kind}.{api_version.rpartition('/')[0]}"
    write(tmp_path, make(api_version, kind, spec), kinds=["default", named if kinds == "listed" else "*"])

    assert f"in `pods` as `{named}`" in find(tmp_path)[0]
    write(tmp_path, kinds=["default", named], budget={"gpus": 10000}, pods={named: []})
    assert not [each for each in find(tmp_path) if f"kind `{kind}`" in each]


def nest(kind: str, obj: dict[str, Any]) -> Any:
    if kind == "List in a List":
        return {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [obj]}]}
    if kind == "AppWrapper":
        return make("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": obj}]})
    if kind == "AppWrapper in an AppWrapper":
        return nest("AppWrapper", nest("AppWrapper", obj))
    return {"apiVersion": "v1", "kind": kind, "items": [obj]}


@pytest.mark.parametrize(
    "place", ["List", "TaskRunList", "List in a List", "AppWrapper", "AppWrapper in an AppWrapper"]
)
def test_kinds_are_found_inside_of_others(tmp_path: Path, place: str) -> None:
    obj = make("tekton.dev/v1", "TaskRun", {"taskSpec": TASK})
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "a-"
    write(tmp_path, nest(place, obj))

    rules = {each.rule for each in jobgen.lint(tmp_path).findings if each.severity == "error"}
    # A nested List is no object that a server creates.
    assert RULE in rules or (place == "List in a List" and rules)


def test_object_inside_another_needs_no_metadata_to_be_found(tmp_path: Path) -> None:
    trial = {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "spec": {"taskSpec": TASK}}
    experiment = make("kubeflow.org/v1beta1", "Experiment", {"trialTemplate": {"trialSpec": trial}})
    write(tmp_path, experiment, kinds=["default", "Experiment.kubeflow.org"])

    assert any("`TaskRun`" in each for each in find(tmp_path))


# `pods`: how to count.

CLONES = {"CloneSet.apps.kruise.io": [{"at": "spec.template", "count": "spec.replicas"}]}
TRIALS = {
    "Experiment.kubeflow.org": [
        {"at": "spec.trialTemplate.trialSpec", "holds": "object", "count": "spec.parallelTrialCount", "default": 3}
    ]
}
GROUPED = {"Fleet.example.com": [{"at": "spec.groups.*.template", "count": [".replicas", 2]}]}
SERVED = {
    "InferenceService.serving.kserve.io": [
        {"at": "spec.predictor", "holds": "podSpec", "count": "spec.predictor.maxReplicas"},
        {
            "at": "spec.predictor.workerSpec",
            "holds": "podSpec",
            "count": ["spec.predictor.workerSpec.pipelineParallelSize", "spec.predictor.maxReplicas"],
            "optional": True,
        },
    ]
}
KNATIVE = {
    "Service.serving.knative.dev": [
        {
            "at": "spec.template",
            "count": "spec.template.metadata.annotations['autoscaling.knative.dev/max-scale']",
            "default": 1000,
        }
    ]
}
AGENTS = {"Agents.example.com": [{"at": "spec.template", "count": 12}]}


def clones(**spec: Any) -> dict[str, Any]:
    return make("apps.kruise.io/v1alpha1", "CloneSet", {"template": TEMPLATE, **spec})


def fleet(*counts: int) -> dict[str, Any]:
    return make("example.com/v1", "Fleet", {"groups": [{"replicas": each, "template": TEMPLATE} for each in counts]})


def knative(**annotations: str) -> dict[str, Any]:
    named = {f"autoscaling.knative.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    template = {"metadata": {"annotations": named}, "spec": {"containers": [G]}}
    return make("serving.knative.dev/v1", "Service", {"template": template})


COUNTED: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "a number": (CLONES, clones(replicas=5), 40),
    "no number": (CLONES, clones(), 8),
    "an object inside": (
        TRIALS,
        make("kubeflow.org/v1beta1", "Experiment", {"parallelTrialCount": 4, "trialTemplate": {"trialSpec": JOB}}),
        32,
    ),
    "another default": (TRIALS, make("kubeflow.org/v1beta1", "Experiment", {"trialTemplate": {"trialSpec": JOB}}), 24),
    "items": (GROUPED, fleet(1, 3), 64),
    "no items": (GROUPED, fleet(), 0),
    "specs of pods": (
        SERVED,
        make(
            "serving.kserve.io/v1beta1",
            "InferenceService",
            {
                "predictor": {
                    "maxReplicas": 2,
                    "containers": [G],
                    "workerSpec": {"pipelineParallelSize": 4, "containers": [G]},
                }
            },
        ),
        80,
    ),
    "an optional part": (
        SERVED,
        make("serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"containers": [G], "maxReplicas": 3}}),
        24,
    ),
    "text": (KNATIVE, knative(max_scale="7"), 56),
    "a number of the team": (
        AGENTS,
        make("example.com/v1", "Agents", {"template": TEMPLATE}),
        96,
    ),
    "a container that no entry names": (CLONES, clones(replicas=1, hooks={"containers": [{**G, "name": "b"}]}), 16),
}


def repeat_resources(obj: Any) -> Any:
    """A copy in which no two objects are the same one, as after reading a file."""
    return json.loads(json.dumps(obj))


@pytest.mark.parametrize("case", COUNTED)
def test_file_of_a_team_says_how_to_count(tmp_path: Path, case: str) -> None:
    pods, obj, gpus = COUNTED[case]
    limited = {"kinds": ["default", *pods], "pods": pods}
    write(tmp_path, repeat_resources(obj), **limited, budget={"gpus": 0})

    assert find(tmp_path) == []
    exceeded = find(tmp_path, "team-budget-exceeded")
    assert exceeded == [] if not gpus else f"requests {gpus} GPUs" in exceeded[0]
    write(tmp_path, **limited, budget={"gpus": gpus})
    assert find(tmp_path, "team-budget-exceeded") == []
    write(tmp_path, kinds=limited["kinds"], budget={"gpus": gpus})
    assert len(find(tmp_path)) == 1


REFUSED = {
    "a template elsewhere": (CLONES, make("apps.kruise.io/v1alpha1", "CloneSet", {"workloadRef": SCALED})),
    "a template that is null": (CLONES, clones(template=None)),
    "a template that is text": (CLONES, clones(template=json.dumps(TEMPLATE))),
    "a template without containers": (CLONES, clones(template={"spec": {"podSpec": {"containers": [G]}}})),
    "a number that is none": (CLONES, clones(replicas="{{ many }}")),
    "a negative number": (CLONES, clones(replicas=-1)),
    "a fraction": (CLONES, clones(replicas=1.5)),
    "items that are none": (GROUPED, make("example.com/v1", "Fleet", {"groups": "text"})),
    "no list of items": (GROUPED, make("example.com/v1", "Fleet", {"template": TEMPLATE})),
    "an item without a template": (GROUPED, make("example.com/v1", "Fleet", {"groups": [{"replicas": 1}]})),
    "an object of a kind that is not counted": (
        TRIALS,
        make(
            "kubeflow.org/v1beta1",
            "Experiment",
            {"trialTemplate": {"trialSpec": {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "spec": {}}}},
        ),
    ),
    "an object that is text": (
        TRIALS,
        make("kubeflow.org/v1beta1", "Experiment", {"trialTemplate": {"trialSpec": json.dumps(JOB)}}),
    ),
    "an optional part that is no pod": (
        {"Fleet.example.com": [{"at": "spec.head", "optional": True}]},
        make("example.com/v1", "Fleet", {"head": json.dumps(TEMPLATE)}),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_object_that_its_entry_cannot_count_is_refused(tmp_path: Path, case: str) -> None:
    pods, obj = REFUSED[case]
    write(tmp_path, obj, kinds=["default", *pods], pods=pods)

    assert find(tmp_path)


@pytest.mark.parametrize("path", ["spec.[", ".", "spec.a[", "x" * 5000])
def test_malformed_path_counts_nothing(tmp_path: Path, path: str) -> None:
    pods = {"CloneSet.apps.kruise.io": [{"at": "spec.template", "count": path}]}
    write(tmp_path, clones(), kinds=["default", *pods], pods=pods)

    findings = jobgen.lint(tmp_path).findings
    assert {each.location.file for each in findings if each.rule == "invalid-value"} == {"jobgen.yaml"}


# What to write for what is there.

ACCOUNT = make("v1", "ServiceAccount", metadata={"name": "t-a"})


def test_doctor_prints_the_lines_that_a_team_needs(tmp_path: Path) -> None:
    task = make("tekton.dev/v1", "TaskRun", {"taskSpec": TASK})
    secret = make("v1", "Secret", stringData={})
    write(tmp_path, ACCOUNT, task, JOB, secret)

    project = config.load_own(tmp_path)
    lines = [each["line"] for each in check_teams(project).facts["missingLines"]]
    assert lines == ["kinds: [default, ServiceAccount, TaskRun.tekton.dev]", "pods: {TaskRun.tekton.dev: [...]}"]
    assert all(f"team `t` in jobgen.yaml needs `{each}`" in check_teams(project).found for each in lines)
    # What they say is enough, but for what was refused before.
    write(tmp_path, kinds=["default", "ServiceAccount", "TaskRun.tekton.dev"], pods={"TaskRun.tekton.dev": []})
    assert check_teams(config.load_own(tmp_path)).status == "ok"
    assert len(find(tmp_path)) == 1


# What a change does.


def commit(root: Path, *objects: Any, **team: Any) -> None:
    """Commit what a change is compared with."""
    repository = Repository(root, root.parent / "home")
    write(root, *objects, **team)
    repository.commit()


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "everything": ({}, {"kinds": ["*"]}, True),
    "another kind": ({}, {"kinds": ["default", "Workflow"]}, True),
    "fewer kinds": ({}, {"kinds": ["PyTorchJob", "ConfigMap"]}, False),
    "the default": ({"kinds": ["PyTorchJob"]}, {}, True),
    "no longer everything": ({"kinds": ["*"]}, {"kinds": ["default"]}, True),
    "pods": ({}, {"pods": CLONES}, True),
    "no pods": ({"pods": CLONES}, {}, False),
    "other pods": ({"pods": CLONES}, {"pods": {"CloneSet.apps.kruise.io": []}}, True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_that_allows_more_is_named_as_weaker(tmp_path: Path, case: str) -> None:
    before, after, is_weaker = CHANGES[case]
    root = tmp_path / "jobs"
    root.mkdir()
    commit(root, JOB, **before)
    write(root, **after)

    found = jobgen.lint(root, since="HEAD").findings
    weaker = [each for each in found if each.rule == "weaker-governance"]
    assert bool(weaker) is is_weaker, [each.message for each in found]


DESCRIPTION = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "plural": "clonesets",
    "platform": "kubeflow",
    "operator": {"name": "kruise"},
    "frameworks": {"clones": {}},
    "replicas": {"at": "spec.groups", "shape": "list"},
    "roles": {"worker": {"spelling": "worker", "replicas": 1}},
    "single": "worker",
    "container": "main",
    "nameSuffix": "-{role}-{index}",
    "fields": {"suspend": "spec.paused"},
    "completedBy": "Other",
}


@pytest.mark.parametrize("is_added", [True, False])
def test_description_that_a_change_adds_allows_and_hides_nothing(tmp_path: Path, is_added: bool) -> None:
    obj = clones(replicas=50, paused=True)
    del obj["metadata"]["labels"]
    description = {key: value for key, value in DESCRIPTION.items() if is_added or key != "completedBy"}
    for team in ({}, {"kinds": ["default", "*"]}, {"kinds": ["default", *CLONES], "pods": CLONES}):
        root = tmp_path / f"team-{len(list(tmp_path.iterdir()))}"
        root.mkdir()
        folder = root / "schemas/apps.kruise.io"
        folder.mkdir(parents=True)
        if not is_added:
            (folder / "cloneset_v1alpha1.yaml").write_text(json.dumps(description))
        commit(root, **team)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cloneset_v1alpha1.yaml").write_text(json.dumps(description))
        write(root, obj, **team)
        rules = {each.rule for each in jobgen.lint(root, since="HEAD").findings if each.severity == "error"}
        # A suspended object of a kind that the base describes runs no pods, as its reviewers decided.
        assert bool(rules & {RULE, "team-budget-exceeded"}) is is_added, (team, rules)


def test_message_names_no_list_for_what_no_list_should_have() -> None:
    scope = TeamScope("t", budget=Budget(gpus=1))

    assert explain_refusal(scope, "", "Secret").endswith("move it to a folder of the platform team")
    assert explain_refusal(scope, "", "ConfigMap") == ""
    assert not counts_pods("kueue.x-k8s.io", "Workload")


# What jobgen does not read as objects.

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: t}\n"
FORMS: dict[str, tuple[dict[str, str], str]] = {
    "chart": ({"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}, "missing-field"),
    "values": ({"chart/values.yaml": "name: a\n"}, "missing-field"),
    "template of Helm": ({"a.yaml": SECRET.replace("name: a", "name: {{ .Values.name }}")}, "template-text"),
    "template of Jinja": ({"a.yaml": "{% if a %}\n" + SECRET + "{% endif %}\n"}, "template-text"),
    "kustomization": (
        {
            "k/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            "secretGenerator: [{name: a, literals: [a=b]}]\n"
        },
        "missing-field",
    ),
    "other ending": ({"a.yaml.tmpl": SECRET}, "unread-file"),
    "text": ({"a.txt": SECRET}, "unread-file"),
    "capital ending": ({"a.YAML": SECRET}, RULE),
    "hidden": ({".a/a.yaml": SECRET}, ""),
    "other language": ({"a.jsonnet": "{apiVersion: 'v1', kind: 'Secret', metadata: {name: 'a'}}\n"}, ""),
}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_are_errors_or_never_rendered(tmp_path: Path, form: str) -> None:
    files, rule = FORMS[form]
    write(tmp_path, make("v1", "ConfigMap", data={"a": "b"}))
    for path, text in files.items():
        (tmp_path / "jobs/t" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "jobs/t" / path).write_text(text)

    found = {each.rule for each in jobgen.lint(tmp_path).findings if each.severity == "error"}
    assert rule in found if rule else not found
    if rule != RULE:
        assert {each.identity.kind for each in jobgen.render(tmp_path).objects} <= {"ConfigMap"}


# Objects that other objects create.

TRAIN = make(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 5, "resourcesPerNode": GPUS}},
)
WRAPPER = "workload.codeflare.dev/v1beta2"
INSIDE: dict[str, tuple[Any, str]] = {
    "list": ({"apiVersion": "v1", "kind": "List", "items": [JOB, JOB, JOB]}, "requests 24 GPUs"),
    "list of a kind": ({"apiVersion": "batch/v1", "kind": "JobList", "items": [{"spec": JOB["spec"]}]}, ""),
    "secrets": ({"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "a"}}]}, "`Secret`"),
    "AppWrapper": (make(WRAPPER, "AppWrapper", {"components": [{"template": TRAIN}]}), "requests 40 GPUs"),
    "TrainJob": (TRAIN, "requests 40 GPUs"),
}


@pytest.mark.parametrize("case", INSIDE)
def test_objects_that_a_workflow_creates_count_and_have_kinds(tmp_path: Path, case: str) -> None:
    obj, expected = INSIDE[case]
    resource = {"action": "create", "manifest": json.dumps(obj)}
    spec = {"entrypoint": "a", "templates": [{"name": "a", "resource": resource}]}
    workflow = make("argoproj.io/v1alpha1", "Workflow", spec)
    write(tmp_path, workflow, kinds=["default", "Workflow.argoproj.io"], budget={"gpus": 0})

    found = jobgen.lint(tmp_path).findings
    messages = [each.message for each in found if each.rule in (RULE, "team-budget-exceeded")]
    assert any((expected or "requests 8 GPUs") in each for each in messages), messages


def test_other_versions_of_an_app_wrapper_count(tmp_path: Path) -> None:
    items = [{"replicas": 100, "generictemplate": JOB}]
    write(tmp_path, make("workload.codeflare.dev/v1beta1", "AppWrapper", {"resources": {"GenericItems": items}}))

    assert "requests 800 GPUs" in find(tmp_path, "team-budget-exceeded")[0]
