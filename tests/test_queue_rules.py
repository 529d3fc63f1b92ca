"""Rules about queues: jobs that are never admitted, and queues, cohorts and flavors that do nothing."""

import json
import re
import textwrap
from random import Random

import pytest
import yaml
from linting import lint_paths

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.cluster_objects import Configuration, group_objects
from jobgen.features.kueue.workloads import parse_workload

GPU = "nvidia.com/gpu"
RULES = {"inadmissible-job", "cohort-cycle", "unknown-cohort", "flavor-without-nodes", "unreachable-quota"}


def kueue(kind, name, spec="", namespace=""):
    where = f", namespace: {namespace}" if namespace else ""
    text = f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: {kind}\nmetadata: {{name: {name}{where}}}\nspec:\n"
    return text + textwrap.indent(textwrap.dedent(spec).strip() or "{}", "  ") + "\n"


def cluster_queue(name, gpus=8, flavor="h100", limits="", **fields):
    spec = "".join(f"{key}: {value}\n" for key, value in {"namespaceSelector": "{}", **fields}.items())
    quota = f"[{{name: {GPU}, nominalQuota: {gpus}{limits}}}]"
    group = f"resourceGroups:\n- coveredResources: [{GPU}]\n  flavors:\n  - name: {flavor}\n    resources: {quota}\n"
    return kueue("ClusterQueue", name, spec + group)


def local_queue(name, queue, namespace="ml", **fields):
    more = "".join(f"\n{key}: {value}" for key, value in fields.items())
    return kueue("LocalQueue", name, f"clusterQueue: {queue}{more}", namespace)


QUEUES = "---\n".join([cluster_queue("research"), local_queue("gpus", "research")])
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  queue: gpus
  resources: {gpu: 4}
  roles:
    worker:
      replicas: 2
"""


def job(pod="", requests=f"{{{GPU}: 4}}", annotations="{}", queue="gpus", pods=1):
    """A Job in plain YAML; its requests are in line 16."""
    return textwrap.dedent("""\
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: bert
          namespace: ml
          labels:
            kueue.x-k8s.io/queue-name: %s
        spec:
          parallelism: %s
          template:
            metadata:
              annotations: %s
            spec:
              containers:
              - name: main
                resources: {limits: %s}
              restartPolicy: Never
        """) % (queue, pods, annotations, requests) + textwrap.indent(textwrap.dedent(pod), " " * 6)


@pytest.fixture
def lint(tmp_path):
    """Write files and return the findings of these rules: rule, file and line, or all that JSON has with `whole`."""

    def run(files, *paths, whole=False, others=()):
        for path, text in {"jobgen.yaml": "", **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        done = lint_paths(tmp_path, paths, (), format_="json", today="2026-01-31")
        found = [each for each in json.loads(done.out)["findings"] if each["rule"] in RULES | {*others}]
        return found if whole else [(each["rule"], each["file"], each["line"]) for each in found]

    return run


def overlay(cluster="", **fields):
    spec = "".join(f"{key}: {value}\n" for key, value in fields.items()) + (f"cluster: {cluster}\n" if cluster else "")
    return "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n" + textwrap.indent(spec, "  ")


def test_a_job_that_fits_is_not_reported(lint):
    assert lint({"jobs/queues.yaml": QUEUES, "jobs/bert.yaml": SPEC}) == []


def test_a_request_above_the_quota_in_a_short_form(lint):
    (found,) = lint({"jobs/queues.yaml": QUEUES, "jobs/bert.yaml": SPEC.replace("gpu: 4", "gpu: 8")}, whole=True)

    assert (found["rule"], found["severity"], found["file"], found["line"]) == (
        "inadmissible-job",
        "error",
        "jobs/bert.yaml",
        8,
    )
    assert found["message"] == (
        "the job is never admitted: it requests `16` of `nvidia.com/gpu`, but the quota of ClusterQueue `research`,"
        " which has no cohort, allows `8` in flavor `h100`; reduce `worker` from 2 to 1 pod, or raise `nominalQuota`"
        " of ClusterQueue `research` by `8`"
    )
    assert [(each["file"], each["line"], each["message"]) for each in found["related"]] == [
        ("jobs/bert.yaml", 11, "the number of pods of `worker`"),
        ("jobs/queues.yaml", 10, "quota of ClusterQueue `research`"),
    ]


def test_a_request_that_an_overlay_sets(lint):
    files = {
        "jobs/bert.yaml": SPEC,
        "state/queues.yaml": QUEUES,
        "overlays/small/overlay.yaml": overlay("{state: state}"),
        "overlays/large/overlay.yaml": overlay("{state: state}", patches="[{merge: {resources: {gpu: 16}}}]"),
    }

    (found,) = lint(files, whole=True)
    assert (found["rule"], found["file"], found["line"], found["env"]) == (
        "inadmissible-job",
        "overlays/large/overlay.yaml",
        4,
        "large",
    )


def test_every_member_of_a_sweep_that_does_not_fit(lint):
    sweep = SPEC.replace("gpu: 4", "gpu: '${{ matrix.gpus }}'") + "  matrix: {gpus: [2, 4, 8, 16]}\n"
    found = lint({"jobs/queues.yaml": QUEUES, "jobs/bert.yaml": sweep}, whole=True)

    assert len({each["object"]["name"] for each in found}) == 2


TAINTED = kueue(
    "ResourceFlavor", "h100", "nodeLabels: {gpu: h100}\nnodeTaints: [{key: gpu, value: x, effect: NoSchedule}]"
)
LABELED = kueue("ResourceFlavor", "h100", "nodeLabels: {gpu: h100}")
PLACED = kueue("ResourceFlavor", "h100", "nodeLabels: {gpu: h100}\ntopologyName: rack")


@pytest.mark.parametrize(
    ("text", "objects", "line"),
    [
        pytest.param(job(), [], 0, id="fits"),
        pytest.param(job(requests=f"{{{GPU}: 9}}"), [], 16, id="quota of one pod"),
        pytest.param(job(pods=3), [], 16, id="quota of all pods"),
        pytest.param(job(requests=f"{{cpu: 1, {GPU}: 1}}"), [], 16, id="resource"),
        pytest.param(job("nodeSelector:\n  gpu: a100\n"), [LABELED], 19, id="selector"),
        pytest.param(job("nodeSelector:\n  gpu: h100\n"), [LABELED], 0, id="right selector"),
        pytest.param(job(), [TAINTED], 7, id="taint"),
        pytest.param(job("tolerations:\n- {key: cpu, operator: Exists}\n"), [TAINTED], 18, id="tolerations"),
        pytest.param(job("tolerations:\n- {key: gpu, operator: Exists}\n"), [TAINTED], 0, id="right tolerations"),
        pytest.param(
            job(annotations="{kueue.x-k8s.io/podset-required-topology: rack}"), [LABELED], 12, id="no topology"
        ),
        pytest.param(job(queue="gpu"), [], 7, id="no LocalQueue"),
        pytest.param(job(), [local_queue("gpus", "research", stopPolicy="Hold")], 7, id="stopped LocalQueue"),
        pytest.param(job(), [local_queue("gpus", "other")], 7, id="no ClusterQueue"),
        pytest.param(job(), [cluster_queue("research", stopPolicy="Hold")], 7, id="stopped ClusterQueue"),
        pytest.param(job(), [PLACED], 0, id="topology without nodes"),
        pytest.param(job(), [cluster_queue("research", namespaceSelector="null")], 7, id="namespace"),
        pytest.param(job(), [cluster_queue("research", cohortName="all")], 0, id="cohort"),
        pytest.param(
            job(pods=3),
            [cluster_queue("research", cohortName="all"), cluster_queue("b", cohortName="all")],
            0,
            id="lent",
        ),
        pytest.param(
            job(pods=3),
            [
                cluster_queue("research", limits=", borrowingLimit: 2", cohortName="all"),
                cluster_queue("b", cohortName="all"),
            ],
            16,
            id="borrowing limit",
        ),
    ],
)
def test_plain_files_with_jobs_and_queues(lint, text, objects, line):
    known = dict.fromkeys(one.split("spec:")[0] for one in objects)
    queues = [each for each in QUEUES.split("---\n") if each.split("spec:")[0] not in known]
    found = lint({"all.yaml": "---\n".join([text, *queues, *objects])}, "all.yaml", others=["inadmissible-job"])

    assert [each for each in found if each[0] == "inadmissible-job"] == (
        [("inadmissible-job", "all.yaml", line)] if line else []
    )


@pytest.mark.parametrize(
    ("known", "complete", "rule"),
    [
        ("", "[]", ""),
        ("", "[WorkloadPriorityClass]", "unknown-reference"),
        ("low", "[]", "inadmissible-job"),
        ("low", "[WorkloadPriorityClass]", "unknown-reference"),
        ("high", "[]", ""),
    ],
)
def test_a_priority_class_that_does_not_exist_is_one_finding(lint, known, complete, rule):
    classes = (
        f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {{name: {known}}}\nvalue: 1\n"
    )
    files = {
        "jobs/bert.yaml": SPEC.replace(
            "metadata: {name: bert", "metadata: {labels: {kueue.x-k8s.io/priority-class: high}, name: bert"
        ),
        "state/queues.yaml": f"{QUEUES}---\n{classes}" if known else QUEUES,
        "overlays/prod/overlay.yaml": overlay(f"{{state: state, complete: {complete}}}"),
    }
    found = lint(files, whole=True, others=["unknown-reference"])

    assert [(each["rule"], each["line"]) for each in found] == ([(rule, 3)] if rule else [])


def test_a_class_of_pods_that_does_not_exist_is_on_its_name(lint):
    classes = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 1\n"
    text = "---\n".join([job("priorityClassName: high\n"), QUEUES, classes])

    assert lint({"all.yaml": text}, "all.yaml") == [("inadmissible-job", "all.yaml", 18)]


def test_files_without_local_queues_say_nothing_about_the_queue_of_a_job(lint):
    assert lint({"jobs/queues.yaml": cluster_queue("research"), "jobs/bert.yaml": SPEC}) == []


@pytest.mark.parametrize(
    ("namespace", "queue", "reported"),
    [("", "gpus", False), ("ml", "gpus", False), ("", "gpu", True), ("ml", "gpu", True)],
)
def test_a_job_without_a_namespace_may_be_meant_for_that_of_a_queue(lint, namespace, queue, reported):
    queues = "---\n".join([cluster_queue("research"), local_queue("gpus", "research", namespace)])
    text = job(queue=queue).replace("  namespace: ml\n", "")

    assert lint({"all.yaml": f"{text}---\n{queues}"}, "all.yaml") == (
        [("inadmissible-job", "all.yaml", 6)] if reported else []
    )


def test_a_missing_queue_is_one_finding(lint):
    declared = overlay("{state: state, complete: [LocalQueue], queues: {other: {gpus: 8}}}")
    text = SPEC.replace("queue: gpus", "queue: gpu")
    files = {"jobs/bert.yaml": text, "state/queues.yaml": QUEUES, "overlays/prod/overlay.yaml": declared}
    rules = ["unknown-reference", "unknown-queue"]

    (found,) = lint(files, whole=True, others=rules)
    assert (found["rule"], found["alsoReportedBy"]) == ("unknown-reference", ["unknown-queue", "inadmissible-job"])


def test_a_declared_quota_and_that_of_objects_are_one_finding(lint):
    declared = overlay("{state: state, queues: {gpus: {gpus: 8}}}")
    text = SPEC.replace("gpu: 4", "gpu: 8")
    files = {"jobs/bert.yaml": text, "state/queues.yaml": QUEUES, "overlays/prod/overlay.yaml": declared}

    (found,) = lint(files, whole=True, others=["queue-quota-exceeded"])
    assert (found["rule"], found["alsoReportedBy"]) == ("inadmissible-job", ["queue-quota-exceeded"])


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ("{version: '0.19'}", True),
        ("{version: '0.18'}", False),
        ("{version: '0.19', frameworks: [kubeflow.org/pytorchjob]}", False),
        ("{version: '0.18', frameworks: [batch/job]}", True),
    ],
)
def test_a_kind_that_this_kueue_does_not_manage(lint, settings, reported):
    files = {
        "jobs/bert.yaml": SPEC,
        "state/queues.yaml": QUEUES,
        "overlays/prod/overlay.yaml": overlay(f"{{state: state, kueue: {settings}}}"),
    }
    found = lint(files, whole=True, others=["ineffective-queue-label"])

    shown = [(each["rule"], each["severity"], each["line"], each["alsoReportedBy"]) for each in found]
    assert shown == ([("ineffective-queue-label", "error", 7, ["inadmissible-job"])] if reported else [])
    assert not reported or "the job is unmanaged: Kueue" in found[0]["message"]


TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: bert
  namespace: ml
  labels:
    kueue.x-k8s.io/queue-name: gpus
spec:
  runtimeRef: {name: torch-distributed}
"""


@pytest.mark.parametrize("state", ["", QUEUES])
@pytest.mark.parametrize(
    ("versions", "reported"),
    [
        ("{kueue: '0.17', trainer: '2.1'}", True),
        ("{kueue: '0.19.2', trainer: 2.0.1}", True),
        ("{kueue: '0.16', trainer: '2.1'}", False),
        ("{kueue: '0.17', trainer: '2.2'}", False),
        ("{trainer: '2.1'}", False),
    ],
)
def test_kueue_never_starts_train_jobs_of_an_older_trainer(lint, versions, reported, state):
    files = {
        "jobs/bert.yaml": TRAIN_JOB,
        "overlays/prod/overlay.yaml": overlay(f"{{state: state, operators: {versions}}}"),
        "state/queues.yaml": state,
    }
    found = lint(files, whole=True, others=["ineffective-queue-label"])

    assert [(each["severity"], each["line"]) for each in found] == ([("error", 7)] if reported else [])


def test_findings_are_on_the_files_of_the_exported_state(lint):
    files = {
        "state/cohorts.yaml": kueue("Cohort", "a", "parentName: b"),
        "state/flavors.yaml": kueue("ResourceFlavor", "h100", "nodeLabels:\n  gpu: h100"),
        "state/queues.yaml": "---\n".join([QUEUES, cluster_queue("spare"), cluster_queue("wrong", flavor="h10")]),
        "jobs/cohort.yaml": kueue("Cohort", "b", "parentName: a"),
        "jobs/bert.yaml": SPEC,
        "overlays/prod/overlay.yaml": overlay(
            "{state: state, kueue: {nodes: [{count: 1, labels: {gpu: a100}, capacity: {cpu: 8}}]}}"
        ),
    }
    found = lint(files, whole=True)

    assert [(each["rule"], each["file"], each["line"]) for each in found] == [
        ("cohort-cycle", "state/cohorts.yaml", 5),
        ("flavor-without-nodes", "state/flavors.yaml", 6),
        ("unreachable-quota", "state/queues.yaml", 27),
        ("unreachable-quota", "state/queues.yaml", 37),
    ]
    assert [(each["file"], each["line"]) for each in found[0]["related"]] == [("jobs/cohort.yaml", 5)]
    assert {each["env"] for each in found} == {"prod"}


def test_negative_quota_in_the_exported_state(lint):
    queues = QUEUES.replace("nominalQuota: ", "nominalQuota: -")
    files = {"state/queues.yaml": queues, "overlays/prod/overlay.yaml": overlay("{state: state}")}
    found = [each["message"] for each in lint(files, whole=True) if each["rule"] == "unreachable-quota"]

    assert found
    assert all(each.endswith("which Kueue refuses; write `0` or more") for each in found)


def test_an_exported_cohort_above_itself(lint):
    files = {
        "state/cohorts.yaml": kueue("Cohort", "a", "parentName: a"),
        "jobs/bert.yaml": SPEC,
        "overlays/prod/overlay.yaml": overlay("{state: state}"),
    }

    assert lint(files) == [("cohort-cycle", "state/cohorts.yaml", 5)]


@pytest.mark.parametrize(("flavor", "reported"), [("h100", False), ("a100", True)])
def test_nodes_of_the_overlay_have_the_labels_of_their_flavor(lint, flavor, reported):
    queues = [QUEUES, *(kueue("ResourceFlavor", name, f"nodeLabels: {{gpu: {name}}}") for name in ("h100", "a100"))]
    nodes = (
        "[{flavor: h100, count: 2, capacity: {cpu: 8}}, {flavor: a100, count: 1, capacity: {cpu: 8}}]"
        if not reported
        else "[{flavor: h100, count: 2, capacity: {cpu: 8}}]"
    )
    files = {
        "jobs/queues.yaml": "---\n".join(queues),
        "overlays/prod/overlay.yaml": overlay(f"{{kueue: {{nodes: {nodes}}}}}"),
    }

    assert [rule for rule, *_ in lint(files)] == (["flavor-without-nodes"] if reported else [])


def test_a_missing_flavor_is_one_finding(lint):
    files = {
        "jobs/queues.yaml": QUEUES + "---\n" + kueue("ResourceFlavor", "a100", "nodeLabels: {gpu: a100}"),
        "overlays/prod/overlay.yaml": overlay("{complete: [ResourceFlavor]}"),
    }

    (found,) = lint(files, whole=True, others=["unknown-reference"])
    assert (found["rule"], found["alsoReportedBy"]) == ("unknown-reference", ["unreachable-quota"])


@pytest.mark.parametrize(
    ("others", "reported"),
    [
        # In one folder or in several, files describe one cluster.
        (["queues.yaml"], True),
        (["cluster/queues.yaml"], True),
        # Queues that are there twice are of several clusters, and those of the folder are meant.
        (["queues.yaml", "other/queues.yaml"], True),
        (["a/queues.yaml", "b/queues.yaml"], False),
    ],
)
def test_queues_of_other_plain_files_decide_unless_they_are_there_twice(lint, others, reported):
    large = job(requests=f"{{{GPU}: 9}}")

    found = lint({**dict.fromkeys(others, QUEUES), "job.yaml": large}, *others, "job.yaml")

    assert found == ([("inadmissible-job", "job.yaml", 16)] if reported else [])


def test_queues_of_other_plain_files_say_nothing_about_jobs_of_other_queues(lint):
    large = job(requests=f"{{{GPU}: 9}}", queue="vision")

    assert lint({"queues.yaml": QUEUES, "job.yaml": large}, "queues.yaml", "job.yaml") == []


def test_a_namespace_that_takes_jobs_from_their_queue_is_one_line_of_the_overlay(lint):
    spec = SPEC.replace(", namespace: ml", "")
    files = {
        "jobs/a.yaml": spec,
        "jobs/b.yaml": spec.replace("bert", "gpt"),
        "state/queues.yaml": QUEUES,
        "overlays/prod/overlay.yaml": overlay("{state: state}", namespace="other"),
    }

    found = lint(files, whole=True)

    assert {(each["file"], each["line"]) for each in found} == {("overlays/prod/overlay.yaml", 4)}
    assert len({each["message"] for each in found}) == 1
    assert {each["related"][0]["file"] for each in found} == {"state/queues.yaml"}


FLAVOR = kueue("ResourceFlavor", "h100")


@pytest.mark.parametrize(
    ("queues", "line", "words"),
    [
        ([cluster_queue("research"), local_queue("gpus", "reserch")], 16, "did you mean `research`?"),
        ([cluster_queue("research", flavor="h10"), local_queue("gpus", "research")], 9, "did you mean `h100`?"),
        (
            [cluster_queue("research"), local_queue("gpus", "research", "mlops-tem")],
            14,
            "LocalQueue `gpus` is in namespace `mlops-tem`, and its jobs in namespace `mlops-team`",
        ),
        ([cluster_queue("research"), local_queue("gpus", "research", "")], 14, "write `namespace: mlops-team`"),
    ],
)
def test_a_fault_of_a_queue_is_one_finding_at_the_queue(lint, queues, line, words):
    queues = [each.replace("namespace: ml}", "namespace: mlops-team}") for each in queues]
    one = job().replace("namespace: ml", "namespace: mlops-team")
    files = {"queues.yaml": "---\n".join([*queues, FLAVOR]), "job.yaml": one}
    rules = ["unknown-cluster-queue"]

    (found,) = lint(files, "queues.yaml", "job.yaml", whole=True, others=rules)

    assert (found["rule"], found["file"], found["line"]) == ("inadmissible-job", "queues.yaml", line)
    assert words in found["message"]


def test_a_queue_that_the_api_server_refuses_is_reported_without_its_jobs(lint):
    queue = cluster_queue("research").replace(f"[{GPU}]", f"[{GPU}, cpu]")
    files = {"queues.yaml": "---\n".join([queue, local_queue("gpus", "research"), FLAVOR]), "job.yaml": job()}

    found = lint(files, "queues.yaml", "job.yaml", others=["crd-rule-violated"])

    assert [(rule, path) for rule, path, _ in found] == [("crd-rule-violated", "queues.yaml")]


STATE = [
    TAINTED,
    cluster_queue("research", cohortName="all"),
    local_queue("gpus", "research"),
    kueue("Cohort", "all", f"parentName: top\nresourceGroups: [{{coveredResources: [{GPU}], flavors: []}}]"),
    "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {gpu: h100}}\nstatus: {allocatable: {pods: 1}}\n",
    job(annotations="{kueue.x-k8s.io/podset-required-topology: rack}"),
]


def list_paths(tree, path=()):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from list_paths(child, (*path, key))


WRONG = (None, 7, "x", [1], {"x": [None]}, -1, {"a": {"b": 1}})


def test_values_of_any_type_are_no_internal_error(lint):
    """Each value of each object is wrong in a file of its own; files are linted together."""
    objects = [yaml.safe_load(text) for text in STATE]
    files = {}
    for number, obj in enumerate(objects):
        for path in list_paths(obj):
            changed = json.loads(json.dumps(objects))
            *above, last = path
            node = changed[number]
            for step in above:
                node = node[step]
            node[last] = WRONG[len(files) % len(WRONG)]
            files[f"{len(files)}.yaml"] = "\n---\n".join(map(json.dumps, changed))

    found = lint(files, *files, whole=True, others=["internal-error"])
    assert [each["message"] for each in found if each["rule"] == "internal-error"] == []


KINDS = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, nvidia.com/gpu, pods]
      flavors:
        - name: h100
          resources:
            - {name: cpu, nominalQuota: 8}
            - {name: nvidia.com/gpu, nominalQuota: 8}
            - {name: pods, nominalQuota: 10}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: gpus, namespace: ml}
spec: {clusterQueue: research}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus, kueue.x-k8s.io/priority-class: high}}
spec:
  replicatedJobs:
    - name: driver
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a:1}]}}}}
    - name: workers
      replicas: 2
      template:
        spec:
          parallelism: 3
          template:
            spec:
              restartPolicy: Never
              containers:
                - name: a
                  image: a:1
                  resources:
                    limits:
                      nvidia.com/gpu: 2 # here
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: rc, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  enableInTreeAutoscaling: false
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
          - name: head
            image: a:1
            resources: {limits: {cpu: 9}} # here
  workerGroupSpecs:
    - groupName: w
      replicas: 2
      rayStartParams: {}
      template:
        spec:
          containers:
            - name: w
              image: a:1
              resources: {limits: {nvidia.com/gpu: 16}}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: lws, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 12 # here
    workerTemplate:
      spec:
        containers: [{name: a, image: a:1, resources: {requests: {cpu: 100m}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {containers: [{name: node, image: a:1}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tj, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  runtimeRef: {name: torch}
  trainer:
    numNodes: 3
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 4 # here
---
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: aw, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  components:
    - podSets: [{replicas: 9, path: template.spec.template}]
      template:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: inner, namespace: ml}
        spec:
          parallelism: 9
          template:
            spec:
              restartPolicy: Never
              containers:
                - name: a
                  image: a:1
                  resources:
                    requests:
                      cpu: 1 # here
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  containers:
    - name: a
      image: a:1
      resources:
        requests:
          cpu: 10 # here
"""


def test_kinds_of_jobs_are_reported_where_they_request(lint):
    expected = [number for number, line in enumerate(KINDS.splitlines(), 1) if line.endswith("# here")]

    assert [line for _, _, line in lint({"all.yaml": KINDS}, "all.yaml")] == expected


def build_context(quotas):
    """A queue with flavors `a` and `b`; quotas are those of cpu and memory in each."""
    flavors = [
        {"name": name, "resources": [{"name": key, "nominalQuota": value} for key, value in quota.items()]}
        for name, quota in quotas.items()
    ]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
    }
    api = "kueue.x-k8s.io/v1beta2"
    queue = {"apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}
    local = {
        "apiVersion": api,
        "kind": "LocalQueue",
        "metadata": {"name": "l", "namespace": "ml"},
        "spec": {"clusterQueue": "q"},
    }
    return AdmissionContext(group_objects([queue, local], Configuration()))


def test_the_change_is_the_smallest_that_fits():
    random, seen = Random(17), 0
    for _ in range(300):
        quotas = {name: {"cpu": random.randint(0, 12), "memory": random.randint(0, 12)} for name in "ab"}
        requests = {"cpu": random.randint(0, 4), "memory": random.randint(1, 4)}
        context, count = build_context(quotas), random.randint(1, 9)

        def find(pods, requests=requests, context=context):
            container = {"name": "x", "resources": {"requests": requests}}
            pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
            spec = {"queueName": "l", "podSets": [pod_set]}
            return context.find_obstacle(parse_workload({"metadata": {"name": "w", "namespace": "ml"}, "spec": spec}))

        obstacle = find(count)
        fewer = re.match(r"reduce `main` from \d+ to (\d+) pods?", obstacle.change) if obstacle else None
        if fewer:
            seen += 1
            assert find(int(fewer[1])) is None
            assert find(int(fewer[1]) + 1) is not None
        elif obstacle:
            assert find(1) is not None
    assert seen > 50
