"""`jobgen diff` and queues: who waits longer, who is preempted, and the quota before and after a merge."""

import json
import random
from pathlib import Path

import jsonschema
import pytest
from gitrepository import Repository
from sampling import sample

from jobgen.api.diff import diff
from jobgen.features.kueue.answers import decide
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queues.compare import select_affected
from jobgen.spec.overlay import Cluster

SCHEMA = json.loads((Path(__file__).parent.parent / "docs/diff_v1.json").read_text())
KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
LOWER_FIRST = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}


def queue_object(kind, name, spec, namespace="", **fields):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, **({"spec": spec} if spec else {}), **fields}


def cluster_queue(name, gpus, *, cohort="", preemption=LOWER_FIRST, **spec):
    flavor = {"name": "h100", "resources": [{"name": GPU, "nominalQuota": gpus}]}
    group = {"coveredResources": [GPU], "flavors": [flavor]}
    whole = {"namespaceSelector": {}, "preemption": preemption, "resourceGroups": [group], **spec}
    return queue_object("ClusterQueue", name, whole | ({"cohortName": cohort} if cohort else {}))


def local_queue(name, **spec):
    return queue_object("LocalQueue", name, {"clusterQueue": name, **spec}, "ml")


COMMON = (
    queue_object("ResourceFlavor", "h100", {"nodeLabels": {"gpu": "h100"}}),
    queue_object("WorkloadPriorityClass", "high", None, value=100),
    queue_object("WorkloadPriorityClass", "higher", None, value=200),
)


def one_queue(gpus=8, **spec):
    return (*COMMON, cluster_queue("a", gpus, **spec), local_queue("a"))


def two_queues(gpus_a, gpus_b, **spec):
    queues = (cluster_queue("a", gpus_a, cohort="all", **spec), cluster_queue("b", gpus_b, cohort="all", **spec))
    return (*COMMON, *queues, local_queue("a"), local_queue("b"))


def job(name, gpus=4, queue="a", priority="", image="registry.example.com/train:1", **spec):
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    container = {"name": "main", "image": image, "resources": {"limits": {GPU: gpus}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml", "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}, **spec},
    }


def elastic_job(name, pods):
    made = job(name, 2, parallelism=pods)
    return made | {"metadata": made["metadata"] | {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}}


def run_of(name, run, gpus):
    """A run of a job, with the name that its hash gives it."""
    made = job(run, gpus)
    return made | {"metadata": made["metadata"] | {"annotations": {"jobgen.dev/job": name}}}


def write_repository(folder, state, jobs, **cluster):
    """Write a repository with one environment; `state` is the exported state of its cluster."""
    settings = {"namespace": "ml", "cluster": {"state": "cluster", **cluster}}
    files = {
        "jobgen.yaml": "",
        "overlays/prod/overlay.yaml": {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": settings},
        "cluster/state.json": {"apiVersion": "v1", "kind": "List", "items": list(state)},
        "jobs/all.json": {"apiVersion": "v1", "kind": "List", "items": list(jobs)},
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content) if content else "")
    return folder


@pytest.fixture
def compare(tmp_path):
    """Compare two repositories, each given as its state and its jobs."""

    def run(old, new, format_="text", **cluster):
        for name, (state, jobs) in (("old", old), ("new", new)):
            write_repository(tmp_path / name, state, jobs, **cluster)
        return diff(tmp_path, folders=("old", "new"), format=format_)

    return run


def rows(result):
    """Return what changes for each workload."""
    return {
        each.workload.removeprefix("ml/"): (each.change.value, each.before, each.after)
        for changes in result.queues
        for each in changes.workloads
    }


def find(result, name):
    [changes] = result.queues
    return next(each for each in changes.workloads if each.workload == f"ml/{name}")


FULL = (job("first"), job("second"))
CASES = {
    "a new job that fits": (
        (one_queue(), [job("first")]),
        (one_queue(), [job("first"), job("new")]),
        {"new": ("new", "", "admitted")},
    ),
    "a new job arrives after those that run, whatever its name": (
        (one_queue(), FULL),
        (one_queue(), (*FULL, job("a-new"))),
        {"a-new": ("new", "", "waits")},
    ),
    "a new job with a higher priority preempts, and the preempted one waits": (
        (one_queue(), FULL),
        (one_queue(), (*FULL, job("urgent", priority="high"))),
        {"second": ("preempted", "admitted", "preempted"), "urgent": ("new", "", "preempts")},
    ),
    "a queue without preemption keeps what runs, but not if it is started again": (
        (one_queue(preemption={}), FULL),
        (one_queue(preemption={}), (*FULL, job("urgent", priority="high"))),
        {"second": ("after-restart", "admitted", "running"), "urgent": ("new", "", "waits")},
    ),
    "a removed job makes room": (
        (one_queue(), (*FULL, job("third"))),
        (one_queue(), (job("first"), job("third"))),
        {"third": ("better", "waits", "admitted")},
    ),
    "a waiting job stays before a new one of the same priority": (
        (one_queue(), (*FULL, job("third"))),
        (one_queue(), (job("first"), job("third"), job("a-new"))),
        {"third": ("better", "waits", "admitted"), "a-new": ("new", "", "waits")},
    ),
    "a waiting job waits longer behind a new job with a higher priority": (
        (one_queue(preemption={}), (job("first", 8, priority="higher"), job("third"))),
        (one_queue(preemption={}), (job("first", 8, priority="higher"), job("third"), job("urgent", priority="high"))),
        {"third": ("waits-longer", "waits", "waits"), "urgent": ("new", "", "waits")},
    ),
    "a changed job is queued again, and may lose its place": (
        (one_queue(), (job("first", 2, parallelism=3), job("third"))),
        (one_queue(), (job("first", 2, parallelism=4), job("third"))),
        {"first": ("worse", "admitted", "waits"), "third": ("better", "waits", "admitted")},
    ),
    "a changed job that fits again": (
        (one_queue(), (job("first", 2, parallelism=3),)),
        (one_queue(), (job("first", 2, parallelism=2),)),
        {},
    ),
    "a changed job that must borrow": (
        (two_queues(4, 4), (job("first", 2, parallelism=2),)),
        (two_queues(4, 4), (job("first", 2, parallelism=4),)),
        {"first": ("worse", "admitted", "borrows")},
    ),
    "a changed job that asks for too much": (
        (one_queue(), (job("first", 2, parallelism=2),)),
        (one_queue(), (job("first", 2, parallelism=8),)),
        {"first": ("worse", "admitted", "never")},
    ),
    "an elastic job grows before others arrive": (
        (one_queue(), (elastic_job("first", 1), job("third", 8))),
        (one_queue(), (elastic_job("first", 2), job("third", 8))),
        {},
    ),
    "a rejected change leaves the old job running": (
        (one_queue(), [job("first")]),
        (one_queue(), [job("first", image="registry.example.com/train:2", gpus=16)]),
        {},
    ),
    "a run with another name replaces the old one": (
        (one_queue(), (run_of("train", "train-1", 4), job("other"))),
        (one_queue(), (run_of("train", "train-2", 8), job("other"))),
        {"train-2": ("worse", "admitted", "waits")},
    ),
    "a run with another name that fits again": (
        (one_queue(), (run_of("train", "train-1", 4), job("other"))),
        (one_queue(), (run_of("train", "train-2", 2), job("other"))),
        {},
    ),
    "a change that Kueue ignores": (
        (one_queue(), FULL),
        (one_queue(), (job("first", backoffLimit=3), job("second"), job("a-new"))),
        {"a-new": ("new", "", "waits")},
    ),
    "lower quota stops nothing that runs": (
        (one_queue(8), FULL),
        (one_queue(4), FULL),
        {"second": ("after-restart", "admitted", "running")},
    ),
    "quota below the request of a job": (
        (one_queue(8), [job("first", 8)]),
        (one_queue(4), [job("first", 8)]),
        {"first": ("after-restart", "admitted", "running")},
    ),
    "more quota admits what waits": (
        (one_queue(4), FULL),
        (one_queue(8), FULL),
        {"second": ("better", "waits", "admitted")},
    ),
    "the owner of quota takes it back": (
        (two_queues(4, 4), (job("borrower", 8),)),
        (two_queues(4, 4), (job("borrower", 8), job("owner", 4, "b"))),
        {"borrower": ("preempted", "borrows", "preempted"), "owner": ("new", "", "preempts")},
    ),
    "a queue that holds does not stop what runs": (
        (one_queue(), [job("first")]),
        (one_queue(stopPolicy="Hold"), [job("first")]),
        {"first": ("after-restart", "admitted", "running")},
    ),
    "a queue that is drained evicts what runs": (
        (one_queue(), [job("first")]),
        (one_queue(stopPolicy="HoldAndDrain"), [job("first")]),
        {"first": ("worse", "admitted", "never")},
    ),
    "a LocalQueue that is drained evicts what runs": (
        (one_queue(), [job("first")]),
        ((*one_queue()[:-1], local_queue("a", stopPolicy="HoldAndDrain")), [job("first")]),
        {"first": ("worse", "admitted", "never")},
    ),
    "a removed queue stays until its jobs end": (
        (two_queues(4, 4), [job("first", 4, "b")]),
        (two_queues(4, 4)[:4] + two_queues(4, 4)[5:], [job("first", 4, "b")]),
        {"first": ("after-restart", "admitted", "running")},
    ),
    "a removed priority class does not stop what runs": (
        (one_queue(), [job("first", priority="high")]),
        (one_queue()[:1] + one_queue()[2:], [job("first", priority="high")]),
        {"first": ("after-restart", "admitted", "running")},
    ),
    "a restarted job whose priority class is missing": (
        (one_queue(), [job("first", priority="high", parallelism=1)]),
        (one_queue()[:1] + one_queue()[2:], [job("first", priority="high", parallelism=2)]),
        {"first": ("worse", "admitted", "never")},
    ),
    "a new job whose priority class is missing": (
        ((*one_queue(), queue_object("WorkloadPriorityClass", "low", None, value=1)), [job("first")]),
        (one_queue()[:1] + one_queue()[2:], [job("first"), job("second", priority="high")]),
        {"second": ("new", "", "never")},
    ),
    "a removed LocalQueue does not stop what runs": (
        (one_queue(), [job("first")]),
        (one_queue()[:-1], [job("first")]),
        {"first": ("after-restart", "admitted", "running")},
    ),
    "nothing is known of a side without queues": (
        ((), FULL),
        (one_queue(4), FULL),
        {"second": ("worse", "unknown", "waits")},
    ),
    "a job without a queue is no concern of Kueue": (
        (one_queue(), [job("first")]),
        (one_queue(), [job("first"), job("free", queue="")]),
        {},
    ),
    "a job that gets a queue": (
        (one_queue(), (*FULL, job("third", queue="", suspend=True))),
        (one_queue(), (*FULL, job("third", suspend=True))),
        {"third": ("worse", "unmanaged", "waits")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_merge_does_to_workloads(name, compare):
    old, new, expected = CASES[name]
    result = compare(old, new, "json")
    document = json.loads(result.text)

    assert rows(result) == expected
    jsonschema.validate(document, SCHEMA)
    assert ("queues" in document) == bool(result.queues)


def test_a_preempted_workload_names_the_preemptor_and_the_rule(compare):
    old, new, _ = CASES["the owner of quota takes it back"]
    row = find(compare(old, new), "borrower")

    assert (row.preempted_by, row.rule, row.requeued) == ("ml/owner", "InCohortReclamation", "waits")


def test_a_job_that_waits_longer_names_the_new_jobs_before_it(compare):
    old, new, _ = CASES["a waiting job waits longer behind a new job with a higher priority"]

    assert find(compare(old, new), "third").behind == ("ml/urgent",)


def test_a_job_above_lowered_quota_says_what_happens_if_it_starts_again(compare):
    row = find(compare(*CASES["quota below the request of a job"][:2]), "first")

    assert (row.requeued, row.cluster_queue) == ("never", "a")
    assert "allows `4`" in row.reason


def test_a_removed_job_that_stays_in_the_cluster_keeps_its_quota(compare):
    old, new = (one_queue(), FULL), (one_queue(), (job("first"), job("a-new")))

    assert rows(compare(old, new)) == {"a-new": ("new", "", "admitted")}
    assert rows(compare(old, new, gitops="kubectl")) == {"a-new": ("new", "", "waits")}


def amounts(total):
    return total and tuple(map(int, total))


def test_quota_lists_only_what_changes(compare):
    [changes] = compare(*CASES["the owner of quota takes it back"][:2]).queues

    assert {(each.kind, each.name): (amounts(each.before), amounts(each.after)) for each in changes.quota} == {
        ("ClusterQueue", "a"): ((4, 8, 4, 0, 0), (4, 0, 0, 0, 8)),
        ("ClusterQueue", "b"): ((4, 0, 0, 4, 0), (4, 4, 0, 0, 0)),
        ("Cohort", "all"): ((8, 8, 0, 0, 0), (8, 4, 0, 0, 8)),
    }


def test_a_new_queue_changes_no_quota_of_others(compare):
    state = (*one_queue(), cluster_queue("0", 4))
    [changes] = compare((one_queue(), [job("first")]), (state, [job("first")])).queues

    assert [each.name for each in changes.quota] == ["0"]


def test_usage_above_lowered_quota_is_not_borrowed_without_a_cohort(compare):
    [changes] = compare(*CASES["lower quota stops nothing that runs"][:2]).queues

    assert [amounts(each.after) for each in changes.quota] == [(4, 8, 0, 0, 0)]


def test_queue_objects_are_listed(compare):
    new = (*two_queues(4, 4)[:-1], queue_object("Cohort", "all", {}))
    [changes] = compare((one_queue(4), FULL[:1]), (new, FULL[:1])).queues

    assert [(*each[:2], each.name) for each in changes.objects] == [
        ("changed", "ClusterQueue", "a"),
        ("added", "ClusterQueue", "b"),
        ("added", "Cohort", "all"),
    ]


def test_status_of_exported_objects_is_no_change(compare):
    state = one_queue()
    exported = [each | {"status": {"admittedWorkloads": 3}} for each in state]

    assert compare((state, FULL), (exported, FULL)).queues == ()


@pytest.mark.parametrize("format_", ["text", "markdown", "json"])
def test_nothing_is_shown_if_queues_do_not_change(compare, format_):
    same = compare((one_queue(), FULL), (one_queue(), FULL), format_)
    without = compare(((), FULL), ((), FULL), format_)

    assert same.queues == without.queues == ()
    assert same.text == without.text
    assert "ueues" not in same.text


def test_text_shows_jobs_then_quota(compare):
    old, new, _ = CASES["a new job with a higher priority preempts, and the preempted one waits"]

    assert TEXT in compare(old, new).text


TEXT = """\
queues in prod: 1 preempted, 1 new
    ml/second: admitted → preempted by ml/urgent (InClusterQueue), then waits
        Job in ClusterQueue a; it lacks `4` of `nvidia.com/gpu` in flavor `h100`; behind ml/first, ml/urgent
    ml/urgent: new, preempts
        Job in ClusterQueue a; it evicts `ml/second` (InClusterQueue)
    running jobs keep their quota; not simulated: time, autoscaling, admission checks, MultiKueue

                flavor  resource        nominal  used  borrowed  lent  waiting
ClusterQueue a  h100    nvidia.com/gpu  8        8     0         0     0 → 4

old → new: 1 added, 0 removed, 0 changed, 2 unchanged
"""


def test_changed_quota_shows_who_is_admitted_and_what_stays_unused(compare):
    jobs = (*FULL, job("third"), job("fourth", 8))
    result = compare((one_queue(), jobs), (one_queue(15), jobs))
    [changes] = result.queues

    assert [each[:3] for each in changes.balance] == [("admitted", "2", "3"), ("waits", "2", "1"), ("unused", "0", "3")]
    assert "admitted                            2      3\n" in result.text
    assert "unused nvidia.com/gpu in h100       0      3\n" in result.text
    markdown = compare((one_queue(), jobs), (one_queue(15), jobs), "markdown").text
    assert "| | before | after |\n|---|---:|---:|\n| admitted | 2 | 3 |\n| waits | 2 | 1 |\n" in markdown
    page = compare((one_queue(), jobs), (one_queue(15), jobs), "html").text
    assert "admitted 2 → 3, waits 2 → 1, unused nvidia.com/gpu in h100 0 → 3" in page
    document = json.loads(compare((one_queue(), jobs), (one_queue(15), jobs), "json").text)
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)) == []


def test_json_describes_a_preemption(compare):
    old, new, _ = CASES["the owner of quota takes it back"]
    [changes] = json.loads(compare(old, new, "json").text)["queues"]

    assert changes["summary"] == {"preempted": 1, "new": 1}
    assert changes["workloads"][0] == {
        "change": "preempted",
        "workload": "ml/borrower",
        "kind": "Job",
        "clusterQueue": "a",
        "before": "borrows",
        "after": "preempted",
        "why": "it lacks `4` of `nvidia.com/gpu` in flavor `h100`",
        "behind": ["ml/owner"],
        "requeued": "waits",
        "preemptedBy": {"workload": "ml/owner", "rule": "InCohortReclamation"},
    }
    assert changes["quota"][0]["before"] == {
        "nominal": "4",
        "used": "8",
        "borrowed": "4",
        "lent": "0",
        "waiting": "0",
    }


def test_markdown_has_tables_within_the_limit(compare):
    # Workloads that differ only in the name are one row.
    many = [job(f"new-{number:04}-{'x' * 40}", number) for number in range(1, 401)]
    text = compare((one_queue(), FULL), (one_queue(), (*FULL, *many)), "markdown").text

    assert "**Queues in prod**: 400 new" in text
    assert "| ClusterQueue a | h100 | nvidia.com/gpu | 8 | 8 | 0 | 0 | 0 → 36 |" in text
    assert " more | | |" in text
    assert len(text) <= 65_000


def test_state_that_cannot_be_read_is_reported_and_breaks_nothing(compare, tmp_path):
    compare((one_queue(), FULL), (one_queue(), FULL))
    (tmp_path / "new/cluster/state.json").write_text("kind: ClusterQueue\na: [\n")
    result = diff(tmp_path, folders=("old", "new"))
    [changes] = result.queues

    assert (result.failed, result.unchanged) == ("", 2)
    assert changes.workloads == changes.quota == changes.objects == ()
    assert "queues in prod: the queues are not compared: cluster/state.json:" in result.text
    jsonschema.validate(json.loads(diff(tmp_path, folders=("old", "new"), format="json").text), SCHEMA)
    assert "not compared" in diff(tmp_path, folders=("old", "new"), format="markdown").text


ODD = [None, 1, "x", [], [None], {"a": 1}, True]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_values_in_queue_files_break_nothing(compare, value):
    fields = ("cohortName", "preemption", "resourceGroups", "stopPolicy", "namespaceSelector", "queueingStrategy")
    queues = [cluster_queue(f"a-{number}", 8, **{field: value}) for number, field in enumerate(fields)]
    odd = (*queues, queue_object("ClusterQueue", "a", value), queue_object("LocalQueue", "a", value, "ml"))

    for old, new in ((one_queue(), odd), (odd, one_queue())):
        assert compare((old, FULL), (new, FULL)).failed == ""


def test_commits_and_the_work_tree_have_their_own_state(tmp_path):
    (tmp_path / "repo").mkdir()
    git = Repository(tmp_path / "repo", tmp_path)
    write_repository(git.folder, one_queue(8), FULL)
    git.commit()
    write_repository(git.folder, one_queue(4), FULL)
    git.commit()
    write_repository(git.folder, one_queue(4), (*FULL, job("new")))

    assert rows(diff(git.folder, "HEAD~1..HEAD")) == {"second": ("after-restart", "admitted", "running")}
    assert rows(diff(git.folder, "HEAD")) == {"new": ("new", "", "waits")}
    assert rows(diff(git.folder, "HEAD..HEAD")) == {}


def write_manifests(folder, objects):
    for number, obj in enumerate(objects):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.json").write_text(json.dumps(obj))


def test_queues_among_plain_manifests_count(tmp_path):
    write_manifests(tmp_path / "old", (*one_queue(4), job("first")))
    write_manifests(tmp_path / "new", (*one_queue(4), job("first"), job("second")))
    result = diff(tmp_path, folders=("old", "new"))

    assert rows(result) == {"second": ("new", "", "waits")}
    assert "\nqueues: 1 new\n" in result.text


def test_rendered_trees_take_the_state_of_their_repository(tmp_path):
    repository = write_repository(tmp_path, one_queue(4), FULL)
    for name, jobs in (("old", FULL[:1]), ("new", FULL)):
        write_manifests(repository / name / "prod", jobs)
        (repository / name / "prod/jobgen.lock.json").write_text("{}")

    assert rows(diff(repository, folders=("old", "new"))) == {"second": ("new", "", "waits")}


def test_other_environments_are_not_compared(tmp_path):
    for name, gpus in (("old", 8), ("new", 4)):
        folder = write_repository(tmp_path / name, one_queue(gpus), FULL)
        dev = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {"namespace": "ml"}}
        (folder / "overlays/dev").mkdir(parents=True)
        (folder / "overlays/dev/overlay.yaml").write_text(json.dumps(dev))

    assert diff(tmp_path, folders=("old", "new"), environments=["dev"]).queues == ()
    assert [each.environment for each in diff(tmp_path, folders=("old", "new")).queues] == ["prod"]


def make_cohorts(generator):
    """Return queues and jobs of three cohorts with random quotas and requests."""
    queues, jobs = [], []
    for number in range(6):
        name = f"q{number}"
        queues += [cluster_queue(name, generator.randint(2, 12), cohort=f"c{number // 2}"), local_queue(name)]
        for index in range(generator.randint(2, 8)):
            priority = generator.choice(["", "high", "higher"])
            jobs.append(job(f"j{number}-{index}", generator.randint(1, 8), name, priority))
    return (*COMMON, *queues), jobs


@pytest.mark.parametrize("seed", sample(range(20), 3))
def test_cohorts_are_decided_independently(seed):
    state, jobs = make_cohorts(random.Random(seed))
    old = collect_jobs(jobs, state, Cluster())
    new = collect_jobs([*jobs, job("new", 2, "q2", "high")], state, Cluster())
    before, after = select_affected(old, new, {})

    assert {each.queue for each in after.jobs} == {"q2", "q3"}
    for whole, part in ((old, before), (new, after)):
        names = {each.name for each in part.jobs}
        expected, found = decide(whole.context, whole.jobs), decide(part.context, part.jobs)
        # Jobs that evict each other in turn have no final state.
        if found.settles:
            assert describe(each for each in expected.answers if each.job.name in names) == describe(found.answers)


def describe(answers):
    return [(each.key, each.decision, each.reason, each.loans, each.blockers) for each in answers]


def test_jobs_that_evict_each_other_in_turn_are_reported(compare):
    state, jobs = make_cohorts(random.Random(0))
    result = compare((state, jobs[:1]), (state, [*jobs, job("new", 2, "q2", "high")]))

    assert not result.queues[0].settles
    assert "evict each other in turn" in result.text


def test_flavors_affect_every_job():
    state, jobs = make_cohorts(random.Random(1))
    flavor = queue_object("ResourceFlavor", "h100", {"nodeLabels": {"gpu": "b200"}})
    old, new = (collect_jobs(jobs, several, Cluster()) for several in (state, (flavor, *state[1:])))

    assert select_affected(old, new, {}) == (old, new)
    assert [each.jobs for each in select_affected(old, old, {})] == [(), ()]


def test_a_job_keeps_running_if_one_of_another_kind_gets_its_name(compare):
    pod = job("run", 4)["spec"]["template"]["spec"]
    other = {**job("run", priority="high"), "apiVersion": "v1", "kind": "Pod", "spec": pod}
    settings = {"kueue": {"frameworks": ["batch/job", "pod"]}}
    state = one_queue(preemption={"withinClusterQueue": "Never"})
    result = compare((state, (job("run", 8),)), (state, (job("run", 8), other)), **settings)

    assert rows(result)["run (Pod)"] == ("new", "", "waits")
    assert rows(result)["run (Job)"][0] == "after-restart"


def test_an_upgrade_of_kueue_leaves_jobs_unmanaged(tmp_path):
    pods = {"replicas": 1, "template": job("x")["spec"]["template"]}
    made = {**job("train"), "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    train = {**made, "spec": {"pytorchReplicaSpecs": {"Worker": pods}}}
    new = {**train, "metadata": {**train["metadata"], "name": "other"}}
    write_repository(tmp_path / "old", one_queue(), [train], kueue={"version": "0.18"})
    write_repository(tmp_path / "new", one_queue(), [train, new], kueue={"version": "0.19"})
    result = diff(tmp_path, folders=("old", "new"))

    assert rows(result) == {
        "other": ("new", "", "unmanaged"),
        "train": ("after-restart", "admitted", "running"),
    }
    assert "ml/train: keeps running, but is unmanaged if it is started again" in result.text
    assert "Kueue 0.19 does not manage PyTorchJobs by default, so it starts at once, without quota" in result.text
