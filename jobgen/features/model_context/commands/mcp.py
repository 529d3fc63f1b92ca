"""`jobgen mcp`: serve read-only tools to an assistant."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from jobgen.api.project import find_repository
from jobgen.cli.interrupt import restore_signals
from jobgen.cli.result import ExitCode, Result, error_result


@click.command("mcp")
@click.pass_obj
def command(directory: Path) -> Result:
    """Serve jobgen's answers to an assistant.

    It serves lint, explain, render, diff, rules, queues and teams.

    It uses the Model Context Protocol on standard input and output. The tools only read. It needs the extra `mcp`:
    `pip install 'jobgen[mcp]'`. See docs/assistants.md.
    """
    root = find_repository(directory)
    if find_spec("mcp") is None:
        return error_result(ExitCode.USAGE, "the server needs the extra `mcp`; run `pip install 'jobgen[mcp]'`")
    from jobgen.features.model_context.server import serve

    restore_signals()
    serve(root)
    return Result(ExitCode.OK)
