"""Run kubeconform on the same objects with the same schemas, and report where it disagrees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import which
from typing import Any

from jobgen.api.errors import ToolError, UsageError
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.pipeline.environment import Rendered
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder
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

CheckedObject = tuple[Rendered, str]
"""An object, and the name of its schema file."""


def check_installed() -> None:
    """Raise a UsageError if kubeconform is not on PATH."""
    if which("kubeconform") is None:
        raise UsageError(MISSING)


def find_disagreements(root: Folder, objects: Iterable[CheckedObject], findings: Sequence[Finding]) -> list[Finding]:
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
    for made, verdict in _check_objects(root, list(objects)):
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


def _check_objects(root: Folder, objects: list[CheckedObject]) -> list[tuple[Rendered, dict[str, Any]]]:
    """Return the result of kubeconform for each object with a schema."""
    found: list[tuple[Rendered, dict[str, Any]]] = []
    with open_scratch() as folder:
        schemas = root / "schemas" if isinstance(root, Path) else _write_schemas(root, Path(folder, "schemas"), objects)
        # The schema of a kind depends on the version of the operator: each version gets its own run.
        suffixes = sorted({_version_suffix(schema) for _, schema in objects})
        for number, suffix in enumerate(suffixes):
            home = Path(folder, str(number))
            home.mkdir()
            mine = [made for made, schema in objects if _version_suffix(schema) == suffix]
            for place, made in enumerate(mine):
                (home / f"{place}.json").write_text(to_json(made.object), "utf-8")
            for verdict in _run(schemas, home, suffix):
                if verdict["status"] != "statusSkipped":
                    found.append((mine[int(Path(verdict["filename"]).stem)], verdict))
    return found


def _write_schemas(root: CommitPath, folder: Path, objects: list[CheckedObject]) -> Path:
    """Write the schemas of a commit that the objects need to a folder, where kubeconform can read them."""
    for name in {name for _, name in objects}:
        found = layout.read_schema(root, name)
        if found and not found.is_shipped:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(found.file.content)
    return folder


def _version_suffix(schema: str) -> str:
    """Return the part of a schema's name that kubeconform has no variable for: `-until-2.1.0`."""
    version = schema.removesuffix(".json").rpartition("_")[2]
    return version[version.index("-") :] if "-" in version else ""


def _run(schemas: Path, home: Path, suffix: str) -> list[dict[str, Any]]:
    folders = dict.fromkeys((schemas, layout.find_shipped("schemas")))
    command = ["kubeconform", "-strict", "-verbose", "-ignore-missing-schemas", "-output", "json"]
    for folder in folders:
        name = f"{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}{suffix}.json"
        command += ["-schema-location", f"{folder}/{name}"]
    done = subprocess.run([*command, str(home)], capture_output=True, text=True, check=False)  # noqa: S603 -- a fixed command
    try:
        verdicts: list[dict[str, Any]] = json.loads(done.stdout)["resources"]
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr or done.stdout).strip()[:_MAX_MESSAGE] or f"exit {done.returncode}"
        raise ToolError(f"kubeconform could not be run: {reason}") from None
    return verdicts
