"""Findings from the state of a cluster: rules that compare an object with namespaces, quotas and other objects.

The state is known only after all objects have been rendered, so objects that it concerns are rendered again. Without
namespaces that restrict their objects, exported state or `cluster.complete`, there is nothing to do.
What was found in files is kept as answers: `cluster_answers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import count, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jobgen.check.cluster.state import StatePart, list_state_parts
from jobgen.check.rule_runner import report_exception, to_problem
from jobgen.check.rules import WARNING, Rule, Violation, all_rules
from jobgen.engine.inputs import Read, digest_bytes
from jobgen.engine.store import Query
from jobgen.engine.workers import parallel_map
from jobgen.k8s.kinds import CLUSTER_SCOPED, qualify_kind
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import format_amount
from jobgen.model.data import Node, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.limits import (
    MAX_EXCESSES,
    MAX_FINDINGS,
    MAX_LIMITING_AMOUNTS,
    MAX_LIMITING_OBJECTS,
    MAX_QUOTA_AMOUNTS,
    TOO_MANY_FINDINGS,
)
from jobgen.model.mutated import Mutated
from jobgen.model.path import find_path, format_pointer
from jobgen.model.quantity import to_milli
from jobgen.pipeline.exported_state import (
    find_duplicates,
    has_manifests,
    read_exported,
    report_folder,
    report_missing_folder,
)
from jobgen.rendering import config
from jobgen.rendering.build import identity_of, split_list
from jobgen.rendering.environment import Rendered, new_overlay_use
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.result_inputs import digest_files, name_entry
from jobgen.rendering.run_state import RunState
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.root import SETTINGS, folder_exists

if TYPE_CHECKING:
    from jobgen.check.cluster.quotas import Use
    from jobgen.check.cluster.state import ClusterState, Name
    from jobgen.model.data import Node
    from jobgen.model.finding import Finding, Identity
    from jobgen.repo.files import File, FileEntry

Value = TypeVar("Value")
Objects = Sequence["Mapping[str, Node]"]


class Member(NamedTuple):
    """An object of an environment: its identity, its file, and its place there."""

    identity: Identity
    path: str
    position: int
    item: int
    companion: int = 0
    is_queued: bool = False
    """Whether Kueue decides when its pods start."""


class Checked(NamedTuple):
    """What was found in the objects of one file, and what each takes from the quotas of its namespace."""

    findings: list[Finding]
    uses: list[tuple[Member, list[Use]]]


class StateSources(NamedTuple):
    """What the state of a cluster is built from."""

    exported: Objects
    own: tuple[Objects, ...]
    """The objects of each file of the repository that has some."""
    names: tuple[Name, ...]
    """The names of objects that others refer to."""
    rules: tuple[str, ...]
    """The rules that the state is used by."""


class KnownState:
    """The state of a cluster, and what it was built from."""

    _numbers = count()

    def __init__(self, sources: StateSources, state: ClusterState) -> None:
        self.number = next(self._numbers)
        self.sources = sources
        self.state = state

    @cached_property
    def content(self) -> str:
        """What decides about objects: the sources without locations. Equal text means equal types, too."""
        sources = self.sources
        objects = [[untraced(dict(obj)) for obj in several] for several in (sources.exported, *sources.own)]
        return repr((self.state.cluster, objects, sources.names, sources.rules))

    @cached_property
    def digest(self) -> str:
        """The digest of the content."""
        return digest_bytes(self.content.encode("utf-8", "surrogatepass"))


class ClusterAnswers:
    """What was found with the state of the cluster of one environment, as answers of the store of a run."""

    def __init__(self, run: RunState, env: str) -> None:
        self._run = run
        self._env = env
        self._number = 1 + [runner.name for runner in run.runners].index(env)

    @property
    def is_used(self) -> bool:
        """Return True if answers of earlier runs are used. A shard does not keep the results of other shards' files."""
        return self._run.store is not None and bool(self._run.project.layers) and self._run.shard is None

    def read_exported(
        self, files: Sequence[File], read: Callable[[], tuple[Objects, Sequence[Finding]]]
    ) -> tuple[Objects, Sequence[Finding]]:
        """Return the exported objects and what is wrong with them; read them if their files have changed."""
        return self._remember(_EXPORTED, "", self._run.project.layers, digest_files(files), compute=read)

    def trace(self, entry: FileEntry, places: frozenset[Any], trace: Callable[[], Iterator[Any]]) -> Objects:
        """Return objects of a file with locations."""
        version = self._find_version(entry), self._run.project.layers, sorted(map(repr, places))
        return self._remember(_TRACED, entry.path, *version, compute=lambda: tuple(trace()))

    def build_state(
        self, paths: tuple[str, ...], sources: StateSources, build: Callable[[], ClusterState]
    ) -> KnownState:
        """Return the state that files decide about."""
        identity = [*map(id, (sources.exported, *sources.own)), sources.names, sources.rules]
        return self._remember(_STATE, repr(paths), *identity, compute=lambda: KnownState(sources, build()))

    def find(self, entry: FileEntry, state: KnownState) -> Checked | None:
        """Return what was found in a file; None if it is not known, or may be something else now."""
        if not self.is_used:
            return None
        assert self._run.store is not None
        row = self._run.store.find(_CLUSTER, self._make_key(entry.path), partial(self._holds, entry, state))
        return row.value if row is not None else None

    def note(self, entry: FileEntry, state: KnownState, checked: Checked) -> None:
        """Note what was found in a file. Findings may be located in the state and in layers."""
        if not self.is_used:
            return
        names = ("result", "state", *(("place",) if checked.findings else ()))
        reads = [(name, "", self._look(name, entry, state)) for name in names]
        assert self._run.store is not None
        self._run.store.add(_CLUSTER, self._make_key(entry.path), reads, checked)

    def _holds(self, entry: FileEntry, state: KnownState, read: Read) -> bool:
        return self._look(read[0], entry, state) == read[2]

    def _look(self, name: str, entry: FileEntry, state: KnownState) -> str:
        if name == "result":
            return self._find_version(entry)
        return state.digest if name == "state" else f"{self._run.project.layers} {state.number}"

    def _find_version(self, entry: FileEntry) -> str:
        return self._run.answers[name_entry(entry)].versions[self._number]

    def _make_key(self, name: str) -> str:
        return f"{self._run.scope} {self._env} {name}"

    def _remember(self, query: Query[Value], name: str, *parts: object, compute: Callable[[], Value]) -> Value:
        if not self.is_used:
            return compute()
        assert self._run.store is not None
        digest = digest_bytes(repr(parts).encode("utf-8", "surrogatepass"))
        return self._run.store.remember(query, self._make_key(name), digest, compute)


_EXPORTED: Query[tuple[Objects, Sequence[Finding]]] = Query("exported")
_TRACED: Query[Objects] = Query("traced")
_STATE: Query[KnownState] = Query("state")
_CLUSTER: Query[Checked] = Query("cluster")


if TYPE_CHECKING:
    from jobgen.check.cluster.quotas import Excess, Use
    from jobgen.check.cluster.state import ClusterState
    from jobgen.pipeline.environment_checker import EnvironmentChecker
    from jobgen.rendering.run_state import AllJobs
    from jobgen.spec.overlay import Cluster

_DECIDING_KINDS = frozenset(("Namespace", "LimitRange", "ResourceQuota"))
_POD_SECURITY = b"pod-security.kubernetes.io/"
_QUOTA_RULE = "exceeds-quota"
_REFERENCE_RULE = "unknown-reference"
_MAX_NAMED = 3
_SHARE = 500
"""How many files are checked before the results are kept. A newer edit ends a run, and must not lose much."""


def find_cluster_problems(
    checkers: Sequence[EnvironmentChecker],
    jobs: AllJobs,
    *,
    is_whole: bool,
) -> Iterator[Finding]:
    """Find what the state of each environment's cluster refuses.

    References are followed only if all objects of the repository are known, with `is_whole`. Files that are standalone
    may be meant for different clusters, so the objects of each decide about those of the same file only.
    """
    tracer, is_standalone, made = jobs.tracer, jobs.is_standalone, jobs.list_made()
    # Whether all objects are known changes often in an editor. What was found in other files must stay usable.
    off = tracer.project.severities.off | ({_REFERENCE_RULE} if is_standalone else frozenset())
    parts = list_state_parts()
    scopes = {"cluster", *(part.scope for part in parts)}
    rules = [rule for rule in all_rules() if rule.scope in scopes and rule.name not in off]
    shared = list(_read_policy_namespaces(tracer.project.root))
    for checker in checkers:
        runner = checker.runner
        members = [
            Member(each.identity, each.location.file, each.position, each.item, each.companion)
            for each in made
            if each.env == runner.name
        ]
        cluster = runner.expander.environment.cluster
        is_known = bool(cluster.state or cluster.complete or shared)
        groups = list(_split_by_state(members, parts)) if is_standalone else [members]
        groups = [several for several in groups if is_known or _has_decided(several, parts)]
        if groups:
            check = _ClusterCheck(checker, jobs, rules, parts, shared)
            yield from check.findings
            for several in groups:
                found = (each for each in check.run(several, jobs.progress) if is_whole or each.rule != _REFERENCE_RULE)
                yield from (_soften(each, parts) for each in found) if is_standalone and not is_known else found


def _soften(finding: Finding, parts: Sequence[StatePart]) -> Finding:
    """Make a finding a warning if one file does not say enough."""
    is_uncertain = any(finding.rule in part.uncertain for part in parts)
    return finding._replace(severity=Severity.WARNING) if is_uncertain else finding


def _list_part_kinds(parts: Iterable[StatePart]) -> frozenset[str]:
    """Return the kinds whose objects decide about each other, such as queues."""
    return frozenset[str]().union(*(part.kinds for part in parts))


def _has_decided(members: Sequence[Member], parts: Sequence[StatePart]) -> bool:
    """Return True if some objects decide about others; alone, they decide nothing, except those of features."""
    kinds, own = set(map(_kind_of, members)), _list_part_kinds(parts)
    deciding = kinds & (_DECIDING_KINDS | own)
    return bool(kinds & own) or bool(deciding and kinds - deciding)


def _split_by_state(members: Sequence[Member], parts: Sequence[StatePart]) -> Iterator[list[Member]]:
    """The objects of each file that has some which decide about others, and those of all other files together."""
    deciding = _DECIDING_KINDS | _list_part_kinds(parts)
    files = {member.path for member in members if _kind_of(member) in deciding}
    if files:
        yield from _group_by_file([member for member in members if member.path in files]).values()
    yield [member for member in members if member.path not in files]


def _read_policy_namespaces(root: Folder) -> Iterator[Mapping[str, Node]]:
    """Read the namespaces in policies/ that have labels of Pod Security."""
    for file in layout.read_own_policies(root):
        # An escape such as `\\x2e` may stand for any character of a label.
        if _POD_SECURITY in file.content or b"\\" in file.content:
            documents = config.read_documents(file, [], traced=True).documents
            objects = (obj for each in documents for obj in split_list(each.data) if isinstance(obj, dict))
            yield from (obj for obj in objects if value_of(obj.get("kind")) == "Namespace")


class _ClusterCheck:
    """The check of one environment."""

    def __init__(
        self,
        checker: EnvironmentChecker,
        jobs: AllJobs,
        rules: list[Rule],
        parts: Sequence[StatePart],
        shared: list[Mapping[str, Node]],
    ) -> None:
        self._checker, self._runner = checker, checker.runner
        self._entries = {entry.path: entry for entry in jobs.entries}
        self._tracer = tracer = jobs.tracer
        self._rules = rules
        self._parts = parts
        self._frameworks = tracer.project.frameworks
        self.findings: list[Finding] = []
        """What is wrong with the exported state."""
        self._is_cancellable = jobs.run.is_cancellable
        self._known = ClusterAnswers(jobs.run, checker.runner.name)
        self._exported = self._read_exported(shared)

    def run(self, members: Sequence[Member], progress: Callable[[], None]) -> Iterator[Finding]:
        """Check objects that belong together."""
        known = self._build_state(members)
        state = known.state
        yield from (self._report_left_out(obj) for obj in state.left_out[:1])
        is_total, namespaces = bool(state.parts or state.cluster.complete), state.namespaces
        concerned = [member for member in members if is_total or _namespace_of(member) in namespaces]
        files = [list(several) for several in _group_by_file(concerned).values()]
        checked = self._check_files(files, known, progress)
        for each in checked:
            yield from each.findings
        yield from self._find_excesses([use for each in checked for use in each.uses], state)
        yield from self._check_exported(state)

    def _read_exported(self, shared: list[Mapping[str, Node]]) -> Objects:
        """Read the exported state. Namespaces in `shared` are part of it."""
        folder, root = self._runner.expander.environment.cluster.state, self._tracer.project.root

        def read() -> tuple[Objects, list[Finding]]:
            findings: list[Finding] = []
            exported = list(read_exported(root, folder, findings)) if folder else []
            return [*shared, *exported], [*findings, *find_duplicates(exported, folder)]

        exported, found = self._known.read_exported(list(layout.read_state(root, folder)) if folder else [], read)
        self.findings += found
        if folder and not folder_exists(root, folder):
            missing = report_missing_folder(self._tracer.traced_project(), folder)
            self.findings.append(missing._replace(env=self._runner.name))
        elif folder and len(exported) == len(shared) and not self.findings and not has_manifests(root, folder):
            message = f"the folder `{folder}` has no manifests; export the state of the cluster to it"
            missing = report_folder(self._tracer.traced_project(), folder, message)
            self.findings.append(missing._replace(env=self._runner.name))
        return exported

    def _build_state(self, members: Sequence[Member]) -> KnownState:
        from jobgen.check.cluster.state import CLUSTER_KINDS, list_kinds_to_read

        cluster = self._runner.expander.environment.cluster
        known = self._exported_kinds.union(map(_kind_of, members))
        parts = [part for part in self._parts if part.kinds & known]
        kinds = list_kinds_to_read(parts, with_references=bool(cluster.complete))
        by_file = _group_by_file([member for member in members if _kind_of(member) in kinds])
        own = tuple(self._trace_file(several) for several in by_file.values())
        names = tuple(
            (kind, "" if kind in CLUSTER_KINDS else _namespace_of(each), each.identity.name)
            for each in (members if cluster.complete else ())
            if (kind := _kind_of(each)) in cluster.complete
        )
        sources = StateSources(self._exported, own, names, tuple(rule.name for rule in self._rules))
        build = partial(_build_state, cluster, sources, parts)
        return self._known.build_state(tuple(by_file), sources, build)

    def _trace_file(self, members: Sequence[Member]) -> Objects:
        path = members[0].path
        if not self._known.is_used:
            return tuple(self._trace(members))
        return self._known.trace(self._entries[path], frozenset(members), partial(self._trace, members))

    @cached_property
    def _exported_kinds(self) -> frozenset[str]:
        from jobgen.check.cluster.state import name_object

        return frozenset(name_object(obj)[0] for obj in self._exported)

    def _check_exported(self, state: ClusterState) -> Iterator[Finding]:
        """Check the exported objects that describe parts of the state, such as queues."""
        for scope, part in state.parts.items():
            rules = [rule for rule in self._rules if rule.scope == scope]
            for obj in part.list_exported():
                for problem in self._run_rules(product(rules, [self._checker.checker.manifest(obj)]), state):
                    pointer = format_pointer(find_path(problem.node, obj))
                    identity = identity_of(obj)
                    yield locate(problem, state.cluster.state)._replace(
                        object=identity, env=self._runner.name, pointer=pointer, place=f"{identity.name}{pointer}"
                    )

    def _report_left_out(self, obj: Mapping[str, Node]) -> Finding:
        """Report an object beyond the number that is applied."""
        namespace = str(value_of(as_mapping(obj.get("metadata")).get("namespace")) or "")
        most = MAX_QUOTA_AMOUNTS if value_of(obj.get("kind")) == "ResourceQuota" else MAX_LIMITING_AMOUNTS
        message = (
            f"namespace `{namespace}` has more than {MAX_LIMITING_OBJECTS} objects of this kind, or more than {most}"
        )
        message += " amounts in them; this one and the rest are not applied; remove some"
        problem = Problem("unread-file", message, obj.get("kind"), category="meta")
        return locate(problem, SETTINGS)._replace(env=self._runner.name)

    def _trace(self, members: Sequence[Member]) -> Iterator[Mapping[str, Node]]:
        """Build objects of one file with locations."""
        wanted = {(member.position, member.item, member.companion) for member in members}
        for job in self._read_jobs(members):
            for companion, found in enumerate(self._tracer.trace(job, self._runner.name).objects):
                if isinstance(found, dict) and (job.position, job.item, companion) in wanted:
                    yield self._checker.mutate(found).object

    def _read_jobs(self, members: Sequence[Member]) -> Iterator[Job]:
        """Read the jobs of some objects of one file again."""
        wanted = {(member.position, member.item) for member in members}
        for job in read_jobs([self._entries[members[0].path]], self._frameworks, []):
            if (job.position, job.item) in wanted:
                yield job

    def _check_files(
        self, files: Sequence[Sequence[Member]], known: KnownState, progress: Callable[[], None]
    ) -> list[Checked]:
        """Check the objects of files that changed; what was found in others is known."""
        found = {several[0].path: self._known.find(self._entries[several[0].path], known) for several in files}
        lacking = [several for several in files if found[several[0].path] is None]
        size = _SHARE if self._is_cancellable else max(len(lacking), 1)
        for start in range(0, len(lacking), size):
            progress()
            share = lacking[start : start + size]
            checked = parallel_map(share, lambda part: [self._check_file(several, known.state) for several in part])
            for several, each in zip(share, checked, strict=True):
                path = several[0].path
                found[path] = each
                self._known.note(self._entries[path], known, each)
        return [each for each in found.values() if each is not None]

    def _check_file(self, members: Sequence[Member], state: ClusterState) -> Checked:
        by_place = {(member.position, member.item, member.companion): member for member in members}
        checked = Checked([], [])
        for job in self._read_jobs(members):
            patches = self._runner.patches_for(job)
            for made in self._runner.build_objects(job, patches, new_overlay_use()) if patches is not None else ():
                member = by_place.get((job.position, job.item, made.companion))
                if member is not None:
                    self._check_object(job, made, member, state, checked)
        return checked

    def _check_object(self, job: Job, made: Rendered, member: Member, state: ClusterState, checked: Checked) -> None:
        obj = self._mutate(made.object).object
        if self._find_problems(obj, state):
            found = self._tracer.findings(
                job, self._runner.name, lambda obj: self._find_problems(obj, state), made.companion, self._mutate
            )
            checked.findings.extend(found)
        if state.quotas:
            manifests = self._list_manifests(obj)
            is_queued = get_kueue_queue(manifests[0]) is not None
            try:
                checked.uses.append((member._replace(is_queued=is_queued), _measure_uses(manifests, state)))
            except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
                problem = report_exception(f"the rule `{_QUOTA_RULE}`", error, made.object)
                checked.findings.append(locate(problem, job.file.path, job.location))

    def _mutate(self, obj: Mapping[str, Node]) -> Mutated:
        """Return an object as mutating policies change it; which of them fail has been reported."""
        return self._checker.mutate(obj)._replace(failures=())

    def _list_manifests(self, obj: Mapping[str, Node]) -> list[Manifest]:
        """Return an object, and the objects inside it."""
        wrapped = list_wrapped_objects(obj) if is_app_wrapper(obj) else ()
        inner = (self._mutate(each).object for _, each in wrapped)
        return [self._checker.checker.manifest(each) for each in (obj, *inner)]

    def _find_problems(self, obj: Mapping[str, Node], state: ClusterState) -> list[Problem]:
        manifests = self._list_manifests(obj)
        # Kueue admits an object together with the objects inside it.
        checks = (
            (rule, manifest)
            for rule in self._rules
            for manifest in (manifests if rule.scope == "cluster" else manifests[:1])
        )
        return self._run_rules(checks, state)

    def _run_rules(self, checks: Iterable[tuple[Rule, Manifest]], state: ClusterState) -> list[Problem]:
        problems: list[Problem] = []
        for rule, manifest in checks:
            known = state if rule.scope == "cluster" else state.parts.get(rule.scope)
            if known is None or (rule.kinds and manifest.kind_name not in rule.kinds):
                continue
            try:
                violations = islice(rule.check(manifest, known), MAX_FINDINGS + 1)
                problems += [to_problem(rule, violation) for violation in violations]
            except Exception as error:  # noqa: BLE001 -- a faulty rule must not hide what the others find
                problems.append(report_exception(f"the rule `{rule.name}`", error, manifest.object))
            if len(problems) > MAX_FINDINGS:
                rest = Problem("too-many-errors", TOO_MANY_FINDINGS, problems[MAX_FINDINGS].node)
                return [*problems[:MAX_FINDINGS], rest]
        return problems

    def _find_excesses(self, uses: Sequence[tuple[Member, list[Use]]], state: ClusterState) -> Iterator[Finding]:
        rule = next((rule for rule in self._rules if rule.name == _QUOTA_RULE), None)
        if rule is None or not any(taken for _, taken in uses):
            return
        from jobgen.check.cluster.quotas import find_excesses

        try:
            # Each is located in its file, which takes long if there are many.
            excesses = islice(find_excesses(uses, state.quotas), MAX_EXCESSES)
            yield from self._report_excesses(excesses, rule, state)
        except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
            problem = report_exception(f"the rule `{_QUOTA_RULE}`", error, {})
            yield locate(problem, SETTINGS)._replace(env=self._runner.name)

    def _report_excesses(self, excesses: Iterable[Excess], rule: Rule, state: ClusterState) -> Iterator[Finding]:
        """Report each excess on the request of the object that takes the most."""
        by_member: dict[Any, list[Excess]] = {}
        for excess in excesses:
            by_member.setdefault(excess.takers[0][0], []).append(excess)
        for members in _group_by_file(list(by_member)).values():
            jobs = {(job.position, job.item): job for job in self._read_jobs(members)}
            for member in members:
                find_problems = partial(self._locate_excesses, by_member[member], rule, state)
                job = jobs[member.position, member.item]
                yield from self._tracer.findings(job, self._runner.name, find_problems, member.companion, self._mutate)

    def _locate_excesses(
        self, excesses: Sequence[Excess], rule: Rule, state: ClusterState, obj: Mapping[str, Node]
    ) -> list[Problem]:
        from jobgen.check.cluster.quotas import find_largest_request

        manifests = self._list_manifests(obj)
        return [
            to_problem(rule, _describe_excess(each))._replace(
                node=find_largest_request(manifests, each.resource, state)
            )
            for each in excesses
        ]


def _build_state(cluster: Cluster, sources: StateSources, parts: Iterable[StatePart]) -> ClusterState:
    from jobgen.check.cluster.state import build_state

    own = [obj for several in sources.own for obj in several]
    state = build_state(cluster, sources.exported, own, sources.names)
    return state._replace(parts={part.scope: part.build(cluster, sources.exported, own) for part in parts})


def _measure_uses(manifests: Sequence[Manifest], state: ClusterState) -> list[Use]:
    """What an object and the objects inside it take from quotas."""
    from jobgen.check.cluster.quotas import measure_use

    return [use for manifest in manifests for use in measure_use(manifest, state)]


def _namespace_of(member: Member) -> str:
    return "" if _kind_of(member) in CLUSTER_SCOPED else member.identity.namespace


def _kind_of(member: Member) -> str:
    """The kind of an object, with its group if a kind of another group is known by this name."""
    return qualify_kind(member.identity.api_version, member.identity.kind)


def _group_by_file(members: Sequence[Member]) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(member.path, []).append(member)
    return found


def _describe_excess(excess: Excess) -> Violation:
    from jobgen.check.cluster.state import name_object, show_name

    def show(milli: int) -> str:
        return f"`{format_amount(excess.resource, milli)}`"

    namespace, name = name_object(excess.quota)[1], show_name(excess.quota)
    place = location_of(excess.hard)
    where = f" ({place.file}:{place.line})" if place else ""
    members: list[tuple[Any, int]] = [*excess.takers]
    if len(members) == 1:
        taken = f"{members[0][0].identity.kind} `{members[0][0].identity.name}` takes {show(excess.total)}"
    else:
        named = ", ".join(f"`{member.identity.name}` {show(milli)}" for member, milli in members[:_MAX_NAMED])
        more = f" and {len(members) - _MAX_NAMED} more" if len(members) > _MAX_NAMED else ""
        taken = f"{len(members)} objects take {show(excess.total)} together ({named}{more})"
    # Kueue may start some of them later. An object that exceeds the quota alone never starts.
    certain = sum(milli for member, milli in members if not member.is_queued or len(members) == 1)
    severity = None if certain > (to_milli(excess.hard) or 0) else WARNING
    owner = f" of namespace `{namespace}`" if namespace else ""
    message = f"{taken} of `{excess.resource}`, but quota `{name}`{owner}{where} allows"
    message += f" `{value_of(excess.hard)}`; request less, or raise the quota"
    related = ((excess.hard, f"quota `{name}`"),)
    return Violation(None, message, related, severity, evidence=(namespace, name, excess.resource))
