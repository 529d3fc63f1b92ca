"""Check the objects of one environment: with its cluster, its policies, and what other files define."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from jobgen.k8s.custom_kinds import Definition, may_define_kinds, read_definition
from jobgen.k8s.device_claims import DeviceCatalog, build_catalog
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline.exported_state import read_exported
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, read_file
from jobgen.spec.overlay import Cluster

# The group of a definition, in YAML or JSON.
_GROUP = lazy_pattern(r"group[\"']?\s*:\s*[\"']?([\w.-]+)")


class FileDefinitions:
    """The definitions in files, by API group."""

    def __init__(self, entries: Sequence[FileEntry]) -> None:
        self._entries = entries
        self._named: dict[str, list[int]] = {}
        """The numbers of the files in which each group is written."""
        for number, entry in enumerate(entries):
            for group in dict.fromkeys(_GROUP.findall(read_file(entry).content.decode("latin-1"))):
                self._named.setdefault(group, []).append(number)
        self._read: dict[int, tuple[Definition, ...]] = {}
        self._groups: dict[str, tuple[Definition, ...]] = {}

    def find(self, group: str) -> tuple[Definition, ...]:
        """Return the definitions of a group; only files in which it is written are parsed."""
        if group not in self._groups:
            every = (definition for number in self._named.get(group, ()) for definition in self._parse(number))
            self._groups[group] = tuple(definition for definition in every if definition.group == group)
        return self._groups[group]

    def _parse(self, number: int) -> tuple[Definition, ...]:
        if number not in self._read:
            documents = config.read_documents(read_file(self._entries[number]), [], shared=True).documents
            found = (
                read_definition(data, document.location) for document in documents for data in split_list(document.data)
            )
            self._read[number] = tuple(filter(None, found))
        return self._read[number]


if TYPE_CHECKING:
    from jobgen.check.checker import Checker
    from jobgen.check.policy import Policies, PolicyEvaluator
    from jobgen.k8s.device_claims import DeviceCatalog
    from jobgen.model.mutated import Mutated

PolicySource: TypeAlias = "Callable[[], Policies]"
"""Loads the compiled policies of a repository; called only when an object has to be checked."""


class EnvironmentChecker:
    """Checks the objects that one environment renders."""

    def __init__(
        self,
        runner: EnvironmentRunner,
        policies: PolicySource | None = None,
        entries: Sequence[FileEntry] | None = None,
    ) -> None:
        self.runner = runner
        self._policies = policies
        self._entries = entries
        """The files of the run, if they are not those of the repository."""
        self._checker: Checker | None = None
        self._team_checkers: dict[str, Checker] = {}
        self._folder_checkers: dict[str, Checker] = {}
        self._catalog: DeviceCatalog | None = None
        self._definition_files: list[FileEntry] | None = None
        self._definitions: FileDefinitions | None = None
        self._has_read_others = False
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
            rules = [rule for rule in all_rules() if rule.name not in off]
            sources = self._read_catalog, self._find_definitions
            self._checker = Checker(project.root, project.kinds, cluster, rules, self._policy_evaluator(), *sources)
        return self._checker

    def mutate(self, obj: Mapping[str, Node]) -> Mutated:
        """An object with what mutating policies change when its cluster creates it."""
        return self.checker.mutate(obj)

    def find_checker(self, path: str) -> Checker:
        """The checks of an object from a file, with the limits of the team that owns the file."""
        environment = self.runner.expander.environment
        team = environment.teams.find(path)
        if team is None:
            return self.checker if self._entries is None else self._find_folder_checker(path.rpartition("/")[0])
        if team.name not in self._team_checkers:
            scope = environment.teams.find_scope(team, self.runner.name)
            self._team_checkers[team.name] = self.checker.limit_to_team(scope)
        return self._team_checkers[team.name]

    def _find_folder_checker(self, folder: str) -> Checker:
        """The checks of objects in a folder, for which the nearest definitions of their kinds count."""
        if folder not in self._folder_checkers:
            self._folder_checkers[folder] = self.checker.place_in(folder)
        return self._folder_checkers[folder]

    def _find_definitions(self, group: str) -> tuple[Definition, ...]:
        """The CustomResourceDefinitions of a group among the files of the run. A repository has schemas instead."""
        if self._entries is None:
            return ()
        self._has_read_others = True
        if self._definition_files is None:
            # The content of a build is that of files that have entries of their own, or are outside of the run.
            entries = (entry for entry in self._entries if entry.build is None)
            self._definition_files = [each for each in entries if may_define_kinds(read_file(each).content)]
        if not self._definition_files:
            return ()
        if self._definitions is None:
            # Imported late: most files define no kinds.

            self._definitions = FileDefinitions(self._definition_files)
        return self._definitions.find(group)

    def _read_catalog(self) -> DeviceCatalog:
        """The classes and claims for devices among the objects of the environment and its cluster."""
        if self._catalog is None:
            cluster = self.runner.expander.environment.cluster
            self._catalog = complete_catalog(self._render_device_objects(), self.runner.project, cluster)
        self._has_read_others = True
        return self._catalog

    def _render_device_objects(self) -> Iterator[Mapping[str, Node]]:
        from jobgen.k8s.device_claims import concerns_devices, may_concern_devices
        from jobgen.rendering.read_jobs import read_jobs

        entries = layout.find_jobs(self.runner.project.root) if self._entries is None else self._entries
        named = (entry for entry in entries if may_concern_devices(read_file(entry).content))
        for job in read_jobs(named, self.runner.project.frameworks, []):
            patches = self.runner.patches_for(job) if concerns_devices(job.document.data) else None
            if patches is not None:
                yield from (made.object for made in self.runner.build_objects(job, patches, new_overlay_use()))

    def forget_shared(self) -> None:
        """Forget what other files define."""
        self._catalog = self._definition_files = self._definitions = None
        self.clean.clear()

    def take_shared_use(self) -> bool:
        """Return True if devices or kinds that other files define have been looked up since the last call."""
        was_read, self._has_read_others = self._has_read_others, False
        return was_read

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


def complete_catalog(objects: Iterable[Mapping[str, Node]], project: ProjectConfig, cluster: Cluster) -> DeviceCatalog:
    """Build the catalog of objects and of those in the exported state of their cluster."""
    exported = list(read_exported(project.root, cluster.state, [])) if cluster.state else ()
    return build_catalog(objects, cluster.gpu_resource, exported)
