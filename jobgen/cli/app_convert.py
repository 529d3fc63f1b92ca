"""Commands that move jobs: from manifests to specs, and from one kind to another."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jobgen.cli.commands import Result


@click.command("import")
@click.argument("manifests", nargs=-1, required=True, metavar="MANIFEST...")
@click.option("-o", "--output", metavar="DIR", help="Write DIR/<name>.yaml for each job.")
@click.option("--factor", is_flag=True, help="Put what all jobs share into an overlay.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@click.pass_obj
def import_command(
    directory: Path, manifests: tuple[str, ...], output: str | None, factor: bool, force: bool
) -> Result:
    """Make job specs of manifests, each proven to render to its manifest.

    MANIFEST is a file or a folder; `-` reads standard input.
    """
    from jobgen.cli.commands.import_ import import_manifests

    stdin = sys.stdin.buffer.read() if "-" in manifests else None
    return import_manifests(directory, manifests, output, factor=factor, force=force, stdin=stdin)


@click.command("migrate")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--to", "target", required=True, metavar="KIND|PLATFORM", help="Where the jobs shall run.")
@click.option("-e", "--env", "envs", multiple=True, metavar="ENV", help="Environment; may be repeated.")
@click.option("-o", "--output", metavar="DIR", help="Write DIR/<name>.yaml for each job.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
@click.pass_obj
def migrate_command(
    directory: Path, jobs: tuple[str, ...], target: str, envs: tuple[str, ...], output: str | None, force: bool
) -> Result:
    """Say the same jobs for another kind, and tell all that cannot be carried over.

    JOB is a name or a pattern of this repository's jobs, or a file with specs or manifests. ENV says where a spec runs
    today.
    """
    from jobgen.cli.commands.migrate import migrate_jobs

    return migrate_jobs(directory, jobs, target, envs, output, force=force)
