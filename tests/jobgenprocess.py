"""Run many jobgen commands in one child process, each exactly as `python -m jobgen` would run it.

Starting an interpreter and importing jobgen costs more than most commands, so a test that runs hundreds of them does it
once. Nothing here names a module of jobgen.
"""

from __future__ import annotations

import base64
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What a command left behind: its exit code and what it printed."""

    code: int
    out: bytes
    err: str


def run_commands(commands: Sequence[Sequence[str]], cache: Path) -> list[Outcome]:
    """Run the commands one after another; they share the cache folder and start outside of any repository."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps([list(map(str, command)) for command in commands]),
            cwd=elsewhere,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [Outcome(code, base64.b64decode(out), err) for code, out, err in json.loads(done.stdout)]


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Run one command in this process and capture what it prints."""
    process, leave = os.getpid(), os._exit

    def end(code: int) -> None:
        if os.getpid() != process:  # a forked worker really ends
            leave(code)
        raise SystemExit(code)

    streams = sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in streams)
    sys.argv, sys.stdout, sys.stderr, os._exit = ["jobgen", *arguments], out, err, end
    try:
        runpy.run_module("jobgen", run_name="__main__")
        code = 0
    except SystemExit as done:
        code = done.code
    finally:
        (sys.stdout, sys.stderr), os._exit = streams, leave
    out.flush()
    err.flush()
    return code, base64.b64encode(out.buffer.getvalue()).decode(), err.buffer.getvalue().decode()


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of the tests is not for jobgen to import from
    json.dump([run_here(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
