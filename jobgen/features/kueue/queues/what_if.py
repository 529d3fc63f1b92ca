"""What if: changes of queues, nodes, priority classes and jobs, in short or as partial objects, applied to objects.

A change in short names a thing, one of its fields, an operator and a value: `cq/research.h100+=32`. A partial object
merges into the object of the same kind and name, like a patch of kustomize.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.features.kueue.cluster_objects import (
    DECIDING_KINDS,
    MAX_NODES,
    Object,
    build_nodes,
    get_group,
    parse_configuration,
)
from jobgen.features.kueue.job_workloads import PRIORITY_LABEL, QUEUE_LABEL, get_job_name
from jobgen.features.kueue.objects import as_list, as_mapping, find_namespace, name_of, parse_flavor
from jobgen.features.kueue.queues.comparison import AppliedChange
from jobgen.features.kueue.quota import add, get_parent, show_amount, show_number, subtract, to_amount
from jobgen.k8s.devices import is_device
from jobgen.k8s.kueue_integrations import INTEGRATIONS
from jobgen.k8s.nodes import get_path
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES, FoundPods, find_pods
from jobgen.kustomize.patches import MergeError, merge_patch
from jobgen.model.data import untraced
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.placed import with_nodes
from jobgen.model.quantity import parse_quantity
from jobgen.model.suggest import did_you_mean, list_alternatives
from jobgen.rendering.build import split_list
from jobgen.rendering.file_secrets import read_masked
from jobgen.rendering.runs import JOB_ANNOTATION
from jobgen.repo.files import read_path
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP

_CHANGE = lazy_pattern(r"([A-Za-z]+)/([^=]+?)\s*(?:(\+=|-=|=)\s*(.*)|-)\Z")
_NODES = lazy_pattern(r"([0-9]{1,9}) *nodes?\Z")
_INTEGER = lazy_pattern(r"[+-]?[0-9]{1,30}\Z")
_OPERATORS = "*/%^:<>!~|&"
"""What other languages write before `=`."""
_MAX_LENGTH, _MAX_SHOWN, _MAX_NAMES, _MOST_CHANGES = 500, 60, 5, 1000
_MOST_INT32 = 2**31 - 1
_NO_CHANGES, _EXAMPLE = "this is neither an object nor a list of changes", "write `changes: [cq/NAME.FLAVOR+=8]`"
_CLASSES = ("WorkloadPriorityClass", "PriorityClass")
_JOB, _CLUSTER = "job", "worker cluster"
_JOB_KINDS = frozenset(kind for _, kind in INTEGRATIONS)
_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cq", "clusterqueue"), ("ClusterQueue",)),
    "cohort": ("Cohort",),
    **dict.fromkeys(("lq", "localqueue"), ("LocalQueue",)),
    **dict.fromkeys(("flavor", "resourceflavor"), ("ResourceFlavor",)),
    "node": ("Node",),
    "priority": _CLASSES,
    "workloadpriorityclass": _CLASSES[:1],
    "priorityclass": _CLASSES[1:],
    _JOB: (_JOB,),
    "cluster": (_CLUSTER,),
}
"""The kinds by the names that kubectl has for them, and by shorter ones."""
_SHOWN_KINDS = ("cq", "cohort", "lq", "flavor", "node", "priority", "cluster", _JOB)

_QUOTA_FIELDS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_STOP = ("None", "Hold", "HoldAndDrain")
_SEARCH = ("MayStopSearch", "TryNextFlavor")
_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ClusterQueue": {
        "cohortName": (),
        "queueingStrategy": ("BestEffortFIFO", "StrictFIFO"),
        "stopPolicy": _STOP,
        "preemption.withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
        "preemption.reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
        "preemption.borrowWithinCohort.policy": ("Never", "LowerPriority"),
        "flavorFungibility.whenCanBorrow": _SEARCH,
        "flavorFungibility.whenCanPreempt": _SEARCH,
        "flavorFungibility.preference": ("BorrowingOverPreemption", "PreemptionOverBorrowing"),
        "fairSharing.weight": (),
    },
    "Cohort": {"parentName": (), "fairSharing.weight": ()},
    "LocalQueue": {"clusterQueue": (), "stopPolicy": _STOP},
}
"""Fields of the spec, and the words that each can have; none if it is a name."""
_ASSUMED = ("Node", "ResourceFlavor")
"""Kinds of which the best is assumed if the files have none; so something is left of those that are removed."""
_FORMER = {"cohortName": "cohort", "parentName": "parent"}
"""Fields that v1beta1 calls otherwise."""
_NAMED = {QUEUE_LABEL: ("LocalQueue",), PRIORITY_LABEL: _CLASSES, "clusterQueue": ("ClusterQueue",)}
"""Fields whose values are names, and the kinds of what they name."""
_OPTIONAL = frozenset(("cohortName", "parentName", QUEUE_LABEL, PRIORITY_LABEL))
"""Names that `none` removes."""


class UnknownTargetError(Exception):
    """A change names nothing in an environment; another environment may have it."""

    def __init__(self, message: str, *, is_field: bool = False) -> None:
        super().__init__(message)
        self.is_field = is_field
        """True if the object exists, but not its field."""


class _Id(NamedTuple):
    """What identifies an object."""

    group: str
    """The kind; `job` for all kinds of jobs."""
    namespace: str
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.namespace}/{self.name}`" if self.namespace else f"{self.kind} `{self.name}`"

    def spell(self) -> str:
        """Return how a change names only this object."""
        start = f"{_JOB}/{self.kind.lower()}" if self.group == _JOB else self.kind.lower()
        return "/".join(filter(None, (start, self.namespace, self.name)))


class _Field(NamedTuple):
    """A value in an object that a change can set."""

    path: tuple[str | int, ...]
    what: str
    unit: str = ""
    """`quantity`, `integer`, or empty for a word or a name."""
    words: tuple[str, ...] = ()
    resource: str = ""
    missing: int = 0
    """What a number is if it is not written."""

    def show(self, value: Any) -> str:
        """Return a value of the field as text."""
        if value is None or value == "":
            return "none"
        if self.resource:
            return show_amount(self.resource, to_amount(self.resource, value))
        return _show(str(value).lower() if isinstance(value, bool) else value)


class _Request(NamedTuple):
    """A change as it is written."""

    text: str
    start: str
    """The kind as it is written."""
    target: str
    operator: str
    """`=`, `+=` or `-=`; empty if the object is removed."""
    value: str
    cluster: str = ""
    """The worker cluster in which it is."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return _KINDS[_name_kind(self.start)]

    def refuse(self, problem: str) -> UsageError:
        """Return the error that says what is wrong with the change."""
        return UsageError(f"`{_show(self.text)}`: {problem}")


def _name_kind(start: str) -> str:
    """Return a kind as `_KINDS` has it; kubectl also takes the plural."""
    name = start.lower()
    return name if name in _KINDS else name.removesuffix("s")


def _show(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def _show_some(names: Sequence[str]) -> str:
    shown = [f"`{_show(each)}`" for each in names[:_MAX_NAMES]]
    return list_alternatives(shown) if len(names) <= _MAX_NAMES else f"{', '.join(shown)}, …"


def _parse(text: str) -> _Request:
    found = _CHANGE.match(text.strip()) if len(text) <= _MAX_LENGTH else None
    if found is None:
        message = f"`{_show(text)}` is not a change"
        raise UsageError(f"{message}; write `cq/NAME.FLAVOR+=8`, `priority/CLASS=1000` or `job/NAME-`")
    if _name_kind(found[1]) not in _KINDS:
        hint = f"; use {list_alternatives(f'`{each}/`' for each in _SHOWN_KINDS)}"
        raise UsageError(f"`{_show(text)}`: `{_show(found[1])}` is not a kind that can be changed{hint}")
    made = _Request(text.strip(), found[1], found[2].strip(), found[3] or "", (found[4] or "").strip())
    if made.operator and (made.target[-1] in _OPERATORS or made.value.startswith("=")):
        wrong = f"{made.target[-1]}=" if made.target[-1] in _OPERATORS else f"{made.operator}="
        raise made.refuse(f"`{wrong}` is not an operator; use `=`, `+=` or `-=`")
    name, within, _ = made.target.partition("/")
    if made.kinds != (_CLUSTER,):
        return made
    if within:
        request = _parse(text.strip().partition("/")[2].partition("/")[2])
        if request.kinds in ((_JOB,), (_CLUSTER,)):
            raise made.refuse("the manager cluster has the jobs; change a queue of the worker cluster")
        return request._replace(text=made.text, cluster=name)
    if made.operator:
        raise made.refuse(f"write `cluster/{name}-` to lose it, or a change in it: `cluster/{name}/cq/NAME.FLAVOR+=8`")
    return made


Outcome = AppliedChange | UnknownTargetError


def _miss_cluster(request: _Request, name: str, cluster: Cluster) -> UnknownTargetError:
    known = sorted(cluster.workers)
    hint = did_you_mean(name, known) or (f"; the overlay declares {_show_some(known)}" if known else "")
    return UnknownTargetError(f"`{_show(request.text)}` names no worker cluster{hint or '; the overlay declares none'}")


class WhatIf(NamedTuple):
    """All changes that are asked for: partial objects first, then those in short, in their order."""

    changes: tuple[str, ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()
    """With locations: an explicit `null` deletes a field."""
    adds: bool = True
    """True if an object that does not exist is added; not if there are several environments."""

    def apply(
        self, objects: Sequence[Object], exported: Sequence[Object], cluster: Cluster, worker: str = ""
    ) -> tuple[list[Object], list[Object], Cluster, dict[int, Outcome]]:
        """Return the rendered objects, the exported ones and the cluster with all changes, and what each does.

        Only the changes of a worker cluster are made if it is named. Outcomes have the places of their changes.

        Raises:
            UsageError: A change is wrong, or it is not clear what it names.

        """
        changed = _Objects(objects, exported, cluster)
        requests = [_parse(each) for each in self.changes]
        steps = [partial(changed.merge, each, adds=self.adds) if not worker else None for each in self.objects]
        steps += (partial(changed.apply, each) if each.cluster == worker else None for each in requests)
        applied: dict[int, Outcome] = {}
        for place, step in enumerate(steps):
            if step is not None:
                try:
                    made = step()
                    where = f"{made.what} in worker cluster `{worker}`"
                    applied[place] = made._replace(what=where) if worker else made
                except UnknownTargetError as error:
                    applied[place] = error
        for place, each in enumerate(requests, len(self.objects)):
            if each.cluster not in ("", worker) and not worker and each.cluster not in cluster.workers:
                applied[place] = _miss_cluster(each, each.cluster, cluster)
        own, others = ([each for each in side if each is not None] for side in changed.sides)
        return own, others, changed.cluster, applied


def _find_fault(document: Any) -> str:
    """Return why a document is no list of changes; empty if it is one."""
    if not isinstance(document, dict) or not document:
        return _NO_CHANGES
    unknown = next((str(key) for key in document if key != "changes"), None)
    if unknown is not None:
        near = did_you_mean(unknown, ["changes", "apiVersion", "kind"])
        return f"`{_show(unknown)}` is not a key of a file of changes{near}, which has objects or `changes`"
    changes = document["changes"]
    if not isinstance(changes, list) or not changes:
        return f"`changes` is {'empty' if not changes else 'not a list'}"
    wrong = next((each for each in changes if not isinstance(each, str)), None)
    return "" if wrong is None else f"`{_show(wrong)}` is not a change"


def read_what_if(changes: Sequence[str], file: str | None, home: Path) -> WhatIf:
    """Read the changes of a file, and add others. Raise a UsageError if the file cannot be read.

    No link of the repository is followed out of it.
    """
    texts: list[str] = []
    objects: list[Mapping[str, Any]] = []
    if file is not None:
        content = read_path(Path(file).absolute(), str(file), home)
        source = read_masked(content.content, str(file), traced=True)
        for problem in filter(None, (content.finding, *source.findings)):
            where = "" if content.finding else f":{problem.location.line}"
            # A file that is something else may have secrets.
            is_other = problem.rule == "not-a-mapping"
            raise UsageError(f"{file}{where}: {f'{_NO_CHANGES}; {_EXAMPLE}' if is_other else problem.message}")
        for document in source.documents:
            plain = untraced(document.data)
            if "kind" in plain or "apiVersion" in plain:
                objects += split_list(document.data)
            else:
                fault = _find_fault(plain)
                if fault:
                    raise UsageError(f"{file}:{document.location.line}: {fault}; {_EXAMPLE}")
                texts += plain["changes"]
    if len(texts) + len(changes) + len(objects) > _MOST_CHANGES:
        raise UsageError(f"there are more than {_MOST_CHANGES} changes; write the new objects to a folder instead")
    return WhatIf((*texts, *changes), tuple(objects))


class _Objects:
    """The objects of an environment while they are changed: those of the repository, and the exported ones."""

    def __init__(self, objects: Sequence[Object], exported: Sequence[Object], cluster: Cluster) -> None:
        self.sides: tuple[list[Any], list[Any]] = (list(objects), list(exported))
        self.cluster = cluster
        self._places: dict[_Id, list[tuple[int, int]]] = {}
        """Where objects are; of several with the same identity, the first counts."""
        self._names: dict[tuple[str, str], set[_Id]] = {}
        """The identities by group and name."""
        self._copied: set[tuple[int, int]] = set()
        for side, several in enumerate(self.sides):
            for place, obj in enumerate(several):
                self._add_place(obj, side, place)

    def _add_place(self, obj: Object, side: int, place: int) -> None:
        kind, name = str(obj.get("kind", "")), get_job_name(obj)
        is_job = kind in _JOB_KINDS and side == 0
        if not name or not (is_job or kind in DECIDING_KINDS):
            return
        space = find_namespace(obj) if is_job or kind == "LocalQueue" else ""
        identity = _Id(_JOB if is_job else kind, space, name, kind)
        self._places.setdefault(identity, []).append((side, place))
        names = [name, f"{space}/{name}", f"{kind.lower()}/{space}/{name}"]
        if is_job:
            # The name of the job of which it is a run, and that of its sweep.
            others = (("metadata", "annotations", JOB_ANNOTATION), ("metadata", "labels", SWEEP))
            names += (str(get_path(obj, *path) or "") for path in others)
        for each in names:
            self._names.setdefault((identity.group, each), set()).add(identity)

    def _get(self, identity: _Id) -> Any:
        side, place = self._places[identity][0]
        return self.sides[side][place]

    def _edit(self, identity: _Id) -> Any:
        """Return an object that can be changed."""
        side, place = self._places[identity][0]
        if (side, place) not in self._copied:
            self._copied.add((side, place))
            self.sides[side][place] = deepcopy(untraced(dict(self.sides[side][place])))
        return self.sides[side][place]

    def _insert(self, obj: dict[str, Any], side: int) -> None:
        self.sides[side].append(obj)
        self._add_place(obj, side, len(self.sides[side]) - 1)

    def _remove(self, identity: _Id) -> None:
        left = {"kind": identity.kind, "metadata": {"name": f"{identity.name}-removed"}}
        for side, place in self._places.pop(identity):
            version = self.sides[side][place].get("apiVersion")
            self.sides[side][place] = {"apiVersion": version, **left} if identity.group in _ASSUMED else None

    def _find(self, request: _Request, name: str) -> list[_Id]:
        """Return what a name means: one object, all runs or members of one job, or all jobs that match a pattern."""
        is_job = request.kinds == (_JOB,)
        found = sorted(
            each for kind in request.kinds for each in self._names.get((kind, name), ()) if each in self._places
        )
        if is_job and not found and any(sign in name for sign in "*?["):
            names = (
                (each, known) for (kind, known), several in self._names.items() if kind == _JOB for each in several
            )
            return sorted({each for each, known in names if each in self._places and fnmatchcase(known, name)})
        exact = [each for each in found if name.endswith(each.name)]
        if len(exact) > 1:
            raise UsageError(f"`{_show(request.text)}` is ambiguous; write {_show_some([e.spell() for e in exact])}")
        return exact or found

    def apply(self, request: _Request) -> AppliedChange:
        """Make a change in short."""
        if request.kinds == (_CLUSTER,):
            return self._lose(request)
        if request.kinds == ("Node",):
            self._expand_nodes()
        if not request.operator or request.kinds == ("ResourceFlavor",):
            found = self._find(request, request.target)
            if not found:
                raise self._miss(request)
            if request.operator:
                return self._change_nodes(request, found[0])
            for each in found:
                self._remove(each)
            return AppliedChange(request.text, _name(found), "", "removed")
        # Names and fields can have dots.
        ends = [place for place, sign in enumerate(request.target) if sign == "."]
        ends = ends[-2:] if request.kinds == (_JOB,) else ends
        splits = [(request.target[:end], request.target[end + 1 :]) for end in (*ends, len(request.target))]
        named = [(found, path) for name, path in splits if (found := self._find(request, name))]
        fitting = [(found, path) for found, path in named if path in dict(self._list_fields(found[0]))]
        if not fitting:
            raise self._miss(request, *named[-1:])
        if len(fitting) > 1:
            names = [f"`{path}` of {_name(found)}" for found, path in fitting]
            raise UsageError(f"`{_show(request.text)}` is ambiguous: it is {list_alternatives(names)}")
        identities, path = fitting[0]
        results = [self._set(request, each, path) for each in identities]
        if len(results) == 1:
            return results[0]
        before, after = (_join_values(getattr(each, side) for each in results) for side in ("before", "after"))
        return results[0]._replace(what=f"`{path}` of {_name(identities)}", before=before, after=after)

    def _lose(self, request: _Request) -> AppliedChange:
        """Lose a worker cluster: the dispatcher gets its name."""
        name, kueue = request.target, self.cluster.kueue
        if name not in self.cluster.workers:
            raise _miss_cluster(request, name, self.cluster)
        block = as_mapping(kueue.get("multiKueue"))
        lost = {**block, "lost": [*as_list(block.get("lost")), name]}
        self.cluster = self.cluster._replace(kueue={**kueue, "multiKueue": lost})
        return AppliedChange(request.text, f"worker cluster `{name}`", "", "lost")

    def _miss(self, request: _Request, *named: tuple[list[_Id], str]) -> UnknownTargetError:
        """Return the error about a name or a field that does not exist, with what does."""
        for found, path in named:
            known = [each for each in dict(self._list_fields(found[0])) if each]
            below = [each for each in known if path and (each.startswith(f"{path}.") or each.endswith(f".{path}"))]
            # The shorter spellings are enough.
            below = [each for each in below if not each.endswith(_QUOTA_FIELDS)] or below
            problem = "is ambiguous" if len(below) > 1 else f"names no field of {found[0]}"
            short = [each for each in known if not each.endswith(_QUOTA_FIELDS)]
            several = _show_some([f"{request.start}/{found[0].name}.{each}" for each in below or short])
            hint = ("" if below else did_you_mean(path, known)) or f"; write {several}"
            return UnknownTargetError(f"`{_show(request.text)}` {problem}{hint}", is_field=True)
        known = sorted({each.name for each in self._places if each.group in request.kinds})
        if request.kinds == ("Cohort",):
            name, _, field = request.target.partition(".")
            queues = (each for each in self._places if each.group == "ClusterQueue")
            parents = {each.name: str(get_parent(self._get(each)) or "") for each in queues}
            members = sorted(each for each, parent in parents.items() if parent == name)
            if not members:
                known = sorted({*known, *filter(None, parents.values())})
            elif name not in known:
                several = _show_some([f"cq/{each}.{field or 'FLAVOR'}" for each in members])
                problem = f"cohort `{_show(name)}` has no Cohort object, so it has only the quota of its queues"
                return UnknownTargetError(f"`{_show(request.text)}`: {problem}; change {several}")
        hint = did_you_mean(request.target, known) or did_you_mean(request.target.partition(".")[0], known)
        hint = hint or (f"; the files have {_show_some(known)}" if known else "; the files have none")
        return UnknownTargetError(f"`{_show(request.text)}` names no {' or '.join(request.kinds)}{hint}")

    def _list_fields(self, identity: _Id) -> Iterator[tuple[str, _Field]]:
        """Yield the fields of an object, by all their spellings."""
        kind, obj = identity.group, self._get(identity)
        if kind == _JOB:
            yield "queue", _Field(("metadata", "labels", QUEUE_LABEL), "queue")
            yield "priority", _Field(("metadata", "labels", PRIORITY_LABEL), "priority class")
            yield from _list_replicas(obj)
        elif kind in _CLASSES:
            yield "", _Field(("value",), "value", "integer")
        elif kind == "Node":
            for resource in map(str, as_mapping(as_mapping(obj.get("status")).get("allocatable"))):
                yield resource, _Field(("status", "allocatable", resource), f"`{resource}`", "quantity", (), resource)
            yield "unschedulable", _Field(("spec", "unschedulable"), "`unschedulable`", "", ("true", "false"))
        if kind in ("ClusterQueue", "Cohort"):
            yield from _list_quotas(obj)
        for name, words in _FIELDS.get(kind, {}).items():
            unit = "quantity" if name == "fairSharing.weight" else ""
            yield name, _Field(("spec", *name.split(".")), f"`{name}`", unit, words)

    def _set(self, request: _Request, identity: _Id, path: str) -> AppliedChange:
        field = dict(self._list_fields(identity)).get(path)
        if field is None:
            raise request.refuse(f"{identity} has no field `{_show(path)}`")
        is_pod_class, note = self._check_name(request, identity, field), ""
        last, obj = field.path[-1], self._edit(identity)
        parent = obj
        for step in field.path[:-1]:
            if isinstance(parent, dict) and not isinstance(parent.get(step), (dict, list)):
                parent[step] = {}
            parent = parent[step]
        before = parent.get(last)
        after = _compute(request, field, before)
        if last in _FORMER:
            before = before or parent.pop(_FORMER[str(last)], None)
            note = self._check_cohort(identity, str(after or ""))
        parent[last] = after
        if after is None or is_pod_class:
            del parent[last]
        if is_pod_class:
            for spec in (get_path(pods.template, "spec") for pods in _find_pods(obj)):
                if isinstance(spec, dict):
                    spec["priorityClassName"] = after
        if last == "parallelism" and type(parent.get("completions")) is int:
            parent["completions"] = max(parent["completions"], after)
        what = f"{field.what} of {identity}"
        return AppliedChange(request.text, what, field.show(before), field.show(after), note, field.resource)

    def _check_cohort(self, identity: _Id, name: str) -> str:
        """Return a note about a cohort that has no other members and no object."""
        others = (each for each in self._places if each.group in ("ClusterQueue", "Cohort") and each != identity)
        known = {each.name for each in self._places if each.group == "Cohort"}
        known |= {str(get_parent(self._get(each)) or "") for each in others}
        if not name or name in known:
            return ""
        return f"no other queue is in cohort `{_show(name)}`{did_you_mean(name, sorted(filter(None, known)))}"

    def _check_name(self, request: _Request, identity: _Id, field: _Field) -> bool:
        """Raise a UsageError if a value names no object; return True if it is a priority class of pods."""
        kinds = _NAMED.get(str(field.path[-1]), ())
        known = [each for each in self._places if each.group in kinds and each.namespace in ("", identity.namespace)]
        found = [each.kind for each in known if each.name == request.value]
        is_removed = str(field.path[-1]) in _OPTIONAL and request.value in ("", "none")
        if kinds and not found and not is_removed and request.operator == "=":
            names = sorted({each.name for each in known})
            hint = did_you_mean(request.value, names) or (
                f"; use {_show_some(names)}" if names else "; the files have none"
            )
            raise request.refuse(f"there is no {' or '.join(kinds)} `{_show(request.value)}`{hint}")
        return found == [_CLASSES[1]]

    def _expand_nodes(self) -> None:
        """Make objects of the nodes that the overlay lists in short."""
        kueue = self.cluster.kueue
        if kueue.get("nodes"):
            configuration = parse_configuration(kueue, self.cluster.find_version("kueue"), self.cluster.feature_gates)
            flavors = [parse_flavor(self._get(each)) for each in self._places if each.group == "ResourceFlavor"]
            for node in build_nodes(configuration.nodes, {each.name: each.labels for each in flavors}):
                self._insert({"apiVersion": "v1", "kind": "Node", **node}, 1)
            self.cluster = self.cluster._replace(kueue={**kueue, "nodes": []})

    def _change_nodes(self, request: _Request, identity: _Id) -> AppliedChange:
        """Remove the last nodes of a flavor, by name, or add copies of the last one."""
        amount = _NODES.match(request.value)
        if amount is None:
            hint = f"write a number of nodes, such as `flavor/{identity.name}-=1 node`"
            raise request.refuse(f"`{_show(request.value)}` is not a number of nodes; {hint}")
        self._expand_nodes()
        flavor = parse_flavor(self._get(identity))
        nodes = sorted(
            each
            for each in self._places
            if each.group == "Node"
            and flavor.labels.items() <= as_mapping(get_path(self._get(each), "metadata", "labels")).items()
        )
        wanted = int(amount[1]) * (-1 if request.operator == "-=" else 1)
        wanted += 0 if request.operator == "=" else len(nodes)
        if not 0 <= wanted <= MAX_NODES or (wanted and not nodes):
            most = f"; jobgen simulates at most {MAX_NODES}" if wanted > MAX_NODES else ""
            raise request.refuse(f"the files have {pluralize(len(nodes), 'node')} of flavor `{flavor.name}`{most}")
        removed, last = nodes[wanted:], nodes[-1] if nodes else identity
        for each in removed:
            self._remove(each)
        added = [f"{last.name}-copy-{number}" for number in range(1, wanted - len(nodes) + 1)]
        for name in added:
            labels = as_mapping(get_path(self._get(last), "metadata", "labels"))
            metadata = {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}}
            self._insert({**self._get(last), "metadata": metadata}, 1)
        names = ", ".join((added or [each.name for each in removed])[:_MAX_NAMES])
        what = f"nodes of {identity} ({'with' if added else 'without'} {names or 'any other'})"
        note = f"flavor `{flavor.name}` has no topology, so Kueue ignores its nodes; change its quota as well"
        return AppliedChange(request.text, what, str(len(nodes)), str(wanted), "" if flavor.topology else note)

    def merge(self, patch: Mapping[str, Any], *, adds: bool) -> AppliedChange:
        """Merge a partial object into the object of its kind and name; `adds` if it is added without one."""
        plain = untraced(dict(patch))
        kind, name = str(plain.get("kind", "")), name_of(plain)
        text = f"{kind} {name}".strip()
        where = f"`{_show(text)}` in the file of changes"
        if not name or not plain.get("apiVersion"):
            raise UsageError(f"{where} needs `apiVersion`, `kind` and `metadata.name`")
        if kind not in _JOB_KINDS and kind not in DECIDING_KINDS:
            raise UsageError(f"{where} does not decide about admission; write a queue, a node or a rendered job")
        space = str(get_path(plain, "metadata", "namespace") or "")
        named = self._names.get((_JOB if kind in _JOB_KINDS else kind, name), ())
        found = [each for each in sorted(named) if each.kind == kind and each in self._places and each.name == name]
        found = [each for each in found if not space or each.namespace in ("", space)]
        if len(found) > 1:
            raise UsageError(f"{where} is ambiguous; add its `metadata.namespace`")
        if not found and not adds:
            raise UnknownTargetError(f"{where} is in no environment; to add it, select one environment with `-e`")
        written = {key: value for key, value in patch.items() if key != "$patch"}
        schema = find_shipped_schema(str(plain["apiVersion"]), kind, self.cluster)
        for problem in map(with_nodes, schema.check(written) if schema else ()):
            if problem.rule == "unknown-field":
                line = f", line {problem.location.line}" if problem.location else ""
                raise UsageError(f"{where}{line}: {problem.sentence}")
        try:
            merged = merge_patch(dict(self._get(found[0])) if found else {}, patch)
        except MergeError as error:
            raise UsageError(f"{where}: {error}") from error
        if not found:
            self._insert(untraced(merged or {}), 0)
            return AppliedChange(text, text, "", "added")
        if merged is None:
            self._remove(found[0])
            return AppliedChange(text, str(found[0]), "", "removed")
        side, place = self._places[found[0]][0]
        self.sides[side][place] = untraced(merged)
        self._copied.discard((side, place))
        return AppliedChange(text, str(found[0]), "", "changed")


def _join_values(values: Iterable[str]) -> str:
    """Return the values that several objects have, each once."""
    found = sorted(set(values), key=lambda each: (len(each), each))
    return ", ".join((*found[:_MAX_NAMES], *("…" for _ in found[_MAX_NAMES : _MAX_NAMES + 1])))


def _name(identities: Sequence[_Id]) -> str:
    return str(identities[0]) if len(identities) == 1 else pluralize(len(identities), "job")


def _list_quotas(obj: Object) -> Iterator[tuple[str, _Field]]:
    """Yield the quotas. Without a resource, a flavor means its only accelerator, or its only resource."""
    groups = as_list(as_mapping(obj.get("spec")).get("resourceGroups"))
    for number, group in enumerate(map(as_mapping, groups)):
        for place, flavor in enumerate(map(as_mapping, as_list(group.get("flavors")))):
            named = flavor.get("name")
            resources = [str(as_mapping(each).get("name", "")) for each in as_list(flavor.get("resources"))]
            main = [each for each in resources if is_device(each)] or resources
            for index, resource in ((index, each) for index, each in enumerate(resources) if each):
                path = ("spec", "resourceGroups", number, "flavors", place, "resources", index)
                starts = [f"{named}.{resource}", *([str(named)] if main == [resource] else [])]
                starts += [f"{named}.gpu"] if main == [resource] and is_device(resource) else []
                for field, start in ((field, start) for field in _QUOTA_FIELDS for start in starts):
                    what = f"`{field}` of `{resource}` in flavor `{named}`"
                    made = _Field((*path, field), what, "quantity", (), resource)
                    yield f"{start}.{field}", made
                    if field == _QUOTA_FIELDS[0]:
                        yield start, made


def _find_pods(obj: Object) -> list[FoundPods]:
    kind = (get_group(obj), str(obj.get("kind")))
    return [each for each in find_pods(obj, REPLICA_TYPES.get(kind) or POD_SETS.get(kind, ())) if each.item]


def _list_replicas(obj: Object) -> Iterator[tuple[str, _Field]]:
    """Yield the numbers of replicas by role; without a role if there is only one."""
    found: dict[str, _Field] = {}
    if obj.get("kind") == "TrainJob":
        found[""] = _Field(("spec", "trainer", "numNodes"), "`numNodes`", "integer", missing=1)
    for pods in _find_pods(obj):
        counts = (*pods.pod_set.counts.split(), pods.pod_set.times)
        name = next((each for each in ("replicas", "parallelism") if each in counts), "")
        if name:
            at = pods.path[: len(pods.path) - len(list(filter(None, pods.pod_set.template.split("."))))]
            missing = 1 if name == pods.pod_set.times else pods.pod_set.omitted
            found[pods.role.lower()] = _Field((*at, name), f"`{name}`", "integer", missing=missing)
    yield from ((f"{role}.replicas", field) for role, field in found.items() if role)
    if len({field.path for field in found.values()}) == 1:
        yield "replicas", next(iter(found.values()))


def _compute(request: _Request, field: _Field, before: Any) -> Any:
    """Return the new value of a field; None removes it."""
    value, is_set, is_limit = request.value, request.operator == "=", field.path[-1] in _QUOTA_FIELDS[1:]
    if not is_set and not field.resource and field.unit != "integer":
        raise request.refuse(f"{field.what} is not an amount; write `=`")
    if field.path[-1] in _OPTIONAL and value.lower() == "none":
        return None
    if not field.unit:
        if field.words and value not in field.words:
            raise request.refuse(f"`{_show(value)}` is not a value of {field.what}; use {_show_some(field.words)}")
        return value == "true" if field.words == ("true", "false") else value or None
    if is_set and is_limit and value.lower() == "none":
        return None
    if before is None and is_limit and not is_set:
        raise request.refuse(f"there is no {field.what}, so nothing is limited; write `=`")
    number = _add(request, field, before)
    least = -_MOST_INT32 if field.path == ("value",) else 0
    if number < least or (field.unit == "integer" and number > _MOST_INT32):
        limit = f"at least {least}" if number < least else f"at most {_MOST_INT32}"
        shown = show_number(field.resource, number) if field.resource else number
        raise request.refuse(f"{field.what} is `{field.show(before)}`, and would be `{shown}`; it must be {limit}")
    return number if field.unit == "integer" else value if is_set else show_number(field.resource, number)


def _add(request: _Request, field: _Field, before: Any) -> int:
    """Return the new number of a field, in the unit in which Kueue counts it."""
    value, is_integer = request.value, field.unit == "integer"
    if (_INTEGER.match(value) if is_integer else parse_quantity(value)) is None:
        raise request.refuse(f"`{_show(value)}` is not {'a whole number' if is_integer else 'a quantity such as `8`'}")
    if is_device(field.resource) and ("." in value or value.endswith("i")):
        raise request.refuse(f"`{_show(value)}` is not a number of devices; write a whole number, such as `8`")
    number = int(value) if is_integer else to_amount(field.resource, value)
    old = to_amount(field.resource, before)
    if is_integer:
        old = before if type(before) is int else field.missing
    return {"=": number, "+=": add(old, number), "-=": subtract(old, number)}[request.operator]
