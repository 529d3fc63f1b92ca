"""`jobgen queue`: what Kueue decides about the jobs of an environment."""

import json
from pathlib import Path

import jsonschema
import pytest
from jobgenprocess import run_here

from jobgen.api.errors import NotFoundError, UsageError
from jobgen.features.kueue.queue import queue

ROOT = Path(__file__).parent.parent
KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
KUEUE_SETTINGS = {"version": "0.19", "frameworks": ["batch/job", "kubeflow.org/pytorchjob"]}


def cluster_queue(name, gpus=16, *, cohort="research", limit=8, **spec):
    quota = {"name": GPU, "nominalQuota": gpus} | ({"borrowingLimit": limit} if cohort else {})
    flavor = {"name": "h100", "resources": [{"name": "cpu", "nominalQuota": 200}, quota]}
    group = {"coveredResources": ["cpu", GPU], "flavors": [flavor]}
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    whole = {"namespaceSelector": {}, "preemption": preemption, "resourceGroups": [group], **spec}
    return made("ClusterQueue", f"team-{name}", whole | ({"cohortName": cohort} if cohort else {}))


def made(kind, name, spec, namespace=""):
    return {
        "apiVersion": KUEUE,
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": spec,
    }


def local_queue(name, **spec):
    return made("LocalQueue", name, {"clusterQueue": f"team-{name}", **spec}, "ml")


FLAVOR = made("ResourceFlavor", "h100", {"nodeLabels": {"gpu": "h100"}})
TWO_QUEUES = (FLAVOR, cluster_queue("a"), cluster_queue("b"), local_queue("a"), local_queue("b"))


@pytest.fixture
def project(tmp_path):
    """Write a repository; jobs are tuples of name, queue, number of workers and GPUs of each."""

    def write(*jobs, state=TWO_QUEUES, kueue=KUEUE_SETTINGS):
        cluster = {"state": "cluster", "kueue": kueue}
        overlay = {"namespace": "ml", "cluster": cluster}
        files = {
            "jobgen.yaml": "",
            "overlays/prod/overlay.yaml": {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": overlay},
            "cluster/state.json": {"apiVersion": "v1", "kind": "List", "items": list(state)},
        }
        for name, queue_name, replicas, gpus in jobs:
            files[f"jobs/{name}.yaml"] = {
                "apiVersion": "jobgen.dev/v1",
                "kind": "TrainingJob",
                "metadata": {"name": name},
                "spec": {
                    "framework": "pytorch",
                    "image": "registry.example.com/train:1",
                    "command": ["python", "train.py"],
                    "resources": {"cpu": 8, "gpu": gpus},
                    "roles": {"worker": {"replicas": replicas}},
                }
                | ({"queue": queue_name} if queue_name else {}),
            }
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(json.dumps(content) if content else "")
        return tmp_path

    return write


def decisions(folder, **options):
    (report,) = queue(folder, **options).reports
    return {answer.job.name: answer.decision for answer in report.decision.answers}


def find(folder, name, **options):
    (report,) = queue(folder, **options).reports
    return next(answer for answer in report.decision.answers if answer.job.name == name)


JOBS = (("bert", "a", 2, 4), ("llama", "a", 4, 4), ("sweep", "a", 1, 4), ("huge", "a", 4, 8), ("small", "b", 1, 2))


def test_each_job_has_a_decision(project):
    assert decisions(project(*JOBS)) == {
        "bert": "admitted",
        "huge": "never",
        "llama": "borrows",
        "small": "admitted",
        "sweep": "waits",
    }


def test_a_loan_names_the_lender(project):
    (loan,) = find(project(*JOBS), "llama").loans

    assert (loan.lender, loan.pair.resource, loan.amount) == ("team-b", GPU, 8)


def test_a_stopped_queue_lends_its_quota(project):
    stopped = cluster_queue("a2", 8, stopPolicy="Hold")
    (report,) = queue(project(*JOBS, state=(*TWO_QUEUES, stopped))).reports
    (llama,) = (answer for answer in report.decision.answers if answer.job.name == "llama")
    totals = {each.name: each for each in report.decision.totals if each.resource == GPU}

    assert [(loan.lender, loan.amount) for loan in llama.loans] == [("team-a2", 8)]
    assert (totals["team-a2"].lent, totals["research"].nominal) == (8, 40)


def test_a_cohort_and_a_queue_of_the_same_name_lend_apart(project):
    group = cluster_queue("a")["spec"]["resourceGroups"]
    state = (FLAVOR, cluster_queue("a", cohort="team-b"), cluster_queue("b", 4, cohort=""), local_queue("a"))
    cohort = made("Cohort", "team-b", {"resourceGroups": group})
    (report,) = queue(project(("job", "a", 6, 4), state=(*state, cohort))).reports
    lent = {(each.kind, each.name): each.lent for each in report.decision.totals if each.resource == GPU}

    assert report.decision.answers[0].reason == f"its queue borrows `8` of `{GPU}` from cohort `team-b`"
    assert lent == {("ClusterQueue", "team-a"): 0, ("ClusterQueue", "team-b"): 0, ("Cohort", "team-b"): 8}


def test_a_waiting_job_names_what_it_lacks_and_who_uses_it(project):
    answer = find(project(*JOBS), "sweep")

    assert [(each.resource, each.flavor, each.missing) for each in answer.shortages] == [(GPU, "h100", 4)]
    assert answer.blockers == ("ml/bert", "ml/llama", "ml/small")


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ((("big", "a", 6, 8), ("small", "a", 1, 1)), "`ml/big` is before it and never admitted"),
        ((("early", "a", 2, 8), ("middle", "a", 2, 8), ("small", "a", 1, 1)), "`ml/middle` waits before it"),
    ],
)
def test_a_job_behind_another_in_strict_order_says_whether_that_is_ever_admitted(project, jobs, reason):
    state = (FLAVOR, cluster_queue("a", queueingStrategy="StrictFIFO"), *TWO_QUEUES[2:])

    assert find(project(*jobs, state=state), "small").reason == (
        f"{reason}, and ClusterQueue `team-a` admits in strict order"
    )


def two_flavors(**spec):
    """A queue with the flavors `plain` and `spot`, which has a taint."""
    quotas = [{"name": "cpu", "nominalQuota": 200}, {"name": GPU, "nominalQuota": 16}]
    flavors = [{"name": name, "resources": quotas} for name in ("plain", "spot")]
    groups = [{"coveredResources": ["cpu", GPU], "flavors": flavors}]
    taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
    return (
        made("ResourceFlavor", "plain", {"nodeLabels": {"pool": "plain"}}),
        made("ResourceFlavor", "spot", {"nodeLabels": {"pool": "spot"}, "nodeTaints": [taint]}),
        cluster_queue("a", cohort="", resourceGroups=groups, **spec),
        local_queue("a"),
    )


@pytest.mark.parametrize(
    ("pool", "code", "flavor"), [("spot", "taint", "spot"), ("plain", None, None), ("other", "selector", "plain")]
)
def test_the_change_is_about_the_flavor_that_the_pods_select(project, pool, code, flavor):
    folder = project(("job", "a", 1, 1), state=two_flavors())
    path = folder / "jobs/job.yaml"
    job = json.loads(path.read_text())
    job["spec"]["nodeSelector"] = {"pool": pool}
    path.write_text(json.dumps(job))
    obstacle = find(folder, "job").obstacle

    assert (obstacle and obstacle.code, obstacle and obstacle.flavor) == (code, flavor)


def test_a_shortage_is_that_of_the_first_flavor_although_the_last_try_was_about_a_later_one(project):
    folder = project(("first", "a", 3, 4), ("second", "a", 1, 4), state=two_flavors())
    path = folder / "jobs/second.yaml"
    job = json.loads(path.read_text())
    job["spec"]["roles"] = {"master": {}, "worker": {}}
    path.write_text(json.dumps(job))

    assert find(folder, "second").reason == f"it lacks `4` of `{GPU}` in flavor `plain`"


def test_a_job_above_every_quota_is_never_admitted(project):
    obstacle = find(project(*JOBS), "huge").obstacle

    assert (obstacle.code, obstacle.resource, obstacle.flavor) == ("quota", GPU, "h100")
    assert (
        obstacle.change == "reduce `worker` from 4 to 3 pods, or raise `borrowingLimit` of ClusterQueue `team-a` by `8`"
    )


def test_totals_add_up(project):
    (report,) = queue(project(*JOBS)).reports

    found = {(total.name, total.resource): total[4:9] for total in report.decision.totals}
    assert found["team-a", GPU] == (16, 24, 8, 0, 4)
    assert found["team-b", GPU] == (16, 2, 0, 8, 0)
    assert found["research", GPU] == (32, 26, 0, 0, 4)


def test_strict_order_blocks_what_comes_later(project):
    state = (FLAVOR, cluster_queue("a", cohort="", queueingStrategy="StrictFIFO"), local_queue("a"))
    folder = project(("first", "a", 5, 4), ("second", "a", 1, 1), state=state)

    assert decisions(folder) == {"first": "never", "second": "waits"}
    assert find(folder, "second").blockers == ("ml/first",)


def test_running_jobs_are_preempted_by_the_owner_of_the_quota(project):
    folder = project(("borrower", "a", 6, 4), ("owner", "b", 4, 4))

    assert decisions(folder, running=["borrower"]) == {"borrower": "waits", "owner": "preempts"}
    answer = find(folder, "owner", running=["borrower"])
    assert [(each.workload, each.reason) for each in answer.evictions] == [("ml/borrower", "InCohortReclamation")]
    assert find(folder, "borrower", running=["borrower"]).evicted_by == "ml/owner"


def test_jobs_that_are_assumed_to_run(project):
    folder = project(("one", "a", 1, 4), ("two", "a", 1, 4))

    assert decisions(folder, running=["one"]) == {"one": "running", "two": "admitted"}
    assert decisions(folder, running=["all"]) == {"one": "running", "two": "running"}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((cluster_queue("a"),), "there is no LocalQueue `a` in namespace `ml`"),
        (
            (local_queue("a"), cluster_queue("b")),
            "LocalQueue `a` refers to ClusterQueue `team-a`, which does not exist",
        ),
        ((cluster_queue("a"), local_queue("a", stopPolicy="Hold")), "LocalQueue `a` is stopped (`stopPolicy: Hold`)"),
        (
            (cluster_queue("a", stopPolicy="Hold"), local_queue("a")),
            "ClusterQueue `team-a` is stopped (`stopPolicy: Hold`)",
        ),
        (
            (
                cluster_queue("a", namespaceSelector={"matchLabels": {"team": "b"}}),
                local_queue("a"),
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
            ),
            "ClusterQueue `team-a` does not select namespace `ml`",
        ),
        (
            (cluster_queue("a", namespaceSelector=None), local_queue("a"), made("Cohort", "research", {})),
            "ClusterQueue `team-a` does not select namespace `ml`",
        ),
    ],
)
def test_queues_that_never_admit(project, state, message):
    answer = find(project(("job", "a", 1, 1), state=(FLAVOR, *state)), "job")

    assert (answer.decision, answer.reason) == ("never", message)


def test_a_resource_of_another_group_may_be_what_never_fits(project):
    def group(resource, quota):
        return {
            "coveredResources": [resource],
            "flavors": [{"name": f"only-{resource[:3]}", "resources": [{"name": resource, "nominalQuota": quota}]}],
        }

    flavors = [made("ResourceFlavor", name, {}) for name in ("only-cpu", "only-nvi")]
    queues = (cluster_queue("a", cohort="", resourceGroups=[group("cpu", 8), group(GPU, 2)]), local_queue("a"))
    folder = project(("first", "a", 1, 1), ("second", "a", 1, 4), state=(*flavors, *queues))

    assert decisions(folder) == {"first": "admitted", "second": "never"}
    assert find(folder, "second").obstacle.resource == GPU


RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
PLACED = (
    made("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}),
    made("ResourceFlavor", "h100", {"nodeLabels": {"gpu": "h100"}, "topologyName": "racks"}),
    cluster_queue("a", 64, cohort=""),
    local_queue("a"),
)
NODES = [
    {"flavor": "h100", "count": 2, "labels": {RACK: rack}, "capacity": {"cpu": 96, GPU: 8}} for rack in ("r1", "r2")
]


@pytest.mark.parametrize(
    ("annotation", "replicas", "decision"),
    [
        ({"kueue.x-k8s.io/podset-required-topology": RACK}, 2, "admitted"),
        ({"kueue.x-k8s.io/podset-required-topology": RACK}, 3, "never"),
        ({"kueue.x-k8s.io/podset-preferred-topology": RACK}, 3, "admitted"),
        ({"kueue.x-k8s.io/podset-preferred-topology": RACK}, 5, "never"),
        ({}, 4, "admitted"),
        ({}, 5, "never"),
    ],
)
def test_topologies_decide_where_pods_fit(project, annotation, replicas, decision):
    folder = project(("job", "a", replicas, 8), state=PLACED, kueue={**KUEUE_SETTINGS, "nodes": NODES})
    path = folder / "jobs/job.yaml"
    job = json.loads(path.read_text())
    job["spec"]["annotations"] = annotation
    path.write_text(json.dumps(job))

    assert decisions(folder) == {"job": decision}


def test_without_nodes_every_placement_is_possible(project):
    (report,) = queue(project(("job", "a", 6, 8), state=PLACED)).reports

    assert [answer.decision for answer in report.decision.answers] == ["admitted"]
    assert any("no nodes are among the files" in note for note in report.decision.assumptions)


def test_a_job_without_a_queue_is_not_managed(project):
    assert decisions(project(("job", "", 1, 1))) == {"job": "unmanaged"}


@pytest.mark.parametrize(
    ("kueue", "decision"),
    [
        ({"version": "0.19"}, "unmanaged"),
        ({"version": "0.18"}, "admitted"),
        ({"version": "0.19", "frameworks": ["kubeflow.org/pytorchjob"]}, "admitted"),
        ({"frameworks": ["batch/job"]}, "unmanaged"),
        ({}, "admitted"),
    ],
)
def test_kinds_are_managed_by_version_and_configuration(project, kueue, decision):
    assert decisions(project(("job", "a", 1, 1), kueue=kueue)) == {"job": decision}


@pytest.mark.parametrize(("version", "decision"), [("0.16", "admitted"), ("0.17", "never"), ("0.19", "never")])
def test_train_jobs_of_an_older_trainer_are_never_admitted(project, version, decision):
    folder = project(("job", "a", 1, 1), kueue={"version": version})
    overlay = json.loads((folder / "overlays/prod/overlay.yaml").read_text())
    overlay["spec"]["cluster"] |= {"platform": "trainer", "operators": {"trainer": "2.1.0"}}
    (folder / "overlays/prod/overlay.yaml").write_text(json.dumps(overlay))
    found = find(folder, "job")

    assert found.decision == decision
    assert decision == "admitted" or (found.obstacle.code == "version" and "Trainer 2.1.0" in found.reason)


def test_jobs_without_a_queue_may_be_kept_suspended(project):
    kueue = {**KUEUE_SETTINGS, "managedJobsWithoutQueueName": True}

    assert decisions(project(("job", "", 1, 1), kueue=kueue)) == {"job": "never"}


def test_only_selected_jobs_are_shown_but_all_take_part(project):
    assert decisions(project(*JOBS), jobs=["sweep"]) == {"sweep": "waits"}


@pytest.mark.parametrize(
    ("jobs", "names"),
    [
        ((), ["team-a", "team-b", "team-c", "research"]),
        (("sweep",), ["team-a", "team-b", "research"]),
        (("alone",), ["team-c"]),
        (("lost",), []),
    ],
)
def test_the_quota_is_that_of_the_selected_jobs(project, jobs, names):
    state = (*TWO_QUEUES, cluster_queue("c", cohort=""), local_queue("c"))
    folder = project(*JOBS, ("alone", "c", 1, 1), ("lost", "d", 1, 1), state=state)
    (report,) = queue(folder, jobs).reports

    assert [each.name for each in report.decision.totals if each.resource == GPU] == names


@pytest.mark.parametrize("name", ["sweep", "sweep-*", "ml/sweep-?", "ml/*"])
def test_a_sweep_is_selected_by_its_name(project, name):
    folder = project(("sweep", "a", 1, 4))
    path = folder / "jobs/sweep.yaml"
    job = json.loads(path.read_text())
    job["spec"] |= {"matrix": {"seed": [1, 2]}, "args": ["${{ matrix.seed }}"], "run": {"identity": "name"}}
    path.write_text(json.dumps(job))

    assert decisions(folder, jobs=[name]) == {"sweep-1": "admitted", "sweep-2": "admitted"}
    assert set(decisions(folder, running=[name]).values()) == {"running"}


def test_a_run_with_a_hash_is_selected_by_the_name_of_its_job(project):
    folder = project(("bert", "a", 1, 4), ("other", "a", 1, 4))
    path = folder / "jobs/bert.yaml"
    job = json.loads(path.read_text())
    job["spec"]["run"] = {"identity": "hash"}
    path.write_text(json.dumps(job))

    assert list(decisions(folder, jobs=["bert"], running=["bert"]).values()) == ["running"]


def test_errors_of_arguments(project):
    folder = project(*JOBS)

    with pytest.raises(NotFoundError, match="there is no job `swep`; did you mean `sweep`"):
        queue(folder, ["swep"])
    with pytest.raises(NotFoundError, match="there is no job `nothing`"):
        queue(folder, running=["nothing"])
    with pytest.raises(UsageError, match="there is no ClusterQueue in prod among the files"):
        queue(project(*JOBS, state=(FLAVOR,)))


def test_a_missing_folder_of_the_state_is_an_error(project):
    folder = project(*JOBS)
    (folder / "cluster/state.json").rename(folder / "jobs/queues.json")
    (folder / "cluster").rmdir()

    result = queue(folder)

    (finding,) = result.findings
    assert (finding.rule, finding.location.file) == ("unreadable-file", "overlays/prod/overlay.yaml")
    assert result.failed
    assert result.workloads == ()


def test_an_environment_without_queues_says_so(project):
    folder = project(*JOBS)
    (folder / "overlays/dev").mkdir()
    (folder / "overlays/dev/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")

    text = queue(folder).text
    assert "environment dev\n\nno workloads\n" in text
    assert "no ClusterQueue is among the files, so nothing is decided" in text


def test_jobs_that_differ_only_in_the_name_are_shown_once(project):
    folder = project(*((f"job-{number}", "a", 1, 4) for number in range(20, 34)), ("other", "a", 1, 3))
    names = [f"ml/job-{number}" for number in range(26, 31)]

    text = queue(folder).text
    assert f"\n{', '.join(names)} and 3 more: waits\n" in text
    assert "\nml/other: waits\n" in text
    assert "\n15 workloads: " in text
    assert f"PyTorchJob {', '.join(names)} and 3 more |" in queue(folder, format="markdown").text
    assert len(json.loads(queue(folder, format="json").text)["environments"][0]["workloads"]) == 15


@pytest.mark.parametrize("name", ["text", "json", "markdown"])
def test_formats_name_every_job(project, name):
    text = queue(project(*JOBS), format=name).text

    assert [job for job, *_ in JOBS if f"ml/{job}" not in text] == []


@pytest.mark.parametrize("jobs", [JOBS, (("job", "", 1, 1),), (("job", "a", 4, 4), ("owner", "b", 4, 4))])
def test_json_matches_its_schema(project, jobs):
    schema = json.loads((ROOT / "docs/queue_v1.json").read_text("utf-8"))
    running = ["job*"] if len(jobs) == 2 else ["none"]
    document = json.loads(queue(project(*jobs), running=running, format="json").text)

    assert list(jsonschema.Draft202012Validator(schema).iter_errors(document)) == []


def test_command(project):
    folder = str(project(*JOBS))

    assert run_here(["-C", folder, "queue", "--assume", "walking=all"])[0] == 2
    assert run_here(["-C", folder, "queue", "small", "--exit-code"])[0] == 0
    assert run_here(["-C", folder, "queue", "--exit-code"])[0] == 1


def test_an_object_that_the_state_has_twice_is_an_error(project):
    result = queue(project(*JOBS, state=(*TWO_QUEUES, cluster_queue("a", 99))))

    assert [finding.rule for finding in result.findings] == ["unread-file"]
    assert "another ClusterQueue `team-a`" in result.findings[0].message
    assert queue(project(*JOBS, state=(*TWO_QUEUES, cluster_queue("a")))).findings == ()
