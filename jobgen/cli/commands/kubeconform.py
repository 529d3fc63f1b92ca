"""A second opinion: kubeconform on the same objects with the same schemas, and where the two disagree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jobgen.model.finding import Finding, Identity, Severity
from jobgen.pipeline.environment import Rendered
from jobgen.repo import layout

MISSING = (
    "kubeconform is not on PATH; get it from https://github.com/yannh/kubeconform/releases,"
    " or with `brew install kubeconform` or `go install github.com/yannh/kubeconform/cmd/kubeconform@latest`"
)
# What JSON Schema can say, so that kubeconform must say it too.
_BOTH_KNOW = frozenset(
    ("unknown-field", "wrong-type", "missing-field", "invalid-form", "invalid-value", "invalid-quantity")
)
_LONGEST = 300

Opinion = tuple[Rendered, str]
"""An object, and the file in the schema folders that holds its schema."""


class FailedError(Exception):
    """kubeconform could not be run, or said nothing that can be understood."""


def installed() -> str | None:
    """Where the binary is, if it is there."""
    from shutil import which

    return which("kubeconform")


def disagreements(root: Path, objects: Iterable[Opinion], findings: Sequence[Finding]) -> list[Finding]:
    """Where kubeconform says something else than we did."""
    refused: dict[tuple[str, Identity | None], set[str]] = {}
    for finding in findings:
        if finding.severity is Severity.ERROR and finding.category in ("yaml", "schema"):
            # Files that stand for themselves may hold objects of one name, and no environment puts them together.
            refused.setdefault((finding.env or finding.location.file, finding.object), set()).add(finding.rule)
    told: list[Finding] = []
    for made, verdict in _verdicts(root, list(objects)):
        ours = refused.get((made.env or made.location.file, made.identity), set())
        theirs = verdict["status"] == "statusInvalid"
        if verdict["status"] == "statusError":
            told.append(_finding(made, "kubeconform-failed", f"kubeconform could not check it: {_said(verdict)}"))
        elif theirs and not ours:
            message = f"kubeconform refuses `{made.identity}`, and jobgen does not: {_said(verdict)}"
            told.append(_finding(made, "kubeconform-disagrees", message))
        elif ours & _BOTH_KNOW and not theirs:
            told.append(
                _finding(made, "kubeconform-disagrees", f"jobgen refuses `{made.identity}`, and kubeconform does not")
            )
    return told


def _finding(made: Rendered, rule: str, message: str) -> Finding:
    return Finding(rule, "meta", Severity.WARNING, message, made.location, object=made.identity, env=made.env)


def _said(verdict: dict[str, Any]) -> str:
    return " ".join(verdict["msg"].split())[:_LONGEST]


def _verdicts(root: Path, objects: list[Opinion]) -> list[tuple[Rendered, dict[str, Any]]]:
    """What kubeconform says of each object that it has a schema for."""
    from tempfile import TemporaryDirectory

    from jobgen.yamlio.write import to_json

    found: list[tuple[Rendered, dict[str, Any]]] = []
    with TemporaryDirectory(prefix="jobgen-") as folder:
        # Operators of different ages have different schemas for one kind: each gets a run of its own.
        shapes = sorted({_shape(schema) for _, schema in objects})
        for number, shape in enumerate(shapes):
            home = Path(folder, str(number))
            home.mkdir()
            mine = [made for made, schema in objects if _shape(schema) == shape]
            for place, made in enumerate(mine):
                (home / f"{place}.json").write_text(to_json(made.object), "utf-8")
            for verdict in _run(root, home, shape):
                if verdict["status"] != "statusSkipped":
                    found.append((mine[int(Path(verdict["filename"]).stem)], verdict))
    return found


def _shape(schema: str) -> str:
    """The part of a schema's name that kubeconform cannot know: `-until-2.1.0`."""
    version = schema.removesuffix(".json").rpartition("_")[2]
    return version[version.index("-") :] if "-" in version else ""


def _run(root: Path, home: Path, shape: str) -> list[dict[str, Any]]:
    import json
    import subprocess

    folders = dict.fromkeys((root / "schemas", layout.find_shipped("schemas")))
    command = [str(installed()), "-strict", "-verbose", "-ignore-missing-schemas", "-output", "json"]
    for folder in folders:
        name = f"{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}{shape}.json"
        command += ["-schema-location", f"{folder}/{name}"]
    done = subprocess.run([*command, str(home)], capture_output=True, text=True, check=False)  # noqa: S603 -- our words
    try:
        verdicts: list[dict[str, Any]] = json.loads(done.stdout)["resources"]
    except (ValueError, KeyError, TypeError):
        raise FailedError((done.stderr or done.stdout).strip()[:_LONGEST] or f"exit {done.returncode}") from None
    return verdicts
