"""Check the objects of a run with kubeconform or jsonschema, and point at the fields that they reject."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import jobgen
from jobgen.api.errors import ToolError
from jobgen.engine.programs import find_here
from jobgen.model.data import Node
from jobgen.model.finding import Finding, Identity, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import redact_findings
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.run_values import RunRequest, RunResult
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo.atomic import open_scratch
from jobgen.repo.files import FileEntry
from jobgen.reports import Opinion
from jobgen.yamlio.write import to_json

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


def run_jsonschema(folder: Path, numbers: Sequence[int], shipped: Collection[int] = ()) -> dict[int, Verdict]:
    """Return what jsonschema says about the files of `objects`, by their numbers.

    It runs in a process of its own: an expression in a schema of the repository may take forever. The schemas of the
    objects in `shipped` are those of jobgen, whose own tests check that they are valid: that takes half a second each.

    Raises:
        ToolError: jsonschema failed, or took too long.

    """
    seconds = limit_time(len(numbers))
    # A module in the current folder is not imported; jobgen may be in a zip file, which is not on the path.
    path = os.pathsep.join(filter(None, (str(Path(jobgen.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "jobgen.features.second_opinion.json_schema_process", str(folder)]
    numbered = json.dumps([(number, number in shipped) for number in numbers])
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
    if find_here("kubeconform"):
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
    command = [
        find_here("kubeconform") or "kubeconform",
        "-strict",
        "-verbose",
        "-ignore-missing-schemas",
        "-output",
        "json",
    ]
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


_CONSTRAINTS = frozenset(
    """enum const pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems
    maxItems uniqueItems minProperties maxProperties required not oneOf""".split()
)


def is_expressible(finding: Finding, obj: Any, schema: bytes) -> bool:
    """Return True if the schema of an object states what a finding reports.

    `format` is a remark to other tools, and quantities, times and base64 have no other words in a schema. A whole
    number that does not fit into 64 bits is an integer to them, and not to Kubernetes.
    """
    if finding.rule in ("unknown-field", "missing-field"):
        return True
    steps = [step.replace("~1", "/").replace("~0", "~") for step in finding.pointer.split("/")[1:]]
    if finding.rule == "wrong-type":
        value = _find_value(obj, steps)
        return not (isinstance(value, (int, float)) and float(value).is_integer() and abs(value) >= 2**53)
    if finding.rule not in ("invalid-form", "invalid-value", "invalid-quantity"):
        return False
    return any(_CONSTRAINTS & node.keys() for node in _find_nodes(json.loads(schema), steps))


def _find_value(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _find_nodes(root: Any, steps: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema that apply to the value at a path. A schema may refer to itself without end."""
    waiting = [(root, 0)]
    for node, depth in waiting:
        if not isinstance(node, dict) or len(waiting) > 100:
            continue
        if depth == len(steps):
            yield node
        elif isinstance(node.get("properties"), dict) and steps[depth] in node["properties"]:
            waiting.append((node["properties"][steps[depth]], depth + 1))
        else:
            waiting += [(node[word], depth + 1) for word in ("items", "additionalProperties") if word in node]
        waiting += [(child, depth) for word in ("allOf", "anyOf") for child in node.get(word) or ()]
        reference = node.get("$ref")
        if isinstance(reference, str):
            waiting.append((_find_value(root, reference.split("/")[1:]), depth))


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
    is_built: bool = False
    """True if it is built from several files: a finding about it can be in any of them."""
    has_own_schema: bool = False
    """True if the repository has its schema, rather than jobgen."""


class Disagreement(NamedTuple):
    """A finding about an object, and the path of the field that it is about; empty if that is not known."""

    made: Rendered
    finding: Finding
    path: Sequence[str | int] = ()


def find_missing(tool: str) -> str:
    """Why a tool cannot be run, with what to do about it; empty if it can."""
    return find_missing_jsonschema() if tool == "jsonschema" else find_missing_kubeconform()


def find_disagreements(
    objects: Sequence[CheckedObject], findings: Sequence[Finding], names: Iterable[str]
) -> tuple[list[Disagreement], list[Opinion]]:
    """Report objects that only one of jobgen and another tool rejects, and how much each tool checked.

    Raises:
        ToolError: A tool failed.

    """
    found: list[Disagreement] = []
    opinions: list[Opinion] = []
    verdicts = _check_objects(objects, [tool for tool in names if not find_missing(tool)])
    for tool in names:
        given = verdicts.get(tool, {})
        found += _compare(tool, [(objects[number], verdict) for number, verdict in given.items()], findings)
        opinions.append(Opinion(tool, len(given), len(objects) - len(given), find_missing(tool)))
    return found, opinions


_DISAGREES = {"jsonschema": "jsonschema-disagrees", "kubeconform": "kubeconform-disagrees"}
_FAILED = {"jsonschema": "jsonschema-failed", "kubeconform": "kubeconform-failed"}


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
        message, missed = "", None
        if verdict.status == "failed":
            message = f"{tool} could not check it: {_shorten(verdict.message)}"
        elif verdict.status == "invalid" and not reported and not (checked.is_built and checked.find_problems()):
            message = f"{tool} rejects `{made.identity}`, but jobgen does not: {_shorten(verdict.message)}"
        elif verdict.status == "valid":
            missed = _find_missed(checked, [each for each in reported if each.severity is Severity.ERROR])
            if missed is not None:
                message = f"jobgen rejects `{made.identity}`, but {tool} does not: {_shorten(missed.message)}"
        if not message:
            continue
        found = Finding(
            (_FAILED if verdict.status == "failed" else _DISAGREES)[tool],
            "meta",
            Severity.WARNING,
            message,
            made.location,
            object=made.identity,
            env=made.env,
        )
        if missed is not None:
            found = found._replace(location=missed.location, pointer=missed.pointer, place=missed.place)
        yield Disagreement(made, found, verdict.path if verdict.status == "invalid" else ())


def _find_missed(checked: CheckedObject, errors: Sequence[Finding]) -> Finding | None:
    """Return the first error that another tool must also have: one that the schema states."""
    stated = {problem.fault for problem in checked.find_problems()} if errors else set()
    same = (each for each in errors if each.fault in stated)
    return next((each for each in same if is_expressible(each, checked.made.object, checked.schema)), None)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "…"


def _check_objects(objects: Sequence[CheckedObject], names: Sequence[str]) -> dict[str, dict[int, Verdict]]:
    """Return the verdicts of each tool, by the number of the object; objects without a schema have none."""
    found: dict[str, dict[int, Verdict]] = {tool: {} for tool in names}
    by_environment: dict[str, list[int]] = {}
    for number, checked in enumerate(objects):
        by_environment.setdefault(checked.made.env, []).append(number)
    with open_scratch() as scratch:
        # The schema of a kind depends on the cluster: each environment gets its own folder.
        for place, env in enumerate(sorted(by_environment)):
            folder = scratch / str(place)
            refused, written = _write_folder(folder, objects, by_environment[env])
            shipped = frozenset(number for number in written if not objects[number].has_own_schema)
            for tool in names if written else ():
                found[tool] |= (
                    run_jsonschema(folder, written, shipped)
                    if tool == "jsonschema"
                    else run_kubeconform(folder, written)
                )
            for tool in names:
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
        made, schema, *_ = objects[number]
        group, _, version = str(made.object.get("apiVersion")).rpartition("/")
        names = (group or "core", str(made.object.get("kind")).lower(), version)
        # The names come from a manifest, so they are untrusted. Tools look for the schema there.
        if not schema or not all(map(_NAME.fullmatch, names)):
            continue
        path = folder / "schemas" / names[0] / f"{names[1]}_{names[2]}.json"
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


def _find_fault(schema: bytes) -> str:
    """Return why a schema may not be given to other tools: they would follow references to files and the network."""
    try:
        waiting = [json.loads(schema)]
    except (ValueError, RecursionError):
        return "its schema is not JSON"
    for node in waiting:
        if isinstance(node, dict):
            references = [node.get(word) for word in _REFERENCES]
            outside = [each for each in references if isinstance(each, str) and not each.startswith("#")]
            if outside:
                return f"its schema refers to `{outside[0]}`, which is not in the schema itself"
            dialect = node.get("$schema")
            if isinstance(dialect, str) and not _DIALECT.fullmatch(dialect):
                return f"its schema is written in the dialect `{dialect}`, which is not one of json-schema.org"
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return ""


def check_run(result: RunResult, names: Sequence[str]) -> tuple[list[Finding], list[Opinion]]:
    """Check all objects of a run with other tools; return what they find, and how much they checked.

    Raises:
        ToolError: A tool failed.

    """
    project, files = result.request.project, result.request.files
    runners = {name: EnvironmentRunner(project, name) for name in result.layers.environments}
    checkers = {name: EnvironmentChecker(runner, files=files).checker for name, runner in runners.items()}
    alone = {entry.path for entry in files.entries if entry.build is None and not entry.is_source}
    objects = []
    for made in result.objects:
        checker = checkers[made.env]
        manifest = checker.manifest(made.object)
        schema, has_own = checker.read_json_schema(manifest), checker.has_own_schema(manifest)
        find_problems = partial(checker.find_schema_problems, made.object)
        is_built = files.are_loose and made.location.file not in alone
        objects.append(CheckedObject(made, schema, find_problems, is_built, has_own))
    found, opinions = find_disagreements(objects, result.findings, names)
    located = _redact(result.request, _locate_all(result.request, found))
    return list(filter(None, map(project.apply_severity, located))), opinions


def _redact(run: RunRequest, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings without secrets: another program shows values that jobgen leaves out."""
    builds = [entry.build for entry in run.files.entries if entry.build is not None]
    for finding in redact_shared(run.project, findings):
        yield from redact_findings([finding], (file for build in builds for file in build.read_sources(finding)))


def _locate_all(run: RunRequest, found: Iterable[Disagreement]) -> Iterator[Finding]:
    """Yield the findings, each at the field that it is about, if its path leads to one."""
    tracer = Tracer(run.project)
    entries: dict[str, FileEntry] = {}
    for each in found:
        if each.path and not entries:
            entries = {entry.path: entry for entry in run.files.list_all(run.project.root)}
        entry = entries.get(each.made.location.file) if each.path else None
        jobs = read_jobs([entry], run.project.kinds, []) if entry else ()
        place = (each.made.position, each.made.item)
        job = next((job for job in jobs if (job.position, job.item) == place), None)
        yield _locate(tracer, job, each) if job else each.finding


def _locate(tracer: Tracer, job: Job, each: Disagreement) -> Finding:
    finding = each.finding

    def check(obj: Any) -> list[Problem]:
        node = find_node(obj, each.path)
        return [Problem(finding.rule, finding.message, node, category=finding.category, severity=finding.severity)]

    found = tracer.findings(job, each.made.env, check, each.made.companion)
    return found[0] if found[0].pointer else finding


def find_node(tree: Node, path: Sequence[str | int]) -> Node:
    """Return the node at a path, or the last one on the way: a field may be missing, or no field at all."""

    def select(node: Any, step: str) -> Node:
        if isinstance(node, list):
            return node[int(step)] if step.isdecimal() and len(step) < 10 and int(step) < len(node) else None
        return node.get(step) if isinstance(node, dict) else None

    steps = list(map(str, path))
    while steps:
        # kubeconform does not escape slashes, so a name with slashes is several steps.
        found = ((length, select(tree, "/".join(steps[:length]))) for length in range(1, len(steps) + 1))
        length, child = next((each for each in found if each[1] is not None), (len(steps), tree))
        tree, steps = child, steps[length:]
    return tree
