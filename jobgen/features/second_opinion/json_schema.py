"""Run the Python package jsonschema on a folder of objects, with a folder of schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import jobgen
from jobgen.api.errors import ToolError
from jobgen.features.second_opinion.verdict import Verdict, limit_time

_MISSING = "the Python package `jsonschema` is not installed; run `pip install 'jobgen[second-opinion]'`"
_MAX_REASON = 300


def find_missing() -> str:
    """Why jsonschema cannot be run; empty if it can."""
    return "" if find_spec("jsonschema") else _MISSING


def check_folder(folder: Path, numbers: Sequence[int]) -> dict[int, Verdict]:
    """Return what jsonschema says about the files of `objects`, by their numbers.

    It runs in a process of its own: an expression in a schema of the repository may take forever.

    Raises:
        ToolError: jsonschema failed, or took too long.

    """
    seconds = limit_time(len(numbers))
    # A module in the current folder is not imported; jobgen may be in a zip file, which is not on the path.
    path = os.pathsep.join(filter(None, (str(Path(jobgen.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "jobgen.features.second_opinion.json_schema_process", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command
            command,
            input=json.dumps(list(numbers)),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"jsonschema did not finish within {seconds:.0f} seconds") from None
    try:
        results = [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError:
        results = []
    if len(results) != len(numbers):
        reason = done.stderr.strip()[-_MAX_REASON:] or f"exit {done.returncode}"
        raise ToolError(f"jsonschema checked {len(results)} of {len(numbers)} objects: {reason}")
    return {number: Verdict(*verdict) for number, *verdict in results}
