"""Run other tools on a folder of objects, with a folder of schemas: kubeconform, and the Python package jsonschema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Literal, NamedTuple

import jobgen
from jobgen.api.errors import ToolError

SECONDS = 30.0
"""How long a tool may take to start, and for what is expensive."""
SECONDS_PER_OBJECT = 0.2
"""How long it may take for each object in addition: many times what the largest needs."""


class Verdict(NamedTuple):
    """The result of a check by another tool."""

    status: Literal["valid", "invalid", "failed"]
    message: str = ""
    path: Sequence[str | int] = ()
    """The field at fault; empty if it is the object itself, or unknown."""


def limit_time(objects: int) -> float:
    """Return how many seconds a tool may take to check some objects."""
    return SECONDS + SECONDS_PER_OBJECT * objects


_MAX_REASON = 300


def find_missing_jsonschema() -> str:
    """Why jsonschema cannot be run; empty if it can."""
    missing = "the Python package `jsonschema` is not installed; run `pip install 'jobgen[second-opinion]'`"
    return "" if find_spec("jsonschema") else missing


def run_jsonschema(folder: Path, numbers: Sequence[int]) -> dict[int, Verdict]:
    """Return what jsonschema says about the files of `objects`, by their numbers.

    It runs in a process of its own: an expression in a schema of the repository may take forever.

    Raises:
        ToolError: jsonschema failed, or took too long.

    """
    seconds = limit_time(len(numbers))
    # A module in the current folder is not imported; jobgen may be in a zip file, which is not on the path.
    path = os.pathsep.join(filter(None, (str(Path(jobgen.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "jobgen.features.second_opinion.json_schema_process", str(folder)]
    numbered = json.dumps(list(numbers))
    done = _run("jsonschema", command, seconds, text=numbered, env={**os.environ, "PYTHONPATH": path})
    try:
        results = [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError:
        results = []
    if len(results) != len(numbers):
        reason = done.stderr.strip()[-_MAX_REASON:] or f"exit {done.returncode}"
        raise ToolError(f"jsonschema checked {len(results)} of {len(numbers)} objects: {reason}")
    return {number: Verdict(*verdict) for number, *verdict in results}


_STATUS: dict[str, Literal["valid", "invalid", "failed"]] = {
    "statusValid": "valid",
    "statusInvalid": "invalid",
    "statusError": "failed",
}


def find_missing_kubeconform() -> str:
    """Why kubeconform cannot be run; empty if it can."""
    if which("kubeconform"):
        return ""
    return (
        "kubeconform is not on PATH; get it from https://github.com/yannh/kubeconform/releases,"
        " or with `brew install kubeconform` or `go install github.com/yannh/kubeconform/cmd/kubeconform@latest`"
    )


def run_kubeconform(folder: Path, numbers: Sequence[int]) -> dict[int, Verdict]:
    """Return what kubeconform says about the files of `objects`, by their numbers.

    Raises:
        ToolError: kubeconform failed, or took too long.

    """
    found = dict.fromkeys(numbers, Verdict("failed", "it said nothing about it"))
    for result in _run_kubeconform(folder, limit_time(len(numbers))):
        try:
            number, status = int(Path(result["filename"]).stem), _STATUS.get(result["status"], "failed")
            errors = result.get("validationErrors") or ()
            # The message of an error is without the path of the schema, which differs in each run.
            texts = [f"{error['path'] or '/'}: {error['msg']}" for error in errors]
            # Slashes of names are not escaped there.
            path = str(errors[0]["path"]).split("/")[1:] if errors else []
            found[number] = Verdict(status, "; ".join(texts) or str(result["msg"] or result["status"]), path)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ToolError(f"kubeconform printed something other than a result: {str(result)[:_MAX_REASON]}") from None
    return found


def _run_kubeconform(folder: Path, seconds: float) -> list[dict[str, Any]]:
    command = ["kubeconform", "-strict", "-verbose", "-ignore-missing-schemas", "-output", "json"]
    # Kinds without a group have an empty one there. With locations, the default one in the network is not used.
    for group in ("{{.Group}}", "core"):
        place = f"{folder}/schemas/{group}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json"
        command += ["-schema-location", place]
    done = _run("kubeconform", [*command, str(folder / "objects")], seconds)
    try:
        results: list[dict[str, Any]] = list(json.loads(done.stdout)["resources"])
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = (done.stderr or done.stdout).strip()[:_MAX_REASON] or f"exit {done.returncode}"
        raise ToolError(f"kubeconform could not be run: {reason}") from None
    return results


def _run(
    tool: str, command: Sequence[str], seconds: float, *, text: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 -- fixed commands
            command,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=seconds,
            env=env,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{tool} did not finish within {seconds:.0f} seconds") from None
    except OSError as error:
        raise ToolError(f"{tool} could not be run: {error.strerror}") from None
