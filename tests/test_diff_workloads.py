"""What a changed apply does to Jobs, JobSets, objects of Ray and Volcano, and other kinds that run pods.

A case has the kind, the environment, the old and the new object below `spec:`, the effect, and a part of the reason.
"""

import json
from collections import defaultdict

import pytest

from jobgen.cli.commands.diff import diff_states
from jobgen.compare.change_rules import check_change

QUEUE = "labels: {kueue.x-k8s.io/queue-name: gpu}"
ELASTIC = f"{QUEUE}, annotations: {{kueue.x-k8s.io/elastic-job: 'true'}}"


def pod(image="i:1", more=""):
    return f"template: {{spec: {{{more}containers: [{{name: a, image: '{image}'}}]}}}}"


def job(image="i:1", more="", pods=""):
    return f"{{{more}{pod(image, pods)}}}"


def jobset(image="i:1", more="", pods="", item="", number=1, completions=None, mode="Indexed"):
    counts = f"parallelism: {number}, completions: {number if completions is None else completions}"
    inner = f"{counts}, completionMode: {mode}, {pod(image, pods)}"
    return f"{{{more}replicatedJobs: [{{name: a, {item}template: {{spec: {{{inner}}}}}}}]}}"


def group(name="w", image="i:1", replicas=1, more="", pods=""):
    return f"{{groupName: {name}, replicas: {replicas}, {more}{pod(image, pods)}}}"


def cluster(*groups, more="", head="i:1"):
    return f"{{{more}headGroupSpec: {{{pod(head)}}}, workerGroupSpecs: [{', '.join(groups or (group(),))}]}}"


def vcjob(image="i:1", replicas=2, more="", task="", name="name: a, "):
    return f"{{{more}tasks: [{{{name}replicas: {replicas}, {task}{pod(image)}}}]}}"


def lws(image="i:1", replicas=1, size=2, more=""):
    worker = pod(image).replace("template", "workerTemplate", 1)
    return f"{{replicas: {replicas}, {more}leaderWorkerTemplate: {{size: {size}, {worker}}}}}"


def wrapper(image="i:1", more="", component=""):
    inner = f"apiVersion: batch/v1, kind: Job, metadata: {{name: a}}, spec: {job(image)}"
    return f"{{{more}components: [{{{component}template: {{{inner}}}}}]}}"


JOB, CRON, JOBSET = "batch/v1 Job", "batch/v1 CronJob", "jobset.x-k8s.io/v1alpha2 JobSet"
RAY_CLUSTER, RAY_JOB, RAY_SERVICE = "ray.io/v1 RayCluster", "ray.io/v1 RayJob", "ray.io/v1 RayService"
RAY_CRON, VCJOB, VC_CRON = "ray.io/v1 RayCronJob", "batch.volcano.sh/v1alpha1 Job", "batch.volcano.sh/v1alpha1 CronJob"
LWS, WRAPPER = "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "workload.codeflare.dev/v1beta2 AppWrapper"
GENERIC, DEEPSPEED = "batch.tensorstack.dev/v1beta1 GenericJob", "batch.tensorstack.dev/v1beta1 DeepSpeedJob"
NODES, SUSPENDED = "nodeSelector: {a: b}, ", "suspend: true, "
RECREATE = "upgradeStrategy: {type: Recreate}, "
ENTRY, ENTRY_2 = "entrypoint: a, ", "entrypoint: b, "


def ray_job(spec, more=ENTRY):
    return f"{{{more}rayClusterSpec: {spec}}}"


def service(spec, more=""):
    return f"{{{more}rayClusterConfig: {spec}}}"


def cron(template):
    return f"{{schedule: '@daily', jobTemplate: {template}}}"


def generic(image="i:1", replicas=1, more=""):
    return f"{{{more}replicaSpecs: [{{type: worker, replicas: {replicas}, {pod(image)}}}]}}"


CASES = [
    (JOB, "", job(), job("i:2"), "rejected", "the template of a Job is immutable"),
    (JOB, "", job(more="parallelism: 1, "), job(more="parallelism: 2, "), "in-place", "pods are added or removed"),
    (JOB, "", job(more="backoffLimit: 1, "), job(more="backoffLimit: 2, "), "in-place", ""),
    (JOB, "", job(more=SUSPENDED), job(more=SUSPENDED, pods=NODES), "in-place", ""),
    (JOB, "", job(more=SUSPENDED), job("i:2", more=SUSPENDED), "rejected", "only scheduling directives"),
    (JOB, QUEUE, job(), job(pods=NODES), "rejected", "once Kueue has admitted the job"),
    (JOB, QUEUE, job(more=SUSPENDED), job(more=SUSPENDED, pods=NODES), "rejected", "can be changed before"),
    (JOB, QUEUE, job(more="parallelism: 1, "), job(more="parallelism: 2, "), "restart", "Kueue stops the Job"),
    (JOB, ELASTIC, job(more="parallelism: 1, "), job(more="parallelism: 2, "), "in-place", "the Job is elastic"),
    (
        JOB,
        "",
        job(more="completionMode: Indexed, completions: 2, parallelism: 2, "),
        job(more="completionMode: Indexed, completions: 4, parallelism: 4, "),
        "in-place",
        "pods are added",
    ),
    (CRON, "", cron(f"{{spec: {job()}}}"), cron(f"{{spec: {job('i:2')}}}"), "in-place", "later runs use"),
    (CRON, "", "{schedule: '@daily'}", "{schedule: '@daily', suspend: true}", "in-place", "a started run goes on"),
    (JOBSET, "", jobset(), jobset("i:2"), "rejected", "the jobs of a JobSet are immutable"),
    (JOBSET, "", jobset(item="replicas: 1, "), jobset(item="replicas: 2, "), "rejected", "are immutable"),
    (JOBSET, "", jobset(), jobset(item="replicas: 1, "), "unchanged", ""),
    (JOBSET, "", jobset(), jobset(pods="restartPolicy: OnFailure, "), "unchanged", ""),
    (JOBSET, "", jobset(), jobset(pods="restartPolicy: Never, "), "rejected", "are immutable"),
    (JOBSET, "", jobset(number=1), jobset(number=2), "rejected", "`ElasticJobSet`"),
    (JOBSET, "gates", jobset(number=1), jobset(number=2), "in-place", ""),
    (JOBSET, "gates", jobset(number=2), jobset(number=4, completions=5), "rejected", "to one number above 0"),
    (JOBSET, "gates", jobset(number=2), jobset(number=0), "rejected", "to one number above 0"),
    (
        JOBSET,
        "gates",
        jobset(number=2, mode="NonIndexed"),
        jobset(number=4, mode="NonIndexed"),
        "rejected",
        "in indexed jobs",
    ),
    (JOBSET, "", jobset(more=SUSPENDED), jobset(more=SUSPENDED, pods=NODES), "in-place", ""),
    (JOBSET, "", jobset(more=SUSPENDED), jobset("i:2", more=SUSPENDED), "rejected", "only scheduling directives"),
    (JOBSET, QUEUE, jobset(more=SUSPENDED), jobset(more=SUSPENDED, pods=NODES), "rejected", "Kueue has admitted"),
    (JOBSET, "", jobset(), jobset(more="ttlSecondsAfterFinished: 1, "), "in-place", ""),
    (JOBSET, "", jobset(), jobset(more="coordinator: {replicatedJob: a}, "), "no-effect", "when they are created"),
    (
        JOBSET,
        "",
        jobset(more="failurePolicy: {maxRestarts: 1}, "),
        jobset(more="failurePolicy: {maxRestarts: 2}, "),
        "rejected",
        "a rule of the CRD",
    ),
    (JOBSET, "", jobset(), jobset(more=SUSPENDED), "stops-running", "suspended"),
    (RAY_CLUSTER, "", cluster(group()), cluster(group(image="i:2")), "no-effect", "does not change pods that exist"),
    (RAY_CLUSTER, "", cluster(), cluster(head="i:2"), "no-effect", "does not change pods that exist"),
    (RAY_CLUSTER, "", cluster(group()), cluster(group(replicas=2)), "in-place", "pods are added"),
    (RAY_CLUSTER, "", cluster(group()), cluster(group(more="maxReplicas: 9, ")), "in-place", "pods are added"),
    (RAY_CLUSTER, "", cluster(group()), cluster(group(), group("v")), "in-place", "pods are added"),
    (RAY_CLUSTER, "", cluster(group(), group("v")), cluster(group()), "no-effect", "worker group that is removed"),
    (RAY_CLUSTER, "", cluster(more=RECREATE), cluster(more=RECREATE, head="i:2"), "restart", "`Recreate`"),
    (RAY_CLUSTER, "", cluster(more=RECREATE), cluster(group(replicas=3), more=RECREATE), "in-place", "pods are added"),
    (RAY_CLUSTER, "", cluster(more=RECREATE), cluster(group(), group("v"), more=RECREATE), "restart", "`Recreate`"),
    (RAY_CLUSTER, "", cluster(), cluster(more=RECREATE), "in-place", "later changes"),
    (
        RAY_CLUSTER,
        "",
        cluster(more=RECREATE),
        cluster(group(pods="tolerations: [{key: a}], "), more=RECREATE),
        "no-effect",
        "does not compare it",
    ),
    (RAY_CLUSTER, "old", cluster(more=RECREATE), cluster(more=RECREATE, head="i:2"), "no-effect", "does not change"),
    (RAY_CLUSTER, "", cluster(more=SUSPENDED), cluster(more=SUSPENDED, head="i:2"), "in-place", "suspended"),
    (RAY_CLUSTER, "", cluster(), cluster(more=SUSPENDED), "stops-running", "suspended"),
    (RAY_CLUSTER, QUEUE, cluster(), cluster(group(replicas=2)), "restart", "Kueue stops the RayCluster"),
    (RAY_CLUSTER, QUEUE, cluster(), cluster(head="i:2"), "restart", "Kueue stops the RayCluster"),
    (RAY_CLUSTER, QUEUE, cluster(), cluster(group(), group("v")), "restart", "Kueue stops the RayCluster"),
    (RAY_CLUSTER, ELASTIC, cluster(), cluster(group(replicas=2)), "in-place", "elastic"),
    (
        RAY_CLUSTER,
        "",
        cluster(more="managedBy: ray.io/kuberay-operator, "),
        cluster(more="managedBy: kueue.x-k8s.io/multikueue, "),
        "rejected",
        "a rule of the CRD",
    ),
    (RAY_JOB, "", ray_job(cluster()), ray_job(cluster(group(image="i:2"))), "no-effect", "when the job starts"),
    (RAY_JOB, "", ray_job(cluster()), ray_job(cluster(group(replicas=2))), "no-effect", "when the job starts"),
    (RAY_JOB, "", ray_job(cluster()), ray_job(cluster(), ENTRY_2), "no-effect", "when the job starts"),
    (RAY_JOB, "", ray_job(cluster()), ray_job(cluster(), ENTRY + "backoffLimit: 1, "), "in-place", "when it is needed"),
    (
        RAY_JOB,
        "",
        ray_job(cluster(), ENTRY + SUSPENDED),
        ray_job(cluster(head="i:2"), ENTRY + SUSPENDED),
        "in-place",
        "suspended",
    ),
    (RAY_JOB, "", ray_job(cluster(), ENTRY + SUSPENDED), ray_job(cluster()), "new-run", "resumed"),
    (RAY_JOB, QUEUE, ray_job(cluster()), ray_job(cluster(group(replicas=2))), "restart", "Kueue stops the RayJob"),
    (RAY_JOB, QUEUE, ray_job(cluster()), ray_job(cluster(), ENTRY_2), "no-effect", "when the job starts"),
    (RAY_SERVICE, "", service(cluster()), service(cluster(head="i:2")), "restart", "a second cluster"),
    (RAY_SERVICE, "", service(cluster()), service(cluster(group(replicas=2))), "in-place", "pods are added"),
    (RAY_SERVICE, "", service(cluster()), service(cluster(group(), group("v"))), "in-place", "pods are added"),
    (RAY_SERVICE, "", service(cluster()), service(cluster(group("v"), group())), "restart", "a second cluster"),
    (RAY_SERVICE, "", service(cluster(group(), group("v"))), service(cluster()), "restart", "a second cluster"),
    (
        RAY_SERVICE,
        "",
        service(cluster(), "upgradeStrategy: {type: None}, "),
        service(cluster(head="i:2"), "upgradeStrategy: {type: None}, "),
        "no-effect",
        "`None`",
    ),
    (
        RAY_SERVICE,
        "",
        service(cluster(), "serveConfigV2: a, "),
        service(cluster(), "serveConfigV2: b, "),
        "in-place",
        "running cluster",
    ),
    (RAY_CRON, "", cron(ray_job(cluster())), cron(ray_job(cluster(head="i:2"))), "in-place", "later runs use"),
    (VCJOB, "", vcjob(), vcjob(replicas=3), "in-place", "the gang changes"),
    (VCJOB, "", vcjob(), vcjob(more="minAvailable: 1, "), "in-place", "the gang changes"),
    (VCJOB, "", vcjob(), vcjob(more="priorityClassName: high, "), "in-place", ""),
    (VCJOB, "", vcjob(), vcjob("i:2"), "rejected", "only `minAvailable`"),
    (VCJOB, "", vcjob(), vcjob("i:2", 3), "rejected", "only `minAvailable`"),
    (VCJOB, "", vcjob(), vcjob(more="ttlSecondsAfterFinished: 1, "), "rejected", "only `minAvailable`"),
    (VCJOB, "", vcjob(), vcjob(more="queue: default, "), "unchanged", ""),
    (VCJOB, "", vcjob(), vcjob(more="queue: other, "), "rejected", "only `minAvailable`"),
    (VCJOB, "", vcjob(), vcjob(task="maxRetry: 3, "), "unchanged", ""),
    (VCJOB, "", vcjob(), vcjob(task="maxRetry: 4, "), "rejected", "only `minAvailable`"),
    (VCJOB, "", vcjob(name=""), vcjob(name="name: default0, ", task="maxRetry: 3, "), "in-place", ""),
    (VCJOB, "", vcjob(name=""), vcjob(name="name: other, "), "rejected", "only `minAvailable`"),
    (VCJOB, QUEUE, vcjob(), vcjob(replicas=3), "in-place", "the gang changes"),
    (VC_CRON, "", cron(f"{{spec: {vcjob()}}}"), cron(f"{{spec: {vcjob('i:2')}}}"), "in-place", "later runs use"),
    (LWS, "", lws(), lws("i:2"), "restart", "one after another"),
    (LWS, "", lws(), lws(size=4), "restart", "one after another"),
    (LWS, "", lws(), lws(replicas=3), "in-place", "groups of pods are added"),
    (LWS, "", lws(), lws(more="startupPolicy: LeaderReady, "), "in-place", ""),
    (WRAPPER, "", wrapper(), wrapper("i:2"), "rejected", "components of an AppWrapper"),
    (WRAPPER, "", wrapper(), wrapper(component="annotations: {a: b}, "), "in-place", ""),
    (WRAPPER, "", wrapper(), wrapper(more=SUSPENDED), "stops-running", "suspended"),
    (GENERIC, "", generic(), generic("i:2"), "no-effect", "does not document"),
    (GENERIC, "", generic(), generic(more="runMode: {pause: {enabled: true}}, "), "stops-running", "suspended"),
    (GENERIC, "", generic(more="runMode: {pause: {enabled: true}}, "), generic(), "new-run", "resumed"),
    (
        DEEPSPEED,
        "",
        "{elastic: {enabled: true, minReplicas: 1, maxReplicas: 4, expectedReplicas: 1}}",
        "{elastic: {enabled: true, minReplicas: 1, maxReplicas: 4, expectedReplicas: 2}}",
        "in-place",
        "",
    ),
    (
        DEEPSPEED,
        "",
        "{elastic: {enabled: true, minReplicas: 1, maxReplicas: 4}}",
        "{elastic: {enabled: true, minReplicas: 1, maxReplicas: 8}}",
        "rejected",
        "immutable",
    ),
]
UNCHANGED = {"effect": "unchanged", "why": "an object of which nothing changes is not listed"}
CLUSTERS = {"old": "cluster: {operators: {kuberay: 1.5.1}}", "gates": "cluster: {featureGates: [ElasticJobSet]}"}


def write_sides(folder, cases, settings="{}"):
    for side in (0, 1):
        path = folder / ("old", "new")[side]
        (path / "jobs").mkdir(parents=True)
        (path / "jobgen.yaml").write_text(f"{settings}\n")
        documents = [
            "apiVersion: {}\nkind: {}\n".format(*kind.split())
            + f"metadata: {{name: case-{number}, namespace: ml{', ' + facts if facts.startswith('labels') else ''}}}\n"
            + f"spec: {sides[side]}\n"
            for number, (kind, facts, *sides) in cases
        ]
        (path / "jobs/all.yaml").write_text("---\n".join(documents))


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """What the report says about each case, by its name."""
    groups = defaultdict(list)
    for number, case in enumerate(CASES):
        groups[case[1] if case[1] in CLUSTERS else ""].append((number, case))
    found = {}
    for facts, cases in groups.items():
        folder = tmp_path_factory.mktemp("cases")
        write_sides(folder, cases, CLUSTERS.get(facts, "{}"))
        report = diff_states(folder, "", (), folders=("old", "new"), format_="json", exit_code=False)
        assert report.err == ""
        found |= {one["object"]["name"]: one for one in json.loads(report.out)["objects"]}
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{CASES[number][0].split()[1]}-{number}")
def test_changed_apply(number, entries):
    entry, case = entries.get(f"case-{number}", UNCHANGED), CASES[number]

    assert entry["effect"] == case[4], (case, entry["why"])
    assert case[5] in entry["why"], entry["why"]


def gpu_pod(gpus):
    return f"template: {{spec: {{containers: [{{name: a, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]}}}}"


GPU_JOB = f"{{parallelism: 2, completions: 2, {gpu_pod(2)}}}"
GPU_CLUSTER = (
    f"headGroupSpec: {{{gpu_pod(1)}}}, workerGroupSpecs: "
    f"[{{groupName: w, replicas: 1, minReplicas: 2, maxReplicas: 4, numOfHosts: 3, {gpu_pod(1)}}}]"
)
TOTALS = [
    (JOB, GPU_JOB, 4),
    (CRON, cron(f"{{spec: {GPU_JOB}}}"), 4),
    (JOBSET, f"{{replicatedJobs: [{{name: a, replicas: 3, template: {{spec: {GPU_JOB}}}}}]}}", 12),
    (RAY_CLUSTER, f"{{{GPU_CLUSTER}}}", 7),
    (RAY_JOB, f"{{rayClusterSpec: {{{GPU_CLUSTER}}}, submitterPodTemplate: {gpu_pod(1)[10:]}}}", 8),
    (
        RAY_JOB,
        f"{{submissionMode: HTTPMode, rayClusterSpec: {{{GPU_CLUSTER}}}, submitterPodTemplate: {gpu_pod(1)[10:]}}}",
        7,
    ),
    (RAY_SERVICE, f"{{rayClusterConfig: {{{GPU_CLUSTER}}}}}", 7),
    (RAY_CRON, cron(f"{{rayClusterSpec: {{{GPU_CLUSTER}}}}}"), 7),
    (VCJOB, f"{{queue: train, tasks: [{{name: a, replicas: 3, {gpu_pod(2)}}}]}}", 6),
    (LWS, f"{{replicas: 2, leaderWorkerTemplate: {{size: 4, worker{gpu_pod(1).capitalize()}}}}}", 8),
    (
        WRAPPER,
        f"{{components: [{{template: {{apiVersion: batch/v1, kind: Job, metadata: {{name: a}}, spec: {GPU_JOB}}}}}]}}",
        4,
    ),
    (WRAPPER, "{suspend: true, components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: a}}}]}", 0),
    (GENERIC, f"{{replicaSpecs: [{{type: worker, replicas: 3, {gpu_pod(1)}}}]}}", 3),
    (DEEPSPEED, f"{{worker: {{replicas: 2, {gpu_pod(4)}}}}}", 8),
]


def test_pods_of_all_kinds_are_counted_when_objects_are_added_and_removed(tmp_path):
    cases = [(number, (kind, "", spec, "{}")) for number, (kind, spec, _) in enumerate(TOTALS)]
    write_sides(tmp_path, cases)
    (tmp_path / "new/jobs/all.yaml").unlink()
    reports = [
        json.loads(diff_states(tmp_path, "", (), folders=sides, format_="json", exit_code=False).out)["objects"]
        for sides in (("old", "new"), ("new", "old"))
    ]
    removed = {one["was"]["name"]: one for one in reports[0]}
    added = {one["object"]["name"]: one for one in reports[1]}

    for number, (kind, _, gpus) in enumerate(TOTALS):
        gone, new = removed[f"case-{number}"], added[f"case-{number}"]
        is_suspended = gpus == 0
        assert (gone["before"]["gpus"], gone["after"]["gpus"]) == (gpus, 0), kind
        assert (new["before"]["gpus"], new["after"]["gpus"]) == (0, gpus), kind
        assert (gone["effect"], gone["stops"]) == ("in-place" if is_suspended else "stops-running", not is_suspended)
        assert new["effect"] == ("in-place" if "Cron" in kind else "new-run"), kind


def test_findings_about_changes_name_the_line_and_follow_the_documentation(tmp_path):
    wanted = [case for case in CASES if case[0] in (VCJOB, DEEPSPEED, CRON, RAY_JOB) and not case[1]]
    write_sides(tmp_path, list(enumerate(wanted)))
    found = check_change(tmp_path / "old", tmp_path / "new")
    kinds = {(one.rule, one.severity.value, one.object.kind) for one in found}

    assert kinds == {
        ("edit-without-effect", "warning", "RayJob"),
        ("immutable-field-changed", "error", "Job"),
        ("immutable-field-changed", "warning", "DeepSpeedJob"),
    }


def test_the_controller_of_a_gateway_class_is_immutable(tmp_path):
    for folder, name in (("old", "a"), ("new", "b")):
        (tmp_path / folder).mkdir()
        text = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: g}\n"
        (tmp_path / folder / "a.yaml").write_text(f"{text}spec: {{controllerName: example.com/{name}}}\n")

    report = diff_states(tmp_path, "", (), folders=("old", "new"), format_="json", exit_code=False)

    [changed] = json.loads(report.out)["objects"]
    assert changed["effect"] == "rejected"
