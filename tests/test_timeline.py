"""`jobgen queue --timeline`: when jobs start and end, as Kueue's decision at each moment."""

import json
import random
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from command import run_jobgen_text
from hypothesis import given, settings
from hypothesis import strategies as st
from report_browser import browser  # noqa: F401 -- a fixture

from jobgen.api.errors import UsageError
from jobgen.api.lint import lint
from jobgen.features.kueue.answers import settle
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.features.kueue.queue import queue
from jobgen.features.kueue.timeline import Simulation, simulate
from jobgen.model.times import Expected, parse_expected, parse_moment, show_length, show_moment
from jobgen.spec.overlay import Cluster

KUEUE, GPU = "kueue.x-k8s.io/v1beta2", "nvidia.com/gpu"
SCHEMA = json.loads((Path(__file__).parent.parent / "docs/timeline_v1.json").read_text("utf-8"))
BEGIN = "2026-11-18T00:00Z"
HOUR = 3600


def made(kind, name, namespace="", **fields):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata, **fields}


def make_queues(names, gpus=8, preemption=None, strategy="BestEffortFIFO", flavors=("h100",), limit=None):
    quota = {"name": GPU, "nominalQuota": gpus} | ({} if limit is None else {"borrowingLimit": limit})
    group = {"coveredResources": [GPU], "flavors": [{"name": each, "resources": [quota]} for each in flavors]}
    spec = {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [group], "queueingStrategy": strategy}
    spec["preemption"] = preemption or {}
    yield from (made("ResourceFlavor", each, spec={}) for each in flavors)
    yield from (made("WorkloadPriorityClass", f"p{value}", value=value) for value in range(3))
    for name in names:
        yield made("ClusterQueue", name, spec=spec)
        yield made("LocalQueue", name, "ml", spec={"clusterQueue": name})


def make_job(name, queue_name, gpus, pods=1, priority=0, **metadata):
    labels = {"kueue.x-k8s.io/queue-name": queue_name, "kueue.x-k8s.io/priority-class": f"p{priority}"}
    container = {"name": "main", "image": "registry.example.com/train:1", "resources": {"limits": {GPU: gpus}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml", "labels": labels, **metadata},
        "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": template},
    }


def collect(jobs, state, version="0.19", **kueue):
    cluster = Cluster(kueue={"version": version, "frameworks": ["batch/job"], **kueue})
    return collect_jobs(jobs, list(state), cluster)


@cache
def make_fleet(size, seed=1):
    """Make a queue state and jobs that keep it full for days, with their lengths in seconds."""
    chance = random.Random(seed)
    names = ("a", "b", "c")
    jobs = [
        make_job(f"j{number:04}", chance.choice(names), chance.choice((1, 2, 4)), chance.choice((1, 2)))
        for number in range(size)
    ]
    queued = collect(jobs, make_queues(names, 32))
    lengths = {each.key: chance.randrange(1, 24) * HOUR for job in queued.jobs for each in job.workloads}
    return queued, lengths


PREEMPTIONS = (
    {},
    {"withinClusterQueue": "LowerPriority"},
    {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "LowerPriority"},
    {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}},
)
JOBS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(1, 9),
        st.integers(1, 2),
        st.integers(0, 2),
        st.sampled_from([None, 1, 1, 2, 3, 5, 8]),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(
    JOBS,
    st.sampled_from(PREEMPTIONS),
    st.sampled_from(("BestEffortFIFO", "StrictFIFO")),
    st.sampled_from((("h100",), ("h100", "a100"))),
    st.sampled_from((None, 0, 4)),
    st.sampled_from(("0.19", "0.17")),
    st.booleans(),
)
def test_each_event_is_a_decision_in_the_state_of_that_moment(
    specs, preemption, strategy, flavors, limit, version, is_fair
):
    jobs = [make_job(f"j{number:02}", *spec[:4]) for number, spec in enumerate(specs)]
    state = make_queues("abc", preemption=preemption, strategy=strategy, flavors=flavors, limit=limit)
    queued = collect(jobs, state, version, fairSharing=is_fair)
    lengths = {f"ml/j{number:02}": spec[4] * HOUR for number, spec in enumerate(specs) if spec[4]}
    simulation = Simulation(queued.context, queued.jobs, 0, lengths)
    ended = set()
    while True:
        before = dict(simulation.admitted)
        assert_within_quota(simulation)
        if not simulation.step():
            break
        ended |= {
            key for key in before if (last := simulation.spans[key][-1]).end == simulation.now and not last.evicted_by
        }
        # New admissions are later than all that runs.
        running = {
            key: each._replace(reserved=each.reserved.replace("~", "0"))
            for key, each in before.items()
            if key not in ended
        }
        waiting = [
            job._replace(workloads=tuple(running.get(each.key, each) for each in job.workloads))
            for job in queued.jobs
            if not ended.intersection(each.key for each in job.workloads)
        ]
        settled = settle(queued.context, waiting, frozenset(running))
        decided = {key for several in settled.scheduler.snapshot.workloads.values() for key in several}
        assert decided == simulation.admitted.keys()
    assert all(
        span.end is None or span.end > span.start or span.evicted_by
        for each in simulation.spans.values()
        for span in each
    )


def assert_within_quota(simulation):
    for root in {id(node.root): node.root for node in simulation.scheduler.snapshot.nodes.values()}.values():
        assert all(used <= root.subtree.get(pair, 0) for pair, used in root.usage.items())


def test_a_timeline_is_the_same_each_time():
    queued, lengths = make_fleet(60)

    assert (
        simulate(queued.context, queued.jobs, 0, lengths).spans
        == simulate(queued.context, queued.jobs, 0, lengths).spans
    )


def test_what_cannot_start_is_not_tried_again_at_each_end(monkeypatch):
    queued, lengths = make_fleet(160)
    course = simulate(queued.context, queued.jobs, 0, lengths)
    tries = []
    from jobgen.features.kueue.cycle import Scheduler

    assign = Scheduler.assign
    monkeypatch.setattr(
        Scheduler, "assign", lambda self, *args, **options: tries.append(1) or assign(self, *args, **options)
    )
    assert simulate(queued.context, queued.jobs, 0, lengths).spans == course.spans

    assert (course.is_complete, len(course.spans)) == (True, 160)
    # Each of 160 ends would otherwise try about 80 jobs.
    assert len(tries) < 160 * 20


@pytest.fixture
def project(tmp_path):
    """Write a repository of raw Jobs; times are annotations."""

    def write(*jobs, state=(), files=()):
        cluster = {"state": "cluster", "kueue": {"version": "0.19", "frameworks": ["batch/job"]}}
        overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {"namespace": "ml", "cluster": cluster}}
        items = [*make_queues("ab"), *state]
        contents = {
            "jobgen.yaml": "",
            "overlays/prod/overlay.yaml": json.dumps(overlay),
            "cluster/state.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
            **{f"jobs/{job['metadata']['name']}.yaml": json.dumps(job) for job in jobs},
            **dict(files),
        }
        for path, content in contents.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        return tmp_path

    return write


def timed(name, gpus, expected="", deadline="", queue_name="a"):
    texts = {"jobgen.dev/expected": expected, "jobgen.dev/deadline": deadline}
    return make_job(name, queue_name, gpus, annotations={key: value for key, value in texts.items() if value})


def read_rows(folder, **options):
    options = {"begin": BEGIN, **options}
    document = json.loads(queue(folder, timeline=True, format="json", **options).text)
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)) == []
    return {row["name"]: row for row in document["environments"][0]["workloads"]}


def window(row, name):
    return row[name] and tuple(row[name].values())


def test_a_job_starts_when_another_ends(project):
    rows = read_rows(project(timed("first", 16, "4h-8h"), timed("second", 16, "1h")))

    assert window(rows["second"], "starts") == ("2026-11-18T04:00Z", "2026-11-18T08:00Z")
    assert window(rows["second"], "ends") == ("2026-11-18T05:00Z", "2026-11-18T09:00Z")
    assert rows["second"]["waitsFor"] == ["ml/first"]


def test_jobs_without_a_duration_never_end_and_block_others(project):
    rows = read_rows(project(make_job("first", "a", 16), timed("second", 16, "1h"), timed("third", 99, "1h")))

    assert {name: row["state"] for name, row in rows.items()} == {
        "first": "starts",
        "second": "waits",
        "third": "never",
    }
    assert rows["first"]["ends"] is rows["second"]["starts"] is None


def test_utilization_is_that_of_the_day(project):
    folder = project(timed("first", 8, "12h"), timed("second", 16, "12h", queue_name="b"))
    text = json.loads(queue(folder, timeline=True, begin="2026-11-18T12:00Z", format="json").text)
    (use,) = text["environments"][0]["utilization"]

    # 8 GPUs for the last half of the first day, then 16 for half of the second.
    assert [(each["day"], each["percent"]) for each in use["days"]] == [("2026-11-18", 50), ("2026-11-19", 100)]


@pytest.mark.parametrize(
    ("deadline", "severity"),
    [
        ("2026-11-18T03:00Z", "error"),
        ("2026-11-18T06:00Z", "warning"),
        ("2026-11-18T08:00Z", None),
        ("2026-11-18", None),
    ],
)
def test_deadlines(project, deadline, severity):
    folder = project(timed("first", 16, "4h-8h", deadline))
    missed = read_rows(folder)["first"]["missed"]
    code = run_jobgen_text(folder, "queue", "--timeline", "--from", BEGIN, "--exit-code").returncode

    assert (missed and missed["severity"]) == severity
    assert code == (severity == "error")


HISTORY = """\
name,start,end,gpus
first,2026-11-01T00:00Z,2026-11-01T02:00Z,16
ml/first,2026-11-02T00:00Z,2026-11-02T03:00Z,16
first,2026-11-03T00:00Z,2026-11-03T09:00Z,8
second,2026-11-17T23:00Z,,
"""


def test_a_history_gives_durations_and_what_runs(project):
    folder = project(make_job("first", "a", 16), timed("second", 16, "2h"), files={"runs.csv": HISTORY}.items())
    rows = read_rows(folder, history="runs.csv")

    assert rows["first"]["expected"] == {"least": 2 * HOUR, "most": 3 * HOUR, "source": "history"}
    assert rows["second"]["state"] == "running"
    assert window(rows["first"], "starts") == ("2026-11-18T01:00Z", "2026-11-18T01:00Z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the history lacks the columns `name`, `start` and `end`"),
        ("name,end\n", "the history lacks the column `start`"),
        ("name,start,end\nx,yesterday,2026-01-01", "`yesterday` is not a time"),
        ("name,start,end\nx,2026-02-30,2026-03-01", "`2026-02-30` is not a time"),
        ("name,start,end\nx,2026-01-02,2026-01-01", "but ends at `2026-01-01`"),
        ("name,start,end\nx,2026-01-01,2026-01-01", "but ends at `2026-01-01`"),
        ("name,start,end\nx,0001-01-01,9999-01-01", "but ends at `9999-01-01`"),
        ("name,start,end\n,2026-01-01,2026-01-02", "has no `name`"),
        ("name,start,end,gpus\nx,2026-01-01,2026-01-02,-1", "`gpus` is `-1`"),
        ('name,start,end\n"' + "x" * 200_000, "the history is not CSV"),
        ("name,start,end\n" + "x,y,z\n" * 100_000, "`y` is not a time"),
        ("\0" * 50, "the history"),
    ],
)
def test_a_malformed_history_is_a_finding(project, text, message):
    folder = project(timed("first", 16, "4h"), files={"runs.csv": text}.items())
    result = queue(folder, timeline=True, begin=BEGIN, history="runs.csv")

    assert (result.failed, result.text) == (True, "")
    assert len(result.findings) <= 20
    assert message in result.findings[0].message
    assert result.findings[0].location.file == "runs.csv"


@pytest.mark.parametrize("path", ["../runs.csv", "/etc/passwd", "a/../../b"])
def test_a_history_is_in_the_repository(project, path):
    with pytest.raises(UsageError, match="is not in the repository"):
        queue(project(timed("first", 16, "4h")), timeline=True, begin=BEGIN, history=path)


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        ("now", "is not a time"),
        ("2026-11-18T08:00", "has no time zone; write `2026-11-18T08:00Z` for UTC"),
        ("2026-13-01", "is not a time"),
        ("99999-01-01", "is not a time"),
    ],
)
def test_a_beginning_is_a_time(project, begin, message):
    with pytest.raises(UsageError, match=message):
        queue(project(timed("first", 16, "4h")), timeline=True, begin=begin)


def make_workload(name, gpus, *conditions, owner=""):
    usage = {"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: str(gpus)}}
    owners = {"ownerReferences": [{"kind": "Job", "name": owner}]} if owner else {}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "ml", **owners},
        "spec": {"queueName": "a"},
        "status": {
            "admission": {"clusterQueue": "a", "podSetAssignments": [usage]},
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": time}
                for kind, time in (
                    ("QuotaReserved", conditions[0]),
                    *zip(("Admitted", "Finished"), conditions, strict=False),
                )
            ],
        },
    }


def test_a_capture_shows_what_runs_and_what_has_ended(project):
    captured = (
        make_workload("job-first-1", 8, "2026-11-18T06:00:00Z", owner="first"),
        make_workload("job-done-1", 8, "2026-11-17T06:00:00Z", "2026-11-17T09:00:00Z", owner="done"),
        make_workload("job-other-1", 8, "2026-11-18T07:00:00Z", owner="other"),
    )
    jobs = (timed("first", 8, "4h"), make_job("done", "a", 8), timed("next", 8, "1h"))
    rows = read_rows(project(*jobs, state=captured), begin="", history="")

    assert {name: row["state"] for name, row in rows.items()} == {
        "first": "running",
        "done": "finished",
        "next": "starts",
        "other": "running",
    }
    # The timeline begins with the last event.
    assert window(rows["first"], "ends") == ("2026-11-18T10:00Z", "2026-11-18T10:00Z")
    assert window(rows["next"], "starts") == ("2026-11-18T10:00Z", "2026-11-18T10:00Z")
    assert rows["done"]["expected"] == {"least": 3 * HOUR, "most": 3 * HOUR, "source": "capture"}


def test_a_time_that_cannot_be_read_is_named(project):
    folder = project(timed("first", 8, "-3d", "2026-02-30"), timed("next", 8, "1h", "2026-11-18T12:00"))
    faults = {
        ("first", "`jobgen.dev/expected` is `-3d`, which is not a duration; write one such as `6h` or `1d12h`"),
        ("first", "`jobgen.dev/deadline` is `2026-02-30`, which is not a time; write one such as"),
        ("next", "`jobgen.dev/deadline` is `2026-11-18T12:00`, which has no time zone; write one such as"),
    }
    (timeline,) = queue(folder, timeline=True, begin=BEGIN).timelines
    found = {(each.location.file, each.message) for each in lint(folder).findings if each.rule == "misread-annotation"}

    assert len(found) == len(faults)
    for name, fault in faults:
        assert any(note.startswith(f"ml/{name}: {fault}") for note in timeline.notes)
        assert any(file == f"jobs/{name}.yaml" and message.startswith(fault) for file, message in found)


def find_missed(folder, today):
    from jobgen.api.project import load

    return [each for each in lint(load(folder, today=today)).findings if each.rule == "missed-deadline"]


def test_lint_reports_deadlines_from_the_same_simulation(project):
    late = timed("second", 16, "1h", "2026-11-18T02:00Z")
    (found,) = find_missed(project(timed("first", 16, "4h"), late), "2026-11-18")

    assert (found.location.file, found.severity.value) == ("jobs/second.yaml", "warning")
    assert "in the simulation it ends at `2026-11-18T05:00Z`" in found.message


def test_what_a_lint_keeps_of_deadlines_depends_on_the_date(project, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = project(timed("first", 16, "4h", "2026-11-18T02:00Z"), timed("other", 1, "4h"))
    found = [run_jobgen_text(folder, "lint", "--today", f"2026-11-{day}").stderr for day in ("16", "17", "18", "16")]

    assert ["1 warning" in each for each in found] == [False, False, True, False]


@pytest.mark.parametrize(("is_captured", "severity"), [(True, "error"), (False, "warning")])
def test_a_deadline_is_certainly_missed_only_if_the_job_does_not_run_yet(project, is_captured, severity):
    state = (make_workload("job-other-1", 1, "2026-11-18T01:00:00Z", owner="other"),) if is_captured else ()
    (found,) = find_missed(project(timed("first", 1, "4h", "2026-11-18T02:00Z"), state=state), "2026-11-18")

    assert found.severity.value == severity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6h", Expected(6 * HOUR, 6 * HOUR)),
        ("90m-1.5d", Expected(5400, 36 * HOUR)),
        ("1d12h30m", Expected(131_400, 131_400)),
        ("PT6H30M", Expected(23_400, 23_400)),
        ("P1DT12H-P2D", Expected(36 * HOUR, 48 * HOUR)),
        ("P", "is not a duration"),
        ("PT", "is not a duration"),
        ("0s", "is shorter than a second"),
        ("-4h", "is not a duration"),
        ("8h-4h", "ends before it begins"),
        ("1000000000h", "is longer than"),
        ("9" * 5000 + "h", "is not a duration"),
        ("", "is not a duration"),
        ("4 h", "is not a duration"),
    ],
)
def test_durations(text, expected):
    found = parse_expected(text)

    assert found == expected if isinstance(expected, Expected) else expected in found


def test_moments():
    assert show_moment(parse_moment("2026-12-01T09:00+01:00")) == "2026-12-01T08:00Z"
    for moment in ("0001-01-01T00:00Z", "0999-12-31T23:59Z", "9999-12-31T23:59:59Z"):
        assert show_moment(parse_moment(moment)) == moment
    assert parse_moment("2026-12-01", ends_day=True) == parse_moment("2026-12-02")
    assert parse_moment("2026-12-01T08:00") is None
    assert show_length(129_600) == "1d12h"


def test_a_job_spec_has_times(project):
    spec = {
        "framework": "pytorch",
        "image": "registry.example.com/t:1",
        "run": {"expected": "8h-4h", "deadline": "2026-02-30"},
    }
    job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "x"}, "spec": spec}
    messages = [each.message for each in lint(project(job)).findings if each.rule == "invalid-value"]

    assert [text.partition(",")[0] for text in messages] == ["`expected` is `8h-4h`", "`deadline` is `2026-02-30`"]


@settings(max_examples=40, deadline=None)
@given(
    JOBS,
    st.lists(st.sampled_from(PREEMPTIONS), min_size=3, max_size=3),
    st.sampled_from((("h100",), ("h100", "a100"))),
    st.sampled_from((None, 0, 4)),
    st.booleans(),
)
def test_a_decision_without_tries_of_what_is_blocked_is_the_same(specs, preemptions, flavors, limit, is_fair):
    jobs = [make_job(f"j{number:02}", *spec[:4]) for number, spec in enumerate(specs)]
    state = [
        each
        for name, preemption in zip("abc", preemptions, strict=True)
        for each in make_queues(name, preemption=preemption, flavors=flavors, limit=limit)
    ]
    queued = collect(
        jobs, {(each["kind"], each["metadata"]["name"]): each for each in state}.values(), fairSharing=is_fair
    )
    quick = settle(queued.context, queued.jobs)
    plain = queued.context.build_scheduler()
    for each in quick.arrivals.values():
        plain.add(each)
    evictions = []
    for _ in range(200):
        plain.run_cycle()
        evictions += [(key, each.preemptor.key) for key, each in plain.evictions.items()]
        plain.release_evicted()

    if not quick.held:
        assert [each[:2] for each in quick.evictions] == evictions
        assert quick.scheduler.snapshot.workloads == plain.snapshot.workloads


def test_few_workloads_are_tried_that_get_nothing():
    chance = random.Random(7)
    jobs = [
        make_job(f"j{number:04}", chance.choice("abcdef"), chance.choice((1, 2, 4)), chance.randint(1, 8), number % 3)
        for number in range(600)
    ]
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    queued = collect(jobs, make_queues("abcdef", 64, preemption, limit=8, flavors=("h100", "a100")))
    settled = settle(queued.context, queued.jobs)
    admitted = sum(map(len, settled.scheduler.snapshot.workloads.values()))

    assert settled.evictions
    # Each is tried when it is admitted or preempts, and some are in the way of others.
    assert settled.scheduler.tries < 3 * (admitted + 2 * len(settled.evictions))


def test_two_jobs_of_one_name_and_a_thousand_years(project):
    twin = timed("first", 8, "3660d") | {"kind": "Pod", "apiVersion": "v1"}
    twin["spec"] = twin["spec"]["template"]["spec"]
    folder = project(*(timed(f"job{number}", 16, "3660d") for number in range(30)), timed("first", 8, "1h"))
    (folder / "jobs/twin.yaml").write_text(json.dumps(twin))
    result = queue(folder, timeline=True, begin=BEGIN)

    assert "the simulation ends after 366 days; what starts later is shown as waiting" in result.text


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
def test_formats_show_the_same_times(project, name):
    text = queue(
        project(timed("first", 16, "4h-8h"), timed("second", 16, "1h")), timeline=True, begin=BEGIN, format=name
    ).text

    assert all(part in text.replace("&#58;", ":") for part in ("ml/second", "2026-11-18T04:00Z", "h100"))


def test_options_of_a_timeline_need_it(project):
    folder = project(timed("first", 16, "4h"))

    for option in (["--format", "html"], ["--from", BEGIN], ["--history", "x.csv"]):
        done = run_jobgen_text(folder, "queue", *option)
        assert (done.returncode, "add `--timeline`" in done.stderr) == (2, True)
    done = run_jobgen_text(folder, "queue", "--timeline")
    assert (done.returncode, "there is no commit to take the date from; pass `--from`" in done.stderr) == (2, True)


LABELS = "(found) => found.map((each) => each.getAttribute('aria-label'))"


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_the_page_in_a_browser(project, browser, tmp_path, width, scheme):  # noqa: F811
    jobs = [timed(f"job{number}-{'x' * 40}", 12, "4h-30h", "2026-11-19") for number in range(8)]
    state = [make_workload("<img src=x onerror=window.hacked=1>", 4, "2026-11-18T00:00:00Z")]
    path = tmp_path / "timeline.html"
    path.write_text(queue(project(*jobs, state=state), timeline=True, begin=BEGIN, format="html").text, "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    queues, bars = page.locator(".schedule"), page.locator(".schedule-row .track")

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert queues.count() == 1
    assert queues.first.get_attribute("aria-label") == "Runs in queue a"
    # What runs is a bar, and what waits is another one.
    assert bars.count() == 9
    assert page.locator(".track .span-run").count() == 9
    assert page.locator(".track .span-wait").count() == 7
    assert all(label.startswith(("ml/job", "ml/<img")) for label in bars.evaluate_all(LABELS))
    assert page.evaluate("window.hacked") is None
    dark = page.evaluate("getComputedStyle(document.querySelector('.track .span-run')).backgroundColor")
    assert dark == ("rgb(79, 176, 182)" if scheme == "dark" else "rgb(31, 127, 134)")
    # The bar of a job that waits begins where its wait ends.
    last = page.locator(".schedule-row", has=page.locator(".span-wait")).first.locator(".track")
    wait, run = (last.locator(f".span-{kind}").bounding_box() for kind in ("wait", "run"))
    assert abs(wait["x"] + wait["width"] - run["x"]) < 2
    page.close()


def test_the_last_day_of_the_calendar_is_a_deadline(project):
    folder = project(timed("one", 8, "4h", deadline="9999-12-31"))

    assert not [each for each in lint(folder).findings if each.rule == "missed-deadline"]
    for begin in ("9999-12-31", "0001-01-01T00:00+14:00"):
        assert queue(folder, timeline=True, begin=begin).text


def test_a_suggestion_is_not_about_time(project):
    with pytest.raises(UsageError, match="give the changes that it shows to `--timeline --what-if`"):
        queue(project(timed("one", 8, "4h")), timeline=True, begin=BEGIN, suggest=True)


def compare(folder, *changes, **options):
    text = queue(folder, timeline=True, begin=BEGIN, what_if=changes, format="json", **options).text
    document = json.loads(text)
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)) == []
    (environment,) = document["environments"]
    return environment["comparison"], environment


def test_a_change_moves_times_and_meets_a_deadline(project):
    folder = project(timed("first", 16, "4h"), timed("second", 16, "1h", "2026-11-18T02:00Z"), timed("third", 1, "1h"))
    found, after = compare(folder, "cq/a.h100+=32")

    by_name = {each["workload"]: each for each in found["workloads"]}
    assert {name: each["change"] for name, each in by_name.items()} == {"ml/second": "earlier", "ml/third": "earlier"}
    sides = [by_name["ml/second"][side] for side in ("before", "after")]
    assert [window(side, "ends")[0] for side in sides] == ["2026-11-18T05:00Z", "2026-11-18T01:00Z"]
    assert [side["missed"] for side in sides] == [True, False]
    assert found["deadlinesMissed"] == {"before": 1, "after": 0}
    assert found["lastEnd"] == {"before": "2026-11-18T06:00Z", "after": "2026-11-18T04:00Z"}
    # 16 GPUs for 5 hours, and one for an hour, of 16 in 6 hours; the same of 48 in 4 hours.
    assert [found["utilization"][0][side]["percent"] for side in ("before", "after")] == [84, 42]
    assert {row["name"]: row["missed"] for row in after["workloads"]} == dict.fromkeys(("first", "second", "third"))


def test_a_change_adds_removes_and_does_nothing(project):
    folder = project(timed("first", 16, "4h"), timed("second", 16, "1h"))

    assert {each["workload"]: each["change"] for each in compare(folder, "job/first-")[0]["workloads"]} == {
        "ml/first": "removed",
        "ml/second": "earlier",
    }
    assert compare(folder, "cq/b.h100+=0")[0]["workloads"] == []
    with pytest.raises(UsageError, match="names no ClusterQueue"):
        compare(folder, "cq/x.h100+=1")


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_formats_show_what_changes(project, name):
    folder = project(timed("first", 16, "4h"), timed("second", 16, "1h", "2026-11-18T02:00Z"))
    text = queue(folder, timeline=True, begin=BEGIN, what_if=["cq/a.h100+=32"], format=name).text

    parts = ("cq/a.h100+=32", "8 → 40", "starts 4h earlier", "meets its deadline", "1 earlier; 1 unchanged")
    assert all(part in text for part in parts)


def test_what_runs_without_end_is_used(project):
    folder = project(make_job("first", "a", 8))
    (use,) = json.loads(queue(folder, timeline=True, begin=BEGIN, format="json").text)["environments"][0]["utilization"]

    assert use["days"] == [{"day": "2026-11-18", "percent": 50}]


@pytest.mark.parametrize(
    ("gpus", "deadline", "is_missed", "is_unknown"),
    [(8, "2026-11-19", False, True), (8, "2026-11-17", True, False), (99, "2026-11-19", True, False)],
)
def test_a_deadline_without_a_duration(project, gpus, deadline, is_missed, is_unknown):
    folder = project(timed("first", gpus, "", deadline))
    row = read_rows(folder)["first"]

    assert (row["missed"] is not None, "unknown" in row) == (is_missed, is_unknown)
    text = queue(folder, timeline=True, begin=BEGIN).text
    assert ("no duration is known; write `run.expected`, or use `--history`" in text) == is_unknown
    assert ("1 deadline not checked" in text) == is_unknown


def test_an_evicted_job_starts_again_in_both_simulations(project):
    low, high = timed("low", 16, "4h"), make_job("high", "b", 8, annotations={"jobgen.dev/expected": "2h-3h"})
    captured = make_workload("job-low-1", 16, "2026-11-17T22:00:00Z", owner="low")
    folder = project(low, high)
    state = [*make_queues("ab", preemption={"reclaimWithinCohort": "Any"}), captured]
    (folder / "cluster/state.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": state}))
    row = read_rows(folder)["low"]

    again = "ml/high evicts it at 2026-11-18T00:00Z, and it starts again at 2026-11-18T02:00Z – 03:00Z"
    assert again in row["reason"]


@pytest.mark.parametrize(
    ("rows", "state", "ends"),
    [
        ("first,2026-11-17T23:00Z,,", "running", "2026-11-18T03:00Z"),
        ("first,2026-11-20T23:00Z,,", "starts", "2026-11-18T04:00Z"),
        ("first,2026-11-17T20:00Z,,\nfirst,2026-11-17T22:00Z,,", "running", "2026-11-18T02:00Z"),
    ],
)
def test_an_open_row_of_the_history_runs_if_it_has_begun(project, rows, state, ends):
    folder = project(timed("first", 16, "4h"), files={"runs.csv": f"name,start,end,gpus\n{rows}\n"}.items())
    row = read_rows(folder, history="runs.csv")["first"]

    assert (row["state"], window(row, "ends")) == (state, (ends, ends))


def test_the_page_shows_the_time_before_the_changes(project, browser, tmp_path):  # noqa: F811
    folder, path = project(timed("first", 16, "4h"), timed("second", 16, "4h")), tmp_path / "timeline.html"
    text = queue(folder, timeline=True, begin=BEGIN, what_if=["cq/a.h100+=16"], format="html").text
    path.write_text(text, "utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    rows = page.locator(".schedule-row .track")
    now, before = (rows.nth(1).locator(f".span-{kind}").bounding_box() for kind in ("run", "before"))

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # The second job started when the first one ended, and now starts with it.
    assert now["x"] == rows.nth(0).locator(".span-run").bounding_box()["x"]
    assert abs(before["x"] - now["x"] - now["width"]) < 2
    page.get_by_role("link", name="What if").click()
    page.wait_for_selector(".what-if")
    assert page.locator(".what-if code").first.inner_text() == "cq/a.h100+=16"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
