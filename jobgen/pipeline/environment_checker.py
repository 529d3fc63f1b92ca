"""Check the objects of one environment: with its cluster, its policies, and what other files define."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from jobgen.k8s.devices import DeviceCatalog, build_catalog, concerns_devices, may_concern_devices
from jobgen.k8s.kinds import Definition, may_define_kinds, read_definition
from jobgen.k8s.nodes import as_mapping, get_path
from jobgen.model.data import Node, Plain, text_of, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence, Words
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import Files, JobFiles
from jobgen.rendering.result_inputs import SHARED
from jobgen.rendering.trace import Tracer
from jobgen.repo.files import FileEntry, read_file
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import Cluster


def report_folder(project: config.ProjectConfig, folder: str, message: Words) -> Finding:
    """Report `cluster.state` without objects, where the settings or an overlay name it; `project` has locations."""
    specs = [spec for overlay in project.overlays.values() for spec in overlay.specs]
    blocks = [as_mapping(spec.get("cluster")) for spec in specs] + [as_mapping(project.settings.get("cluster"))]
    workers = (get_path(block, "kueue", "multiKueue", "clusters") for block in blocks)
    blocks += [as_mapping(each) for several in workers for each in as_mapping(several).values()]
    named = [block["state"] for block in blocks if str(value_of(block.get("state"))).strip("/") == folder]
    return locate(Problem("unreadable-file", message, named[0] if named else None, category="yaml"), SETTINGS)


def report_missing_folder(project: config.ProjectConfig, folder: str) -> Finding:
    """Report a `cluster.state` that does not exist."""
    message = Sentence("there is no folder `{}` in the repository; run `jobgen capture`, which writes it", folder)
    return report_folder(project, folder, message)


def find_duplicates(objects: Iterable[Mapping[str, Node]], path: str) -> Iterator[Finding]:
    """Report objects of the state that are there twice and differ."""
    from jobgen.check.cluster.state import name_object

    seen: dict[tuple[str, str, str], Mapping[str, Plain]] = {}
    for obj in objects:
        plain = untraced(obj)
        kind, namespace, name = identity = name_object(plain)
        if name and seen.setdefault(identity, plain) != plain:
            where = f" in namespace `{namespace}`" if namespace else ""
            message = Sentence("the exported state has another {} `{}`{}; remove one of them", kind, name, where)
            yield locate(Problem("unread-file", message, obj.get("kind"), category="meta"), path)


# The group of a definition, in YAML or JSON.
_GROUP = lazy_pattern(r"group[\"']?\s*:\s*[\"']?([\w.-]+)")


def _index_definitions(entries: Sequence[FileEntry]) -> Callable[[str], tuple[Definition, ...]]:
    """Return what finds the definitions of an API group in files; only files in which it is written are parsed."""
    named: dict[str, list[int]] = {}
    for number, entry in enumerate(entries):
        for group in dict.fromkeys(_GROUP.findall(read_file(entry).content.decode("latin-1"))):
            named.setdefault(group, []).append(number)

    @cache
    def parse(number: int) -> tuple[Definition, ...]:
        documents = config.read_documents(read_file(entries[number]), [], shared=True).documents
        pairs = ((data, document.location) for document in documents for data in split_list(document.data))
        return tuple(filter(None, (read_definition(*pair) for pair in pairs)))

    @cache
    def find(group: str) -> tuple[Definition, ...]:
        every = (definition for number in named.get(group, ()) for definition in parse(number))
        return tuple(definition for definition in every if definition.group == group)

    return find


if TYPE_CHECKING:
    from jobgen.check.checker import Checker
    from jobgen.check.policy import Policies, PolicyEvaluator
    from jobgen.check.rules import Rule
    from jobgen.model.mutated import Mutated
    from jobgen.rendering.trace import Tracer

PolicySource: TypeAlias = "Callable[[], Policies]"
"""Loads the compiled policies of a repository; called only when an object has to be checked."""


class EnvironmentChecker:
    """Checks the objects that one environment renders."""

    def __init__(
        self,
        runner: EnvironmentRunner,
        policies: PolicySource | None = None,
        files: Files = JobFiles(()),  # noqa: B008 -- it is a value
    ) -> None:
        self.runner = runner
        self._policies = policies
        self._files = files
        self._checker: Checker | None = None
        self._team_checkers: dict[str, Checker] = {}
        self._folder_checkers: dict[str, Checker] = {}
        self._catalog: DeviceCatalog | None = None
        self._definitions: Callable[[str], tuple[Definition, ...]] | None = None
        self._configs: dict[tuple[str, bool, str, str, str], Mapping[str, Node] | None] = {}
        self.tracer: Tracer | None = None
        """Builds the objects of other files with locations."""
        self.reads: set[str] = set()
        """What is read by the check that runs; who checks an object sets it."""
        self._shared_reads = {SHARED}
        """What was read to find out what other files define."""
        self.clean: set[bytes] = set()
        """Digests of built objects that have been checked, and with which nothing is wrong."""

    @property
    def checker(self) -> Checker:
        """The checks of this environment's cluster."""
        if self._checker is None:
            # Imported late: a render does not need the rules.
            from jobgen.check.checker import Checker
            from jobgen.check.rules import all_rules

            project, cluster = self.runner.project, self.runner.expander.environment.cluster
            off = project.severities.off
            rules = [rule for rule in (*all_rules(), *self.defects) if rule.name not in off]
            sources = self._read_catalog, self._find_definitions, self._find_config
            self._checker = Checker(project.layers, project.kinds, cluster, rules, self._policy_evaluator(), *sources)
        return self._checker

    @cached_property
    def defects(self) -> list[Rule]:
        """The known defects of the declared versions, as rules."""
        cluster = self.runner.expander.environment.cluster
        if not (cluster.operators or cluster.kubernetes):
            return []
        from jobgen.check.defects import make_rules

        return make_rules(self.runner.project.layers, self.runner.project.kinds, cluster)

    def mutate(self, obj: Mapping[str, Any]) -> Mutated:
        """An object with what mutating policies change when its cluster creates it."""
        return self.checker.mutate(obj)

    def find_checker(self, path: str) -> Checker:
        """The checks of an object from a file, with the limits of the team that owns the file."""
        environment = self.runner.expander.environment
        team = environment.teams.find(path)
        if team is None and not self._files.are_loose:
            return self.checker
        if team is None:
            # The nearest definitions of their kinds count for the objects of a folder.
            folder = path.rpartition("/")[0]
            if folder not in self._folder_checkers:
                self._folder_checkers[folder] = self.checker.place_in(folder)
            return self._folder_checkers[folder]
        if team.name not in self._team_checkers:
            scope = environment.teams.find_scope(team, self.runner.name)
            self._team_checkers[team.name] = self.checker.limit_to_team(scope)
        return self._team_checkers[team.name]

    def _find_definitions(self, group: str) -> tuple[Definition, ...]:
        """The CustomResourceDefinitions of a group among the files of the run. A repository has schemas instead."""
        if not self._files.are_loose:
            return ()
        self.reads |= self._shared_reads
        if self._definitions is None:
            # The content of a build is that of files that have entries of their own, or are outside of the run.
            entries = (entry for entry in self._files.entries if entry.build is None)
            files = [each for each in entries if may_define_kinds(read_file(each).content)]
            self._definitions = _index_definitions(files)
        return self._definitions(group)

    def _read_catalog(self) -> DeviceCatalog:
        """The classes and claims for devices among the objects of the environment and its cluster."""
        if self._catalog is None:
            self._catalog = self._build_catalog()
        self.reads |= self._shared_reads
        return self._catalog

    def _build_catalog(self) -> DeviceCatalog:
        # Imported late: most environments have no devices.
        from jobgen.rendering.read_jobs import read_jobs

        runner, objects, used = self.runner, list[Mapping[str, Any]](), new_overlay_use()
        entries = self._files.list_all(runner.project.root)
        named = (entry for entry in entries if may_concern_devices(read_file(entry).content))
        for job in read_jobs(named, runner.project.kinds, []):
            patches = runner.patches_for(job) if concerns_devices(job.document.data) else None
            if patches is not None:
                objects += [made.object for made in runner.build_objects(job, patches, used)]
        self._shared_reads |= used.reads
        return complete_catalog(objects, runner.project, runner.expander.environment.cluster)

    def _find_config(
        self, folder: str, namespace: str, name: str, kind: str = "ConfigMap", *, is_traced: bool = False
    ) -> Mapping[str, Any] | None:
        """The data of the nearest ConfigMap or Secret with a name; None if there is none, or there are several."""
        tracer = self.tracer if is_traced else None
        key = (folder, tracer is not None, kind, namespace, name)
        if key not in self._configs:
            wanted = _Wanted(kind, namespace, name)
            found = list(self._list_configs(self._config_files.get(folder, ()), wanted, tracer))
            if not found:
                others = (file for at, files in self._config_files.items() if at != folder for file in files)
                found = list(self._list_configs(others, wanted, tracer))
            distances = [_measure_distance(folder, path) for path, _ in found]
            nearest = [data for (_, data), each in zip(found, distances, strict=True) if each == min(distances)]
            is_one = bool(nearest) and all(untraced(data) == untraced(nearest[0]) for data in nearest)
            self._configs[key] = nearest[0] if is_one else None
        self.reads |= self._shared_reads
        return self._configs[key]

    @cached_property
    def _config_files(self) -> Mapping[str, list[FileEntry]]:
        """The files that can have ConfigMaps or Secrets, by their folders."""
        found: dict[str, list[FileEntry]] = {}
        for entry in self._files.list_all(self.runner.project.root):
            if entry.build is not None or any(sign in read_file(entry).content for sign in _CONFIG_SIGNS):
                found.setdefault(entry.path.rpartition("/")[0], []).append(entry)
        return found

    def _list_configs(
        self, entries: Iterable[FileEntry], wanted: _Wanted, tracer: Tracer | None
    ) -> Iterator[tuple[str, Mapping[str, Node]]]:
        """Yield the objects with a name, each with its file; jobs write the hash of their ConfigMaps into its name."""
        from jobgen.rendering.read_jobs import read_jobs

        runner, named, name, used = self.runner, list[FileEntry](), wanted.name, new_overlay_use()
        # The name of a job's own ConfigMap ends with its name in the job, and a hash.
        own = name.rpartition("-")[0].rpartition("-")[2].encode()
        for entry in entries:
            if entry.build is not None:
                # What is in a name with a hash is the same in all builds.
                objects = entry.build().objects if _HASHED.search(name) and entry.build.is_built else ()
                datas = ((built.file, built.traced if tracer else built.data) for built in objects)
                read = ((file, wanted.read(data)) for file, data in datas)
                yield from ((file, data) for file, data in read if data is not None)
            else:
                content = read_file(entry).content
                if name.encode() in content or (own and b"configs" in content and own in content):
                    named.append(entry)
        for job in read_jobs(named, runner.project.kinds, []):
            data = job.document.data
            is_own = wanted.kind == "ConfigMap" and "configs" in as_mapping(data.get("spec"))
            is_concerned = is_own or text_of(data.get("kind")) in wanted.kinds
            patches = runner.patches_for(job) if is_concerned else None
            if patches is None:
                continue
            built = runner.build_objects(job, patches, used)
            self._shared_reads |= used.reads
            for number, one in enumerate(built):
                obj = one.object
                if wanted.read(obj):
                    traced = tracer.trace(job, runner.name).select(number) if tracer else None
                    yield job.file.path, wanted.read(traced or obj) or {}

    def forget_shared(self) -> None:
        """Forget what other files define."""
        self._configs.clear()
        self.__dict__.pop("_config_files", None)
        self._catalog = self._definitions = None
        self.clean.clear()

    def _policy_evaluator(self) -> PolicyEvaluator | None:
        if self._policies is None:
            return None
        from jobgen.check.policy import ClusterFacts, PolicyEvaluator

        plurals = {
            (str(value_of(kind.api_version)).partition("/")[0], kind.name): kind.plural
            for kind in self.runner.project.kinds
        }
        cluster = self.runner.expander.environment.cluster
        facts = ClusterFacts(self.runner.name, cluster.operators, plurals, cluster.grants_permissions)
        policies, off = self._policies(), self.runner.project.severities.off
        kept = tuple(pair for pair in policies.policies if pair[0].name not in off)
        mutating = tuple(pair for pair in policies.mutating if pair[0].policy.name not in off)
        return PolicyEvaluator(policies._replace(policies=kept, mutating=mutating), facts)


_HASHED = lazy_pattern(r"-[a-z0-9]{10}\Z")


_CONFIG_SIGNS = (b"ConfigMap", b"configs", b"Secret")
# The fields with the keys of a Secret, by the kinds that make one.
_SECRET_FIELDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Secret": (("data",), ("stringData",)),
    "SealedSecret": (("spec", "encryptedData"),),
}


class _Wanted(NamedTuple):
    """A ConfigMap or Secret that is looked for."""

    kind: str
    namespace: str
    name: str

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of objects that are it, or make it."""
        return _SECRET_FIELDS if self.kind == "Secret" else ("ConfigMap",)

    def read(self, obj: Mapping[str, Node]) -> Mapping[str, Node] | None:
        """Return the texts of an object if it is the one; a binary value, or one of a Secret, is null."""
        metadata, kind = as_mapping(obj.get("metadata")), text_of(obj.get("kind"))
        spaces = {self.namespace, text_of(metadata.get("namespace"))} - {""}
        if kind not in self.kinds or text_of(metadata.get("name")) != self.name or len(spaces) > 1:
            return None
        if self.kind == "Secret":
            return {str(key): None for path in _SECRET_FIELDS[kind] for key in as_mapping(get_path(obj, *path))}
        binary = dict.fromkeys(map(str, as_mapping(obj.get("binaryData"))))
        return {**binary, **{str(key): value for key, value in as_mapping(obj.get("data")).items()}}


def _measure_distance(folder: str, path: str) -> int:
    """Return how many folders lie between a folder and a file."""
    first, second = folder.split("/") if folder else [], path.split("/")[:-1]
    shared = next((at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), None)
    shared = min(len(first), len(second)) if shared is None else shared
    return len(first) + len(second) - 2 * shared


def complete_catalog(objects: Iterable[Mapping[str, Plain]], project: ProjectConfig, cluster: Cluster) -> DeviceCatalog:
    """Build the catalog of objects and of those in the exported state of their cluster."""
    # Imported late: most repositories have no state of a cluster.
    from jobgen.check.cluster.exported import read_exported

    exported = list(read_exported(project.layers, cluster.state, [])) if cluster.state else ()
    return build_catalog(objects, cluster.gpu_resource, exported)
