"""The command line: global options, and commands that are imported when they are used."""

from __future__ import annotations

import os
import re
from functools import cached_property
from importlib import import_module
from typing import cast

import click

from jobgen import __version__
from jobgen.api.errors import JobgenError
from jobgen.cli import commands
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.model.features import NO_FEATURE, find_missing_feature, list_command_modules, to_command

_HOME = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
# The documentation of a command, in the text of its module.
_HELP = re.compile(r'^def command\([^"]*"""(.+?)"""', re.MULTILINE | re.DOTALL)
_CHOICES = re.compile(r"\. Choose from:(.*)", re.DOTALL)
_NO_COMMAND = re.compile(r"No such command '(.*?)'(?=\.)")


class CommandFolder(click.Group):
    """A group with a command for each module of `cli/commands/` and each that a feature adds.

    A module is imported to run its command.
    """

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each command."""
        names = [name.removesuffix(".py") for name in os.listdir(commands.__path__[0]) if name[0] not in "._"]
        return {**{to_command(name): f"{commands.__name__}.{name}" for name in names}, **list_command_modules()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- a method of click
        """Return the names of all commands."""
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- see above
        """Return a command as help and completion list it, with its name and its documentation."""
        if cmd_name not in self._modules:
            return None
        path = os.path.join(_HOME, *self._modules[cmd_name].split(".")) + ".py"
        with open(path, encoding="utf-8") as module:
            found = _HELP.search(module.read())
        return click.Command(cmd_name, help=found[1] if found else None)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. An interrupt ends it without the line that click prints."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from jobgen.cli.interrupt import find_exit_code

            raise click.exceptions.Exit(find_exit_code(error)) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that the arguments name."""
        name, listed, rest = super().resolve_command(ctx, args)
        if name is None or listed is None:
            return name, listed, rest
        return name, cast(click.Command, import_module(self._modules[name]).command), rest


@click.group(cls=CommandFolder, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--directory", default=".", metavar="DIR", help="Run in this folder.")
@click.option("--no-cache", is_flag=True, help="Ignore the cache.")
@click.option("--traceback", is_flag=True, help="Show the traceback of an internal error.")
@click.version_option(__version__, prog_name="jobgen")
@click.pass_context
def cli(context: click.Context, directory: str, no_cache: bool, traceback: bool) -> None:
    """Write training jobs once; render them for each environment and operator."""
    # Imported late: help and completion do not need them.
    from pathlib import Path

    from jobgen import cache

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
    except click.Abort as error:
        from jobgen.cli.interrupt import find_exit_code

        return find_exit_code(error.__cause__)
    return result


def _usage_error(error: click.UsageError) -> Result:
    """Return the error as one line, or the help if there are no arguments."""
    message = _name_command(error) or _CHOICES.sub(_join_choices, error.format_message())
    if message.startswith("Usage:"):
        return Result(ExitCode.USAGE, err=f"{message}\n")
    return error_result(ExitCode.USAGE, f"{message[:1].lower()}{message[1:].rstrip('.')}")


def _join_choices(found: re.Match[str]) -> str:
    """Write the choices of a missing argument or option in one line; click writes each in a line of its own."""
    return f"; choose one of {' '.join(found[1].split())}"


def _name_command(error: click.UsageError) -> str:
    """Return an error about an unknown command, with the one that was meant; empty if it is about something else."""
    found = _NO_COMMAND.match(error.message)
    if found is None or error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return ""
    missing = find_missing_feature(found[1]) if error.ctx.parent is None else ""
    if missing:
        return f"{found[0]}: {NO_FEATURE.format(missing)}"
    from jobgen.model.suggest import did_you_mean

    return f"{found[0]}{did_you_mean(found[1], error.ctx.command.list_commands(error.ctx))}"
