"""Run kubeconform on a folder of objects, with a folder of schemas and without a network."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any, Literal

from jobgen.api.errors import ToolError
from jobgen.features.second_opinion.verdict import Verdict, limit_time

_MISSING = (
    "kubeconform is not on PATH; get it from https://github.com/yannh/kubeconform/releases,"
    " or with `brew install kubeconform` or `go install github.com/yannh/kubeconform/cmd/kubeconform@latest`"
)
_MAX_REASON = 300
_STATUS: dict[str, Literal["valid", "invalid", "failed"]] = {
    "statusValid": "valid",
    "statusInvalid": "invalid",
    "statusError": "failed",
}


def find_missing() -> str:
    """Why kubeconform cannot be run; empty if it can."""
    return "" if which("kubeconform") else _MISSING


def check_folder(folder: Path, numbers: Sequence[int]) -> dict[int, Verdict]:
    """Return what kubeconform says about the files of `objects`, by their numbers.

    Raises:
        ToolError: kubeconform failed, or took too long.

    """
    found = dict.fromkeys(numbers, Verdict("failed", "it said nothing about it"))
    for result in _run(folder, limit_time(len(numbers))):
        try:
            number, status = int(Path(result["filename"]).stem), _STATUS.get(result["status"], "failed")
            found[number] = Verdict(status, _message(result), _find_path(result))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ToolError(f"kubeconform printed something else than a result: {str(result)[:_MAX_REASON]}") from None
    return found


def _message(result: dict[str, Any]) -> str:
    """Return the errors of a result without the path of the schema, which differs in each run."""
    errors = [f"{error['path'] or '/'}: {error['msg']}" for error in result.get("validationErrors") or ()]
    return "; ".join(errors) or str(result["msg"] or result["status"])


def _find_path(result: dict[str, Any]) -> list[str]:
    """Return the path of the first error, in which slashes of names are not escaped."""
    return next((str(error["path"]).split("/")[1:] for error in result.get("validationErrors") or ()), [])


def _run(folder: Path, seconds: float) -> list[dict[str, Any]]:
    command = ["kubeconform", "-strict", "-verbose", "-ignore-missing-schemas", "-output", "json"]
    # Kinds without a group have an empty one there. With locations, the default one in the network is not used.
    for group in ("{{.Group}}", "core"):
        place = f"{folder}/schemas/{group}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json"
        command += ["-schema-location", place]
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command
            [*command, str(folder / "objects")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"kubeconform did not finish within {seconds:.0f} seconds") from None
    except OSError as error:
        raise ToolError(f"kubeconform could not be run: {error.strerror}") from None
    try:
        results: list[dict[str, Any]] = list(json.loads(done.stdout)["resources"])
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = (done.stderr or done.stdout).strip()[:_MAX_REASON] or f"exit {done.returncode}"
        raise ToolError(f"kubeconform could not be run: {reason}") from None
    return results
