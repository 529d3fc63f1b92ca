"""The command line as click describes it: global options, and commands that are imported when they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

from jobgen import __version__, cache
from jobgen.cli.commands import GROUPS, MACHINERY, SHIPPED
from jobgen.cli.complete import complete_folders
from jobgen.cli.interrupt import find_exit_code
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.model.features import list_command_modules

_HELP = {"help_option_names": ["-h", "--help"]}
_NAME_WIDTH = 10


class CommandFolder(click.Group):
    """A group with a command for each module of `cli/commands/` and of the folders `commands` of features."""

    @cached_property
    def _modules(self) -> dict[str, str]:
        return list_command_modules()

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- a method of click
        """Return the names of all commands."""
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- see above
        """Return a command as help and completion list it; only one that jobgen does not ship is imported for that."""
        if cmd_name not in self._modules:
            return None
        summary = next((commands[cmd_name] for commands in SHIPPED.values() if cmd_name in commands), "")
        return click.Command(cmd_name, help=summary) if summary else self._load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what users want to do; a command of another package comes last."""
        names = self.list_commands(ctx)
        known = {*MACHINERY, *(name for several in GROUPS.values() for name in several)}
        groups = {**GROUPS, "Other": tuple(name for name in names if name not in known)}
        for title, members in groups.items():
            listed = [(name, self.get_command(ctx, name)) for name in members if name in names]
            rows = [(name, command.get_short_help_str(formatter.width)) for name, command in listed if command]
            if rows:
                with formatter.section(title):
                    # One column for all groups.
                    formatter.write_dl([(f"{name:<{_NAME_WIDTH}}", text) for name, text in rows])
        machinery = [name for name in MACHINERY if name in names]
        if machinery:
            formatter.write_paragraph()
            formatter.write_text(f"Other programs run {', '.join(machinery)}; see `jobgen COMMAND --help`.")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that the arguments name."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, self._load(name) if name is not None and listed is not None else listed, rest

    def _load(self, name: str) -> click.Command:
        command = cast(click.Command, import_module(self._modules[name]).command)
        # click keeps the option of the first context that asks for it, which may have no parent.
        command.context_settings.update(_HELP)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse global options, or print the help."""
        with _ending_as_all_commands():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command, or print its help."""
        with _ending_as_all_commands():
            return super().invoke(ctx)


@contextmanager
def _ending_as_all_commands() -> Iterator[None]:
    """End without the line that click prints for an interrupt, and without its exit code for a closed pipe."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise click.exceptions.Exit(find_exit_code(error)) from None
    except BrokenPipeError:
        raise click.exceptions.Exit(ExitCode.INTERNAL_ERROR) from None


@click.group(cls=CommandFolder, context_settings=_HELP)
@click.option(
    "-C", "--directory", default=".", metavar="DIR", shell_complete=complete_folders, help="Run in this folder."
)
@click.option("--no-cache", is_flag=True, help="Ignore the cache.")
@click.option("--traceback", is_flag=True, help="Show the traceback of an internal error.")
@click.version_option(__version__, prog_name="jobgen")
@click.pass_context
def cli(context: click.Context, directory: str, no_cache: bool, traceback: bool) -> None:
    """Write training jobs once; render them for each environment and operator."""
    if not no_cache:
        cache.enable_default(Path(directory))
    # `main.run` looks for --traceback itself: an error may occur before arguments are parsed.
    context.obj = Path(directory)


def parse_and_run(arguments: list[str]) -> Result | int:
    """Run a command; help and version are printed by click and return an exit code."""
    try:
        result: Result | int = cli.main(arguments, prog_name="jobgen", standalone_mode=False)
    except click.UsageError as error:
        message = error.format_message()
        if message.startswith("Usage:"):
            # Without arguments, it is the help.
            return Result(ExitCode.USAGE, err=f"{message}\n")
        from jobgen.cli.wrong_arguments import explain_arguments

        return error_result(ExitCode.USAGE, explain_arguments(error))
    except click.Abort as error:
        return find_exit_code(error.__cause__)
    return result
