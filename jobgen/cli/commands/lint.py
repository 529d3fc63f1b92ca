"""`jobgen lint`: check jobs, overlays, rendered objects and manifests."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from jobgen.cli.complete import complete_files, complete_revisions, complete_rules
from jobgen.cli.options import (
    color_option,
    env_option,
    fsync_option,
    no_cache_option,
    refuse_empty,
    since_option,
    today_option,
    watch_option,
)
from jobgen.cli.result import Result
from jobgen.cli.run_lint import run_command
from jobgen.model.finding import Severity
from jobgen.repo.root import BASELINE
from jobgen.reports.formats import AUTO, FORMATS


def _rename_kubeconform(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        warnings.warn("`--kubeconform` is deprecated; use `--second-opinion`", stacklevel=2)
        context.params["second_opinion"] = True


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_files)
@env_option
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS.names(), AUTO]),
    default="text",
    metavar="FORMAT",
    help="text, concise, json, sarif, github, gitlab or others.",
)
@since_option(help="Report only what is new since a Git revision.")
@click.option(
    "--policy-from",
    default="",
    callback=refuse_empty,
    metavar="REV",
    shell_complete=complete_revisions,
    help="Judge by the settings, teams and policies of REV.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    shell_complete=complete_rules,
    help="Show these rules and categories; `essential`: errors.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULES",
    shell_complete=complete_rules,
    help="Leave out these rules and categories.",
)
@click.option(
    "--severity",
    type=click.Choice([severity.value for severity in Severity]),
    default="info",
    metavar="LEVEL",
    help="Show findings that are error, warning or info, or worse.",
)
@click.option("--fix", "fix", flag_value="safe", help="Apply fixes that do not change the meaning.")
@click.option("--fix-unsafe", "fix", flag_value="unsafe", help="Apply all fixes; review the changes.")
@click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option(
    "--baseline",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help="Report only findings that this file does not list.",
)
@click.option("--write-baseline", is_flag=True, help=f"Write the findings to {BASELINE}.")
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    default="error",
    metavar="LEVEL",
    help="Exit 1 for findings of this severity or worse.",
)
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option("--show-suppressed", is_flag=True, help="Show what comments and the baseline suppress.")
@click.option("--explain-files", is_flag=True, help="Show how jobgen reads each file, and why.")
@click.option("--strict-files", is_flag=True, help="Report files that cannot be checked.")
@click.option(
    "--values",
    "-f",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="Render Helm charts with this file of values.",
)
@click.option(
    "--kubeconform", is_flag=True, is_eager=True, expose_value=False, hidden=True, callback=_rename_kubeconform
)
@click.option(
    "--second-opinion",
    is_flag=True,
    help="Compare with jsonschema, kubeconform and kustomize.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print findings only, not what was checked.")
@click.option("-v", "--verbose", is_flag=True, help="List what the settings customize.")
@color_option
@no_cache_option
@fsync_option
@today_option
@watch_option
@click.pass_obj
def command(directory: Path, /, **options: Any) -> Result:
    """Check for what the cluster would reject.

    It checks jobs, overlays, rendered objects and manifests.

    PATH is a file or folder, in this repository or anywhere else; `-` reads standard input. The default is the whole
    repository.
    """
    return run_command(directory, **options)
