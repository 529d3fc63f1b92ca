"""Cohorts and ClusterQueues that do not exist or form a cycle, and quota that nothing can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", ERROR, kinds=("Cohort",))
def cohort_cycle(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Cohorts whose parents form a cycle.

    Kueue accepts each of the Cohorts, because it looks at one object at a time. It then admits nothing in any
    ClusterQueue below the cycle, and no job shows an error. The finding is on one of the Cohorts, and names the others.

    Remove `parentName` of the Cohort that is meant to be the top, or correct it.

    When to turn it off: Kueue has no mode in which such a tree works. When queues move between two parents, delete
    the old edge in the same commit.
    """
    from jobgen.features.kueue.quota import find_parent

    for cycle in queues.cycles:
        # `admits-nothing` reports a Cohort of the repository that is its own parent.
        if cycle[0] != manifest.name or (len(cycle) == 1 and not queues.is_exported(manifest.object)):
            continue
        others = [(name, queues.objects["Cohort", "", name]) for name in cycle[1:]]
        chain = " is below ".join(f"`{name}`" for name in (*cycle, cycle[0]))
        message = Sentence("the parents of the cohorts form a cycle: {}; Kueue admits nothing below it", chain)
        related = tuple((find_parent(other), f"parent of cohort `{name}`") for name, other in others)
        yield Violation(find_parent(manifest.object), Sentence("{}; remove one `parentName`", message), related)


@rule("queue", WARNING, kinds=("ClusterQueue", "Cohort"))
def unknown_cohort(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A cohort that only one ClusterQueue or Cohort names, and that has no object.

    For Kueue a cohort exists as soon as something names it, so a misspelled name is not an error: the queue is alone in
    a new cohort, and nothing lends to it. The rule applies if other cohorts have objects, or names that are similar.

    Correct the name, add the Cohort, or leave the field out.

    When to turn it off: a cohort prepared for a second queue that comes later has one member today. Add the Cohort
    object, which also ends the finding.
    """
    from jobgen.features.kueue.quota import find_parent

    place = find_parent(manifest.object)
    if place is None:
        return
    name = as_text(place.node)
    declared = {key[2] for key in queues.objects if key[0] == "Cohort"}
    others = sorted((declared | queues.cohorts.keys()) - {name})
    hint = did_you_mean(name, others)
    if name in declared or queues.cohorts[name] > 1 or not (hint or declared - {manifest.name}):
        return
    message = Sentence("there is no Cohort `{}`, and nothing else is in it", name)
    yield Violation(place, Sentence("{}{}", message, hint or "; add the Cohort, or use another"))


@rule("queue", WARNING, kinds=("LocalQueue",))
def unknown_cluster_queue(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A LocalQueue of a ClusterQueue that does not exist, one slip of the keyboard away from one that does.

    Kueue accepts the LocalQueue, and admits none of its jobs until the ClusterQueue exists. If no ClusterQueue has a
    similar name, it can be in another repository, and nothing is reported here: `inadmissible-job` reports jobs where
    the state of the cluster says that it does not exist.

    Correct `clusterQueue`.

    When to turn it off: two queues with similar names can both be real, with the second in another repository:
    accept it on `clusterQueue` then.
    """
    node = manifest.spec.get("clusterQueue")
    meant = queues.misspelled_queues.get(as_text(node))
    if meant:
        yield Violation(
            At(manifest.spec, "clusterQueue"),
            Sentence("there is no ClusterQueue `{}`; did you mean `{}`?", as_text(node), meant),
        )


@rule("queue", WARNING, kinds=("ClusterQueue", "Cohort"))
def unreachable_quota(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """Quota of a ClusterQueue or Cohort that no workload can ever use.

    A ClusterQueue that no LocalQueue refers to gets no workloads. Its quota can only be used if it is in a cohort and
    lends it to a queue that lists the same flavor and resource. The quota of a Cohort can only be used if a
    ClusterQueue of its tree lists the flavor and resource. A flavor that does not exist makes a queue inactive. If no
    LocalQueue, or no ResourceFlavor, is among the files, jobgen does not know them and reports nothing. Negative quota
    in the exported state is reported as well, as no cluster has it.

    Add a LocalQueue, lend the quota, or give it to a queue that is used.

    When to turn it off: quota that is reserved for a team to come, before its LocalQueue exists, can be accepted on
    the line of the quota with a date.
    """
    from jobgen.features.kueue.queue_state import find_unreachable

    for place, message in find_unreachable(manifest.object, queues):
        yield Violation(place, message)
