"""`jobgen lint`: check jobs, overlays, rendered objects and manifests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from jobgen.cli.complete import complete_files, complete_revisions
from jobgen.cli.options import env_option, fsync_option, no_cache_option, shard_option, today_option
from jobgen.cli.pages import link_rules
from jobgen.cli.result import Result, has_color, read_stdin, terminal_width
from jobgen.cli.run_lint import BASELINE, lint_paths
from jobgen.model.finding import Severity
from jobgen.reports.formats import AUTO, FORMATS, resolve


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_files)
@env_option
@click.option("--format", "format_", type=click.Choice([*FORMATS.names(), AUTO]), default="text", show_default=True)
@click.option(
    "--since",
    default="",
    metavar="REV",
    shell_complete=complete_revisions,
    help="Report only findings that are new since a Git revision.",
)
@click.option("--fix", "fix", flag_value="safe", help="Apply fixes that do not change the meaning.")
@click.option("--fix-unsafe", "fix", flag_value="unsafe", help="Apply all fixes; review the changes.")
@click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option(
    "--baseline",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help=f"Report only findings that this file does not list, such as {BASELINE}.",
)
@click.option("--write-baseline", is_flag=True, help=f"Write all findings to the baseline; default: {BASELINE}.")
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    default="error",
    show_default=True,
    help="Exit with 1 if there is a finding of this severity, or a worse one.",
)
@click.option("--statistics", is_flag=True, help="Count the findings of each rule.")
@click.option("--show-suppressed", is_flag=True, help="Show findings that comments and the baseline suppress.")
@click.option("--explain-files", is_flag=True, help="Say what each file was taken for, and why.")
@click.option("--strict-files", is_flag=True, help="Report a file whose objects are not judged, such as a template.")
@shard_option
@click.option("--kubeconform", is_flag=True, help="Run kubeconform too; report disagreements.")
@click.option(
    "--second-opinion", is_flag=True, help="Run jsonschema too, and kubeconform if installed; report disagreements."
)
@no_cache_option
@fsync_option
@today_option
@click.pass_obj
def command(directory: Path, /, paths: tuple[str, ...], envs: tuple[str, ...], format_: str, **options: Any) -> Result:
    """Check jobs, overlays, rendered objects and manifests for what the cluster would reject.

    PATH is a file or folder, in this repository or anywhere else; `-` reads standard input. The default is the whole
    repository.
    """
    width = terminal_width()
    return lint_paths(
        directory,
        paths,
        envs,
        format_=resolve(format_, os.environ),
        stdin=read_stdin() if "-" in paths else None,
        width=width or 120,
        color=has_color(),
        link=link_rules(os.environ, is_terminal=width is not None),
        environ=os.environ,
        **{**options, "fix": options["fix"] or ""},
    )
