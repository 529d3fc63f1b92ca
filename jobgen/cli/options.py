"""Options that several commands share."""

from __future__ import annotations

from functools import partial

import click
from click.core import ParameterSource

from jobgen import cache
from jobgen.api.errors import check_date
from jobgen.cli.complete import complete_environments, complete_folders, complete_revisions

env_option = click.option(
    "-e",
    "--env",
    "envs",
    multiple=True,
    metavar="ENV",
    shell_complete=complete_environments,
    help="Environment; can be repeated.",
)
output_option = click.option(
    "-o", "--output", metavar="DIR", shell_complete=complete_folders, help="Write DIR/<name>.yaml for each job."
)
force_option = click.option("--force", is_flag=True, help="Replace existing files.")


# Few people need these two; docs/commands.md describes them, and `--help` does not.
fsync_option = click.option(
    "--no-fsync", "fsync", flag_value=False, default=True, hidden=True, help="Do not wait until files are on the disk."
)


def refuse_empty(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a revision that is empty, as an unset variable of a script is."""
    if not value and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
        raise click.BadParameter("it is empty; name a revision")
    return value


since_option = partial(
    click.option, "--since", default="", callback=refuse_empty, metavar="REV", shell_complete=complete_revisions
)
"""The option --since; each command says what it does with the revision in `help`."""


def _check_today(_: click.Context, __: click.Parameter, value: str) -> str:
    check_date(value)
    return value


today_option = click.option(
    "--today",
    default="",
    metavar="DATE",
    callback=_check_today,
    hidden=True,
    help="Date for jobs and suppressions that expire; default: the date of the commit.",
)


def _disable_cache(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        cache.disable()


enforce_option = partial(
    click.option,
    "--enforce/--no-enforce",
    help="Refuse what limits of teams, mandatory rules or policies forbid.",
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, expose_value=False, callback=_disable_cache, help="Ignore the cache."
)

color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    metavar="WHEN",
    help="auto, always or never; auto: on a terminal.",
)
watch_option = click.option("--watch", is_flag=True, help="Run again on every change, until Ctrl-C.")
