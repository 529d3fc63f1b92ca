"""Findings from the state of a cluster: rules that compare an object with namespaces, quotas and other objects.

The state is known only after all objects have been rendered, so objects that it concerns are rendered again. Without
namespaces that restrict their objects, runtimes, queues, exported state or `cluster.complete`, there is nothing to do.
What was found in files is kept as answers: `cluster_answers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import count, islice, product
from typing import TYPE_CHECKING, Any, TypeVar

from jobgen.check.cluster.state import (
    CLUSTER_KINDS,
    NAMED_KINDS,
    ClusterState,
    Name,
    Others,
    StatePart,
    build_state,
    list_kinds_to_read,
    list_state_parts,
    name_object,
    show_name,
)
from jobgen.check.rule_runner import report_exception, to_problem
from jobgen.check.rules import WARNING, Rule, Violation, all_rules
from jobgen.engine.inputs import digest_bytes
from jobgen.engine.store import Query
from jobgen.engine.workers import parallel_map
from jobgen.k8s.kinds import qualify_kind
from jobgen.k8s.kueue import get_kueue_queue
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import format_amount
from jobgen.model.data import Plain, text_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.lazy_re import may_mention
from jobgen.model.limits import (
    MAX_EXCESSES,
    MAX_FINDINGS,
    MAX_LIMITING_AMOUNTS,
    MAX_LIMITING_OBJECTS,
    MAX_QUOTA_AMOUNTS,
    TOO_MANY_FINDINGS,
)
from jobgen.model.mutated import Mutated
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import Origins
from jobgen.model.path import format_pointer
from jobgen.model.place import At, PathTo, find_at
from jobgen.model.placed import finish, place_problems, read_places, replace_places
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.pipeline.cluster_groups import (
    CONFIGS,
    LIMITS,
    REFERENCE_RULE,
    Member,
    group_by_file,
    has_decided,
    is_of_other_folder,
    join_files,
    join_part,
    kind_of,
    may_refer,
    namespace_of,
    read_text,
    split_by_state,
)
from jobgen.pipeline.environment_checker import find_duplicates, report_folder, report_missing_folder
from jobgen.rendering import config
from jobgen.rendering.build import identity_of, split_list
from jobgen.rendering.environment import new_overlay_use
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.result_inputs import digest_files, name_entry
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.repo.layout import Layers
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import Cluster

if TYPE_CHECKING:
    from jobgen.check.cluster.quotas import Excess, Use
    from jobgen.check.cluster.unread import Unread
    from jobgen.pipeline.environment_checker import EnvironmentChecker
    from jobgen.rendering.run_values import FileResults

Value = TypeVar("Value")
Objects = Sequence["Mapping[str, Any]"]


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
    others: Others
    """Other clusters that decide about objects of this one."""
    unread: Unread | None = None
    """The documents that could not be rendered, and may define objects of this one."""


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
        sizes = [len(several) for several in (sources.exported, *sources.own)]
        plain = iter(self.state.origins.objects)
        objects = [list(islice(plain, size)) for size in sizes]
        others = [(name, cluster, list(found)) for name, (cluster, found) in sources.others.items()]
        return repr((self.state.cluster, objects, sources.names, sources.rules, others, sources.unread))

    @cached_property
    def digest(self) -> str:
        """The digest of the content."""
        return digest_bytes(self.content.encode("utf-8", "surrogatepass"))


class ClusterAnswers:
    """What was found with the state of the cluster of one environment, as answers of the store of a run."""

    def __init__(self, results: FileResults, env: str) -> None:
        self._results = results
        self._env = env
        self._scope = results.request.make_scope(results.layers.stage)
        self._number = 1 + results.layers.names.index(env)
        self.digest = results.request.project.digest
        self._store = results.request.store if self.digest else None

    def ask(self, query: Query[Value], name: str, *parts: object, compute: Callable[[], Value]) -> Value:
        """Return what is computed, of which the parts say everything that it depends on."""
        if self._store is None:
            return compute()
        digest = digest_bytes(repr(parts).encode("utf-8", "surrogatepass"))
        return self._store.ask(query, self._make_key(name), compute, content=digest)

    def trace(self, entry: FileEntry, places: frozenset[Any], trace: Callable[[], Iterator[Any]]) -> Objects:
        """Return objects of a file with locations."""
        if self._store is None:
            return tuple(trace())
        version = self._find_version(entry), self.digest, sorted(map(repr, places))
        return self.ask(_TRACED, entry.path, *version, compute=lambda: tuple(trace()))

    def find(self, entry: FileEntry, state: KnownState) -> Checked | None:
        """Return what was found in a file; None if it is not known, or may be something else now."""
        if self._store is None:
            return None
        row = self._store.find(
            _CLUSTER, self._make_key(entry.path), lambda read: self._look(read[0], entry, state) == read[2]
        )
        return row.value if row is not None else None

    def note(self, entry: FileEntry, state: KnownState, checked: Checked) -> None:
        """Note what was found in a file. Findings may be located in the state and in layers."""
        if self._store is not None:
            names = ("result", "state", *(("place",) if checked.findings else ()))
            reads = [(name, "", self._look(name, entry, state)) for name in names]
            self._store.add(_CLUSTER, self._make_key(entry.path), reads, checked)

    def _look(self, name: str, entry: FileEntry, state: KnownState) -> str:
        if name == "result":
            return self._find_version(entry)
        return state.digest if name == "state" else f"{self.digest} {state.number}"

    def _find_version(self, entry: FileEntry) -> str:
        return self._results.rows[name_entry(entry)][self._number].version

    def _make_key(self, name: str) -> str:
        return f"{self._scope} {self._env} {name}"


_EXPORTED: Query[tuple[Objects, Sequence[Finding]]] = Query("exported")
_TRACED: Query[Objects] = Query("traced")
_STATE: Query[KnownState] = Query("state")
_CLUSTER: Query[Checked] = Query("cluster")

_QUOTA_RULE = "exceeds-quota"
_SHARE = 500
"""How many files are checked before the results are kept. A newer edit ends a run, and must not lose much."""


def find_cluster_problems(
    checkers: Iterable[EnvironmentChecker], results: FileResults, *, is_whole: bool
) -> Iterator[Finding]:
    """Find what the state of each environment's cluster refuses.

    Unless all objects of the repository are known, with `is_whole`, references are not followed to objects that the
    documents which could not be rendered may define. Files that are standalone
    may be meant for different clusters, so the objects of each decide about those of the same file only.
    """
    project, files, made = results.layers.tracer.project, results.request.files, results.list_objects()
    is_standalone = files.are_loose
    # Whether all objects are known changes often in an editor. What was found in other files must stay usable.
    off = project.severities.off
    parts = list_state_parts()
    scopes = {"cluster", *(part.scope for part in parts)}
    rules = [rule for rule in all_rules() if rule.scope in scopes and rule.name not in off]
    # Kinds whose objects decide about each other, such as queues.
    own = frozenset[str]().union(*(part.kinds for part in parts))
    uncertain = frozenset[str]().union(*(part.uncertain for part in parts))
    shared = list(_read_policy_namespaces(project.layers))
    kinds = {each.identity.kind for each in made}
    for checker in checkers:
        members = [
            Member(each.identity, each.location.file, each.position, each.item, each.companion)
            for each in made
            if each.env == checker.runner.name
        ]
        cluster = checker.runner.expander.environment.cluster
        is_known = bool(cluster.state or cluster.complete or shared)
        found_in_state = [each for each in checker.defects if each.scope == "cluster" and each.name not in off]
        checked = [*rules, *found_in_state]
        groups = [(each, checked) for each in (split_by_state(members, own) if is_standalone else [members])]
        if is_standalone:
            joinable = [each for each in (*map(join_part, parts), CONFIGS, LIMITS) if not kinds.isdisjoint(each.kinds)]
            groups = join_files(groups, joinable, files.entries) if joinable else groups
        groups = [(several, each) for several, each in groups if is_known or has_decided(several, own)]
        if groups:
            checks = {
                id(each): _ClusterCheck(checker, results, each, parts, shared, is_whole=is_whole) for _, each in groups
            }
            yield from next(iter(checks.values())).findings
            runs = ((several, checks[id(each)].run(several, results.report_progress)) for several, each in groups)
            shown: set[object] = set()
            for several, found in ((several, found) for several, run in runs for found in run):
                # Limits of a file apply to its objects by themselves, and to those of all files together.
                if found.key in shown:
                    continue
                if is_standalone:
                    shown.add(found.key)
                is_uncertain = found.rule in uncertain and not is_known
                if is_standalone and (is_uncertain or is_of_other_folder(found, several)):
                    # One file does not say enough, and folders may be meant for different clusters.
                    yield found._replace(severity=Severity.WARNING)
                else:
                    yield found


def _read_policy_namespaces(layers: Layers) -> Iterator[Mapping[str, Any]]:
    """Read the namespaces in policies/ that have labels of Pod Security."""
    for file in layout.read_own_policies(layers):
        if may_mention(file.content, b"pod-security.kubernetes.io/"):
            documents = config.read_documents(file, [], traced=True).documents
            objects = (obj for each in documents for obj in split_list(each.data) if isinstance(obj, dict))
            yield from (obj for obj in objects if text_of(obj.get("kind")) == "Namespace")


def _read_untraced(layers: Layers, folder: str) -> tuple[list[Mapping[str, Plain]], Sequence[Finding]]:
    # Imported late, here and below: most environments have no exported state.
    from jobgen.check.cluster.exported import read_exported

    findings: list[Finding] = []
    return list(read_exported(layers, folder, findings)), findings


class _ClusterCheck:
    """The check of one environment."""

    def __init__(
        self,
        checker: EnvironmentChecker,
        results: FileResults,
        rules: list[Rule],
        parts: Sequence[StatePart],
        shared: list[Mapping[str, Plain]],
        *,
        is_whole: bool,
    ) -> None:
        self._checker, self._runner = checker, checker.runner
        self._entries = {entry.path: entry for entry in results.request.files.entries}
        self._tracer = tracer = results.layers.tracer
        self._rules = rules
        self._parts = parts
        self._kinds = tracer.project.kinds
        self.findings: list[Finding] = []
        """What is wrong with the exported state."""
        self._is_cancellable = results.request.is_cancellable
        self._is_standalone = results.request.files.are_loose
        self._follows_references = any(rule.name == REFERENCE_RULE for rule in rules)
        self._known = ClusterAnswers(results, checker.runner.name)
        self._exported = self._read_exported(shared)
        self._exported_kinds = frozenset(
            qualify_kind(text_of(obj.get("apiVersion")), text_of(obj.get("kind"))) for obj in self._exported
        )
        self._others = self._read_others()
        self._unread = None
        if not (is_whole or self._is_standalone):
            # Imported late: most runs render everything.
            from jobgen.pipeline.unread_documents import find_unread

            self._unread = find_unread(results, self._runner.name, self._runner.expander.environment.cluster.complete)

    def run(self, members: Sequence[Member], progress: Callable[[], None]) -> Iterator[Finding]:
        """Check objects that belong together."""
        known = self._build_state(members)
        state = known.state
        for obj in state.left_out[:1]:
            namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "")
            most = MAX_QUOTA_AMOUNTS if obj.get("kind") == "ResourceQuota" else MAX_LIMITING_AMOUNTS
            message = Sentence(
                "namespace `{}` has more than {} objects of this kind, or more than", namespace, MAX_LIMITING_OBJECTS
            )
            message += f" {most} amounts in them; this one and the rest are not applied; remove some"
            problem = Problem("unread-file", message, state.origins.follow(At(obj, "kind")), category="meta")
            yield locate(problem, SETTINGS)._replace(env=self._runner.name)
        is_total = bool(state.parts or state.priorities or state.cluster.complete)
        namespaces, kinds = state.namespaces, state.decided_kinds
        keyed = state.keyed_namespaces.difference(state.levels, state.limit_ranges, state.quotas, state.injecting)
        concerned = (
            member
            for member in members
            if is_total or kind_of(member) in kinds or self._is_concerned(member, namespaces, keyed)
        )
        checked = self._check_files(list(group_by_file(concerned).values()), known, progress)
        for each in checked:
            yield from each.findings
        yield from self._find_excesses([use for each in checked for use in each.uses], state)
        yield from self._check_exported(state)

    def _is_concerned(self, member: Member, namespaces: frozenset[str], keyed: frozenset[str]) -> bool:
        """Return True if the state may decide about an object; `keyed` namespaces have ConfigMaps and Secrets only."""
        namespace = namespace_of(member)
        if namespace in namespaces and namespace not in keyed:
            return True
        # In plain files, an object of another namespace may be meant.
        if not keyed if self._is_standalone else keyed.isdisjoint((namespace, "")):
            return False
        return self._layers_refer or may_refer(read_text(self._entries[member.path]))

    @cached_property
    def _layers_refer(self) -> bool:
        """True if an overlay may add references to ConfigMaps or Secrets."""
        project = self._tracer.project
        return may_refer(repr(project.overlays)) or may_refer(repr(project.settings))

    def _read_exported(self, shared: list[Mapping[str, Plain]]) -> Objects:
        """Read the exported state. Namespaces in `shared` are part of it."""
        folder, layers = self._runner.expander.environment.cluster.state, self._tracer.project.layers

        def read() -> tuple[Objects, Sequence[Finding]]:
            if not folder:
                return shared, ()
            from jobgen.check.cluster.exported import read_located

            findings: list[Finding] = []
            exported = list(read_located(layers, folder, findings))
            return [*shared, *exported], [*findings, *find_duplicates(exported, folder)]

        version = self._known.digest, digest_files(list(layout.read_state(layers, folder)) if folder else [])
        exported, found = self._known.ask(_EXPORTED, "", *version, compute=read)
        self.findings += found
        missing: Finding | None = None
        if folder and layout.find_state(layers, folder) is None:
            missing = report_missing_folder(self._tracer.traced_project(), folder)
        elif folder and len(exported) == len(shared) and not self.findings:
            # A List without items is a manifest, too.
            read_all = (config.read_documents(file, [], shared=True) for file in layout.read_state(layers, folder))
            if not any(found.documents for found in read_all):
                message = Sentence("the folder `{}` has no manifests; run `jobgen capture`, which writes them", folder)
                missing = report_folder(self._tracer.traced_project(), folder, message)
        self.findings += [missing._replace(env=self._runner.name)] if missing else []
        return exported

    def _read_others(self) -> Others:
        """Read the exported state of other clusters, without locations."""
        project, found = self._tracer.project, dict[str, tuple[Cluster, Sequence[Mapping[str, Plain]]]]()
        cluster, findings = self._runner.expander.environment.cluster, list[Finding]()
        others = {name: each for part in self._parts for name, each in part.find_others(project, cluster).items()}
        for name, other in others.items():
            if other.state and layout.find_state(project.layers, other.state) is None:
                missing = report_missing_folder(self._tracer.traced_project(), other.state)
                findings.append(missing._replace(env=self._runner.name))
            elif other.state:
                read = partial(_read_untraced, project.layers, other.state)
                version = digest_files(list(layout.read_state(project.layers, other.state)))
                objects, faults = self._known.ask(_EXPORTED, other.state, version, compute=read)
                findings += faults
                found[name] = other, objects
        self.findings += (each for each in findings if each not in self.findings)
        return found

    def _build_state(self, members: Sequence[Member]) -> KnownState:
        cluster, exported = self._runner.expander.environment.cluster, self._exported
        kinds = self._exported_kinds.union(map(kind_of, members))
        parts = [part for part in self._parts if part.kinds & kinds]
        wanted = list_kinds_to_read(parts, with_references=bool(cluster.complete))
        # Among the objects of a repository, another rule compares the names of claims.
        own_kinds = NAMED_KINDS if self._is_standalone else frozenset[str]()
        by_file = group_by_file(member for member in members if kind_of(member) in wanted | own_kinds)
        named = own_kinds.union(cluster.complete)
        own = tuple(
            self._known.trace(self._entries[path], frozenset(several), partial(self._trace, several))
            for path, several in by_file.items()
        )
        names = tuple(
            (kind, "" if kind in CLUSTER_KINDS else namespace_of(each), each.identity.name)
            for each in (members if named else ())
            if (kind := kind_of(each)) in named
        )
        others = self._others
        rules, unread = tuple(rule.name for rule in self._rules), self._unread
        sources = StateSources(exported, own, names, rules, others, unread)

        def build() -> KnownState:
            origins = Origins([*exported, *(obj for several in own for obj in several)])
            plain, objects = origins.objects[: len(exported)], origins.objects[len(exported) :]
            state = build_state(cluster, plain, objects, names, origins)
            built = {part.scope: part.build(cluster, plain, objects, others) for part in parts}
            return KnownState(sources, state._replace(parts=built, unread=unread))

        identity = [*map(id, (exported, *own, *(each for _, each in others.values()))), names, rules, unread]
        return self._known.ask(_STATE, repr(tuple(by_file)), *identity, compute=build)

    def _check_exported(self, state: ClusterState) -> Iterator[Finding]:
        """Check the exported objects that describe parts of the state, such as queues."""
        for scope, part in state.parts.items():
            rules = [rule for rule in self._rules if rule.scope == scope]
            for obj in part.list_exported():
                problems = self._run_rules(product(rules, [self._checker.checker.manifest(obj)]), state)
                paths = [each.node for each in place_problems(problems, obj)]
                read = read_places(problems, state.origins.follow)
                for path, problem in zip(paths, map(finish, read), strict=True):
                    if problem is None:
                        continue
                    pointer = format_pointer(path.steps if isinstance(path, PathTo) else ())
                    identity = identity_of(obj)
                    yield locate(problem, state.cluster.state)._replace(
                        object=identity, env=self._runner.name, pointer=pointer, place=f"{identity.name}{pointer}"
                    )

    def _trace(self, members: Sequence[Member]) -> Iterator[Mapping[str, Plain]]:
        """Build objects of one file with locations."""
        wanted = {(member.position, member.item, member.companion) for member in members}
        for job in self._read_jobs(members):
            for companion, found in enumerate(self._tracer.trace(job, self._runner.name).objects):
                if isinstance(found, dict) and (job.position, job.item, companion) in wanted:
                    yield self._checker.mutate(found).object

    def _read_jobs(self, members: Sequence[Member]) -> Iterator[Job]:
        """Read the jobs of some objects of one file again."""
        wanted = {(member.position, member.item) for member in members}
        for job in read_jobs([self._entries[members[0].path]], self._kinds, []):
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

    def _build_members(self, members: Sequence[Member]) -> Iterator[tuple[Member, Job, Mapping[str, Plain]]]:
        """Build objects of one file, each with its job, as mutating policies change them."""
        by_place = {(member.position, member.item, member.companion): member for member in members}
        for job in self._read_jobs(members):
            patches = self._runner.patches_for(job)
            for made in self._runner.build_objects(job, patches, new_overlay_use()) if patches is not None else ():
                member = by_place.get((job.position, job.item, made.companion))
                if member is not None:
                    yield member, job, self._mutate(made.object).object

    def _locate(
        self, problems: Sequence[Problem], member: Member, job: Job, obj: Mapping[str, Plain], state: ClusterState
    ) -> Sequence[Finding]:
        """Return the findings of problems of an object."""
        if not problems:
            return ()
        # Imported late: most objects have no problems.
        from jobgen.pipeline.placed_findings import locate_problems

        problems = replace_places(problems, state.origins.follow)
        return locate_problems(problems, obj, self._tracer, job, self._runner.name, member.companion, self._mutate)

    def _check_file(self, members: Sequence[Member], state: ClusterState) -> Checked:
        checked = Checked([], [])
        for member, job, obj in self._build_members(members):
            checked.findings.extend(self._locate(self._find_problems(obj, state), member, job, obj, state))
            if state.quotas:
                try:
                    checked.uses.append(self._measure_use(member, obj, state))
                except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
                    problem = report_exception(f"the rule `{_QUOTA_RULE}`", error, obj)
                    checked.findings.append(locate(problem, job.file.path, job.location))
        return checked

    def _measure_use(self, member: Member, obj: Mapping[str, Plain], state: ClusterState) -> tuple[Member, list[Use]]:
        """Return what an object and the objects inside it take from quotas."""
        from jobgen.check.cluster.quotas import measure_use

        manifests = self._list_manifests(obj)
        is_queued = get_kueue_queue(manifests[0]) is not None
        uses = [use for manifest in manifests for use in measure_use(manifest, state)]
        return member._replace(is_queued=is_queued), uses

    def _mutate(self, obj: Mapping[str, Any]) -> Mutated:
        """Return an object as mutating policies change it; which of them fail has been reported."""
        return self._checker.mutate(obj)._replace(failures=())

    def _list_manifests(self, obj: Mapping[str, Plain]) -> list[Manifest]:
        """Return an object, and the objects inside it."""
        wrapped = list_wrapped_objects(obj) if is_app_wrapper(obj) else ()
        inner = (self._mutate(each).object for _, each in wrapped)
        return [self._checker.checker.manifest(each) for each in (obj, *inner)]

    def _find_problems(self, obj: Mapping[str, Plain], state: ClusterState) -> list[Problem]:
        manifests = self._list_manifests(obj)
        # Kueue admits an object together with the objects inside it.
        checks = (
            (rule, manifest)
            for rule in self._rules
            for manifest in (manifests if rule.scope == "cluster" else manifests[:1])
        )
        problems = self._run_rules(checks, state)
        if self._is_standalone and "PersistentVolumeClaim" in state.objects and self._follows_references:
            # Imported late: few files have claims. A rule about all objects of a repository reports the others.
            from jobgen.check.cluster.claims import find_shared_claims

            problems += find_shared_claims(manifests[0], state)
        return problems

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
        """Report each excess on the request of the object that takes the most."""
        rule = next((rule for rule in self._rules if rule.name == _QUOTA_RULE), None)
        if rule is None or not any(taken for _, taken in uses):
            return
        from jobgen.check.cluster.quotas import find_excesses, find_largest_request
        from jobgen.check.raised_amounts import list_counts

        def find_problems(obj: Mapping[str, Plain], exceeded: Sequence[Excess]) -> Iterator[Problem]:
            manifests = self._list_manifests(obj)
            counts = [(count, "") for manifest in manifests for count in list_counts(manifest)]
            for each in exceeded:
                problem = to_problem(rule, _describe_excess(each))
                place = find_largest_request(manifests, each.resource, state)
                yield problem._replace(node=place, related=(*problem.related, *counts), finish=_blame)

        try:
            by_member: dict[Any, list[Excess]] = {}
            # Each is located in its file, which takes long if there are many.
            for excess in islice(find_excesses(uses, state.quotas), MAX_EXCESSES):
                # Nobody says that files without settings are applied at the same time.
                takers: list[tuple[Any, int]] = [*excess.takers]
                if self._is_standalone and len({member.path for member, _ in takers}) > 1:
                    continue
                by_member.setdefault(excess.takers[0][0], []).append(excess)
            for members in group_by_file(by_member).values():
                for member, job, obj in self._build_members(members):
                    problems = [*find_problems(obj, by_member[member])]
                    yield from self._locate(problems, member, job, obj, state)
        except Exception as error:  # noqa: BLE001 -- a faulty check must not hide what the others find
            problem = report_exception(f"the rule `{_QUOTA_RULE}`", error, {})
            yield locate(problem, SETTINGS)._replace(env=self._runner.name)


def _blame(problem: Problem, _: bool) -> Problem:
    """Report an excess on the largest request, or where a patch raised it or the number of pods.

    The related nodes are the quota, and the numbers of pods.
    """
    from jobgen.check.raised_amounts import find_raised, relate_factors

    quota, *counts = problem.related
    raised = find_raised([problem.node, *(count for count, _ in counts)])
    factors = [*((count, "the number of pods") for count, _ in counts), (problem.node, "the largest request")]
    return problem._replace(at=raised, related=(quota, *relate_factors(raised, factors)))


def _describe_excess(excess: Excess) -> Violation:
    def show(milli: int) -> str:
        return f"`{format_amount(excess.resource, milli)}`"

    namespace, name = name_object(excess.quota)[1], show_name(excess.quota)
    members: list[tuple[Any, int]] = [*excess.takers]
    if len(members) == 1:
        taken = f"{members[0][0].identity.kind} `{members[0][0].identity.name}` takes {show(excess.total)}"
    else:
        named = ", ".join(f"`{member.identity.name}` {show(milli)}" for member, milli in members[:3])
        more = f" and {len(members) - 3} more" if len(members) > 3 else ""
        taken = f"{len(members)} objects take {show(excess.total)} together ({named}{more})"
    # Kueue may start some of them later. An object that exceeds the quota alone never starts.
    certain = sum(milli for member, milli in members if not member.is_queued or len(members) == 1)
    severity = None if certain > (to_milli(excess.hard) or 0) else WARNING
    owner = f" of namespace `{namespace}`" if namespace else ""
    message = Sentence("{} of `{}`, but quota `{}`{} allows", taken, excess.resource, name, owner)
    message += f" `{excess.hard}`; request less, or raise the quota"
    related = ((find_at(excess.quota, "spec", "hard", excess.resource), f"quota `{name}`"),)
    return Violation(None, message, related, severity, evidence=(namespace, name, excess.resource))
