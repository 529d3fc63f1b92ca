"""One side of a comparison: a rendered jobs repository, a rendered tree, or a folder of manifests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from jobgen.check.checker import Checker
from jobgen.engine.store import Store
from jobgen.k8s.argocd_annotations import is_training_job
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals
from jobgen.k8s.secrets import find_secrets
from jobgen.model.builtin_rules import UNJUDGED_CHART_RULES
from jobgen.model.data import Location, Node, Plain, TracedKey, TracedList, TracedScalar, location_of, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, Step
from jobgen.pipeline.environment_checker import complete_catalog
from jobgen.pipeline.lint_checks import CHECKED, CHECKED_SCOPE
from jobgen.pipeline.object_summary import ObjectSummary, list_groups, sum_object
from jobgen.rendering import config
from jobgen.rendering.build import is_spec
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.expand import JobDocument
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.left_out import LeftOut
from jobgen.rendering.load_layers import digest_layers, load_project, make_tracer
from jobgen.rendering.read_jobs import JobFiles, LooseFiles
from jobgen.rendering.render_task import RenderTask
from jobgen.rendering.result_inputs import SHARED, ResultInputs, concerns_others, digest_entry, make_key
from jobgen.rendering.run import run
from jobgen.rendering.run_values import RunRequest
from jobgen.rendering.runs import JOB_ANNOTATION
from jobgen.rendering.trace import WHOLE, Job, Traced, Tracer, select_item
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import BuiltObject, File, FileEntry, Release, read_file
from jobgen.repo.layout import Layers
from jobgen.repo.lock import LOCK
from jobgen.repo.named_paths import find_manifests, read_first
from jobgen.repo.rendered_tree import find_environments
from jobgen.repo.root import find_root, has_settings
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

# A folder may hold YAML files that are not Kubernetes objects: settings, Helm values, workflows.
_NOT_AN_OBJECT = frozenset(("missing-field", "wrong-type", "not-a-mapping"))


ObjectPlace = tuple[str, int]
"""The file of an object and its position there; objects of builds have positions below 0."""


class SummaryError(Exception):
    """A comparison needs an object of which only the summary is known."""


@dataclass
class Snapshot:
    """The objects of one side, and where each of them comes from."""

    name: str
    project: ProjectConfig
    environments: Sequence[str]
    objects: Sequence[Rendered]
    findings: Sequence[Finding]
    files: dict[str, FileEntry]
    folder: Folder
    """What the paths of files are relative to."""
    is_tree: bool = False
    """True if the objects were read from manifests; otherwise they were rendered from jobs."""
    left_out: Sequence[LeftOut] = ()
    """Jobs and environments that cannot be rendered."""
    is_unusable: bool = False
    """True if the settings, a kind, a team or a runtime has errors, so that the objects may be wrong."""
    builds: dict[ObjectPlace, tuple[FileEntry, BuiltObject]] = field(default_factory=dict)
    """The objects that are built from several files: what builds each of them, by its file and position."""
    _last: tuple[Rendered, Manifest] | None = None
    """The last object that was asked for, with its typed view."""
    _checkers: dict[str, Checker] = field(default_factory=dict)
    _schemas: dict[tuple[str, str, str], bytes] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Return True if there are errors, so that the snapshot is not complete."""
        return bool(self.errors)

    @property
    def errors(self) -> list[Finding]:
        """The findings that are errors."""
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    @cached_property
    def tracer(self) -> Tracer:
        """Renders jobs a second time, with the location of every value."""
        return Tracer(self.project)

    def checker(self, env: str) -> Checker:
        """The checker for the kinds and the cluster of an environment."""
        if env not in self._checkers:
            is_known = not env or env in self.project.overlays
            cluster = self.project.environment(env, []).cluster if is_known else Cluster()
            # A file that defines devices is never summarized.
            made = (one.object for one in self.objects if one.env == env)
            objects = [each for each in made if not isinstance(each, ObjectSummary)]
            read_catalog = cache(lambda: complete_catalog(objects, self.project, cluster))
            layers, kinds = self.project.layers, self.project.kinds
            self._checkers[env] = Checker(layers, kinds, cluster, read_catalog=read_catalog)
        return self._checkers[env]

    def manifest(self, rendered: Rendered) -> Manifest:
        """The typed view of an object; raise a SummaryError if only its summary is known."""
        if isinstance(rendered.object, ObjectSummary):
            raise SummaryError
        # What is asked about one object is asked at once.
        if self._last is None or self._last[0] is not rendered:
            self._last = rendered, self.checker(rendered.env).manifest(rendered.object)
        return self._last[1]

    def list_groups(self, rendered: Rendered) -> tuple[str, str, str]:
        """The namespace, the team and the queue of an object."""
        summary = rendered.object
        return summary.groups if isinstance(summary, ObjectSummary) else list_groups(self.manifest(rendered))

    def sum_resources(self, rendered: Rendered) -> ResourceTotals:
        """The resources of all pods of an object; those of an AppWrapper are the pods of the objects in it."""
        return sum_object(self.checker(rendered.env), rendered.object, self.manifest(rendered))

    def find_release(self, rendered: Rendered) -> Release | None:
        """The release of a chart that an object is of; None if it is of none."""
        found = self.builds.get((rendered.location.file, rendered.position))
        return found[0].build.release if found and found[0].build else None

    def describe_build(self, place: ObjectPlace) -> str:
        """What an object is built from, if several files make it: a chart and its values, or a kustomization."""
        found = self.builds.get(place)
        release = found[0].build.release if found and found[0].build else None
        return "" if found is None else release.describe() if release else f"kustomization {found[0].path}"

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The values of the Secrets of charts: a template can write one to any field of any object."""
        objects = (one.object for one in self.objects if self.builds and one.identity.kind == "Secret")
        return frozenset[str]().union(*map(find_secrets, objects))

    def schema(self, rendered: Rendered) -> bytes:
        """The JSON Schema of an object in its cluster; empty if there is none."""
        checker = self.checker(rendered.env)
        key = (rendered.env, str(rendered.object.get("apiVersion")), str(rendered.object.get("kind")))
        if key not in self._schemas:
            self._schemas[key] = checker.read_json_schema(checker.manifest(rendered.object))
        return self._schemas[key]

    def complete(self, rendered: Rendered) -> dict[str, Plain]:
        """The object as the API server decodes it, with its defaults."""
        return self.checker(rendered.env).find_admission(rendered.object)(rendered.object)

    def trace(self, rendered: Rendered) -> Traced:
        """The object with a location on every value."""
        job = self.job(rendered)
        tracer = self._built_tracer if job.built and not self.is_tree else self.tracer
        return tracer.trace(job, "" if self.is_tree else rendered.env)

    @cached_property
    def _built_tracer(self) -> Tracer:
        """Traces what charts beside jobs make: overlays change nothing of it."""
        return Tracer(self.project._replace(as_written=True))

    def job(self, rendered: Rendered) -> Job:
        """The job that an object was rendered from."""
        found = self.builds.get((rendered.location.file, rendered.position))
        if found is not None:
            _, built = found
            # What is shown of it is the file that writes it.
            file = read_first((self.folder,), built.file) or File(built.file)
            return Job(JobDocument(built.data, built.file), file, rendered.position, WHOLE, built.location, built=built)
        file = read_file(self.files[rendered.location.file])
        data = read(file.content, file.path).documents[rendered.position].data
        document = JobDocument(select_item(data, rendered.item), file.path)
        return Job(document, file, rendered.position, rendered.item, rendered.location)


def is_repository(folder: Folder) -> bool:
    """Return True if a folder is the root of a jobs repository."""
    return has_settings(folder) or (folder / "jobs").is_dir() or (folder / "overlays").is_dir()


def snapshot_files(store: Store, project: ProjectConfig, envs: Sequence[str], wanted: Collection[str]) -> Snapshot:
    """Render some files of a jobs repository, of which it is known that all of it can be rendered."""
    chosen = _choose_environments(project, envs)
    files = {entry.path: entry for entry in layout.find_jobs(project.root) if entry.path in wanted}
    result = run(RunRequest(project, chosen, LooseFiles(list(files.values())), RenderTask()))
    snapshot = Snapshot("", project, chosen, list(result.objects), (), files, project.root)
    snapshot.tracer = make_tracer(store, project)
    return snapshot


def _choose_environments(project: ProjectConfig, envs: Sequence[str]) -> Sequence[str]:
    return [env for env in envs if not env or env in project.overlays] if envs else project.environments()


def find_equal_files(one: Folder, other: Folder) -> frozenset[str]:
    """Return the files of jobs that are the same in two revisions with equal layers; none if layers differ."""
    if digest_layers(layout.own_layers(one)) != digest_layers(layout.own_layers(other)):
        return frozenset()
    sides = ({entry.path: entry for entry in layout.find_jobs(root)} for root in (one, other))
    old, new = ({path: digest_entry(entry) for path, entry in side.items()} for side in sides)
    return frozenset(path for path, digest in old.items() if new.get(path) == digest)


def snapshot_repository(
    root: Folder,
    name: str,
    envs: Sequence[str] = (),
    today: str = "",
    store: Store | None = None,
    summarized: frozenset[str] = frozenset(),
) -> Snapshot:
    """Render a jobs repository for these environments, or for all of them, as of a date.

    Objects that the store has of equal files and layers are used again. Of `summarized` files, which must be equal in
    all of these snapshots, the summaries of objects suffice if a lint stored them.
    """
    store = store or Store()
    project = load_project(store, layout.own_layers(root), today)
    jobs = {entry.path: entry for entry in layout.find_jobs(root)}
    chosen = _choose_environments(project, envs)
    request = RunRequest(project, chosen, JobFiles(list(jobs.values())), RenderTask(), store=store)
    if summarized:
        request = request._replace(summarize=partial(_find_summaries, store, summarized))
    result = run(request)
    snapshot = Snapshot(name, project, chosen, list(result.objects), result.findings, jobs, root)
    snapshot.left_out, snapshot.is_unusable = result.not_rendered, result.layers.has_broken_layers
    snapshot.tracer = make_tracer(store, project)
    return snapshot


def _find_summaries(
    store: Store, wanted: frozenset[str], inputs: ResultInputs, environments: Sequence[str | None], entry: FileEntry
) -> tuple[FileResult, ...] | None:
    """Return what a lint stored of a file: summaries of its objects instead of objects; None if that is not enough.

    It is not if something prevents a render, or if the objects depend on other files.
    """
    if entry.path not in wanted or concerns_others(read_file(entry).content):
        return None
    keys = [make_key(CHECKED_SCOPE, env, entry) for env in environments]
    rows = [store.find(CHECKED, key, inputs.holds) for key in keys]
    parts = tuple(row.value for row in rows if row is not None)
    if len(parts) < len(rows) or any("" in part.unchecked or SHARED in part.used.reads for part in parts):
        return None
    if any(each.object is None or each.companion for part in parts for each in part.made):
        return None
    return tuple(part._replace(findings=[], comments=[], rows=[]) for part in parts)


def snapshot_entries(
    folder: Folder, layers: Layers, name: str, entries: Sequence[FileEntry], today: str = ""
) -> Snapshot:
    """Read a folder of manifests, of which some are built from several files.

    Cluster facts come from the layers of the jobs repository that contains the folder, if there is one.
    """
    project = config.load(layers, today=today)._replace(as_written=True)
    files = {entry.path: entry for entry in entries}
    result = run(RunRequest(project, [""], LooseFiles(list(files.values())), RenderTask()))
    snapshot = Snapshot(name, project, [""], [], (), files, folder, is_tree=True)
    objects: list[Rendered] = []
    for made in result.objects:
        entry = files[made.location.file]
        if entry.build is None:
            objects.append(made)
            continue
        built = entry.build().objects[made.position]
        position = -1 - len(snapshot.builds)
        snapshot.builds[built.location.file, position] = (entry, built)
        objects.append(_place(made, entry.build.release)._replace(location=built.location, position=position))
    snapshot.objects, snapshot.findings = objects, _drop_others(result.findings)
    found = [each._replace(errors=_drop_others(each.errors)) for each in result.not_rendered]
    left_out = [each for each in found if each.errors and files[each.file].build is None]
    snapshot.left_out = [*left_out, *_list_unbuilt(files.values())]
    snapshot.is_unusable = result.layers.has_broken_layers
    return snapshot


def join_charts(jobs: Snapshot, charts: Snapshot) -> Snapshot:
    """Return a snapshot of jobs with the objects that charts beside them make, which are in no environment."""
    built = [one for one in charts.objects if (one.location.file, one.position) in charts.builds]
    joined = replace(
        jobs,
        environments=[*jobs.environments, ""] if built and "" not in jobs.environments else jobs.environments,
        objects=[*jobs.objects, *built],
        files=jobs.files | charts.files,
        left_out=[*jobs.left_out, *charts.left_out],
        builds=charts.builds,
    )
    joined.tracer = jobs.tracer
    return joined


def _place(made: Rendered, release: Release | None) -> Rendered:
    """Return an object with the namespace that helm creates it in."""
    namespace = release.namespace if release else ""
    if not namespace or made.identity.namespace or made.identity.kind in CLUSTER_SCOPED:
        return made
    metadata = {**made.object["metadata"], "namespace": namespace}
    identity = made.identity._replace(namespace=namespace)
    return made._replace(object={**made.object, "metadata": metadata}, identity=identity)


def _list_unbuilt(entries: Iterable[FileEntry]) -> Iterator[LeftOut]:
    """Yield the charts of which nothing was rendered, and what says that some were not judged."""
    for entry in entries:
        if entry.build is None:
            continue
        built = entry.build()
        is_note = entry.build.release is None and any(each.rule in UNJUDGED_CHART_RULES for each in built.findings)
        if not built.objects and built.findings and (entry.build.release or is_note):
            release = entry.build.release
            yield LeftOut(release.chart if release else entry.build.file, None, (), tuple(built.findings))


def find_layers_around(folder: Folder) -> Layers:
    """Return the layers of the jobs repository that contains a folder; of the folder itself if there is none."""
    return layout.own_layers(find_root(folder.resolve()) or folder)


def snapshot_tree(folder: Folder, name: str, envs: Sequence[str] = (), today: str = "") -> Snapshot:
    """Read a rendered tree, or any folder of manifests.

    Cluster facts come from the jobs repository that contains the folder, if there is one.
    """
    project = config.load(find_layers_around(folder), today=today)
    rendered = [env for env in find_environments(folder) if env]
    entries = (entry for entry in find_manifests(folder, ".") if entry.path.rpartition("/")[2] != LOCK)
    files = {entry.path: entry for entry in entries}
    result = run(RunRequest(project, [""], LooseFiles(list(files.values())), RenderTask()))
    tops = ((one, one.location.file.partition("/")[0]) for one in result.objects)
    objects = [one._replace(env=top if top in rendered else "") for one, top in tops]
    wanted = [one for one in objects if not envs or one.env in envs]
    findings = _drop_others(result.findings)
    snapshot = Snapshot(name, project, rendered or [""], wanted, findings, files, folder, is_tree=True)
    # The environments of a tree are its folders.
    found = (each._replace(env=None, errors=_drop_others(each.errors)) for each in result.not_rendered)
    snapshot.left_out, snapshot.is_unusable = [each for each in found if each.errors], result.layers.has_broken_layers
    return snapshot


def _drop_others(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.rule not in _NOT_AN_OBJECT)


class Cause(NamedTuple):
    """The location of a value, and the layer that wrote it."""

    location: Location
    layer: str


def find_causes(
    snapshot: Snapshot, rendered: Rendered, paths: Iterable[FieldPath], other: Rendered | None = None
) -> dict[FieldPath, Cause]:
    """The causes of the values at these paths of an object; paths without a value are left out.

    Of what a template writes, the cause is that of the first part that differs from `other`.
    """
    traced = snapshot.trace(rendered).select(rendered.companion)
    is_filled = snapshot.find_release(rendered) is not None
    found: dict[FieldPath, Cause | None] = {}
    for path in paths:
        changed = _find_changed(rendered.object, other.object, path) if is_filled and other else _Changed(path)
        found[path] = _find_cause(traced, changed, Cause(rendered.location, ""), is_filled=is_filled)
    return {path: cause for path, cause in found.items() if cause}


class _Changed(NamedTuple):
    """The path of what differs from another value, and the text of this one."""

    path: FieldPath
    other: str = ""


def _find_changed(node: Node, other: Node, path: FieldPath) -> _Changed:
    """The first part of the node at a path that differs from the other one; all of it if its parts cannot be told."""
    for step in path:
        node, other = _follow(node, step)[1], _follow(other, step)[1]
    while type(node) is type(other) and isinstance(node, (dict, list)):
        steps: Iterable[Step] = map(str, node) if isinstance(node, dict) else range(len(node))
        pairs = ((step, _follow(node, step)[1], _follow(other, step)[1]) for step in steps)
        found = next((each for each in pairs if each[1] != each[2]), None)
        if found is None:
            break
        path, node, other = (*path, found[0]), found[1], found[2]
    return _Changed(path, "" if other is None else str(other))


def _find_cause(node: Node, changed: _Changed, parent: Cause, *, is_filled: bool) -> Cause | None:
    """The cause of the node, or of the nearest parent that has a location.

    With `is_filled`, a template writes it: the values that fill it in are the cause.
    """
    key: str | None = None
    for step in changed.path:
        if isinstance(node, (TracedList, TracedScalar)):
            parent = Cause(node.location, node.layer)
        key, node = _follow(node, step)
        if node is None:
            return None
        if isinstance(key, TracedKey):
            parent = Cause(key.location, key.layer)
    if isinstance(node, TracedScalar) and is_filled and node.overridden is not None:
        given = _select_part(node.overridden, changed.other)
        return Cause(location_of(given) or node.location, node.layer)
    if isinstance(node, (TracedScalar, TracedList)):
        return Cause(node.location, node.layer)
    # A mapping that the renderer built has no location of its own, but its content has.
    inside = None if isinstance(key, TracedKey) else location_of(node)
    return Cause(inside, parent.layer) if inside else parent


def _select_part(node: Node, other: str) -> Node:
    """The first value that a text is joined of that the other text does not have; the first one if it has all."""
    first = node
    while isinstance(node, TracedScalar):
        if str(node.value) not in other:
            return node
        node = node.overridden
    return first


def _follow(node: Node, step: Step) -> tuple[str | None, Node]:
    """The child at a step, and the key that it is written at; an item of a list starts at its first key."""
    if isinstance(node, dict):
        return next(((key, child) for key, child in node.items() if key == step), (None, None))
    for index, item in enumerate(node if isinstance(node, list) else ()):
        fields = item if isinstance(item, dict) else {}
        is_named = isinstance(step, NamedItem) and str(value_of(fields.get(step.field))) == step.value
        if index == step or (is_named and fields is item):
            return next((key for key in fields if isinstance(key, TracedKey)), None), item
    return None, None


Pair = tuple[Rendered | None, Rendered | None]
_KeyFunction = Callable[[Snapshot, Rendered], Hashable]


def match_some(old: Snapshot, new: Snapshot, some: Iterable[Rendered], others: Iterable[Rendered]) -> Iterator[Pair]:
    """Yield objects of two snapshots with their counterparts, or alone.

    Those of charts match by their release first. They match by identity, then by the `jobgen.dev/job` annotation, then
    by source file and job name.
    """
    before, after = list(some), list(others)
    for key in (_by_release, _by_identity, _by_job_annotation, _by_source):
        if before and after:
            old_objects, new_objects = _index(key, old, before), _index(key, new, after)
            pairs = [(old_objects[found], new_objects[found]) for found in old_objects if found in new_objects]
            yield from pairs
            # By id(), because two jobs may be equal.
            taken = {id(one) for pair in pairs for one in pair}
            before = [one for one in before if id(one) not in taken]
            after = [one for one in after if id(one) not in taken]
    yield from ((one, None) for one in before)
    yield from ((None, one) for one in after)


def match_within_files(
    old: Snapshot, new: Snapshot, files: Collection[str]
) -> tuple[list[Pair], list[Rendered], list[Rendered]]:
    """Return the objects of files that have the same identity and file on both sides, and the others of each side.

    Identities must be unique on each side, as they are if a repository can be rendered.
    """
    made = [one for one in new.objects if one.location.file in files]
    index = {(one.location.file, _by_identity(new, one)): one for one in made}
    pairs: list[Pair] = []
    left: list[Rendered] = []
    for one in old.objects:
        same = index.pop((one.location.file, _by_identity(old, one)), None)
        if same is not None:
            pairs.append((one, same))
        elif one.location.file in files:
            left.append(one)
    return pairs, left, list(index.values())


def _index(key: _KeyFunction, snapshot: Snapshot, objects: Sequence[Rendered]) -> dict[Hashable, Rendered]:
    """The objects by key, without those whose key is ambiguous."""
    index: dict[Hashable, Rendered] = {}
    ambiguous: set[Hashable] = set()
    for one in objects:
        found = key(snapshot, one)
        if found is not None and found in index:
            ambiguous.add(found)
        elif found is not None:
            index[found] = one
    return {found: one for found, one in index.items() if found not in ambiguous}


def _by_release(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    """The release of a chart and the object in it: several releases may have the same names in different clusters."""
    release = snapshot.find_release(rendered) if snapshot.builds else None
    if release is None:
        return None
    return (release.chart, release.name, release.values, release.by, _by_identity(snapshot, rendered))


def _by_identity(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    group = rendered.identity.api_version.rpartition("/")[0]
    return (rendered.env, group, *rendered.identity[1:])


def _by_job_annotation(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    job = as_text(get_path(rendered.object, "metadata", "annotations", JOB_ANNOTATION))
    return (rendered.env, rendered.identity.namespace, job) if job else None


def _by_source(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    """The file of a job and its name there; the file names of a rendered tree are generated, so they do not count."""
    document = None if snapshot.is_tree else snapshot.job(rendered).document
    if document is None or not (is_spec(document.data) or is_training_job(snapshot.manifest(rendered))):
        return None
    # The companions of a job are other objects than the job, such as its runtime.
    companion = rendered.identity.kind if rendered.companion else ""
    return (rendered.env, rendered.location.file, document.name, companion)
