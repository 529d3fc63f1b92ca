"""The policies of a repository: read and compiled, and what the mutating ones change in objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jobgen.check.policy import Policies, compile_policies
from jobgen.check.policy.match import MatchResources, pluralize_kind
from jobgen.check.policy.parse import MUTATING, POLICY, is_mutating, is_policy
from jobgen.check.policy.unused import NamedResource, find_unevaluated, find_unmatched
from jobgen.k8s.kinds import Release
from jobgen.model.data import Location, Node, ValidFields
from jobgen.model.finding import Finding, Identity
from jobgen.model.lazy_re import may_mention
from jobgen.model.mutated import Mutated
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import NO_ORIGINS, Origins
from jobgen.model.place import find_at
from jobgen.model.placed import read_places
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.repo.layout import Layers
from jobgen.repo.shipped import read_ready

_UNPAIRED = frozenset(("binding-without-policy", "policy-without-binding"))


class PolicyFiles(NamedTuple):
    """Compiled policies, the errors in their files, and the file of each policy."""

    policies: Policies
    findings: tuple[Finding, ...]
    files: Mapping[str, str]
    unused: tuple[Finding, ...] = ()
    unmatched: tuple[tuple[Finding, tuple[MatchResources, ...]], ...] = ()
    """Policies and bindings that match no known kind, unless an object of another kind matches."""

    def find_unmatched(self, identities: Iterable[Identity]) -> Iterator[Finding]:
        """Report policies and bindings that match neither a known kind nor one of these objects."""
        resources = {
            (*identity.api_version.rpartition("/")[::2], pluralize_kind(identity.kind))
            for identity in (identities if self.unmatched else ())
        }
        for finding, matches in self.unmatched:
            if not any(all(match.matches_resource(*resource) for match in matches) for resource in resources):
                yield finding


def load_policies(layers: Layers, *, all_packs: bool = False) -> PolicyFiles:
    """Load all policies of a repository, with the packs of its settings or all. A policy with an error is left out."""
    shipped = tuple(layout.read_shipped_policies(layers, all_packs=all_packs))
    return compile_policy_files(shipped, tuple(layout.read_own_policies(layers)))


@lru_cache(maxsize=16)
def compile_policy_files(
    shipped: tuple[File, ...],
    own: tuple[File, ...],
    resources: tuple[NamedResource, ...] = (),
    releases: tuple[Release, ...] = (),
) -> PolicyFiles:
    """Compile the policies of files: those shipped with jobgen, and those of a repository.

    With the resources of the known kinds, report policies that match none of them. Functions of CEL are those of the
    releases of the environments.
    """
    findings: list[Finding] = []
    documents = _read_files(own, findings)
    mutating, origins = {path for path, data in documents if is_mutating(data)}, NO_ORIGINS
    if mutating:
        # The values that mutating policies set are located there.
        traced = _read_files((file for file in own if file.path in mutating), [], traced=True)
        origins = Origins(data for _, data in traced)
        plain: Iterator[Any] = iter(origins.objects)
        documents = [(path, next(plain) if path in mutating else data) for path, data in documents]
    # Params that the repository has too are left out: in a cluster, there is one of a name.
    known = {_identify(data) for _, data in documents if not is_policy(data)}
    shipped_documents = [
        (path, data) for path, data in _read_files(shipped, findings) if is_policy(data) or _identify(data) not in known
    ]
    trusted = [data for _, data in shipped_documents]
    policies, problems = compile_policies((data for _, data in documents), trusted, releases, origins)
    # What a file that cannot be read holds is unknown: it may be the binding, or the policy.
    unpaired = _UNPAIRED if findings else frozenset()
    if any(problem.rule not in unpaired for problem in problems):
        origins = Origins(read_policy_documents(own))
        _, problems = compile_policies(origins.objects, trusted, releases)
        problems = read_places(problems, origins.follow)
        findings += [locate(problem, "policies") for problem in problems if problem.rule not in unpaired]
    every = (*shipped_documents, *documents)
    named = {
        str(data["metadata"].get("name")): path
        for kind, is_one in ((MUTATING, is_mutating), (POLICY, is_policy))
        for path, data in every
        if is_one(data) and data["kind"] == kind and isinstance(data.get("metadata"), dict)
    }
    unused, unmatched = _find_unused(own, [data for _, data in documents], policies, resources)
    return PolicyFiles(policies, tuple(findings), named, unused, unmatched)


def read_policy_documents(files: Iterable[File]) -> list[ValidFields]:
    """The documents of policy files, with locations."""
    return [data for _, data in _read_files(files, [], traced=True)]


def read_plain_documents(files: Iterable[File]) -> list[tuple[str, ValidFields]]:
    """The documents of policy files without locations, each with its file."""
    return _read_files(files, [])


def _identify(data: ValidFields) -> tuple[str, ...]:
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return tuple(map(str, (data.get("apiVersion"), data.get("kind"), name)))


def locate_policies(own: Iterable[File]) -> dict[str, Location]:
    """The location of each policy of a repository: its only validation, or its name."""
    found: dict[str, Location] = {}
    origins = Origins(read_policy_documents(own))
    for data in origins.objects:
        metadata, spec = data.get("metadata"), data.get("spec")
        if not is_policy(data) or data["kind"] != POLICY or not isinstance(metadata, dict):
            continue
        validations = spec.get("validations") if isinstance(spec, dict) and "matchConditions" not in spec else None
        only = validations[0] if isinstance(validations, list) and len(validations) == 1 else None
        place = find_at(only, "expression") or find_at(metadata, "name")
        location = origins.find_location(place) or origins.find_location(find_at(metadata, "name"))
        if location:
            found.setdefault(str(metadata.get("name")), location)
    return found


def _find_unused(
    own: tuple[File, ...], documents: list[ValidFields], policies: Policies, resources: tuple[NamedResource, ...]
) -> tuple[tuple[Finding, ...], tuple[tuple[Finding, tuple[MatchResources, ...]], ...]]:
    """Return what is not evaluated and what matches no kind; with locations only if there is something."""
    if not (any(find_unevaluated(documents)) or any(find_unmatched(documents, policies, resources))):
        return (), ()
    origins = Origins(read_policy_documents(own))
    unevaluated = read_places(find_unevaluated(origins.objects), origins.follow)
    unmatched = list(find_unmatched(origins.objects, policies, resources))
    problems = read_places((each.problem for each in unmatched), origins.follow)
    return (
        tuple(locate(problem, "policies") for problem in unevaluated),
        tuple((locate(problem, "policies"), each.matches) for problem, each in zip(problems, unmatched, strict=True)),
    )


def _read_files(
    files: Iterable[File], findings: list[Finding], *, traced: bool = False
) -> list[tuple[str, ValidFields]]:
    found: list[tuple[str, ValidFields]] = []
    for file in files:
        documents = None if traced else read_ready(file)
        if documents is None:
            documents = [each.data for each in config.read_documents(file, findings, traced=traced).documents]
        objects = (data for document in documents for data in split_list(document))
        found += [(file.path, data) for data in objects if isinstance(data, dict)]
    return found


class ClusterMutations:
    """The mutating policies of a repository, which are read and compiled only if there may be some."""

    def __init__(self, project: ProjectConfig) -> None:
        self._project = project
        files = layout.read_own_policies(project.layers)
        self._may_mutate = any(may_mention(file.content, b"MutatingAdmissionPolicy") for file in files)
        self._checkers: dict[str, EnvironmentChecker] = {}

    def mutate(self, env: str, obj: Mapping[str, Node]) -> Mutated:
        """Return an object with what the policies change in an environment."""
        if not self._may_mutate:
            return Mutated(obj)
        if env not in self._checkers:
            layers = self._project.layers
            # Manifests may be those of an environment that the repository does not have.
            known = env if env in self._project.overlays else ""
            runner = EnvironmentRunner(self._project, known)
            self._checkers[env] = EnvironmentChecker(runner, lambda: load_policies(layers).policies)
        return self._checkers[env].mutate(obj)


def mutate_rendered(project: ProjectConfig, made: Iterable[Rendered]) -> list[Rendered]:
    """Return rendered objects with what the policies change in their environments."""
    mutations = ClusterMutations(project)
    return [each._replace(object=mutations.mutate(each.env, each.object).object) for each in made]
