"""Let other tools check the same objects with the same schemas, and report where they disagree with jobgen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.features.second_opinion import json_schema, kubeconform
from jobgen.features.second_opinion.expressible import is_expressible
from jobgen.features.second_opinion.verdict import Verdict
from jobgen.model.finding import Finding, Identity, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.environment import Rendered
from jobgen.repo.scratch import open_scratch
from jobgen.report.opinion import Opinion
from jobgen.yamlio.write import to_json

_DISAGREES = {"jsonschema": "jsonschema-disagrees", "kubeconform": "kubeconform-disagrees"}
_FAILED = {"jsonschema": "jsonschema-failed", "kubeconform": "kubeconform-failed"}
_MAX_MESSAGE = 300
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9.-]{0,252}")
_DIALECT = lazy_pattern(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12))/schema#?")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class CheckedObject(NamedTuple):
    """An object for other tools."""

    made: Rendered
    schema: bytes
    """Its JSON Schema; empty if there is none."""
    find_problems: Callable[[], list[Problem]]
    """What its schema refuses, as jobgen reads it."""


class Disagreement(NamedTuple):
    """A finding about an object, and the path of the field that it is about; empty if that is not known."""

    made: Rendered
    finding: Finding
    path: Sequence[str | int] = ()


class _Tool(NamedTuple):
    find_missing: Callable[[], str]
    check: Callable[[Path, Sequence[int]], dict[int, Verdict]]


_TOOLS = {
    "jsonschema": _Tool(json_schema.find_missing, json_schema.check_folder),
    "kubeconform": _Tool(kubeconform.find_missing, kubeconform.check_folder),
}


def find_missing(tool: str) -> str:
    """Why a tool cannot be run, with what to do about it; empty if it can."""
    return _TOOLS[tool].find_missing()


def find_disagreements(
    objects: Sequence[CheckedObject], findings: Sequence[Finding], tools: Iterable[str]
) -> tuple[list[Disagreement], list[Opinion]]:
    """Report objects that only one of jobgen and another tool rejects, and how much each tool checked.

    Raises:
        ToolError: A tool failed.

    """
    found: list[Disagreement] = []
    opinions: list[Opinion] = []
    verdicts = _check_objects(objects, [tool for tool in tools if not find_missing(tool)])
    for tool in tools:
        given = verdicts.get(tool, {})
        found += _compare(tool, [(objects[number], verdict) for number, verdict in given.items()], findings)
        opinions.append(Opinion(tool, len(given), len(objects) - len(given), find_missing(tool)))
    return found, opinions


def _compare(
    tool: str, verdicts: Iterable[tuple[CheckedObject, Verdict]], findings: Iterable[Finding]
) -> Iterator[Disagreement]:
    ours: dict[tuple[str, Identity | None], list[Finding]] = {}
    for finding in findings:
        if finding.category in ("yaml", "schema"):
            # Standalone files may contain objects of the same name, which no environment combines.
            ours.setdefault((finding.env or finding.location.file, finding.object), []).append(finding)
    for checked, verdict in verdicts:
        made = checked.made
        # Also warnings count: unknown fields of kinds that only documentation describes are warnings.
        reported = ours.get((made.env or made.location.file, made.identity), [])
        errors = [finding for finding in reported if finding.severity is Severity.ERROR]
        if verdict.status == "failed":
            message = f"{tool} could not check it: {_shorten(verdict.message)}"
            yield Disagreement(made, _finding(made, _FAILED[tool], message))
        elif verdict.status == "invalid" and not reported:
            message = f"{tool} rejects `{made.identity}`, but jobgen does not: {_shorten(verdict.message)}"
            yield Disagreement(made, _finding(made, _DISAGREES[tool], message), verdict.path)
        elif verdict.status == "valid":
            missed = list(_select_expressible(errors, checked)) if errors else []
            if missed:
                message = f"jobgen rejects `{made.identity}`, but {tool} does not: {_shorten(missed[0].message)}"
                finding = _finding(made, _DISAGREES[tool], message)
                same = ("location", "pointer", "place")
                yield Disagreement(made, finding._replace(**{name: getattr(missed[0], name) for name in same}))


def _select_expressible(findings: Iterable[Finding], checked: CheckedObject) -> Iterator[Finding]:
    """Yield findings that another tool must have, too: those that the schema states."""
    stated = {(problem.rule, problem.message) for problem in checked.find_problems()}
    for finding in findings:
        if (finding.rule, finding.message) in stated and is_expressible(finding, checked.made.object, checked.schema):
            yield finding


def _finding(made: Rendered, rule: str, message: str) -> Finding:
    return Finding(rule, "meta", Severity.WARNING, message, made.location, object=made.identity, env=made.env)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"


def _check_objects(objects: Sequence[CheckedObject], tools: Sequence[str]) -> dict[str, dict[int, Verdict]]:
    """Return the verdicts of each tool, by the number of the object; objects without a schema have none."""
    found: dict[str, dict[int, Verdict]] = {tool: {} for tool in tools}
    by_environment: dict[str, list[int]] = {}
    for number, checked in enumerate(objects):
        by_environment.setdefault(checked.made.env, []).append(number)
    with open_scratch() as scratch:
        # The schema of a kind depends on the cluster: each environment gets its own folder.
        for place, env in enumerate(sorted(by_environment)):
            folder = scratch / str(place)
            refused, written = _write_folder(folder, objects, by_environment[env])
            for tool in tools if written else ():
                found[tool] |= _TOOLS[tool].check(folder, written)
            for tool in tools:
                found[tool] |= refused
    return {tool: dict(sorted(verdicts.items())) for tool, verdicts in found.items()}


def _write_folder(
    folder: Path, objects: Sequence[CheckedObject], numbers: Iterable[int]
) -> tuple[dict[int, Verdict], list[int]]:
    """Write objects and their schemas; return those whose schemas may not be used, and the numbers of the others."""
    (folder / "objects").mkdir(parents=True)
    refused: dict[int, Verdict] = {}
    reasons: dict[Path, str] = {}
    written: list[int] = []
    for number in numbers:
        made, schema, _ = objects[number]
        path = _name_schema(made.object, folder / "schemas") if schema else None
        if path is None:
            continue
        if path not in reasons:
            reasons[path] = _find_fault(schema)
            if not reasons[path]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(schema)
        if reasons[path]:
            refused[number] = Verdict("failed", reasons[path])
        else:
            (folder / "objects" / f"{number}.json").write_text(to_json(made.object), "utf-8")
            written.append(number)
    return refused, written


def _name_schema(obj: Mapping[str, Any], folder: Path) -> Path | None:
    """Return where the tools look for the schema of an object; None if there is no such place."""
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    name = (group or "core", str(obj.get("kind")).lower(), version)
    # The names come from a manifest, so they are untrusted.
    return folder / name[0] / f"{name[1]}_{name[2]}.json" if all(_NAME.fullmatch(part) for part in name) else None


def _find_fault(schema: bytes) -> str:
    """Return why a schema may not be given to other tools: they would follow references to files and the network."""
    try:
        waiting = [json.loads(schema)]
    except (ValueError, RecursionError):
        return "its schema is not JSON"
    for node in waiting:
        if isinstance(node, dict):
            outside = [node[word] for word in _REFERENCES if _is_outside(node.get(word))]
            if outside:
                return f"its schema refers to `{outside[0]}`, which is not in the schema itself"
            dialect = node.get("$schema")
            if isinstance(dialect, str) and not _DIALECT.fullmatch(dialect):
                return f"its schema is written in the dialect `{dialect}`, which is not one of json-schema.org"
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return ""


def _is_outside(reference: object) -> bool:
    return isinstance(reference, str) and not reference.startswith("#")
