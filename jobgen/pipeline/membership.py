"""Find jobs that belong to no environment."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.check.checker import Checker
from jobgen.model.finding import Finding, Problem
from jobgen.render.build import is_spec
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner
from jobgen.render.locate import locate
from jobgen.render.trace import Job, Tracer
from jobgen.spec.overlay import Cluster


class Membership:
    """Decides which jobs belong to no environment. A run may be limited to some, so all of them are looked at."""

    def __init__(self, project: ProjectConfig, runners: Sequence[EnvironmentRunner]) -> None:
        names = {runner.name for runner in runners}
        others = [name for name in project.environments() if name not in names]
        self._project = project
        self._runners = [*runners, *(EnvironmentRunner(project, name) for name in others)]
        # What an overlay or a team with errors selects is not known.
        self.takes_all = not project.teams.is_complete or any(
            not runner.expander.environment.jobs or runner.is_broken for runner in self._runners
        )

    def describe(self) -> str:
        """Return what decides which jobs environments select."""
        return repr([(runner.name, runner.expander.environment.jobs) for runner in self._runners])

    def selects(self, job: Job) -> bool:
        """Whether an environment selects a job."""
        return self.takes_all or any(runner.patches_for(job) is not None for runner in self._runners)

    def findings(self, job: Job, tracer: Tracer) -> list[Finding]:
        """Report a job that no environment selects. A raw manifest is checked by its schema at least."""
        if self.selects(job):
            return []
        name = job.document.sweep or job.document.name
        message = (
            f"no environment selects `{name}`, so it is not rendered; change `jobs` of an overlay, or remove the job"
        )
        found = [locate(Problem("job-without-environment", message), job.file.path, job.start())]
        if is_spec(job.document.data):
            return found
        checker = self._checker()
        return (
            found + tracer.findings(job, "", checker)
            if checker.has_problems(checker.manifest(job.document.data))
            else found
        )

    def _checker(self) -> Checker:
        return Checker(self._project.root, self._project.kinds, Cluster())
