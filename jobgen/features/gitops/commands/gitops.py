"""`jobgen gitops`: print configuration for Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import click

from jobgen.api.errors import JobgenError
from jobgen.api.project import find_repository, select_environments
from jobgen.cli.complete import complete_revisions
from jobgen.cli.options import env_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.features.gitops.documents import (
    CONFIG_PARTS,
    GENERATE_PATHS,
    build_application_set,
    build_config_map,
    build_kustomization,
    build_project,
    list_projects,
)
from jobgen.features.gitops.engine_kinds import EngineKind, GitSource, list_engine_kinds, resource_name
from jobgen.features.gitops.flux_teams import list_accounts
from jobgen.model.data import Plain
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.render_task import render_jobs
from jobgen.repo import git
from jobgen.reports.entries import format_findings
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.write import to_yaml

_DURATION = lazy_pattern(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_CONFIG_MAP = """\
A part of argocd-cm. Merge it into the existing one: `kubectl apply --server-side -f FILE`.
health: without a check, Argo CD considers a job healthy as soon as it exists.
ignoreDifferences: what Kueue writes into queued jobs; it needs RespectIgnoreDifferences=true. Also what autoscalers
write, and what webhooks and the API server fill in below lists.
knownTypeFields: where a job contains pods, so that `1000m` and `1` are equal.
"""
_APPLICATION_SET = """\
An Application for each namespace below rendered/<env>/, in the cluster with the name of the environment.
Never use Force or Replace: they restart running jobs. No selfHeal: it reruns a job that was cleaned up.
A job that is removed from Git is stopped; `argocd.argoproj.io/sync-options: Prune=false` on the job lets it finish.
If a folder is removed from Git, its Application is deleted and its jobs keep running.
"""
_OWN = "What the Applications of a team can deploy, and where. Apply it before the ApplicationSet."
_SHARED = "Namespaces of several teams, or of none; any of these teams can deploy to them."
_PATHS = """\
An Application that runs jobgen as a plugin instead must refresh when any input of its environment changes:
"""
_FLUX = """\
The jobs of {whose}.
wait: if true, this is ready when all jobs have finished, and fails if `timeout` passes before; print it with
`jobgen gitops flux --wait 72h`. healthCheckExprs are evaluated only then, or by `healthChecks`.
No postBuild: it would replace `${{RANK}}` in a command, and fail on an unknown variable.
prune: a job that is removed from Git is stopped. deletionPolicy: if this Kustomization is deleted, jobs keep running.
ignore: what Kueue writes into queued jobs; it needs Flux 2.9.
Annotations for the jobs themselves, from a patch in an overlay:
  kustomize.toolkit.fluxcd.io/ssa: IfNotPresent     # created once, never changed while it runs
  kustomize.toolkit.fluxcd.io/prune: disabled       # keeps running when it is removed from Git
  kustomize.toolkit.fluxcd.io/substitute: disabled  # keeps `${{RANK}}` if there is a postBuild
"""
_FLUX_SHORT = "The jobs of {whose}.\n"
_ACCOUNT = """\
Flux applies the objects of {whose} with this account, so the API server refuses what its team
may not have. Start kustomize-controller with `--no-cross-namespace-refs` and `--default-service-account`.
"""


@click.group("gitops")
def command() -> None:
    """Print configuration for Argo CD and Flux."""


@command.command("argocd")
@env_option
@click.option("--only", type=click.Choice([*CONFIG_PARTS, "projects", "appset", "paths"]), help="Print one part.")
@click.option("--repo", "repository", default="https://git.example.com/jobs.git", metavar="URL", show_default=True)
@click.option("--revision", default="main", metavar="REV", show_default=True, shell_complete=complete_revisions)
@click.pass_obj
def _argocd_command(directory: Path, envs: tuple[str, ...], only: str | None, repository: str, revision: str) -> Result:
    """Print settings for Argo CD, and AppProjects and an ApplicationSet for the rendered tree."""
    return argocd(find_repository(directory), envs, only, repository, revision)


@command.command("flux")
@env_option
@click.option("--source", default="jobs", metavar="NAME", show_default=True, help="The GitRepository to read.")
@click.option("--wait", default="", metavar="DURATION", help="Wait for the jobs to finish, at most this long.")
@click.pass_obj
def _flux_command(directory: Path, envs: tuple[str, ...], source: str, wait: str) -> Result:
    """Print a Flux Kustomization for each environment of the rendered tree."""
    return flux(find_repository(directory), envs, source, wait)


def argocd(
    root: Path,
    envs: Sequence[str],
    only: str | None,
    repository: str,
    revision: str,
    prefix: tuple[str, ...] | None = None,
) -> Result:
    """Return settings, AppProjects, an ApplicationSet and annotations for Argo CD: all, or one part.

    `prefix` is the path of the jobs repository in the Git repository, if that does not exist yet.
    """
    project = config.load_own(root)
    chosen = _select_environments(project, envs)
    if isinstance(chosen, Result):
        return chosen
    folders = _prefix(root) if prefix is None else prefix
    place = GitSource(repository, revision, folders, bool(project.runtimes), bool(project.teams.all))
    # The files that the plugin renders each environment from.
    layers = {env: tuple(sorted(list_ancestors(env, project.overlays))) for env in chosen}
    inputs = {env: ";".join(place.input_paths(overlays)) for env, overlays in layers.items()}
    if only == "paths":
        found = (
            _commented(f"For {_named(env)}.\n", {"metadata": {"annotations": {GENERATE_PATHS: paths}}})
            for env, paths in inputs.items()
        )
        return Result(ExitCode.OK, "---\n".join(found))
    parts = [part for part in CONFIG_PARTS if only in (None, part)]
    documents: list[str] = []
    projects = list_projects(project.teams, chosen)
    if only == "projects" and not projects:
        return error_result(ExitCode.NOTHING_TO_DO, "there are no teams; write `teams/<name>.yaml`")
    if parts:
        documents.append(_commented(_CONFIG_MAP, build_config_map(list_engine_kinds(project.kinds), parts)))
    if only in (None, "projects"):
        for each in projects:
            whose = _SHARED if each.name == resource_name("") else _OWN
            documents.append(_commented(whose, build_project(each, project.teams, place)))
    if only in (None, "appset"):
        documents.append(_commented(_APPLICATION_SET, build_application_set(place, chosen, projects)))
    lines = [f"  {env + ': ' if env else ''}{GENERATE_PATHS}: {paths}\n" for env, paths in inputs.items()]
    comment = "" if only else _comment(_PATHS + "".join(lines))
    return Result(ExitCode.OK, "---\n".join(documents) + comment)


def flux(root: Path, envs: Sequence[str], source: str, wait: str, prefix: tuple[str, ...] | None = None) -> Result:
    """Return a Kustomization for every environment; `prefix` as for `argocd`."""
    if wait and not _DURATION.fullmatch(wait):
        return error_result(ExitCode.USAGE, f"`{wait}` is not a duration; write `30m` or `72h`")
    project = config.load_own(root)
    chosen = _select_environments(project, envs)
    if isinstance(chosen, Result):
        return chosen
    kinds, place = list_engine_kinds(project.kinds), GitSource("", "", _prefix(root) if prefix is None else prefix)
    if project.teams.all:
        return _print_teams(project, kinds, place, chosen, source, wait)
    documents = [
        _commented(_FLUX.format(whose=_named(env)), build_kustomization(kinds, place, env, source, wait))
        for env in chosen
    ]
    return Result(ExitCode.OK, "---\n".join(documents))


def _print_teams(
    project: ProjectConfig, kinds: Sequence[EngineKind], place: GitSource, envs: Sequence[str], source: str, wait: str
) -> Result:
    """Return an account for each team, and a Kustomization for each namespace that has objects."""
    result = render_jobs(project, envs)
    rendered: dict[str, set[str]] = {env: set() for env in envs}
    for made in result.objects:
        # The tree has objects without a namespace in the folder `default`.
        rendered[made.env].add(made.identity.namespace or "default")
    if result.failed:
        return error_result(ExitCode.ERRORS, "nothing was printed", format_findings(result.findings))
    documents: list[str] = []
    about = _FLUX
    for env, accounts in list_accounts(list_projects(project.teams, envs), project.teams, rendered).items():
        for account in accounts:
            whose = f"`{account.name}` in {_named(env)}"
            first, *others = account.build()
            documents += [_commented(_ACCOUNT.format(whose=whose), first), *map(to_yaml, others)]
            for namespace in account.namespaces:
                own = build_kustomization(kinds, place, env, source, wait, namespace=namespace, account=account.name)
                text = about.format(whose=f"namespace `{namespace}` in {_named(env)}")
                documents.append(_commented(text, own))
                about = _FLUX_SHORT
    return Result(ExitCode.OK, "---\n".join(documents))


def _select_environments(project: ProjectConfig, envs: Sequence[str]) -> list[str] | Result:
    """Return the environments, or an error if kinds or overlays have errors."""
    try:
        chosen = select_environments(project, envs)
    except JobgenError as error:
        return to_result(error)
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        return error_result(ExitCode.ERRORS, "nothing was printed", format_findings(project.findings))
    return chosen


def _prefix(root: Path) -> tuple[str, ...]:
    """Return the folders between the top of the Git repository and the jobs repository."""
    try:
        return PurePosixPath(git.find_prefix(root)).parts
    except git.GitError:
        return ()


def _named(env: str) -> str:
    return f"environment `{env}`" if env else "the only environment"


def _commented(comment: str, document: Mapping[str, Plain]) -> str:
    return _comment(comment) + to_yaml(document)


def _comment(lines: str) -> str:
    return "".join(f"# {line}\n" for line in lines.splitlines())
