"""Measure the decision about many jobs in many queues, in CPU seconds.

    python benchmarks/queues.py [--jobs 10000] [--queues 200] [--preempt]

The queues have flavors, cohorts, borrowing limits and priorities; most jobs find their quota used and wait.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from random import Random
from typing import Any

from jobgen.features.kueue.answers import Decision, decide
from jobgen.features.kueue.job_workloads import collect_jobs
from jobgen.spec.overlay import Cluster

API, GPU = "kueue.x-k8s.io/v1beta2", "nvidia.com/gpu"
FLAVORS = ("h100", "a100", "l4", "spot")
COHORTS, NAMESPACES, PRIORITIES = 20, 50, 5
CLUSTER = Cluster(kueue={"version": "0.19"}, operators={"kueue": "0.19"})


def make_object(kind: str, name: str, spec: dict[str, Any], version: str = API) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def make_queue(random: Random, number: int, *, preempts: bool) -> dict[str, Any]:
    """Make a ClusterQueue with one to three flavors."""
    flavors = [
        {
            "name": name,
            "resources": [
                {"name": "cpu", "nominalQuota": random.choice([400, 800, 2000])},
                {"name": GPU, "nominalQuota": random.choice([8, 32, 64]), "borrowingLimit": random.choice([0, 8, 64])},
            ],
        }
        for name in random.sample(FLAVORS, random.randint(1, 3))
    ]
    groups = [{"coveredResources": ["cpu", GPU], "flavors": flavors}]
    spec = {"cohortName": f"c{number % COHORTS}", "namespaceSelector": {}, "resourceGroups": groups}
    if preempts:
        spec["preemption"] = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    return make_object("ClusterQueue", f"q{number}", spec)


def make_cluster(random: Random, queues: int, *, preempts: bool) -> list[dict[str, Any]]:
    """Make flavors, cohorts, queues and priorities."""
    found = [make_object("ResourceFlavor", name, {"nodeLabels": {"gpu": name}}) for name in FLAVORS]
    found += [make_object("Cohort", f"c{n}", {"parentName": "root" if n % 2 else ""}) for n in range(COHORTS)]
    found += [make_object("WorkloadPriorityClass", f"p{n}", {}) | {"value": n} for n in range(PRIORITIES)]
    for number in range(queues):
        local = make_object("LocalQueue", f"q{number}", {"clusterQueue": f"q{number}"})
        local["metadata"]["namespace"] = f"team-{number % NAMESPACES}"
        found += [make_queue(random, number, preempts=preempts), local]
    return found


def make_job(random: Random, number: int, queues: int) -> dict[str, Any]:
    """Make a Job of some pods with GPUs; one of five selects a flavor."""
    queue = random.randrange(queues)
    limits = {"cpu": random.choice(["4", "8", "16"]), GPU: random.choice([1, 2, 4, 8])}
    pods: dict[str, Any] = {"containers": [{"name": "main", "image": "train:1", "resources": {"limits": limits}}]}
    if random.random() < 0.2:
        pods["nodeSelector"] = {"gpu": random.choice(FLAVORS)}
    labels = {
        "kueue.x-k8s.io/queue-name": f"q{queue}",
        "kueue.x-k8s.io/priority-class": f"p{random.randrange(PRIORITIES)}",
    }
    job = make_object("Job", f"j{number}", {"parallelism": random.choice([1, 2, 4, 8]), "template": {"spec": pods}})
    job["metadata"] |= {"namespace": f"team-{queue % NAMESPACES}", "labels": labels}
    return job | {"apiVersion": "batch/v1"}


def measure(jobs: int, queues: int, *, preempts: bool = False) -> tuple[float, float, Decision]:
    """Return the CPU seconds to build the workloads and to decide about them, and the decision."""
    gc.disable()  # as the command does
    random = Random(1)
    cluster = make_cluster(random, queues, preempts=preempts)
    manifests = [make_job(random, number, queues) for number in range(jobs)]
    started = time.process_time()
    queued = collect_jobs(manifests, cluster, CLUSTER)
    built = time.process_time()
    decision = decide(queued.context, queued.jobs)
    return built - started, time.process_time() - built, decision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--preempt", action="store_true", help="let all queues preempt")
    options = parser.parse_args()
    build, decided, decision = measure(options.jobs, options.queues, preempts=options.preempt)
    counts = ", ".join(f"{n} {name}" for name, n in Counter(each.decision for each in decision.answers).items())
    state = "" if decision.is_complete else "; stopped because it takes too long"
    print(f"{options.jobs} jobs, {options.queues} queues: build {build:.2f} s, decide {decided:.2f} s; {counts}{state}")


if __name__ == "__main__":
    main()
