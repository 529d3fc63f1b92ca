"""`jobgen gitops`: what Argo CD and Flux need to know about training jobs, printed for whoever runs them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jobgen.api.errors import JobgenError
from jobgen.api.project import find_repository, select_environments
from jobgen.cli.options import env_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.gitops.argocd import (
    CONFIG_PARTS,
    GENERATE_PATHS,
    build_application_set,
    build_config_map,
    build_path_annotation,
)
from jobgen.gitops.flux import build_kustomization
from jobgen.gitops.inputs import GitSource, group_kinds
from jobgen.model.data import Data
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.repo import git
from jobgen.report.summary import format_findings
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.write import to_yaml

_DURATION = lazy_pattern(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_CONFIG_MAP = """\
A part of argocd-cm. Lay it over what is there: `kubectl apply --server-side -f FILE`.
health: without a check, Argo CD takes a job for done as soon as it exists.
ignoreDifferences: what Kueue writes into the jobs that it holds; it needs RespectIgnoreDifferences=true.
knownTypeFields: where pods are in a job, so that `1000m` and `1` are no difference.
"""
_APPLICATION_SET = """\
An Application for each namespace below rendered/<env>/, in the cluster that Argo CD knows by the environment's name.
Never Force or Replace: they restart running jobs. No selfHeal: it reruns a job that was cleaned up.
A job that leaves Git is stopped, last of all; `argocd.argoproj.io/sync-options: Prune=false` on it lets it end.
A folder that leaves Git takes its Application along, and leaves the jobs alone.
"""
_PATHS = """\
An Application that runs jobgen as a plugin instead needs to hear of all that its environment is made from:
"""
_FLUX = """\
The jobs of {whose}.
wait: if true, this is ready when all jobs have ended, and has failed when `timeout` is over before; print it so with
`jobgen gitops flux --wait 72h`. healthCheckExprs are asked only then, or by `healthChecks`.
No postBuild: it would replace `${{RANK}}` in a command, and fail on a variable that it does not know.
prune: a job that leaves Git is stopped. deletionPolicy: when this Kustomization goes, jobs run on.
ignore: what Kueue writes into the jobs that it holds; it needs Flux 2.9.
Annotations for the jobs themselves, from a patch in an overlay:
  kustomize.toolkit.fluxcd.io/ssa: IfNotPresent     # made once, never changed while it runs
  kustomize.toolkit.fluxcd.io/prune: disabled       # runs on when it leaves Git
  kustomize.toolkit.fluxcd.io/substitute: disabled  # keeps `${{RANK}}` as it is, should there be a postBuild
"""


@click.group("gitops")
def command() -> None:
    """Print configuration for Argo CD and Flux."""


@command.command("argocd")
@env_option
@click.option("--only", type=click.Choice([*CONFIG_PARTS, "appset", "paths"]), help="Print one part.")
@click.option("--repo", "repository", default="https://git.example.com/jobs.git", metavar="URL", show_default=True)
@click.option("--revision", default="main", metavar="REV", show_default=True)
@click.pass_obj
def _argocd_command(directory: Path, envs: tuple[str, ...], only: str | None, repository: str, revision: str) -> Result:
    """Print settings for Argo CD, and an ApplicationSet for the rendered tree."""
    return argocd(find_repository(directory), envs, only, repository, revision)


@command.command("flux")
@env_option
@click.option("--source", default="jobs", metavar="NAME", show_default=True, help="The GitRepository to read.")
@click.option("--wait", default="", metavar="DURATION", help="Wait for the jobs to finish, at most this long.")
@click.pass_obj
def _flux_command(directory: Path, envs: tuple[str, ...], source: str, wait: str) -> Result:
    """Print a Flux Kustomization for each environment of the rendered tree."""
    return flux(find_repository(directory), envs, source, wait)


def argocd(root: Path, envs: Sequence[str], only: str | None, repository: str, revision: str) -> Result:
    """Settings, an ApplicationSet and annotations for Argo CD: all, or one part."""
    project = config.load(root)
    chosen = _chosen(project, envs)
    if isinstance(chosen, Result):
        return chosen
    place = GitSource(repository, revision, _prefix(root))
    if only == "paths":
        found = (_commented(f"For {_named(env)}.\n", _paths(project, place, env)) for env in chosen)
        return Result(ExitCode.OK, "---\n".join(found))
    parts = [part for part in CONFIG_PARTS if only in (None, part)]
    documents: list[str] = []
    if parts:
        documents.append(_commented(_CONFIG_MAP, build_config_map(group_kinds(project.kinds), parts)))
    if only in (None, "appset"):
        documents.append(_commented(_APPLICATION_SET, build_application_set(place, chosen)))
    told = "" if only else _comment(_PATHS + "".join(_told(project, place, env) for env in chosen))
    return Result(ExitCode.OK, "---\n".join(documents) + told)


def flux(root: Path, envs: Sequence[str], source: str, wait: str) -> Result:
    """A Kustomization for every environment."""
    if wait and not _DURATION.fullmatch(wait):
        return error_result(ExitCode.USAGE, f"`{wait}` is not a duration; write `30m` or `72h`")
    project = config.load(root)
    chosen = _chosen(project, envs)
    if isinstance(chosen, Result):
        return chosen
    kinds, place = group_kinds(project.kinds), GitSource("", "", _prefix(root))
    documents = [
        _commented(_FLUX.format(whose=_named(env)), build_kustomization(kinds, place, env, source, wait))
        for env in chosen
    ]
    return Result(ExitCode.OK, "---\n".join(documents))


def _chosen(project: ProjectConfig, envs: Sequence[str]) -> list[str] | Result:
    """The environments, if nothing is wrong with the kinds and overlays."""
    try:
        chosen = select_environments(project, envs)
    except JobgenError as error:
        return to_result(error)
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        return error_result(ExitCode.ERRORS, "nothing was printed", format_findings(project.findings))
    return chosen


def _prefix(root: Path) -> tuple[str, ...]:
    """The folders between the top of the Git repository and its jobs; none outside of Git."""
    top = git.find_work_tree(root)
    return root.resolve().relative_to(top.resolve()).parts if top else ()


def _paths(project: ProjectConfig, place: GitSource, env: str) -> Data:
    overlays = tuple(sorted(list_ancestors(env, project.overlays)))
    return {"metadata": {"annotations": build_path_annotation(place, overlays)}}


def _told(project: ProjectConfig, place: GitSource, env: str) -> str:
    annotations = _paths(project, place, env)["metadata"]["annotations"]
    return f"  {env + ': ' if env else ''}{GENERATE_PATHS}: {annotations[GENERATE_PATHS]}\n"


def _named(env: str) -> str:
    return f"environment `{env}`" if env else "the only environment"


def _commented(comment: str, document: Data) -> str:
    return _comment(comment) + to_yaml(document)


def _comment(lines: str) -> str:
    return "".join(f"# {line}\n" for line in lines.splitlines())
