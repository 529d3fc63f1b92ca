"""Properties of the decision about all jobs, on random clusters."""

import sys
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from queues import measure

from jobgen.features.kueue.answers import NEVER, WAITS, decide
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.spec.overlay import Cluster

API = "kueue.x-k8s.io/v1beta2"
CLUSTER = Cluster(kueue={"version": "0.19"}, operators={"kueue": "0.19"})
FAIR = Cluster(kueue={"version": "0.19", "fairSharing": True}, operators={"kueue": "0.19"})
FLAVORS, PRIORITIES = ("a", "b"), ("low", "high")
RANDOM = laws(8)

amounts = st.integers(1, 12)
limits = st.none() | st.integers(0, 4)


def make_object(kind, name, spec, version=API, **more):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec, **more}


def make_groups(quotas):
    """The resource groups of quotas: nominal, borrowing limit and lending limit by flavor."""
    flavors = []
    for flavor, (nominal, borrow, lend) in quotas.items():
        quota = {"name": "cpu", "nominalQuota": nominal}
        quota |= {"borrowingLimit": borrow} if borrow is not None else {}
        quota |= {"lendingLimit": lend} if lend is not None else {}
        flavors.append({"name": flavor, "resources": [quota]})
    return [{"coveredResources": ["cpu"], "flavors": flavors}] if flavors else []


@st.composite
def cohorts(draw):
    """Cohorts as a forest: the parent of each, and its quotas."""
    found = {}
    for number in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from(["", *found]))
        # Kueue allows limits only below a parent.
        limit = limits if parent else st.none()
        found[f"c{number}"] = parent, draw(st.dictionaries(st.sampled_from(FLAVORS), st.tuples(amounts, limit, limit)))
    return found


@st.composite
def cluster_queues(draw, names):
    """ClusterQueues: the cohort of each, its quotas, and the rest of its spec."""
    found = {}
    for number in range(draw(st.integers(1, 4))):
        cohort = draw(st.sampled_from(["", *names]))
        limit = limits if cohort else st.none()
        quotas = draw(st.dictionaries(st.sampled_from(FLAVORS), st.tuples(amounts, limit, limit), min_size=1))
        spec = {
            "queueingStrategy": draw(st.sampled_from(("BestEffortFIFO", "StrictFIFO"))),
            "preemption": {
                "withinClusterQueue": draw(st.sampled_from(("Never", "LowerPriority", "LowerOrNewerEqualPriority"))),
                "reclaimWithinCohort": draw(st.sampled_from(("Never", "LowerPriority", "Any"))),
            },
        }
        found[f"q{number}"] = cohort, quotas, spec
    return found


@st.composite
def jobs(draw, names):
    """Jobs: the pods of each, CPUs of a pod, the queue, the priority, and the flavor that it selects if any."""
    one = st.tuples(
        st.integers(1, 3),
        st.integers(1, 3),
        st.sampled_from(names),
        st.sampled_from(PRIORITIES),
        st.sampled_from((None, None, "a")),
    )
    return {f"j{number}": each for number, each in enumerate(draw(st.lists(one, min_size=2, max_size=9)))}


@st.composite
def fleets(draw):
    """Cohorts, queues and jobs."""
    tree = draw(cohorts())
    members = draw(cluster_queues(list(tree)))
    return tree, members, draw(jobs(list(members)))


def make_objects(tree, members):
    found = [make_object("ResourceFlavor", name, {"nodeLabels": {"kind": name}}) for name in FLAVORS]
    found += [make_object("WorkloadPriorityClass", name, {}, value=n) for n, name in enumerate(PRIORITIES)]
    for name, (parent, quotas) in tree.items():
        found.append(make_object("Cohort", name, {"parentName": parent, "resourceGroups": make_groups(quotas)}))
    for name, (cohort, quotas, spec) in members.items():
        groups = {"namespaceSelector": {}, "cohortName": cohort, "resourceGroups": make_groups(quotas)}
        found.append(make_object("ClusterQueue", name, spec | groups))
        found.append(make_object("LocalQueue", name, {"clusterQueue": name}))
    return found


def make_jobs(several):
    return [make_job(name, *each) for name, each in several.items()]


def make_job(name, pods, cpu, queue, priority, flavor):
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **({"nodeSelector": {"kind": flavor}} if flavor else {})}
    job = make_object("Job", name, {"parallelism": pods, "template": {"spec": spec}}, "batch/v1")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/priority-class": priority}
    return job


def run(tree, members, several, cluster=CLUSTER):
    queued = collect_jobs(make_jobs(several), make_objects(tree, members), cluster)
    return decide(queued.context, queued.jobs, find_running(queued.jobs))


def find_running(several):
    """Let what has a low priority run from the start, so that others preempt it."""
    return frozenset(each.key for job in several for each in job.workloads if each.priority == 0)


def read_decisions(decision):
    return {answer.job.name: answer.decision for answer in decision.answers}


def sum_usage(decision):
    """What the admitted workloads of each queue use, in whole CPUs by queue and flavor."""
    used = Counter()
    for answer in decision.answers:
        for pair, amount in answer.workload.usage.items():
            used[answer.cluster_queue, pair.flavor] += amount / 1000
    return used


def list_below(top, tree, members):
    """The cohorts and queues below a cohort, itself included."""
    names = {top}
    for name, (parent, _) in tree.items():
        # A parent stands before its children.
        names |= {name} if parent in names else set()
    return names, {name for name, (cohort, *_) in members.items() if cohort in names}


def find_root(name, tree):
    while tree[name][0]:
        name = tree[name][0]
    return name


@RANDOM
@given(fleets(), st.sampled_from((CLUSTER, FAIR)))
def test_usage_respects_all_limits(fleet, cluster):
    """Admitted workloads fit in the quota of the tree, and in what each queue and cohort borrows and lends."""
    tree, members, several = fleet
    used = sum_usage(run(tree, members, several, cluster))
    for flavor in FLAVORS:

        def sum_nominal(cohorts, queues, flavor=flavor):
            quotas = [tree[name][1] for name in cohorts] + [members[name][1] for name in queues]
            return sum(each[flavor][0] for each in quotas if flavor in each)

        def check(own, outside, quota, flavor=flavor, sum_nominal=sum_nominal):
            """Check one side of a tree against the limits of its top, and against the rest of the tree."""
            _, borrow, lend = quota
            inner, outer = (sum(used[name, flavor] for name in queues) for _, queues in (own, outside))
            total = sum_nominal(*own)
            assert inner + outer <= total + sum_nominal(*outside)
            if borrow is not None:
                assert inner <= total + borrow
            if lend is not None:
                assert outer <= sum_nominal(*outside) + lend

        for name, (cohort, quotas, _) in members.items():
            quota = quotas.get(flavor, (0, None, None))
            if not cohort:
                assert used[name, flavor] <= quota[0]
                continue
            above, queues = list_below(find_root(cohort, tree), tree, members)
            check((set(), {name}), (above, queues - {name}), quota)
        for name, (_, quotas) in tree.items():
            above, queues = list_below(find_root(name, tree), tree, members)
            inner, below = list_below(name, tree, members)
            check((inner, below), (above - inner, queues - below), quotas.get(flavor, (0, None, None)))


@RANDOM
@given(fleets(), st.data())
def test_more_quota_makes_nothing_impossible(fleet, data):
    """Return True if a job can ever be admitted only depends on the empty cluster, where more quota never hurts."""
    tree, members, several = fleet
    before = read_decisions(run(tree, members, several))
    name = data.draw(st.sampled_from(sorted(members)))
    cohort, quotas, spec = members[name]
    flavor = data.draw(st.sampled_from(sorted(quotas)))
    nominal, *limit = quotas[flavor]
    more = {**quotas, flavor: (nominal + data.draw(st.integers(1, 6)), *limit)}
    after = read_decisions(run(tree, {**members, name: (cohort, more, spec)}, several))
    for job, decision in before.items():
        assert decision == NEVER or after[job] != NEVER


@RANDOM
@given(fleets(), st.data())
def test_never_does_not_depend_on_other_jobs(fleet, data):
    tree, members, several = fleet
    everything = read_decisions(run(tree, members, several))
    kept = data.draw(st.sets(st.sampled_from(sorted(several)))) if several else set()
    some = read_decisions(run(tree, members, {name: several[name] for name in kept}))
    assert {name: some[name] == NEVER for name in kept} == {name: everything[name] == NEVER for name in kept}


@RANDOM
@given(fleets(), st.randoms(use_true_random=False), st.sampled_from((CLUSTER, FAIR)))
def test_order_of_input_does_not_matter(fleet, random, cluster):
    tree, members, several = fleet
    objects, manifests = make_objects(tree, members), make_jobs(several)
    first = collect_jobs(manifests, objects, cluster)
    before = decide(first.context, first.jobs, find_running(first.jobs))
    shuffled = random.sample(manifests, len(manifests)), random.sample(objects, len(objects))
    second = collect_jobs(*shuffled, cluster)
    after = decide(second.context, second.jobs, find_running(second.jobs))
    key = lambda answer: answer.key  # noqa: E731
    for one, other in zip(sorted(before.answers, key=key), sorted(after.answers, key=key), strict=True):
        assert one._replace(job=other.job, workload=other.workload) == other
    assert sorted(before.totals) == sorted(after.totals)


@RANDOM
@given(fleets(), st.sampled_from((CLUSTER, FAIR)))
def test_each_workload_has_one_answer(fleet, cluster):
    tree, members, several = fleet
    decision = run(tree, members, several, cluster)
    assert sorted(answer.job.name for answer in decision.answers) == sorted(several)
    assert decision.is_complete


def test_deep_cohorts_and_many_flavors():
    """Neither a chain of thousands of cohorts nor thousands of flavors end in an error."""
    tree = {f"c{n}": (f"c{n - 1}" if n else "", {"a": (1, None, None)} if n == 0 else {}) for n in range(3000)}
    members = {"q0": ("c2999", {"a": (0, None, None)}, {})}
    assert read_decisions(run(tree, members, {"j": (1, 1, "q0", "high", None)})) == {"j": "borrows"}
    quotas = {f"f{n}": (0, None, None) for n in range(3000)}
    objects = make_objects({}, {"q0": ("", quotas | {"a": (1, None, None)}, {})})
    objects += [make_object("ResourceFlavor", name, {}) for name in quotas]
    queued = collect_jobs(make_jobs({"j": (1, 1, "q0", "high", None)}), objects, CLUSTER)
    assert [each.decision for each in decide(queued.context, queued.jobs).answers] == ["admitted"]


def test_endless_eviction_ends():
    """A workload that another one evicts again and again is kept back; the decision says that nothing settles."""

    def make_queue(quotas, within, reclaim):
        preemption = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
        return "c", quotas, {"preemption": preemption}

    members = {
        "q0": make_queue({"b": (1, 2, None)}, "LowerOrNewerEqualPriority", "LowerPriority"),
        "q1": make_queue({"b": (1, 2, None), "a": (1, None, None)}, "Never", "LowerPriority"),
        "q2": make_queue({"b": (3, None, None)}, "LowerOrNewerEqualPriority", "Any"),
    }
    sizes = [("q1", 4, "high"), ("q2", 2, "high"), ("q2", 1, "low"), ("q0", 3, "high"), ("q0", 3, "low")]
    sizes.append(("q2", 3, "high"))
    several = {f"j{n}": (1, cpu, queue, level, None) for n, (queue, cpu, level) in enumerate(sizes)}
    queued = collect_jobs(make_jobs(several), make_objects({"c": ("", {})}, members), CLUSTER)
    decision = decide(queued.context, queued.jobs)
    held = [answer for answer in decision.answers if "each time it is admitted" in answer.reason]
    assert held
    assert not decision.settles
    assert decision.is_complete
    assert all(answer.decision == WAITS and answer.evicted_by in answer.reason for answer in held)


def test_time_grows_with_the_number_of_jobs():
    """Four times as many jobs and queues take about four times as long, and deciding not much more than building."""
    measure(100, 4)
    small = min(measure(150, 5)[1] for _ in range(2))
    build, decided, _ = measure(600, 20)
    assert decided < 12 * small
    assert decided < 10 * build
