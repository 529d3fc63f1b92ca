"""Small Kueue objects for tests: only the fields that decide."""

FLAVOR = "default"


def run_until_stable(scheduler, most=1_000_000):
    """Run cycles until none changes anything more, and return how many; what is evicted keeps its quota."""
    seen, size = set(), measure_state(scheduler)
    for number in range(most):
        heads = (pending.peek() for queue, pending in scheduler.pending.items() if queue not in scheduler.inactive)
        state = tuple((head.key, tuple(scheduler.progress.get(head.key, {}).values())) for head in heads if head)
        state += tuple((key, ()) for key in scheduler.second_pass)
        if not state or state in seen:
            return number
        seen.add(state)
        scheduler.run_cycle()
        if (new := measure_state(scheduler)) != size:
            size = new
            seen.clear()
    return most


def measure_state(scheduler):
    """Numbers that change if a cycle changes anything."""
    queues = (scheduler.snapshot.workloads, scheduler.parked, scheduler.pending)
    return len(scheduler.evicted), *(sum(map(len, several.values())) for several in queues)


def cluster_queue(name, cohort="", cpu="0", **spec):
    """A ClusterQueue with CPU in one flavor; `borrow` and `lend` limit it, the rest goes to its spec."""
    limits = {"borrowingLimit": spec.pop("borrow", None), "lendingLimit": spec.pop("lend", None)}
    quota = {
        "name": "cpu",
        "nominalQuota": cpu,
        **{key: value for key, value in limits.items() if value is not None},
    }
    group = {"coveredResources": ["cpu"], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
    found = {"namespaceSelector": {}, "resourceGroups": [group], **spec}
    return {"metadata": {"name": name}, "spec": {**found, "cohortName": cohort} if cohort else found}


def flavored_queue(name, quotas, resource="cpu", **spec):
    """A ClusterQueue with several flavors for one resource, by name."""
    flavors = [
        {"name": flavor, "resources": [{"name": resource, "nominalQuota": quota}]} for flavor, quota in quotas.items()
    ]
    group = {"coveredResources": [resource], "flavors": flavors}
    return {"metadata": {"name": name}, "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec}}


def cohort(name, parent="", cpu=None):
    """A Cohort, with CPU of its own if given."""
    quota = {"name": "cpu", "nominalQuota": cpu}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
    spec = {"parentName": parent} if parent else {}
    return {"metadata": {"name": name}, "spec": {**spec, "resourceGroups": [group]} if cpu else spec}


def flavor(name=FLAVOR, **spec):
    """A ResourceFlavor."""
    return {"metadata": {"name": name}, "spec": spec}


def pod_set(cpu="1", count=1, name="main", **fields):
    """A pod set whose pods request CPU; `spec` goes to the pods."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], **fields.pop("spec", {})}}
    return {"name": name, "count": count, "template": template, **fields}


def workload(name, cpu="1", priority=0, **metadata):
    """A pending Workload with one pod."""
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, **metadata},
        "spec": {"queueName": "main", "priority": priority, "podSets": [pod_set(cpu)]},
    }


def admitted(name, queue, cpu="1", priority=0, at="2026-01-01T12:00:00Z", **metadata):
    """A Workload with reserved quota."""
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": FLAVOR}, "resourceUsage": {"cpu": cpu}}
    condition = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": at}
    status = {"admission": {"clusterQueue": queue, "podSetAssignments": [assignment]}, "conditions": [condition]}
    return {**workload(name, cpu, priority, **metadata), "status": status}
