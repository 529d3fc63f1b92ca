"""`jobgen lsp`: the language server for editors."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from jobgen.cli.interrupt import restore_signals
from jobgen.cli.result import ExitCode, Result, error_result


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Use standard input and output, as always; editors pass this option.")
# A server starts it to lint a workspace.
@click.option("--background", default="", hidden=True, metavar="ROOT")
@click.pass_obj
def command(directory: Path, /, stdio: bool, background: str) -> Result:
    """Start the language server for editors.

    It shows findings, documentation and completions while you edit jobs and overlays. See docs/editors.md for the
    settings of each editor. It needs the extra `jobgen[lsp]`.
    """
    if sys.stdin is None or sys.stdout is None:
        return error_result(ExitCode.USAGE, "the language server needs standard input and output, and one is closed")
    restore_signals()
    # What a library prints must not come between messages.
    writing, sys.stdout = sys.stdout.buffer, sys.stderr
    if background:
        from jobgen.features.editor.lint_workspace import serve

        serve(directory / background, sys.stdin.buffer, writing)
        return Result(ExitCode.OK)
    try:
        from jobgen.features.editor.server.run import run_server
    except ModuleNotFoundError as error:
        message = f"the language server needs the extra `lsp` (`{error.name}` is missing); install `jobgen[lsp]`"
        return error_result(ExitCode.USAGE, message)
    if sys.stdin.isatty():
        click.echo("jobgen: waiting for an editor; docs/editors.md has its settings. CTRL-C ends this.", err=True)
    run_server(sys.stdin.buffer, writing)
    return Result(ExitCode.OK)
