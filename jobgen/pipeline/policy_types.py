"""Type-check the policies of a repository against the kinds that its cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.policy.match import pluralize_kind
from jobgen.check.policy.parse import POLICY, is_policy, parse_policy
from jobgen.check.policy.type_check import Resource, find_type_problems
from jobgen.model.data import value_of
from jobgen.model.finding import Finding
from jobgen.model.origins import Origins
from jobgen.model.placed import read_places
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.policies import read_policy_documents
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.schema.shipped_kinds import list_shipped_kinds, name_plural


def find_policy_type_findings(project: ProjectConfig) -> Iterator[Finding]:
    """The warnings for the policies that come with jobgen and for those of the repository."""
    checker = EnvironmentChecker(EnvironmentRunner(project, "")).checker
    resources = list_resources(project)
    files = (*layout.read_shipped_policies(project.layers), *layout.read_own_policies(project.layers))
    origins = Origins(read_policy_documents(files))
    for document in origins.objects:
        # One that is not valid has its own findings.
        if is_policy(document) and document["kind"] == POLICY and parse_policy(document, []):
            problems = find_type_problems(document, resources, checker.read_schema)
            yield from (locate(problem, "policies") for problem in read_places(problems, origins.follow))


def list_resources(project: ProjectConfig) -> list[Resource]:
    """The kinds that jobgen knows, with their names in resource rules."""
    known = [(kind.api_version, kind.name, name_plural(kind.api_version, kind.name)) for kind in list_shipped_kinds()]
    known += [(str(value_of(kind.api_version)), kind.name, kind.plural) for kind in project.kinds]
    return [
        Resource(*api_version.rpartition("/")[::2], plural or pluralize_kind(kind), kind)
        for api_version, kind, plural in dict.fromkeys(known)
    ]
