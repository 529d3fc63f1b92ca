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

import click

from jobgen.api.render import RenderedObject, join_objects, sort_objects, to_rendered_object
from jobgen.check.rule_docs import all_rule_docs
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.features.gitops.cmp import (
    ApplicationScope,
    ParametersError,
    PluginParameters,
    UnknownJobError,
    check_destination,
    describe_parameters,
    find_scope,
    lacks_kind,
    parse_parameters,
    read_deadline,
    root_candidates,
)
from jobgen.features.gitops.flux import GENERATE_PATHS
from jobgen.model.finding import Finding, Severity
from jobgen.rendering import config
from jobgen.rendering.run import Run
from jobgen.repo.root import SETTINGS, has_settings
from jobgen.reports.escape import dump_json, visible
from jobgen.yamlio.write import to_yaml

_MAX_SHOWN = 5
"""Findings that fit into the message of an Application."""


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
        scope = _find_scope(folder, environ, parameters)
        return scope if isinstance(scope, Result) else _generate(scope, environ)
    except UnknownJobError as error:
        return error_result(ExitCode.NOTHING_TO_DO, str(error))
    except ParametersError as error:
        return error_result(ExitCode.USAGE, str(error))


def _generate(scope: ApplicationScope, environ: Mapping[str, str]) -> Result:
    wanted = scope.list_wanted()
    run = Run(scope.project, [scope.env], lambda name: wanted is None or name in wanted, to_yaml, deployable=True)
    rendered = (to_rendered_object(made, "yaml") for made in sort_objects(run))
    objects = [one for one in rendered if scope.includes(one.location.file)]
    errors = [found for found in run.findings if found.severity is Severity.ERROR and _is_relevant(found, scope)]
    if errors:
        return error_result(
            ExitCode.ERRORS, "nothing was generated; run `jobgen lint` for details", _format_briefly(errors)
        )
    if not objects:
        message = f"there is no job{scope.describe()}; an empty result would delete everything"
        return error_result(ExitCode.NOTHING_TO_DO, message)
    check_destination(scope, environ.get("ARGOCD_APP_NAMESPACE", ""), {one.identity.namespace for one in objects})
    missing = list(_find_missing_kinds(objects, environ))
    if missing:
        return error_result(ExitCode.ERRORS, "nothing was generated", "".join(missing))
    return Result(ExitCode.OK, join_objects(objects))


def announce_parameters(folder: Path, environ: Mapping[str, str]) -> Result:
    """Return the parameters of an Application, with the environments and teams of its repository."""
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load(root)
    known = [env for env in project.environments() if env in project.overlays]
    inside = folder.resolve().relative_to(root).parts
    selected = inside[1] if inside[:1] == ("overlays",) and len(inside) > 1 else known[0] if len(known) == 1 else ""
    teams = [team.name for team in project.teams.all]
    return Result(ExitCode.OK, dump_json(describe_parameters(known, teams, selected)) + "\n")


def _find_scope(folder: Path, environ: Mapping[str, str], parameters: PluginParameters) -> ApplicationScope | Result:
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load(root)
    # Parameters cannot be checked against files with errors.
    for checked in (SETTINGS, "teams/") if parameters.team else (SETTINGS,):
        if any(finding.location.file.startswith(checked) for finding in project.findings):
            # Read again with locations, which are part of the message.
            traced = config.load(root, traced=True).findings
            errors = [found for found in traced if found.location.file.startswith(checked)]
            return error_result(ExitCode.USAGE, f"{checked} has errors", _format_briefly(errors))
    return find_scope(project, folder.resolve().relative_to(root).parts, parameters)


def _find_root(folder: Path, environ: Mapping[str, str]) -> Path | Result:
    """Return the jobs repository around the folder of the Application, within the files that Argo CD sent."""
    here = folder.resolve()
    marked = next((one for one in root_candidates(here, environ) if has_settings(one)), None)
    if marked or (here / "jobs").is_dir() or (here / "overlays").is_dir():
        return marked or here
    source = environ.get("ARGOCD_APP_SOURCE_PATH", ".")
    message = f"there is no {SETTINGS} at or above `{source}` in the files that Argo CD sent"
    return error_result(
        ExitCode.USAGE, f"{message}; if {GENERATE_PATHS} is set, add /{SETTINGS}, /jobs and /overlays to it"
    )


def _is_relevant(finding: Finding, scope: ApplicationScope) -> bool:
    """Return True if a finding is about the jobs of the Application, or about something that all jobs share."""
    return scope.includes(finding.location.file) or not finding.location.file.startswith("jobs/")


def _format_briefly(findings: Sequence[Finding]) -> str:
    docs = all_rule_docs()
    lines = [f"{found.location}: {found.rule}{_summary(docs, found.rule)}" for found in findings[:_MAX_SHOWN]]
    more = [f"… and {len(findings) - _MAX_SHOWN} more"] if len(findings) > _MAX_SHOWN else []
    return "".join(f"{visible(line)}\n" for line in (*lines, *more))


def _summary(docs: Mapping[str, object], rule: str) -> str:
    summary = getattr(docs.get(rule), "summary", "")
    return f" ({summary.rstrip('.')})" if summary else ""


def _find_missing_kinds(objects: Sequence[RenderedObject], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each kind that the cluster does not serve."""
    kinds = {(one.identity.api_version, one.identity.kind): one for one in reversed(objects)}
    # A definition in the same output may add the kind.
    if any(kind == "CustomResourceDefinition" for _, kind in kinds):
        return
    for (api_version, kind), first in sorted(kinds.items()):
        if lacks_kind(environ.get("KUBE_API_VERSIONS", ""), api_version, kind):
            yield visible(f"{first.location}: the cluster does not serve {api_version} {kind}") + "\n"
