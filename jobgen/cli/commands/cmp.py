"""`jobgen cmp`: a config management plugin of Argo CD, run by argocd-cmp-server in a sidecar.

It knows where it is from its working folder and the ARGOCD_* variables alone. What goes wrong is told in a few lines
that hold places and names of rules, and no values: Argo CD logs them, keeps them and shows them to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.check.rule_docs import documented
from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.cli.commands.render import Text, matcher, stream, texts_of
from jobgen.gitops.cmp import (
    ParametersError,
    PluginParameters,
    describe_parameters,
    lacks_kind,
    parse_parameters,
    root_candidates,
)
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.run import Run
from jobgen.repo.layout import SETTINGS
from jobgen.report.escape import dump_json, visible
from jobgen.yamlio.write import to_yaml

_SHOWN = 5
"""So many findings fit into the message of an Application."""
_PATHS = "argocd.argoproj.io/manifest-generate-paths"


class _Scope(NamedTuple):
    """What an Application is made of: a repository, one environment, and the folder of its jobs."""

    project: ProjectConfig
    env: str
    below: str
    """`jobs/` or a folder in it, with a slash at the end."""


def generate(folder: Path, environ: Mapping[str, str]) -> Result:
    """Print the manifests of an Application; never nothing, for Argo CD would take that for an order to delete all."""
    try:
        asked = parse_parameters(environ)
    except ParametersError as wrong:
        return error_result(ExitCode.USAGE, str(wrong))
    scope = _scope(folder, environ, asked)
    if isinstance(scope, Result):
        return scope
    run = Run(scope.project, [scope.env], matcher(asked.jobs), to_yaml)
    texts = [one for one in texts_of(run, "yaml") if one.location.file.startswith(scope.below)]
    errors = [found for found in run.findings if found.severity is Severity.ERROR and _concerns(found, scope)]
    if errors:
        return error_result(ExitCode.ERRORS, "nothing was generated; `jobgen lint` says more", _briefly(errors))
    if not texts:
        return error_result(ExitCode.NOTHING_TO_DO, _nothing(scope, asked))
    lacking = list(_lacking(texts, environ))
    if lacking:
        return error_result(ExitCode.ERRORS, "nothing was generated", "".join(lacking))
    return Result(ExitCode.OK, stream(texts, "yaml"))


def parameters(folder: Path, environ: Mapping[str, str]) -> Result:
    """Print the parameters that an Application may have, with the environments of its repository."""
    root = _root(folder, environ)
    if isinstance(root, Result):
        return root
    project = config.load(root)
    known = project.environments() if not project.findings else sorted(project.overlays)
    return Result(ExitCode.OK, dump_json(describe_parameters([env for env in known if env])) + "\n")


def _scope(folder: Path, environ: Mapping[str, str], asked: PluginParameters) -> _Scope | Result:
    root = _root(folder, environ)
    if isinstance(root, Result):
        return root
    inside = folder.resolve().relative_to(root).parts
    if inside and inside[0] != "jobs" and not (inside[0] == "overlays" and len(inside) == 2):
        where = "/".join(inside)
        return error_result(
            ExitCode.USAGE, f"`{where}` is neither the root, nor in jobs/, nor an environment: overlays/<env>"
        )
    project = config.load(root)
    if any(finding.location.file == SETTINGS for finding in project.findings):
        # Read again with places, for they are all that is told.
        wrong = [found for found in config.load(root, marked=True).findings if found.location.file == SETTINGS]
        return error_result(ExitCode.USAGE, "the settings are wrong", _briefly(wrong))
    env = _environment(project, asked.env or (inside[1] if inside[:1] == ("overlays",) else ""))
    if isinstance(env, Result):
        return env
    below = "/".join(inside) if inside[:1] == ("jobs",) else "jobs"
    return _Scope(project, env, f"{below}/")


def _root(folder: Path, environ: Mapping[str, str]) -> Path | Result:
    """The jobs repository around the Application's folder, no higher than what Argo CD unpacked."""
    here = folder.resolve()
    marked = next((one for one in root_candidates(here, environ) if (one / SETTINGS).is_file()), None)
    if marked or (here / "jobs").is_dir() or (here / "overlays").is_dir():
        return marked or here
    source = environ.get("ARGOCD_APP_SOURCE_PATH", ".")
    why = f"there is no {SETTINGS} at or above `{source}`, as far as the repository was sent here"
    return error_result(ExitCode.USAGE, f"{why}; if {_PATHS} is set, it must name /{SETTINGS}, /jobs and /overlays")


def _environment(project: ProjectConfig, named: str) -> str | Result:
    known = sorted(project.overlays)
    if named and named in known:
        return named
    if named:
        hint = did_you_mean(named, known) or (f"; does {_PATHS} name /overlays?" if not known else "")
        return error_result(
            ExitCode.USAGE, f"there is no environment `{named}`{hint} (known: {', '.join(known) or 'none'})"
        )
    default = project.environments()
    if len(default) == 1:
        return default[0]
    return error_result(ExitCode.USAGE, f"the parameter `env` has to name one environment (known: {', '.join(known)})")


def _concerns(finding: Finding, scope: _Scope) -> bool:
    """Whether a finding is about the Application's jobs, or about what all jobs share."""
    return finding.location.file.startswith(scope.below) or not finding.location.file.startswith("jobs/")


def _briefly(findings: Sequence[Finding]) -> str:
    docs = documented()
    lines = [f"{found.location}: {found.rule}{_summary(docs, found.rule)}" for found in findings[:_SHOWN]]
    more = [f"… and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "".join(f"{visible(line)}\n" for line in (*lines, *more))


def _summary(docs: Mapping[str, object], rule: str) -> str:
    summary = getattr(docs.get(rule), "summary", "")
    return f" ({summary.rstrip('.')})" if summary else ""


def _nothing(scope: _Scope, asked: PluginParameters) -> str:
    where = f" in {scope.env}" if scope.env else ""
    which = f" of {len(asked.jobs)} patterns" if asked.jobs else ""
    return f"there is no job{which} below {scope.below}{where}, and an empty answer would delete everything"


def _lacking(texts: Sequence[Text], environ: Mapping[str, str]) -> Iterator[str]:
    """Kinds that the cluster does not have, each once."""
    kinds = {(one.identity.api_version, one.identity.kind): one for one in reversed(texts)}
    # What defines a kind may come in the same answer.
    if any(kind == "CustomResourceDefinition" for _, kind in kinds):
        return
    for (api_version, kind), first in sorted(kinds.items()):
        if lacks_kind(environ.get("KUBE_API_VERSIONS", ""), api_version, kind):
            yield visible(f"{first.location}: the cluster has no {api_version} {kind}") + "\n"
