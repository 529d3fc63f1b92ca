"""`jobgen cmp`: a config management plugin of Argo CD, run by argocd-cmp-server in a sidecar.

Its only input is the working folder and the ARGOCD_* variables. Error messages contain locations and names of rules but
no values, because Argo CD logs, stores and displays them.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

import click

from jobgen.api.render import join_objects, list_findings, sort_objects, to_rendered_object
from jobgen.check.rule_docs import all_rule_docs
from jobgen.cli.options import enforce_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.features.gitops import cmp
from jobgen.features.gitops.documents import GENERATE_PATHS
from jobgen.model.finding import Finding, Severity
from jobgen.rendering import config
from jobgen.rendering.render_task import RenderTask, render_jobs
from jobgen.repo import layout
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS, has_settings
from jobgen.reports.escape import dump_json, visible
from jobgen.yamlio.write import to_yaml

_MAX_SHOWN = 5
"""Findings that fit into the message of an Application."""
_DETAILS = "nothing was generated; run `jobgen lint` for details"


@click.group("cmp")
def command() -> None:
    """Run as an Argo CD config management plugin."""


@command.command("generate")
@enforce_option(default=True, show_default=True)
@click.pass_obj
def _generate_command(directory: Path, *, enforce: bool) -> Result:
    """Print the manifests of the Application that ARGOCD_* variables describe."""
    return _run_in_time(lambda: generate(directory, os.environ, enforce=enforce))


@command.command("parameters")
@click.pass_obj
def _parameters_command(directory: Path) -> Result:
    """Print the parameters of an Application, as JSON."""
    return _run_in_time(lambda: announce_parameters(directory, os.environ))


_AGAIN_SECONDS = 2.0
"""When the time is up once more, for code that ignored it."""


class _EndedError(BaseException):
    """A signal ended the command; the text is the reason. It is no Exception, so that no rule is blamed for it."""


def _run_in_time(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, or an error if it takes too long or a signal ends it; never partial output."""
    seconds = cmp.read_deadline(os.environ)

    def end(number: int, frame: FrameType | None) -> None:
        late = number == signal.SIGALRM
        if late:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        if late and os.getpgrp() == os.getpid():
            # End forked children, too.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(0, signal.SIGTERM)
        raise _EndedError(f"not finished after {seconds:g} seconds" if late else "ended by a signal")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with open(os.devnull, "w") as nowhere:
        # A thread of C ends the process if compiled code does not return, so that no handler of Python runs.
        faulthandler.dump_traceback_later(seconds + 2 * _AGAIN_SECONDS, exit=True, file=nowhere)
        try:
            return work()
        except _EndedError as reason:
            return error_result(ExitCode.INTERNAL_ERROR, f"{reason}; nothing was generated")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def generate(folder: Path, environ: Mapping[str, str], *, enforce: bool = True) -> Result:
    """Return the manifests of an Application; without any this is an error, because Argo CD would delete everything.

    With `enforce`, what limits of teams, mandatory rules or policies forbid is an error, too.
    """
    try:
        parameters = cmp.parse_parameters(environ)
        scope = _find_scope(folder, environ, parameters)
        return scope if isinstance(scope, Result) else _generate(scope, environ, enforce=enforce)
    except cmp.UnknownJobError as error:
        return error_result(ExitCode.NOTHING_TO_DO, str(error))
    except cmp.ParametersError as error:
        return error_result(ExitCode.USAGE, str(error))


def _generate(scope: cmp.ApplicationScope, environ: Mapping[str, str], *, enforce: bool) -> Result:
    wanted = scope.list_wanted()
    task = RenderTask(to_yaml, deployable=True)
    result = render_jobs(scope.project, [scope.env], lambda name: wanted is None or name in wanted, task)
    rendered = (to_rendered_object(made, "yaml") for made in sort_objects(result))
    objects = [one for one in rendered if scope.includes(one.location.file)]
    # Those about the jobs of the Application, or about something that all jobs share.
    errors = [
        found
        for found in list_findings(result)
        if found.severity is Severity.ERROR
        and (scope.includes(found.location.file) or not found.location.file.startswith("jobs/"))
    ]
    if errors:
        return error_result(ExitCode.ERRORS, _DETAILS, _format_briefly(errors))
    if not objects:
        message = f"there is no job{scope.describe()}; an empty result would delete everything"
        return error_result(ExitCode.NOTHING_TO_DO, message)
    cmp.check_destination(scope, environ.get("ARGOCD_APP_NAMESPACE", ""), {one.identity.namespace for one in objects})
    if enforce:
        # Imported late: without it, nothing is checked.
        from jobgen.api.enforce import find_refused

        refused = find_refused(scope.project, [scope.env], {one.location.file for one in objects})
        if refused:
            return error_result(ExitCode.ERRORS, _DETAILS, _format_briefly(refused))
    # The list of a cluster has entries `group/version` and `group/version/Kind`; without kinds it proves nothing.
    listed = [entry.strip() for entry in environ.get("KUBE_API_VERSIONS", "").split(",")]
    served = {entry for entry in listed if entry.rpartition("/")[2][:1].isupper()}
    kinds = {(one.identity.api_version, one.identity.kind): one for one in reversed(objects)}
    missing = [
        visible(f"{first.location}: the cluster does not serve {api_version} {kind}") + "\n"
        for (api_version, kind), first in sorted(kinds.items())
        if served and f"{api_version}/{kind}" not in served
    ]
    # A definition in the same output may add the kind.
    if missing and not any(kind == "CustomResourceDefinition" for _, kind in kinds):
        return error_result(ExitCode.ERRORS, "nothing was generated", "".join(missing))
    return Result(ExitCode.OK, join_objects(objects))


def announce_parameters(folder: Path, environ: Mapping[str, str]) -> Result:
    """Return the parameters of an Application, with the environments and teams of its repository."""
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load_own(root)
    known = [env for env in project.environments() if env in project.overlays]
    inside = folder.resolve().relative_to(root).parts
    selected = inside[1] if inside[:1] == ("overlays",) and len(inside) > 1 else known[0] if len(known) == 1 else ""
    teams = [team.name for team in project.teams.all]
    return Result(ExitCode.OK, dump_json(cmp.describe_parameters(known, teams, selected)) + "\n")


def _find_scope(
    folder: Path, environ: Mapping[str, str], parameters: cmp.PluginParameters
) -> cmp.ApplicationScope | Result:
    root = _find_root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load_own(root)
    # Parameters cannot be checked against files with errors.
    for checked in (SETTINGS, "teams/") if parameters.team else (SETTINGS,):
        if any(finding.location.file.startswith(checked) for finding in project.findings):
            # Read again with locations, which are part of the message.
            traced = config.load(layout.own_layers(root), traced=True).findings
            errors = [found for found in traced if found.location.file.startswith(checked)]
            return error_result(ExitCode.USAGE, f"{checked} has errors", _format_briefly(errors))
    return cmp.find_scope(project, folder.resolve().relative_to(root).parts, parameters)


def _find_root(folder: Path, environ: Mapping[str, str]) -> Path | Result:
    """Return the jobs repository around the folder of the Application, within the files that Argo CD sent."""
    here = folder.resolve()
    marked = [one for one in cmp.root_candidates(here, environ) if has_settings(one)]
    # Settings that a team writes into its own folder must not replace those of the repository.
    around = [one for one in marked if here != one and here.relative_to(one).parts[0] in SOURCE_FOLDERS]
    if marked or (here / "jobs").is_dir() or (here / "overlays").is_dir():
        return next(iter((*around[-1:], *marked, here)))
    source = environ.get("ARGOCD_APP_SOURCE_PATH", ".")
    message = f"there is no {SETTINGS} at or above `{source}` in the files that Argo CD sent"
    return error_result(
        ExitCode.USAGE, f"{message}; if {GENERATE_PATHS} is set, add /{SETTINGS}, /jobs and /overlays to it"
    )


def _format_briefly(findings: Sequence[Finding]) -> str:
    docs = all_rule_docs()
    lines: list[str] = []
    for found in findings[:_MAX_SHOWN]:
        summary = docs[found.rule].summary.rstrip(".") if found.rule in docs else ""
        lines.append(f"{found.location}: {found.rule}" + (f" ({summary})" if summary else ""))
    more = [f"… and {len(findings) - _MAX_SHOWN} more"] if len(findings) > _MAX_SHOWN else []
    return "".join(f"{visible(line)}\n" for line in (*lines, *more))
