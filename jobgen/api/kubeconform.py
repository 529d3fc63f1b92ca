"""Run kubeconform on the same objects with the same schemas, and report where it disagrees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any

from jobgen.api.errors import ToolError, UsageError
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline.environment import Rendered
from jobgen.repo.scratch import open_scratch
from jobgen.yamlio.write import to_json

MISSING = (
    "kubeconform is not on PATH; get it from https://github.com/yannh/kubeconform/releases,"
    " or with `brew install kubeconform` or `go install github.com/yannh/kubeconform/cmd/kubeconform@latest`"
)
# Rules that JSON Schema covers, so that kubeconform must find them too.
_COMMON_RULES = frozenset(
    ("unknown-field", "wrong-type", "missing-field", "invalid-form", "invalid-value", "invalid-quantity")
)
_MAX_MESSAGE = 300
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9.-]{0,252}")

CheckedObject = tuple[Rendered, bytes]
"""An object, and its JSON Schema; empty if there is none."""


def check_installed() -> None:
    """Raise a UsageError if kubeconform is not on PATH."""
    if which("kubeconform") is None:
        raise UsageError(MISSING)


def find_disagreements(objects: Iterable[CheckedObject], findings: Sequence[Finding]) -> list[Finding]:
    """Report objects that only one of jobgen and kubeconform rejects.

    Raises:
        ToolError: kubeconform failed.

    """
    rejected: dict[tuple[str, Identity | None], set[str]] = {}
    for finding in findings:
        if finding.severity is Severity.ERROR and finding.category in ("yaml", "schema"):
            # Standalone files may contain objects of the same name, which no environment combines.
            rejected.setdefault((finding.env or finding.location.file, finding.object), set()).add(finding.rule)
    found: list[Finding] = []
    for made, verdict in _check_objects(list(objects)):
        ours = rejected.get((made.env or made.location.file, made.identity), set())
        theirs = verdict["status"] == "statusInvalid"
        if verdict["status"] == "statusError":
            found.append(_finding(made, "kubeconform-failed", f"kubeconform could not check it: {_message(verdict)}"))
        elif theirs and not ours:
            message = f"kubeconform rejects `{made.identity}`, but jobgen does not: {_message(verdict)}"
            found.append(_finding(made, "kubeconform-disagrees", message))
        elif ours & _COMMON_RULES and not theirs:
            found.append(
                _finding(made, "kubeconform-disagrees", f"jobgen rejects `{made.identity}`, but kubeconform does not")
            )
    return found


def _finding(made: Rendered, rule: str, message: str) -> Finding:
    return Finding(rule, "meta", Severity.WARNING, message, made.location, object=made.identity, env=made.env)


def _message(verdict: dict[str, Any]) -> str:
    return " ".join(verdict["msg"].split())[:_MAX_MESSAGE]


def _check_objects(objects: list[CheckedObject]) -> list[tuple[Rendered, dict[str, Any]]]:
    """Return the result of kubeconform for each object with a schema."""
    found: list[tuple[Rendered, dict[str, Any]]] = []
    with open_scratch() as folder:
        # The schema of a kind depends on the cluster: each environment gets its own run.
        for number, env in enumerate(sorted({made.env for made, _ in objects})):
            home = Path(folder, str(number))
            mine = [(made, schema) for made, schema in objects if made.env == env]
            (home / "objects").mkdir(parents=True)
            for place, (made, schema) in enumerate(mine):
                (home / "objects" / f"{place}.json").write_text(to_json(made.object), "utf-8")
                _write_schema(made.object, schema, home / "schemas")
            for verdict in _run(home / "schemas", home / "objects"):
                if verdict["status"] != "statusSkipped":
                    found.append((mine[int(Path(verdict["filename"]).stem)][0], verdict))
    return found


def _write_schema(obj: Mapping[str, Any], schema: bytes, folder: Path) -> None:
    """Write the schema of an object where kubeconform looks for it."""
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    name = (group or "core", str(obj.get("kind")).lower(), version)
    # The names come from a manifest, so they are untrusted.
    if schema and all(_NAME.fullmatch(part) for part in name):
        path = folder / name[0] / f"{name[1]}_{name[2]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(schema)


def _run(schemas: Path, home: Path) -> list[dict[str, Any]]:
    command = ["kubeconform", "-strict", "-verbose", "-ignore-missing-schemas", "-output", "json"]
    # Kinds without a group have an empty one there.
    for group in ("{{.Group}}", "core"):
        command += ["-schema-location", f"{schemas}/{group}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json"]
    done = subprocess.run([*command, str(home)], capture_output=True, text=True, check=False)  # noqa: S603 -- a fixed command
    try:
        verdicts: list[dict[str, Any]] = json.loads(done.stdout)["resources"]
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr or done.stdout).strip()[:_MAX_MESSAGE] or f"exit {done.returncode}"
        raise ToolError(f"kubeconform could not be run: {reason}") from None
    return verdicts
