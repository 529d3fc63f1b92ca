"""The flavors of Kueue that the pods of a job can get, which decide about their nodes and so about their price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import Answer
from jobgen.model.named_tuple import NamedTuple

ObjectKey = tuple[str, str, str, str]
"""The environment, kind, namespace and name of an object."""

NO_FLAVOR: tuple[str, Mapping[str, str]] = ("", {})


class JobFlavors(NamedTuple):
    """The decisions about all jobs, and the queues of each environment."""

    answers: Mapping[ObjectKey, tuple[Answer, ...]]
    contexts: Mapping[str, AdmissionContext]

    def find(self, job: ObjectKey, role: str, resource: str) -> list[tuple[str, Mapping[str, str]]]:
        """Return the flavors that pods can get for a resource, with their node labels.

        Admitted pods have one. Pods that wait can get any flavor of their queue. Without a queue there is none.
        """
        answers, context = self.answers.get(job, ()), self.contexts.get(job[0])
        names = _list_admitted(answers, role, resource)
        if not names and context is not None:
            queues = [context.queues[each.cluster_queue] for each in answers if each.cluster_queue in context.queues]
            groups = [group for queue in queues if (group := queue.find_group(resource))]
            names = [flavor for group in groups for flavor in group.flavors]
        if context is None or not names:
            return [NO_FLAVOR]
        return [
            (name, context.flavors[name].labels if name in context.flavors else {}) for name in dict.fromkeys(names)
        ]


def _list_admitted(answers: Iterable[Answer], role: str, resource: str) -> list[str]:
    """Return the flavors of the pod set of a role; those of all pod sets if none has its name."""
    admitted = [each for answer in answers if answer.workload for each in answer.workload.admission]
    own = [each for each in admitted if each.name == role]
    return [each.flavors[resource] for each in own or admitted if resource in each.flavors]
