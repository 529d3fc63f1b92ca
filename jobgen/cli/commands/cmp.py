"""`jobgen cmp`: a config management plugin of Argo CD, run by argocd-cmp-server in a sidecar.

Its only input is the working folder and the ARGOCD_* variables. Error messages contain locations and names of rules but
no values, because Argo CD logs, stores and displays them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import click

from jobgen.api.render import RenderedObject, join_objects, matcher, sort_objects, to_rendered_object
from jobgen.check.rule_docs import all_rule_docs
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.gitops.cmp import (
    ParametersError,
    PluginParameters,
    describe_parameters,
    lacks_kind,
    parse_parameters,
    read_deadline,
    root_candidates,
)
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.run import Run
from jobgen.repo.root import SETTINGS, has_settings
from jobgen.report.escape import dump_json, visible
from jobgen.yamlio.write import to_yaml

_MAX_SHOWN = 5
"""Findings that fit into the message of an Application."""
_PATHS = "argocd.argoproj.io/manifest-generate-paths"


class ApplicationScope(NamedTuple):
    """The source of an Application: a repository, one environment, and the folder of its jobs."""

    project: ProjectConfig
    env: str
    folder: str
    """`jobs/` or a folder in it, with a slash at the end."""


@click.group("cmp")
def command() -> None:
    """Run as a config management plugin of Argo CD."""


@command.command("generate")
@click.pass_obj
def _generate_command(directory: Path) -> Result:
    """Print the manifests of the Application that ARGOCD_* variables describe."""
    return _run_in_time(lambda: generate(directory, os.environ))


@command.command("parameters")
@click.pass_obj
def _parameters_command(directory: Path) -> Result:
    """Print the parameters of an Application, as JSON."""
    return _run_in_time(lambda: announce_parameters(directory, os.environ))


class _EndedError(Exception):
    """A signal ended the command; the text is the reason."""


def _run_in_time(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, or an error if it takes too long or a signal ends it; never partial output."""
    seconds = read_deadline(os.environ)

    def end(number: int, frame: FrameType | None) -> None:
        late = number == signal.SIGALRM
        if late and os.getpgrp() == os.getpid():
            # End forked children, too.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(0, signal.SIGTERM)
        raise _EndedError(f"not finished after {seconds:g} seconds" if late else "ended by a signal")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    except _EndedError as reason:
        return error_result(ExitCode.INTERNAL_ERROR, f"{reason}; nothing was generated")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def generate(folder: Path, environ: Mapping[str, str]) -> Result:
    """Return the manifests of an Application; without any this is an error, because Argo CD would delete everything."""
    try:
        parameters = parse_parameters(environ)
    except ParametersError as error:
        return error_result(ExitCode.USAGE, str(error))
    scope = _find_scope(folder, environ, parameters)
    if isinstance(scope, Result):
        return scope
    run = Run(scope.project, [scope.env], matcher(parameters.jobs), to_yaml, deployable=True)
    rendered = (to_rendered_object(made, "yaml") for made in sort_objects(run))
    objects = [one for one in rendered if one.location.file.startswith(scope.folder)]
    errors = [found for found in run.findings if found.severity is Severity.ERROR and _is_relevant(found, scope)]
    if errors:
        return error_result(
            ExitCode.ERRORS, "nothing was generated; run `jobgen lint` for details", _format_briefly(errors)
        )
    if not objects:
        return error_result(ExitCode.NOTHING_TO_DO, _explain_nothing(scope, parameters))
    missing = list(_find_missing_kinds(objects, environ))
    if missing:
        return error_result(ExitCode.ERRORS, "nothing was generated", "".join(missing))
    return Result(ExitCode.OK, join_objects(objects))


def announce_parameters(folder: Path, environ: Mapping[str, str]) -> Result:
    """Return the parameters of an Application, with the environments of its repository."""
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load(root)
    known = project.environments() if not project.findings else sorted(project.overlays)
    return Result(ExitCode.OK, dump_json(describe_parameters([env for env in known if env])) + "\n")


def _find_scope(folder: Path, environ: Mapping[str, str], parameters: PluginParameters) -> ApplicationScope | Result:
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    inside = folder.resolve().relative_to(root).parts
    if inside and inside[0] != "jobs" and not (inside[0] == "overlays" and len(inside) == 2):
        path = "/".join(inside)
        message = f"`{path}` must be the root of the repository, a folder in jobs/, or overlays/<env>"
        return error_result(ExitCode.USAGE, message)
    project = config.load(root)
    if any(finding.location.file == SETTINGS for finding in project.findings):
        # Read again with locations, which are part of the message.
        errors = [found for found in config.load(root, traced=True).findings if found.location.file == SETTINGS]
        return error_result(ExitCode.USAGE, f"{SETTINGS} has errors", _format_briefly(errors))
    env = _select_environment(project, parameters.env or (inside[1] if inside[:1] == ("overlays",) else ""))
    if isinstance(env, Result):
        return env
    below = "/".join(inside) if inside[:1] == ("jobs",) else "jobs"
    return ApplicationScope(project, env, f"{below}/")


def _find_root(folder: Path, environ: Mapping[str, str]) -> Path | Result:
    """Return the jobs repository around the folder of the Application, within the files that Argo CD sent."""
    here = folder.resolve()
    marked = next((one for one in root_candidates(here, environ) if has_settings(one)), None)
    if marked or (here / "jobs").is_dir() or (here / "overlays").is_dir():
        return marked or here
    source = environ.get("ARGOCD_APP_SOURCE_PATH", ".")
    message = f"there is no {SETTINGS} at or above `{source}` in the files that Argo CD sent"
    return error_result(ExitCode.USAGE, f"{message}; if {_PATHS} is set, add /{SETTINGS}, /jobs and /overlays to it")


def _select_environment(project: ProjectConfig, named: str) -> str | Result:
    known = sorted(project.overlays)
    if named and named in known:
        return named
    if named:
        hint = did_you_mean(named, known) or (f"; does {_PATHS} include /overlays?" if not known else "")
        return error_result(
            ExitCode.USAGE, f"there is no environment `{named}`{hint} (known: {', '.join(known) or 'none'})"
        )
    default = project.environments()
    if len(default) == 1:
        return default[0]
    return error_result(ExitCode.USAGE, f"set the parameter `env` to one environment (known: {', '.join(known)})")


def _is_relevant(finding: Finding, scope: ApplicationScope) -> bool:
    """Whether a finding is about the jobs of the Application, or about something that all jobs share."""
    return finding.location.file.startswith(scope.folder) or not finding.location.file.startswith("jobs/")


def _format_briefly(findings: Sequence[Finding]) -> str:
    docs = all_rule_docs()
    lines = [f"{found.location}: {found.rule}{_summary(docs, found.rule)}" for found in findings[:_MAX_SHOWN]]
    more = [f"… and {len(findings) - _MAX_SHOWN} more"] if len(findings) > _MAX_SHOWN else []
    return "".join(f"{visible(line)}\n" for line in (*lines, *more))


def _summary(docs: Mapping[str, object], rule: str) -> str:
    summary = getattr(docs.get(rule), "summary", "")
    return f" ({summary.rstrip('.')})" if summary else ""


def _explain_nothing(scope: ApplicationScope, parameters: PluginParameters) -> str:
    within = f" in {scope.env}" if scope.env else ""
    matching = f" that matches {len(parameters.jobs)} patterns" if parameters.jobs else ""
    return f"there is no job{matching} below {scope.folder}{within}; an empty result would delete everything"


def _find_missing_kinds(objects: Sequence[RenderedObject], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each kind that the cluster does not serve."""
    kinds = {(one.identity.api_version, one.identity.kind): one for one in reversed(objects)}
    # A definition in the same output may add the kind.
    if any(kind == "CustomResourceDefinition" for _, kind in kinds):
        return
    for (api_version, kind), first in sorted(kinds.items()):
        if lacks_kind(environ.get("KUBE_API_VERSIONS", ""), api_version, kind):
            yield visible(f"{first.location}: the cluster does not serve {api_version} {kind}") + "\n"
