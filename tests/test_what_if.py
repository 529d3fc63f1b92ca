"""`jobgen queue --what-if` and `--suggest`: what changes of queues, nodes and jobs do, and which ones suffice."""

import json
from itertools import product
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jobgenprocess import run_here
from sampling import laws
from test_diff_queues import COMMON, GPU, cluster_queue, job, local_queue, one_queue, two_queues, write_repository
from test_queue_attacks import with_quota

from jobgen.api.errors import UsageError
from jobgen.compare.changes import Change
from jobgen.features.kueue.answers import RUNS, decide
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queue import queue
from jobgen.features.kueue.queues.formats.json import describe_report
from jobgen.features.kueue.queues.formats.markdown import render as markdown_of
from jobgen.features.kueue.queues.formats.text import render as text_of
from jobgen.features.kueue.queues.suggest import suggest_quota
from jobgen.features.kueue.queues.what_if import WhatIf
from jobgen.spec.overlay import Cluster

SCHEMA = json.loads((Path(__file__).parent.parent / "docs/queue_v1.json").read_text("utf-8"))
NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"n{number}",
            "labels": {"gpu": "h100", "rack": "r1", "kubernetes.io/hostname": f"n{number}"},
        },
        "status": {"allocatable": {GPU: "8", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    for number in range(3)
]
TOPOLOGY = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
}
PLACED = {**COMMON[0], "spec": {**COMMON[0]["spec"], "topologyName": "racks"}}


@pytest.fixture
def ask(tmp_path):
    """Ask about a repository; the answer is the report of its only environment."""

    def run(state, jobs, *changes, cluster=None, named=(), **options):
        write_repository(tmp_path, state, jobs, **(cluster or {}))
        (report,) = queue(tmp_path, named, what_if=changes, **options).reports
        return report

    return run


def rows(report):
    return {
        each.workload.removeprefix("ml/"): (each.before, each.after) for each in report.comparison.changes.workloads
    }


def decisions(report):
    return {each.key.removeprefix("ml/"): each.decision for each in report.decision.answers}


FULL = (job("first"), job("second"), job("third"))
HIGH = (job("first"), job("second"), job("urgent", priority="high"))
CASES = {
    "more quota": (one_queue(), FULL, ["cq/a.h100+=4"], {"third": ("waits", "admitted")}),
    "quota by resource": (one_queue(), FULL, [f"clusterqueue/a.h100.{GPU}=12"], {"third": ("waits", "admitted")}),
    "less quota": (one_queue(), FULL[:2], ["cq/a.h100-=4"], {"second": ("admitted", "waits")}),
    "changes add up": (one_queue(), FULL, ["cq/a.h100=6", "cq/a.h100+=6"], {"third": ("waits", "admitted")}),
    "what can be borrowed": (
        two_queues(4, 8),
        (job("first", 4), job("second", 4)),
        ["cq/a.h100.borrowingLimit=0"],
        {"second": ("borrows", "waits")},
    ),
    "what is lent": (
        two_queues(4, 8),
        (job("first", 4), job("second", 4)),
        ["cq/b.h100.lendingLimit=2"],
        {"second": ("borrows", "waits")},
    ),
    "a queue leaves its cohort": (
        two_queues(4, 8),
        (job("first", 4), job("second", 4)),
        ["cq/a.cohortName="],
        {"second": ("borrows", "waits")},
    ),
    "quota of a cohort": (
        (
            *two_queues(4, 0),
            {**cluster_queue("all", 0), "kind": "Cohort"},
        ),
        (job("first", 4), job("second", 4)),
        ["cohort/all.h100+=4"],
        {"second": ("waits", "borrows")},
    ),
    "a queue stops": (one_queue(), FULL[:1], ["cq/a.stopPolicy=Hold"], {"first": ("admitted", "never")}),
    "a local queue stops": (one_queue(), FULL[:1], ["lq/ml/a.stopPolicy=Hold"], {"first": ("admitted", "never")}),
    "strict order": (
        one_queue(),
        (job("big", 16), job("first"), job("second")),
        ["cq/a.queueingStrategy=StrictFIFO"],
        {"first": ("admitted", "waits"), "second": ("admitted", "waits")},
    ),
    "a priority class": (
        one_queue(preemption={}),
        (job("first", priority="high"), job("second", priority="high"), job("third", priority="higher")),
        ["priority/higher=1"],
        {"second": ("waits", "admitted"), "third": ("admitted", "waits")},
    ),
    "the class of a job": (
        one_queue(preemption={}),
        FULL,
        ["job/third.priority=high"],
        {"second": ("admitted", "waits"), "third": ("waits", "admitted")},
    ),
    "the queue of a job": (two_queues(4, 4), FULL[:2], ["job/second.queue=b"], {"second": ("borrows", "admitted")}),
    "a job without its queue is gone": (one_queue(), FULL, ["job/ml/first-"], {"third": ("waits", "admitted")}),
    "replicas": (
        one_queue(),
        (job("first", 2, parallelism=4, completions=4), job("second")),
        ["job/first.replicas=2"],
        {"second": ("waits", "admitted")},
    ),
    "more replicas than completions": (
        one_queue(),
        (job("first", 2, parallelism=2, completions=2), job("second")),
        ["job/first.replicas+=2"],
        {"second": ("admitted", "waits")},
    ),
    "a pattern of jobs": (one_queue(), FULL, ["job/*d.replicas=0"], {"third": ("waits", "admitted")}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_change_does(name, ask):
    state, jobs, changes, expected = CASES[name]
    report = ask(state, jobs, *changes)

    assert rows(report) == expected
    assert report.comparison.unchanged == len(report.decision.answers) - len(expected)
    assert [each.change for each in report.comparison.applied] == changes
    # The decisions are those after the changes, as if they had been written to the files.
    assert {job: decisions(report)[job] for job in expected} == {job: after for job, (_, after) in expected.items()}


SPOT = {"name": "spot", "resources": [{"name": GPU, "nominalQuota": 8}]}


def test_a_job_that_moves_to_another_flavor_changes(ask):
    """Also one that need not preempt any more: both run before and after."""
    group = cluster_queue("a", 8)["spec"]["resourceGroups"][0]
    queue_a = cluster_queue("a", 8, resourceGroups=[{**group, "flavors": [*group["flavors"], SPOT]}])
    spot = {**COMMON[0], "metadata": {"name": "spot"}}
    report = ask((*COMMON, spot, queue_a, local_queue("a")), FULL[:2], "cq/a.h100=4", format="json")
    [moved] = report.comparison.changes.workloads

    assert moved[:2] == (Change.MOVES, "ml/second")
    assert (moved.before, moved.after) == ("admitted", "admitted")
    assert moved.moved == "from flavor `h100` to `spot`"
    assert report.comparison.unchanged == 1
    document = {"version": 1, "environments": [describe_report(report)]}
    jsonschema.validate(document, SCHEMA)
    assert document["environments"][0]["comparison"]["summary"] == {"moves": 1}
    assert "ml/second: admitted, moves from flavor `h100` to `spot`" in text_of([report])
    assert "admitted, moves from flavor" in markdown_of([report])
    calm = ask(one_queue(), HIGH, "cq/a.h100+=4", running=["first", "second"])
    assert rows(calm) == {"second": ("waits", "running"), "urgent": ("preempts", "admitted")}


def test_roles_have_their_own_replicas(ask):
    report = ask(one_queue(12), (ROLES,), "job/roles.worker.replicas-=1", "job/roles.master.replicas+=1")

    assert [(each.before, each.after) for each in report.comparison.applied] == [("2", "1"), ("none", "2")]
    assert [each.count for each in report.decision.answers[0].workload.pod_sets] == [2, 1]


def test_the_class_of_pods_is_the_priority_without_a_class_of_workloads(ask):
    pods = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "pods"}, "value": 5}
    report = ask((*one_queue(preemption={}), pods), FULL, "job/third.priority=pods")

    assert rows(report) == {"second": ("admitted", "waits"), "third": ("waits", "admitted")}


def test_a_preemption_policy_shows_who_is_preempted(ask):
    change = "cq/a.preemption.withinClusterQueue=LowerPriority"
    report = ask(one_queue(preemption={}), HIGH, change, running=["first", "second"])
    [preempted, urgent] = report.comparison.changes.workloads

    assert (preempted.workload, preempted.after, preempted.preempted_by) == ("ml/second", "preempted", "ml/urgent")
    assert preempted.rule == "InClusterQueue"
    assert (urgent.workload, urgent.before, urgent.after) == ("ml/urgent", "waits", "preempts")
    balance = {each.name: (each.before, each.after) for each in report.comparison.changes.balance}
    assert balance == {"admitted": ("2", "2"), "preempted": ("0", "1"), "waits": ("1", "0"), "unused": ("0", "0")}


def test_running_jobs_keep_their_quota_unless_they_change(ask):
    """Kueue evicts nothing when quota is lowered; a job with other pods is queued again."""
    assert rows(ask(one_queue(), FULL[:2], "cq/a.h100=0", running=["all"])) == {}
    assert rows(ask(one_queue(), FULL[:2], "cq/a.h100=4", running=["second"])) == {"first": ("admitted", "waits")}
    changed = ask(one_queue(), FULL[:2], "cq/a.h100=4", "job/second.replicas=2", running=["all"])
    assert rows(changed) == {"second": ("running", "never")}


def test_nodes_of_a_flavor(ask):
    state = (*COMMON[1:], PLACED, TOPOLOGY, cluster_queue("a", 24), local_queue("a"), *NODES)
    jobs = (job("first", 8, parallelism=3),)
    short = {"kueue": {"nodes": [{"flavor": "h100", "count": 3, "labels": {"rack": "r1"}, "capacity": {GPU: 8}}]}}
    for files, cluster, last in ((state, {}, "n2"), (state[:-3], short, "h100-0-2")):
        report = ask(files, jobs, "flavor/h100-=1 node", cluster=cluster)

        assert rows(report) == {"first": ("admitted", "never")}
        assert report.comparison.applied[0].what.endswith(f"(without {last})")
        assert rows(ask(files, jobs, f"node/{last}-", cluster=cluster)) == {"first": ("admitted", "never")}
        assert rows(ask(files, jobs, f"node/{last}.{GPU}-=1", cluster=cluster)) == {"first": ("admitted", "never")}
        assert rows(ask(files, jobs, f"node/{last}.unschedulable=true", cluster=cluster)) == {
            "first": ("admitted", "never")
        }
        more = ask(files, (job("first", 8, parallelism=4),), "flavor/h100+=2 nodes", "cq/a.h100+=8", cluster=cluster)
        assert rows(more) == {"first": ("never", "admitted")}


def test_a_lost_node_queues_its_job_again_and_no_node_is_no_place(ask):
    state = (*COMMON[1:], PLACED, TOPOLOGY, cluster_queue("a", 24), local_queue("a"), *NODES)
    jobs = (job("first", 8, parallelism=2), job("second", 8))
    lost = [rows(ask(state, jobs, f"node/n{number}-", running=["all"])) for number in range(3)]

    assert sorted(map(list, lost)) == [["first"], ["first"], ["second"]]
    assert rows(ask(state, jobs, "flavor/h100=0 nodes")) == {
        "first": ("admitted", "never"),
        "second": ("admitted", "never"),
    }
    assert set(decisions(ask(state, jobs, "flavor/h100-")).values()) == {"never"}


def test_nodes_of_a_flavor_without_a_topology_change_no_decision(ask):
    report = ask((*one_queue(), *NODES), FULL[:2], "flavor/h100=1 node")

    assert rows(report) == {}
    assert "no topology, so Kueue ignores its nodes" in report.comparison.applied[0].note


FILE = """
changes: [cq/a.h100+=4]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec: {queueingStrategy: StrictFIFO, preemption: null}
---
apiVersion: batch/v1
kind: Job
metadata: {name: second}
$patch: delete
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: highest}
value: 300
"""


def test_a_file_has_partial_objects_and_changes(ask, tmp_path):
    file = tmp_path / "what-if.yaml"
    file.write_text(FILE)
    report = ask(one_queue(), FULL, "job/third.priority=highest", what_if_file=file)

    found = [(each.change, each.after) for each in report.comparison.applied]
    assert found[:3] == [
        ("ClusterQueue a", "changed"),
        ("Job second", "removed"),
        ("WorkloadPriorityClass highest", "added"),
    ]
    assert [change for change, _ in found[3:]] == ["cq/a.h100+=4", "job/third.priority=highest"]
    assert decisions(report) == {"first": "admitted", "third": "admitted"}


POD = job("x")["spec"]["template"]
ROLES = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": job("roles")["metadata"],
    "spec": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}},
}
TWICE = (*one_queue(), {**COMMON[1], "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"})
ERRORS = {
    "nonsense": "`nonsense` is not a change; write `cq/NAME.FLAVOR+=8`",
    "cq/a": "is not a change",
    "=": "is not a change",
    "\x00/\x00=\x00": "is not a change",
    "x" * 100_000: "is not a change",
    "pod/a=1": "`pod` is not a kind that can be changed; use `cq/`, `cohort/`",
    "cq/aa.h100=1": "names no ClusterQueue; the files have `a`",
    "cq/zzz.h100=1": "names no ClusterQueue; the files have `a`",
    "cohort/x.h100=1": "names no Cohort; the files have none",
    "cq/a.h100*=2": "`*=` is not an operator; use `=`, `+=` or `-=`",
    "cq/a.h100==2": "`==` is not an operator",
    "cq/a.h100=1.5": "`1.5` is not a number of devices; write a whole number",
    "cq/a.h100=8Gi": "`8Gi` is not a number of devices",
    "workloadpriorityclass/high=99999999999": "it must be at most 2147483647",
    "clusters/west-": "names no worker cluster; the overlay declares none",
    "cq/a=1": "names no field of ClusterQueue `a`; write `cq/a.h100.nvidia.com/gpu",
    "cq/a.h200=1": "names no field of ClusterQueue `a`; did you mean `h100`?",
    "cq/a.preemption=Any": "is ambiguous; write `cq/a.preemption.withinClusterQueue`",
    "cq/a.stopPolicy=hold": "`hold` is not a value of `stopPolicy`; use `None`, `Hold` or `HoldAndDrain`",
    "cq/a.stopPolicy+=1": "`stopPolicy` is not an amount; write `=`",
    "cq/a.h100=": "`` is not a quantity",
    "cq/a.h100=many": "`many` is not a quantity such as `8`",
    "cq/a.h100=-1": "would be `-1`; it must be at least 0",
    "cq/a.h100-=9": "is `8`, and would be `-1`; it must be at least 0",
    "cq/a.h100+=-9": "would be `-1`",
    "cq/a.h100.borrowingLimit+=1": "so nothing is limited; write `=`",
    "flavor/h100-=1 node": "the files have 0 nodes of flavor `h100`",
    "flavor/h100-=1": "write a number of nodes, such as `flavor/h100-=1 node`",
    "flavor/h100+=999999999 nodes": "jobgen simulates at most 50000",
    "priority/high=1": "is ambiguous; write `priorityclass/high` or `workloadpriorityclass/high`",
    "workloadpriorityclass/high=high": "`high` is not a whole number",
    "workloadpriorityclass/high=9999999999": "it must be at most 2147483647",
    "job/twice.replicas=1": "is ambiguous; write `job/job/ml/twice` or `job/job/other/twice`",
    "cq/a.fairSharing.weight+=1": "`fairSharing.weight` is not an amount; write `=`",
    "job/roles.replicas=1": "is ambiguous; write `job/roles.master.replicas` or `job/roles.worker.replicas`",
    "job/first.gpus=1": "names no field of Job `ml/first`; write `job/first.queue`",
    "job/first.replicas=-1": "it must be at least 0",
    "job/first.queue=b": "there is no LocalQueue `b`",
    "job/first.priority=1000": "there is no WorkloadPriorityClass or PriorityClass `1000`",
    "job/gone-": "names no job; the files have `first`, `roles`, `second`, `third` or `twice`",
}  # fmt: skip


@pytest.mark.parametrize("change", ERRORS, ids=lambda change: ascii(change)[:40])
def test_a_change_that_names_nothing_or_is_wrong_says_what_to_write(change, ask):
    other = job("twice")
    other["metadata"] = other["metadata"] | {"namespace": "other"}
    with pytest.raises(UsageError) as error:
        ask(TWICE, (*FULL, job("twice"), other, ROLES), change)

    assert ERRORS[change] in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "`a` is not a key of a file of changes"),
        ("[cq/a.h100+=4]", "neither an object nor a list"),
        ("changes: [1]", "`1` is not a change"),
        ("changes: cq/a.h100+=4", "`changes` is not a list; write"),
        ("changes:", "`changes` is empty"),
        ("change: [cq/a.h100+=4]", "`change` is not a key of a file of changes; did you mean `changes`"),
        (
            "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: {queuingStrategy: x}}",
            "line 1: `queuingStrategy` is not a field of `spec`; did you mean `queueingStrategy`",
        ),
        ("a: [", "not closed"),
        ("kind: ClusterQueue", "needs `apiVersion`, `kind` and `metadata.name`"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "does not decide about admission"),
        (
            "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: a}, spec: 1}",
            "has a scalar where",
        ),
    ],
)
def test_errors_of_a_file(text, message, ask, tmp_path):
    (tmp_path / "what-if.yaml").write_text(text)
    with pytest.raises(UsageError, match=message):
        ask(one_queue(), FULL, what_if_file=tmp_path / "what-if.yaml")


def test_an_amount_that_would_be_negative_is_shown_in_its_unit():
    with pytest.raises(UsageError, match="is `8`, and would be `-92`; it must be at least 0"):
        WhatIf(("cq/a.f.cpu-=100",)).apply([], with_quota(8), Cluster())


def test_without_jobs_nothing_is_said_of_them(tmp_path):
    folder = write_repository(tmp_path, one_queue(), ())
    assert "there are no workloads" in queue(folder, suggest=True).text


def test_nothing_of_a_file_that_is_no_list_of_changes_is_shown(ask, tmp_path):
    (tmp_path / "key").write_text("s3cr3t")
    with pytest.raises(UsageError, match="neither an object nor a list of changes; write") as failure:
        ask(one_queue(), FULL, what_if_file=tmp_path / "key")
    assert "s3cr3t" not in str(failure.value)


def test_no_link_to_a_file_of_changes_leads_out_of_the_repository(tmp_path):
    folder = write_repository(tmp_path / "repository", one_queue(), FULL)
    (tmp_path / "what-if.yaml").write_text("changes: [cq/a.h100+=4]")
    (folder / "link.yaml").symlink_to("../what-if.yaml")

    assert queue(folder, what_if_file=str(tmp_path / "what-if.yaml")).reports
    with pytest.raises(UsageError, match="a symbolic link that leads out of the repository; it is not followed"):
        queue(folder, what_if_file=str(folder / "link.yaml"))


def test_a_change_applies_where_its_object_is(tmp_path):
    """An environment without it stays as it is; in none of them, it is an error."""
    write_repository(tmp_path, one_queue(), FULL)
    overlay = {"namespace": "ml", "cluster": {"state": "other"}}
    made = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": overlay}
    (tmp_path / "overlays/test").mkdir()
    (tmp_path / "overlays/test/overlay.yaml").write_text(json.dumps(made))
    (tmp_path / "other").mkdir()
    state = {"apiVersion": "v1", "kind": "List", "items": [*COMMON, cluster_queue("b", 4), local_queue("b")]}
    (tmp_path / "other/state.json").write_text(json.dumps(state))
    changed = queue(tmp_path, what_if=["cq/a.h100+=4"]).reports

    assert {each.environment: rows(each) for each in changed} == {"prod": {"third": ("waits", "admitted")}, "test": {}}
    with pytest.raises(UsageError, match="names no field"):
        queue(tmp_path, what_if=["cq/a.x=4"])


@pytest.mark.parametrize("name", ["text", "json", "markdown"])
def test_formats(name, tmp_path):
    write_repository(tmp_path, one_queue(), (*FULL, job("lost", queue="nowhere")))
    text = queue(tmp_path, what_if=["cq/a.h100+=2"], suggest=True, format=name).text

    assert [part for part in ("cq/a.h100+=2", f"cq/a.h100.{GPU}+=2", "ml/third", "ml/lost") if part not in text] == []
    if name == "json":
        assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(json.loads(text))) == []
        (environment,) = json.loads(text)["environments"]
        assert environment["comparison"]["suggestion"]["impossible"][0]["workload"] == "ml/lost"


def test_exit_codes(tmp_path):
    folder = str(write_repository(tmp_path, one_queue(), FULL))

    assert run_here(["-C", folder, "queue", "--what-if", "cq/a.h100+=4"])[0] == 0
    assert run_here(["-C", folder, "queue", "--what-if", "cq/b.h100+=4"])[0] == 2
    assert run_here(["-C", folder, "queue", "--what-if-file", f"{folder}/missing.yaml"])[0] == 2
    assert run_here(["-C", folder, "queue", "--suggest", "third"])[0] == 0


def test_names_that_are_removed_or_mistyped(ask):
    jobs = (job("first", 4, priority="high"), job("second", 2, parallelism=3))
    report = ask(
        two_queues(4, 8),
        jobs,
        "cq/a.cohortName=none",
        "cq/b.cohortName=al",
        "job/first.priority=none",
        "jobs/*.replicas=2",
    )
    applied = report.comparison.applied

    assert [(each.before, each.after) for each in applied] == [
        ("all", "none"),
        ("all", "al"),
        ("high", "none"),
        ("3, none", "2"),
    ]
    assert applied[1].note == "no other queue is in cohort `al`"
    with pytest.raises(UsageError, match=r"cohort `all` has no Cohort object, .*; change `cq/a.h100` or `cq/b.h100`"):
        ask(two_queues(4, 8), jobs, "cohort/all.h100+=4")


def test_a_thousand_changes(ask):
    jobs = [job(f"j{number}", 1) for number in range(200)]
    changes = ["cq/a.h100+=1"] * 500 + [f"job/j{number % 200}.replicas={number % 3}" for number in range(500)]
    report = ask(one_queue(0), jobs, *changes)

    assert len(report.comparison.applied) == 1000
    assert report.comparison.applied[499].after == "500"
    with pytest.raises(UsageError, match="more than 1000 changes"):
        ask(one_queue(0), jobs, *changes, "cq/a.h100+=1")


@pytest.mark.parametrize("value", ["1e30", "9223372036854775807", "99999999999999999999999", "1n"])
def test_huge_and_tiny_amounts(value, ask):
    report = ask(one_queue(), FULL, f"cq/a.h100={value}", "cq/a.h100+=9223372036854775807")

    assert rows(report) == {"third": ("waits", "admitted")}


# Suggestions.


def changes_of(report):
    return [each.change for each in report.comparison.suggestion.quotas]


def test_the_smallest_quota_that_admits_everything(ask):
    report = ask(one_queue(), (*FULL, job("big", 20)), suggest=True)

    assert changes_of(report) == [f"cq/a.h100.{GPU}+=24"]
    assert set(decisions(report).values()) == {"admitted"}


def test_only_the_named_jobs_have_to_be_admitted(ask):
    """A job that arrives earlier takes the quota first; what is admitted stays so."""
    assert changes_of(ask(one_queue(), (*FULL, job("zero", 3)), suggest=True, named=["zero"])) == [
        f"cq/a.h100.{GPU}+=3"
    ]
    assert changes_of(ask(one_queue(), (*FULL, job("zero", 4)), suggest=True, named=["zero"])) == [
        f"cq/a.h100.{GPU}+=8"
    ]
    assert changes_of(ask(one_queue(), FULL, suggest=True, named=["first"])) == []


def test_a_borrowing_limit_is_raised_if_it_is_the_only_obstacle(ask):
    limited = cluster_queue("a", 4, cohort="all")
    limited["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = 1
    state = (*COMMON, limited, cluster_queue("b", 8, cohort="all"), local_queue("a"), local_queue("b"))

    assert changes_of(ask(state, FULL[:2], suggest=True)) == [f"cq/a.h100.{GPU}.borrowingLimit+=3"]
    # Nothing is left to borrow: the limit is not the only obstacle.
    assert changes_of(ask(state, (*FULL[:2], job("other", 8, "b")), suggest=True)) == [f"cq/a.h100.{GPU}+=4"]


def test_jobs_that_no_quota_admits_have_the_reason(ask):
    jobs = (
        job("lost", queue="nowhere"),
        job("picky", nodeSelector={"gpu": "a100"}),
        job("stopped", queue="b"),
        job("third", 12),
    )
    picky = jobs[1]["spec"]
    picky["template"]["spec"]["nodeSelector"] = picky.pop("nodeSelector")
    state = (*one_queue(), cluster_queue("b", 8, stopPolicy="Hold"), local_queue("b"))
    report = ask(state, jobs, suggest=True)

    reasons = dict(report.comparison.suggestion.impossible)
    assert list(reasons) == ["ml/lost", "ml/picky", "ml/stopped"]
    assert "does not match flavor `h100`" in reasons["ml/picky"]
    assert changes_of(report) == [f"cq/a.h100.{GPU}+=4"]


def test_places_are_no_quota(ask):
    state = (*COMMON[1:], PLACED, TOPOLOGY, cluster_queue("a", 8), local_queue("a"), *NODES)
    report = ask(state, (job("first", 8, parallelism=2), job("second", 8, parallelism=4)), suggest=True)

    assert changes_of(report) == [f"cq/a.h100.{GPU}+=8"]
    [(workload, reason)] = report.comparison.suggestion.impossible
    assert workload == "ml/second"
    assert "topology" in reason


def test_a_search_that_takes_too_long_says_for_how_many_jobs(ask, monkeypatch):
    monkeypatch.setattr("jobgen.features.kueue.queues.suggest._MOST_WORK", 4)
    report = ask((*one_queue(), cluster_queue("b", 0), local_queue("b")), (*FULL, job("other", 4, "b")), suggest=True)

    assert report.comparison.suggestion.untried == 2
    assert changes_of(report) == []


def test_quota_of_a_cohort_is_suggested_where_queues_have_none(ask):
    """Both queues live on what the cohort has."""
    shared = {**cluster_queue("all", 4), "kind": "Cohort"}
    state = (*two_queues(0, 0), shared)
    found = ask(state, FULL[:2], suggest=True)
    assert changes_of(found) == [f"cohort/all.h100.{GPU}+=4"]
    assert set(decisions(found).values()) == {"borrows"}
    # A queue that must not borrow needs that first.
    limited = two_queues(0, 0)
    for each in limited[3:5]:
        each["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = 0
    assert changes_of(ask((*limited, shared), FULL[:1], suggest=True)) == [f"cq/a.h100.{GPU}.borrowingLimit+=4"]


# Laws.

SIZES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=7)
PRIORITIES = st.sampled_from(["", "high", "higher"])


def two_resources(name, cpu, gpus, **spec):
    made = cluster_queue(name, gpus, **{"preemption": {}, **spec})
    (group,) = made["spec"]["resourceGroups"]
    group["coveredResources"] = ["cpu", GPU]
    group["flavors"][0]["resources"].insert(0, {"name": "cpu", "nominalQuota": cpu})
    return made


def sized_job(number, cpu, gpus, queue="a", priority=""):
    made = job(f"j{number}", gpus, queue, priority)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"] = {"cpu": cpu, GPU: gpus}
    return made


def admit(state, jobs):
    """The names of the admitted jobs, in the order of their arrival, and all names in this order."""
    queued = collect_jobs(jobs, state, Cluster())
    answers = decide(queued.context, queued.jobs).answers
    order = sorted(answers, key=lambda each: (-each.workload.priority, each.key))
    return [each.key for each in order if each.decision in RUNS], [each.key for each in order]


@laws(50)
@given(SIZES, st.integers(0, 12), st.integers(0, 12), st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_more_quota_never_delays_without_preemption(sizes, cpu, gpus, more_cpu, more_gpus, is_strict):
    """The first job that fares differently, in the order of arrival, is one that more quota admits.

    In strict order Kueue admits the longest start of the queue that fits, so more quota admits all of it and more. In
    `BestEffortFIFO`, and with jobs of different sizes, no more holds: a large job that then fits takes the quota of
    several small ones behind it, so that the number of admitted jobs falls. Jobs of one size cannot do that.
    """
    strategy = {"queueingStrategy": "StrictFIFO" if is_strict else "BestEffortFIFO"}
    jobs = [sized_job(number, *size) for number, size in enumerate(sizes)]
    small, large = (
        (*COMMON, two_resources("a", *quota, **strategy), local_queue("a"))
        for quota in ((cpu, gpus), (cpu + more_cpu, gpus + more_gpus))
    )
    (before, order), (after, _) = admit(small, jobs), admit(large, jobs)
    different = [key for key in order if (key in before) != (key in after)]

    assert different == [] or different[0] in after
    if is_strict or len(set(sizes)) == 1:
        assert set(before) <= set(after)


LIMITS = st.none() | st.integers(0, 4)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "withinClusterQueue": st.sampled_from(["Never", "LowerPriority"]),
        "reclaimWithinCohort": st.sampled_from(["Never", "LowerPriority", "Any"]),
    },
)


@st.composite
def clusters(draw):
    """Two queues with limits, priorities and preemption, in a cohort or not, and their jobs."""
    cohort = draw(st.sampled_from(["", "all"]))
    state = [*COMMON, local_queue("a"), local_queue("b")]
    for name in "ab":
        spec = {
            "preemption": draw(POLICIES),
            "queueingStrategy": draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
        }
        made = two_resources(name, draw(st.integers(0, 9)), draw(st.integers(0, 9)), cohort=cohort, **spec)
        for quota in made["spec"]["resourceGroups"][0]["flavors"][0]["resources"] if cohort else ():
            limits = {"borrowingLimit": draw(LIMITS), "lendingLimit": draw(LIMITS)}
            quota |= {field: limit for field, limit in limits.items() if limit is not None}
        state.append(made)
    pairs = draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from("ab"), PRIORITIES), max_size=7)
    )
    return state, [sized_job(number, *each) for number, each in enumerate(pairs)]


@laws(50)
@given(clusters())
def test_a_suggestion_admits_and_is_minimal(found):
    """With all changes everything is admitted; without one unit of any of them, something is not."""
    state, jobs = found
    queued = collect_jobs(jobs, state, Cluster())
    decision = decide(queued.context, queued.jobs)
    assume(decision.settles)
    suggestion = suggest_quota(queued, decision, frozenset(), lambda _: True)
    changes = [each.change for each in suggestion.quotas]
    less = [f"cq/{each.queue}.{each.flavor}.{each.resource}.{each.field}-={'1m' if each.resource == 'cpu' else 1}"
            for each in suggestion.quotas]  # fmt: skip

    def refuse(*several):
        own, exported, cluster, _ = WhatIf(several).apply(jobs, state, Cluster())
        changed = collect_jobs(own, exported, cluster)
        return {each.key for each in decide(changed.context, changed.jobs).answers if each.decision not in RUNS}

    impossible = {key for key, _ in suggestion.impossible}
    assert suggestion.untried == 0
    assert refuse(*changes) == impossible
    for each, one_less in zip(suggestion.quotas, less, strict=True):
        assert each.needed_by in refuse(*changes, one_less) - impossible


def flavored_queue(*quotas):
    """A queue whose flavors are tried in this order."""
    flavors = [{"name": name, "resources": [{"name": GPU, "nominalQuota": gpus}]} for name, gpus in quotas]
    made = cluster_queue("a", 0, resourceGroups=[{"coveredResources": [GPU], "flavors": flavors}])
    objects = [{**COMMON[0], "metadata": {"name": name}} for name, _ in quotas]
    return (*COMMON[1:], *objects, made, local_queue("a"))


@pytest.mark.parametrize(
    ("quotas", "jobs", "lacks"),
    [
        # Both are used; the second lacks less.
        ((("h100", 8), ("a100", 8)), (job("a", 8), job("b", 4), job("c", 6)), ("a100", 2)),
        ((("h100", 8), ("a100", 8)), (job("a", 6), job("b", 8), job("c", 4)), ("h100", 2)),
        # The second is closer, but can never hold it.
        ((("h100", 8), ("a100", 4)), (job("a", 8), job("c", 6)), ("h100", 6)),
    ],
)
def test_a_waiting_job_lacks_quota_in_the_flavor_that_comes_closest(quotas, jobs, lacks, ask):
    report = ask(flavored_queue(*quotas), jobs, "cq/a.queueingStrategy=BestEffortFIFO")
    [waiting] = [each for each in report.decision.answers if each.decision == "waits"]

    assert [(each.flavor, each.missing) for each in waiting.shortages] == [lacks]
    assert f"`{lacks[1]}` of `{GPU}` in flavor `{lacks[0]}`" in waiting.reason


@st.composite
def flavors(draw):
    """A queue, or two, with two flavors each, and some jobs."""
    names = draw(st.sampled_from([["a"], ["a", "b"]]))
    cohort = draw(st.sampled_from(["", "all"])) if len(names) > 1 else ""
    state = [*COMMON[1:], *({**COMMON[0], "metadata": {"name": name}} for name in ("h100", "a100"))]
    for name in names:
        amounts = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
        pairs = zip(("h100", "a100"), amounts, strict=True)
        listed = [{"name": each, "resources": [{"name": GPU, "nominalQuota": gpus}]} for each, gpus in pairs]
        spec = {
            "resourceGroups": [{"coveredResources": [GPU], "flavors": listed}],
            **({"cohort": cohort} if cohort else {}),
        }
        state += [cluster_queue(name, 0, **spec), local_queue(name)]
    gpus = draw(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(names)), min_size=1, max_size=3))
    return state, [job(f"j{number}", each, queue) for number, (each, queue) in enumerate(gpus)], names


@laws(15)
@given(flavors())
def test_no_smaller_change_of_any_flavors_admits_everything(found):
    """All changes whose sum is smaller than that of the suggestion are tried."""
    state, jobs, names = found
    queued = collect_jobs(jobs, state, Cluster())
    decision = decide(queued.context, queued.jobs)
    assume(decision.settles)
    suggestion = suggest_quota(queued, decision, frozenset(), lambda _: True)
    raised = sum(each.after - each.before for each in suggestion.quotas)
    slots = [(name, flavor) for name in names for flavor in ("h100", "a100")]

    def count_refused(amounts):
        changes = [
            f"cq/{name}.{flavor}.{GPU}+={each}" for (name, flavor), each in zip(slots, amounts, strict=True) if each
        ]
        own, exported, cluster, _ = WhatIf(changes).apply(jobs, state, Cluster())
        changed = collect_jobs(own, exported, cluster)
        return sum(each.decision not in RUNS for each in decide(changed.context, changed.jobs).answers)

    smaller = [each for each in product(range(raised), repeat=len(slots)) if sum(each) < raised]
    assert suggestion.impossible == ()
    assert [each for each in smaller[:1500] if not count_refused(each)] == []


def test_a_later_flavor_that_lacks_less_is_raised(ask):
    report = ask(flavored_queue(("h100", 12), ("a100", 16)), [job("a", 20)], suggest=True)

    assert [each.change for each in report.comparison.suggestion.quotas] == [f"cq/a.a100.{GPU}+=4"]


@laws(20)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.integers(1, 12))
def test_a_job_of_one_pod_is_told_the_least_to_request_less(quotas, gpus):
    """It is admitted with that much less, and not with one more."""
    names = ["h100", "a100", "l40"][: len(quotas)]
    state = list(flavored_queue(*zip(names, quotas, strict=True)))

    def find(amount):
        queued = collect_jobs([job("a", amount)], state, Cluster())
        return decide(queued.context, queued.jobs).answers[0]

    answer = find(gpus)
    assume(answer.decision == "never" and max(quotas) > 0)
    less = gpus - max(quotas)

    assert f"request `{less}` less, or raise `nominalQuota` of ClusterQueue `a` by `{less}`" in answer.obstacle.change
    assert find(gpus - less).decision in RUNS
    assert find(gpus - less + 1).decision == "never"
