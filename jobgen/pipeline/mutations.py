"""Rendered objects as the mutating policies of a repository change them in the cluster, for commands besides lint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.model.data import Node
from jobgen.model.mutated import Mutated
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner, Rendered
from jobgen.repo import layout

_KIND = b"MutatingAdmissionPolicy"


class ClusterMutations:
    """The mutating policies of a repository, which are read and compiled only if there may be some."""

    def __init__(self, project: ProjectConfig) -> None:
        self._project = project
        # An escape such as `\x41` may stand for any character.
        files = layout.read_own_policies(project.root)
        self._may_mutate = any(_KIND in file.content or b"\\" in file.content for file in files)
        self._checkers: dict[str, EnvironmentChecker] = {}

    def mutate(self, env: str, obj: Mapping[str, Node]) -> Mutated:
        """Return an object with what the policies change in an environment."""
        if not self._may_mutate:
            return Mutated(obj)
        if env not in self._checkers:
            # Imported late: most repositories have no such policies.
            from jobgen.pipeline.load_policies import load_policies

            root = self._project.root
            # Manifests may be those of an environment that the repository does not have.
            known = env if env in self._project.overlays else ""
            runner = EnvironmentRunner(self._project, known)
            self._checkers[env] = EnvironmentChecker(runner, lambda: load_policies(root).policies)
        return self._checkers[env].mutate(obj)


def mutate_rendered(project: ProjectConfig, made: Iterable[Rendered]) -> list[Rendered]:
    """Return rendered objects with what the policies change in their environments."""
    mutations = ClusterMutations(project)
    return [each._replace(object=mutations.mutate(each.env, each.object).object) for each in made]
