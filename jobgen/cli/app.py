"""The command line: global options, and commands that are imported when they are used."""

from __future__ import annotations

import os
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import cast

import click

from jobgen import __version__, cache
from jobgen.api.errors import JobgenError
from jobgen.cli import commands
from jobgen.cli.result import ExitCode, Result, error_result, to_result


class CommandFolder(click.Group):
    """A group with a command for each module of `cli/commands/`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- a method of click
        """Return the names of all commands."""
        modules = (name.removesuffix(".py") for name in os.listdir(commands.__path__[0]))
        return sorted(name.rstrip("_") for name in modules if not name.startswith(("_", ".")))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; a trailing underscore allows module names such as `import_`."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        return cast(click.Command, import_module(f"{commands.__name__}.{name}").command)


@click.group(cls=CommandFolder, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--directory", default=".", metavar="DIR", help="Run in this folder.")
@click.option("--no-cache", is_flag=True, help="Ignore the cache.")
@click.option("--traceback", is_flag=True, help="Show the traceback of an internal error.")
@click.version_option(__version__, prog_name="jobgen")
@click.pass_context
def cli(context: click.Context, directory: str, no_cache: bool, traceback: bool) -> None:
    """Write training jobs once; render them for each environment and operator."""
    if not no_cache:
        cache.enable(cache.find_default_folder(), cache.installation_fingerprint(), Path(directory))
    # main looks for --traceback itself: an error may occur before arguments are parsed.
    context.obj = Path(directory)


def run_command(arguments: list[str]) -> Result | int:
    """Run a command; help and version are printed by click and return an exit code."""
    try:
        result: Result | int = cli.main(arguments, prog_name="jobgen", standalone_mode=False)
    except click.UsageError as error:
        return _usage_error(error)
    except JobgenError as error:
        return to_result(error)
    except click.Abort:
        return 130
    return result


def _usage_error(error: click.UsageError) -> Result:
    """Return the error as one line, or the help if there are no arguments."""
    message = error.format_message()
    if message.startswith("Usage:"):
        return Result(ExitCode.USAGE, err=f"{message}\n")
    return error_result(ExitCode.USAGE, f"{message[:1].lower()}{message[1:].rstrip('.')}")
