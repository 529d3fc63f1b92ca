"""Workloads of a capture: one use of quota in every answer, whoever asks."""

import json

import jsonschema
import pytest
from test_diff_queues import (
    GPU,
    KUEUE,
    job,
    local_queue,
    one_queue,
    queue_object,
    rows,
    run_of,
    two_queues,
    write_repository,
)
from test_kueue_library import DOCS

from jobgen import kueue
from jobgen.api.diff import diff
from jobgen.features.kueue.queue import queue

SINCE = "2026-11-17T06:00:00Z"


def captured(name, gpus=4, owner="", kind="Job", priority=0, space="ml", in_queue="a", **ended):
    """A Workload with quota, without pod sets, as `jobgen capture` writes it."""
    metadata = {"name": name, "namespace": space}
    metadata |= {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": owner}]} if owner else {}
    conditions = ("QuotaReserved", "Admitted", *(("Finished",) if ended.get("ended") else ()))
    usage = {"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: str(gpus)}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": in_queue, "priority": priority},
        "status": {
            "admission": {"clusterQueue": in_queue, "podSetAssignments": [usage]},
            "conditions": [{"type": each, "status": "True", "lastTransitionTime": SINCE} for each in conditions],
        },
    }


def ask(folder, state, jobs, named=(), **options):
    write_repository(folder, state, jobs)
    found = queue(folder, named, **options)
    return found.reports[0] if found.reports else found


def decisions(report):
    return {each.key.removeprefix("ml/"): each.decision for each in report.decision.answers}


def test_a_workload_from_outside_uses_quota_and_is_no_job(tmp_path):
    state = (*one_queue(), captured("job-other-1", owner="other", space="people"), captured("gone", ended=True))
    report = ask(tmp_path, state, (job("first"), job("second")))

    assert decisions(report) == {"first": "admitted", "second": "waits"}
    assert [each.used for each in report.decision.totals] == [8]
    assert "people/job-other-1" in report.decision.answers[1].blockers
    note = "a Workload that no job of the repository has, which uses `4` of `nvidia.com/gpu` in flavor `h100`"
    assert note in queue(tmp_path).text
    document = json.loads(queue(tmp_path, format="json").text)
    jsonschema.validate(document, json.loads((DOCS / "queue_v1.json").read_text()))
    used = [{"flavor": "h100", "resource": GPU, "amount": "4"}]
    assert document["environments"][0]["outside"] == {"workloads": 1, "used": used}


def test_the_workload_of_a_job_is_this_job(tmp_path):
    state = (*one_queue(), captured("job-second-1", owner="second"))
    report = ask(tmp_path, state, (job("first"), job("second"), job("third")))

    assert decisions(report) == {"first": "admitted", "second": "running", "third": "waits"}
    assert not report.decision.outside.workloads


def test_a_job_of_another_kind_with_the_same_name_is_not_this_job(tmp_path):
    report = ask(tmp_path, (*one_queue(), captured("x", owner="first", kind="PyTorchJob")), (job("first"),))

    assert decisions(report) == {"first": "admitted"}
    assert report.decision.outside.workloads == 1


def test_what_if_and_suggest_start_with_what_runs(tmp_path):
    state = (*one_queue(), captured("job-other-1", owner="other"))
    jobs = (job("first"), job("second"))
    more = ask(tmp_path, state, jobs, what_if=["cq/a.h100+=4"]).comparison
    found = ask(tmp_path, state, jobs, suggest=True).comparison.suggestion

    assert [(each.workload, each.after) for each in more.changes.workloads] == [("ml/second", "admitted")]
    assert [(each.before, each.after) for each in found.quotas] == [(8, 12)]
    lowered = ask(tmp_path, state, jobs, what_if=["cq/a.h100=4"]).comparison
    assert [(each.workload, each.after) for each in lowered.changes.workloads] == [("ml/first", "waits")]


def test_an_evicted_workload_from_outside_is_shown(tmp_path):
    state = (*one_queue(), captured("job-other-1", 8, owner="other"))
    jobs = (job("first"),)
    assert decisions(ask(tmp_path, state, jobs)) == {"first": "waits"}

    found = ask(tmp_path, state, jobs, what_if=["job/first.priority=high"])
    assert decisions(found) == {"first": "preempts", "job-other-1": "waits"}
    [evicted, first] = found.comparison.changes.workloads
    assert (evicted.workload, evicted.before, evicted.after) == ("ml/job-other-1", "running", "preempted")
    assert (first.before, first.after, found.comparison.unchanged) == ("waits", "preempts", 0)
    high = (job("first", priority="high"),)
    back = ask(tmp_path, state, high, what_if=["job/first.priority=higher", "cq/a.h100+=4"])
    assert {each.workload: (each.change, each.before, each.after) for each in back.comparison.changes.workloads} == {
        "ml/first": ("moves", "preempts", "admitted"),
        "ml/job-other-1": ("better", "waits", "running"),
    }


def test_a_merge_meets_what_runs(tmp_path):
    runs = [run_of("first", f"first-{each * 8}", int(each)) for each in "42"]
    state = (*one_queue(), captured("job-other-1", owner="other"), captured("job-first-1", owner="first-44444444"))
    for name, jobs in (("old", runs[:1]), ("new", (runs[0], job("new")))):
        write_repository(tmp_path / name, state, jobs)
    assert rows(diff(tmp_path, folders=("old", "new"))) == {"new": ("new", "", "waits")}
    # A run that another one replaces leaves the quota that the capture shows; a job that is taken over runs on.
    write_repository(tmp_path / "new", state, (runs[1], job("other")))
    found = diff(tmp_path, folders=("old", "new"))
    assert rows(found) == {"other": ("new", "", "running")}
    [changes] = found.queues
    assert [(each.before.used, each.after.used) for each in changes.quota] == [("8", "6")]
    # One that is removed leaves its quota, although the capture still shows it.
    write_repository(tmp_path / "new", state, (job("next"),))
    assert rows(diff(tmp_path, folders=("old", "new"))) == {"next": ("new", "", "admitted")}


def test_a_job_that_has_finished_is_named(tmp_path):
    state = (*one_queue(), captured("job-done-1", 8, owner="done", ended=True))
    report = ask(tmp_path, state, (job("done", 8), job("next", 8)))

    assert decisions(report) == {"done": "admitted", "next": "waits"}
    note = "finished in the capture, but decided about as if started again: `ml/done`"
    assert note in report.decision.assumptions


def test_pods_of_a_deployment_are_the_deployment(tmp_path):
    pods = job("x")["spec"]["template"]
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**job("web")["metadata"]},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pods},
    }
    pods["metadata"] = {"labels": {"app": "web"}}
    pods["spec"]["restartPolicy"] = "Always"
    own = [captured(f"pod-web-{each}", owner=f"web-7d9f8c6b5-{each}", kind="Pod") for each in ("abcde", "fghij")]
    report = ask(tmp_path, (*one_queue(12), *own, captured("z", owner="web-x-7d9f8c6b5-abcde", kind="Pod")), (web,))

    assert [each.decision for each in report.decision.answers] == ["running", "running"]
    assert report.decision.outside.workloads == 1


def test_the_library_counts_a_job_and_its_workload_once():
    found = kueue.decide(
        [*one_queue(), job("first"), job("second"), captured("w", owner="second"), captured("e", ended=True)]
    )
    assert {each.workload: each.decision for each in found.workloads} == {
        "ml/first": "admitted",
        "ml/second": "running",
    }


def test_workloads_arrive_when_they_were_created():
    def pending(name, created):
        found = captured(name, in_queue="a")
        pods = {"containers": [{"name": "main", "resources": {"requests": {GPU: 8}}}]}
        found["spec"]["podSets"] = [{"name": "main", "count": 1, "template": {"spec": pods}}]
        return found | {"metadata": {**found["metadata"], "creationTimestamp": created}, "status": {}}

    late, early = pending("a-late", "2026-11-17T07:00:00Z"), pending("early", "2026-11-17T06:00:00Z")
    assert {each.workload: each.decision for each in kueue.decide([*one_queue(), late, early]).workloads} == {
        "ml/a-late": "waits",
        "ml/early": "admitted",
    }


def test_what_runs_in_unknown_queues_and_broken_workloads_count_nothing(tmp_path):
    broken = queue_object("Workload", "broken", {"queueName": "a"}, "ml", status={"admission": 7, "conditions": "x"})
    elsewhere = captured("x", in_queue="elsewhere")
    report = ask(tmp_path, (*two_queues(4, 4), local_queue("c"), broken, elsewhere), (job("first"),))

    assert decisions(report) == {"first": "admitted"}
    assert not report.decision.outside.workloads


def test_runs_of_no_job_in_a_history_are_named(tmp_path):
    write_repository(tmp_path, one_queue(), (job("first"), run_of("train", "train-11111111", 4)))
    rows = "".join(f"{name},2026-11-16T06:00Z,2026-11-16T08:00Z\n" for name in ("frist", "ml/first", "train-22222222"))
    (tmp_path / "runs.csv").write_text(f"name,start,end\n{rows}")
    found = queue(tmp_path, timeline=True, begin="2026-11-18T00:00Z", history="runs.csv")

    assert "the history has runs of no job: `frist` (did you mean `first`?)\n" in found.text


def stopped(objects, kind):
    """The same queues, of which one evicts what runs."""
    return [
        {**each, "spec": {**each["spec"], "stopPolicy": "HoldAndDrain"}} if each["kind"] == kind else each
        for each in objects
    ]


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
def test_a_queue_that_is_drained_evicts_what_runs(kind, tmp_path):
    state = (*stopped(one_queue(), kind), captured("job-first-1", owner="first"))
    state += (captured("job-other-1", owner="other"),)
    report = ask(tmp_path, state, (job("first"),))

    assert decisions(report) == {"first": "never"}
    assert [each.used for each in report.decision.totals] == [0]


def test_a_deactivated_workload_waits(tmp_path):
    workload = captured("job-first-1", owner="first")
    workload["spec"]["active"] = False
    report = ask(tmp_path, (*one_queue(), workload), (job("first"), job("second")))

    assert decisions(report) == {"first": "waits", "second": "admitted"}
    assert "deactivated" in next(each.reason for each in report.decision.answers if each.key == "ml/first")


def test_what_is_assumed_to_run_and_does_not_arrives_after_a_change(tmp_path):
    changes = ask(tmp_path, one_queue(), (job("a", 8), job("b", 8)), running=["all"], what_if=["job/b.priority=high"])

    assert decisions(changes) == {"a": "waits", "b": "preempts"}
