"""`jobgen render`: print manifests, or write a tree of files and report what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobgen.cli.complete import complete_folders, complete_jobs
from jobgen.cli.options import (
    enforce_option,
    env_option,
    fsync_option,
    no_cache_option,
    since_option,
    today_option,
    watch_option,
)
from jobgen.cli.result import Result
from jobgen.cli.run_render import run_command


@click.command("render")
@click.argument("jobs", nargs=-1, metavar="[JOB]...", shell_complete=complete_jobs)
@env_option
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the tree is not up to date.")
@click.option("--allow-empty", is_flag=True, help="Allow an environment without objects.")
@click.option("--allow-mass-delete", is_flag=True, help="Allow deleting most files of an environment.")
@since_option(help="Only objects that are new or have changed since a Git revision.")
@enforce_option(
    default=None,
    help="Refuse what limits of teams, mandatory rules or policies forbid; for a tree, on if there are teams.",
)
@no_cache_option
@fsync_option
@today_option
@watch_option
@click.option("--format", "format_", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.pass_obj
def command(directory: Path, /, **options: Any) -> Result:
    """Print manifests, or write them as a tree.

    JOB is a name or a shell pattern; the default is all jobs.
    """
    return run_command(directory, **options)
