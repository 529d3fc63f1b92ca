"""Read the tests of a repository, and compare the objects of tests with what is expected of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from operator import ge, le
from typing import Any

from jobgen.check.cel import Bound, CompileError, Failed, available, compile_cel
from jobgen.compare.impact import assess_change
from jobgen.compare.snapshot import Snapshot
from jobgen.k8s.nodes import find_nodes
from jobgen.k8s.redaction import MASK, redact, redact_at, redact_tree
from jobgen.k8s.secrets import find_secrets
from jobgen.k8s.secrets_in_text import may_name_secret
from jobgen.model.data import API_VERSION, Location, Node, Plain, TracedKey, locatable, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.build import build_objects, is_spec, job_attributes, manifest_errors
from jobgen.rendering.config import ProjectConfig, find_errors
from jobgen.rendering.environment import EnvironmentRunner, Rendered, new_overlay_use
from jobgen.rendering.expand import JobDocument
from jobgen.rendering.file_secrets import read_masked
from jobgen.rendering.locate import locate
from jobgen.rendering.provenance import NoSuchFieldError, explain_path
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import find_file_secrets, redact_diff
from jobgen.rendering.redact_results import find_layer_secrets
from jobgen.rendering.trace import WHOLE, Job, Tracer
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import MANIFEST_SUFFIXES, File, FileEntry, read_file
from jobgen.repo.walk import walk_files
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible
from jobgen.spec.frameworks import Frameworks
from jobgen.spec.merge import merge
from jobgen.spec.sweeps import is_sweep
from jobgen.yamlio.write import to_yaml

ABSENT: Any = object()
"""In place of a value that the object does not have."""


def find_mismatch(value: Any, expected: Plain, *, hidden: bool = False) -> str:
    """Return how a value differs from what is expected; empty if it does not. With `hidden`, it shows no text."""
    if not isinstance(expected, dict):
        return "" if _equals(value, expected) else f"expected {show(expected, hidden=hidden)}"
    for name, wanted in expected.items():
        is_missing = name != "present" and value is ABSENT
        words, holds = _CONDITIONS[name]
        if is_missing or not holds(value, wanted):
            return f"expected {words}{show(wanted, hidden=hidden)}"
    return ""


def list_conditions() -> list[str]:
    """Return the names of all conditions."""
    return list(_CONDITIONS)


def show(value: Any, *, hidden: bool = False) -> str:
    """Return a value as a short text; with `hidden`, a mask is in place of each text in it."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(_hide_texts(value) if hidden else value, ensure_ascii=False)
    return f"`{text if len(text) <= 200 else text[:200] + '…'}`"


def _hide_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hide_texts(child) for key, child in value.items()}
    if isinstance(value, list):
        return list(map(_hide_texts, value))
    return MASK if isinstance(value, str) else value


def _equals(value: Any, wanted: Any) -> bool:
    # In JSON, true is not 1.
    return value is not ABSENT and type(value) is type(wanted) and value == wanted


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and _equals(value[key], each) for key, each in wanted.items())
    if not isinstance(value, list):
        return False
    mappings = [item for item in value if isinstance(item, dict)] if isinstance(wanted, dict) else []
    return any(_equals(item, wanted) for item in value) or any(_contains(item, wanted) for item in mappings)


def _compare(value: Any, wanted: Any, holds: Callable[[int, int], bool]) -> bool:
    one, other = to_milli(value), to_milli(wanted)
    return one is not None and other is not None and holds(one, other)


_CONDITIONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "equals": ("", _equals),
    "present": ("presence ", lambda value, wanted: (value is not ABSENT) is wanted),
    "matches": ("a text like ", lambda value, wanted: isinstance(value, str) and fnmatchcase(value, str(wanted))),
    "contains": ("something that contains ", _contains),
    "oneOf": ("one of ", lambda value, wanted: isinstance(wanted, list) and any(_equals(value, e) for e in wanted)),
    "min": ("at least ", lambda value, wanted: _compare(value, wanted, ge)),
    "max": ("at most ", lambda value, wanted: _compare(value, wanted, le)),
}
"""The conditions by name: how a failure begins, and what a value must fulfill."""


FOLDER = "tests"
KIND = "JobTests"


class JobTest(NamedTuple):
    """A test: the jobs, the environments, and what is expected of each object."""

    name: str
    file: str
    location: Location
    environments: tuple[str, ...]
    """Shell patterns; all if it is empty."""
    jobs: tuple[str, ...]
    """Shell patterns of names."""
    given: dict[str, Any] | None
    """A job that is only in the test, with locations."""
    given_file: str
    change: Mapping[str, Any] | None
    """Fields that are merged into the spec, with locations."""
    expect: Mapping[str, Any]
    """With locations."""


def read_tests(root: Folder, frameworks: Frameworks, findings: list[Finding]) -> Iterator[JobTest]:
    """Yield the tests of a repository. Other files in the folder are not read."""
    for entry in walk_files(root, FOLDER, MANIFEST_SUFFIXES):
        file = read_file(entry)
        if file.finding:
            findings.append(file.finding)
        # What a file of tests has, also if its kind is misspelled.
        if file.finding or b"jobtest" not in file.content.lower():
            continue
        source = read_masked(file.content, file.path, traced=True)
        findings += source.findings
        for document in source.documents:
            data = document.data
            if str(value_of(data.get("kind"))).lower() in (KIND.lower(), KIND.lower()[:-1]):
                problems = find_errors(data, "jobtests", frameworks) or list(_find_all_errors(data["spec"]))
                findings += (locate(problem, file.path, document.location) for problem in problems)
                if not problems:
                    yield from (_parse_test(test, file.path) for test in data["spec"])


def _parse_test(test: Mapping[str, Any], file: str) -> JobTest:
    given = test.get("given")
    if given is not None and "kind" not in given:
        given = {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": {"name": "given"}, **given}
    return JobTest(
        str(value_of(test["name"])),
        file,
        location_of(test["name"]) or Location(file),
        tuple(untraced(test.get("environments", []))),
        tuple(untraced(test.get("jobs", []))),
        given,
        str(value_of(test.get("file")) or f"jobs/{value_of(test['name'])}.yaml"),
        test.get("change"),
        test["expect"],
    )


def _find_all_errors(tests: list[Mapping[str, Any]]) -> Iterator[Problem]:
    """Report what the schema cannot express."""
    names: set[str] = set()
    for test in tests:
        name = str(value_of(test["name"]))
        if name in names:
            message = Sentence("another test of this file is named `{}`; give each test its own name", name)
            yield Problem("duplicate-item", message, test["name"])
        names.add(name)
        yield from _find_test_errors(test)


def _find_test_errors(test: Mapping[str, Any]) -> Iterator[Problem]:
    has_jobs, has_given = "jobs" in test, "given" in test
    if has_jobs == has_given:
        what = "has both `jobs` and `given`; remove one" if has_jobs else "has no job; write `jobs` or `given`"
        yield Problem(
            "invalid-value", Sentence("the test {}", what), _find_key(test, "given") if has_jobs else test["name"]
        )
    expect = test["expect"]
    has_values, has_snapshot = bool(expect.get("values")), value_of(expect.get("snapshot")) is True
    if not has_values and not has_snapshot and all(key in ("values", "snapshot") for key in expect):
        yield Problem("missing-field", "the test expects nothing, so it cannot fail; add an expectation", test["name"])
    if "effect" in expect and "change" not in test:
        yield Problem("missing-field", "`effect` needs a `change`; add one", _find_key(expect, "effect"))
    for key, expected in expect.get("values", {}).items():
        yield from _find_value_errors(key, expected)


def _find_value_errors(key: Node, expected: Node) -> Iterator[Problem]:
    try:
        steps = parse_dotted(str(key))
    except InvalidPathError as error:
        yield Problem("invalid-value", str(error), key)
        return
    if not steps:
        yield Problem("invalid-value", "the path is empty; write a path of the object, such as `metadata.name`", key)
    if isinstance(expected, dict):
        if not expected or value_of(expected.get("contains", 0)) in ("", [], {}):
            message = Sentence(
                "`{}` has a condition that every value meets; write what is expected, or `present: true`", key
            )
            yield Problem("invalid-value", message, key)
        for name in (name for name in expected if str(name) not in _CONDITIONS):
            hint = did_you_mean(str(name), list_conditions()) or "; write `equals: {…}` to compare a mapping"
            yield Problem("unknown-field", Sentence("`{}` is not a condition{}", name, hint), name)


def _find_key(mapping: Mapping[str, Any], name: str) -> Node:
    return next((key for key in mapping if key == name and type(key) is TracedKey), locatable(mapping))


# Find and render the jobs of tests: those of the repository, and those that are only in a test.


class Subject(NamedTuple):
    """A job of a test in one environment."""

    test: JobTest
    environment: str
    job: Job
    made: tuple[Rendered, ...]
    """Its objects; none if it is not rendered."""
    reason: str
    is_member: bool
    errors: frozenset[str] = frozenset()
    """The rules of the errors because of which it is not rendered."""
    secrets: frozenset[str] = frozenset()
    """What no outcome shows."""


def collect_jobs(project: ProjectConfig, tests: Sequence[JobTest], findings: list[Finding]) -> list[Job]:
    """Read the jobs of the repository that tests name; errors of their files go to `findings`."""
    patterns = tuple(dict.fromkeys(pattern for test in tests for pattern in test.jobs))
    if not patterns:
        return []
    entries: Iterable[FileEntry] = layout.find_jobs(project.root)
    if not any(map(_is_pattern, patterns)):
        # A file may have a job with one of these names if the text of the name is in it. The names of the members of
        # a sweep are not, and a backslash may stand for any character.
        texts = [b"matrix", b"\\", *(pattern.encode("utf-8", "surrogatepass") for pattern in patterns)]
        contents = ((entry, read_file(entry).content) for entry in entries)
        entries = (entry for entry, content in contents if any(text in content for text in texts))
    return select_jobs(read_jobs(entries, project.kinds, findings), patterns)


def _is_pattern(text: str) -> bool:
    return any(letter in text for letter in "*?[")


def select_jobs(jobs: Iterable[Job], patterns: Sequence[str]) -> list[Job]:
    """Return the jobs of which a pattern matches the name, or the name of the sweep."""
    names = {text for text in patterns if not _is_pattern(text)}
    others = [text for text in patterns if text not in names]

    def is_named(name: str) -> bool:
        return bool(name) and (name in names or any(fnmatchcase(name, pattern) for pattern in others))

    return [job for job in jobs if is_named(job.document.name) or is_named(job.document.sweep)]


def make_given(test: JobTest, project: ProjectConfig) -> tuple[Job | None, list[Finding]]:
    """Return the job that a test gives, or what is wrong with it."""
    assert test.given is not None
    problems = find_job_errors(test.given, project)
    if not problems and is_spec(test.given) and is_sweep(test.given):
        message = (
            "a given job has no `matrix`; give one of its members, or write the sweep in jobs/ and name it in `jobs`"
        )
        problems = [Problem("invalid-value", message, test.given["spec"])]
    if problems:
        return None, [locate(problem, test.file, test.location) for problem in problems]
    document = JobDocument(untraced(test.given), test.given_file)
    return Job(document, File(test.given_file), 0, WHOLE, test.location), []


def render_subject(test: JobTest, job: Job, runner: EnvironmentRunner) -> Subject:
    """Render a job of a test in an environment."""
    patches = runner.patches_for(job)
    if patches is None:
        where = f"the environment `{runner.name}`" if runner.name else "the environment"
        return Subject(test, runner.name, job, (), f"it does not belong to {where}", is_member=False)
    made = runner.render_job(job, patches, new_overlay_use())
    reason, errors = "", frozenset[str]()
    if made is None:
        problems: list[Problem] = []
        list(build_objects(job.document, runner.expander, patches, problems, []))
        reason = "it has errors: " + "; ".join(dict.fromkeys(str(problem.sentence) for problem in problems))
        errors = frozenset(problem.rule for problem in problems)
    elif not made:
        reason = f"it {runner.explain_inactive(job)}"
    return Subject(test, runner.name, job, tuple(made or ()), reason, is_member=True, errors=errors)


def find_job_errors(data: Any, project: ProjectConfig) -> list[Problem]:
    """Report what keeps a job, or a manifest, from being rendered."""
    return find_errors(data, "trainingjob", project.frameworks) if is_spec(data) else manifest_errors(data)


def change_job(job: Job, change: Mapping[str, Any]) -> Job:
    """Return a job with other fields."""
    old = job.document.data.get("spec")
    spec = merge(old if isinstance(old, dict) else {}, untraced(change), [])
    return job._replace(document=job.document._replace(data={**job.document.data, "spec": spec}))


def trace_object(subject: Subject, tracer: Tracer) -> Mapping[str, Node] | None:
    """Build the object of a job again, with the location of every value; None if a test changes the job."""
    if subject.test.change is not None:
        return None
    if subject.test.given is None:
        return tracer.trace(subject.job, subject.environment).object
    expander = tracer.expander(subject.environment)
    document = JobDocument(subject.test.given, subject.test.given_file)
    patches = expander.environment.patches_for(job_attributes(document, expander))
    return next(iter(build_objects(document, expander, patches, [], [])), None)


_OF_OBJECTS = ("values", "cel", "effect", "snapshot")
"""What can only be expected of a job that is rendered."""

FindingSource = Callable[[Subject], frozenset[str]]
"""Returns the rules that find errors or warnings in a job."""


class Outcome(NamedTuple):
    """The result of one expectation for one object."""

    test: JobTest
    environment: str
    job: str
    expectation: str
    """What was compared: `values`, `cel`, `findings`, `effect`, `rendered`, `snapshot` or `jobs`."""
    message: str
    """What is wrong; empty if it is as expected."""
    location: Location
    """The line of the expectation."""
    sources: tuple[str, ...] = ()
    """Who set the value."""

    @property
    def is_failed(self) -> bool:
        """True if something is not as expected."""
        return bool(self.message)


class TestRun:
    """Runs tests, and keeps the snapshots that differ."""

    __test__ = False

    def __init__(
        self,
        project: ProjectConfig,
        environments: Sequence[str],
        jobs: Sequence[Job],
        find_rules: FindingSource,
        read_snapshot: Callable[[str], str | None],
    ) -> None:
        self.project = project
        self.runners = [EnvironmentRunner(project, name) for name in environments]
        self.jobs = jobs
        self.find_rules = find_rules
        self.read_snapshot = read_snapshot
        self.tracer = Tracer(project)
        self.layer_secrets = find_layer_secrets(project)
        self.snapshots: dict[str, str] = {}
        """All snapshots of the tests that ran, by path."""

    def run(self, test: JobTest, findings: list[Finding]) -> Iterator[Outcome]:
        """Yield the outcome of each expectation of a test; errors of a given job go to `findings`."""
        if test.given is not None:
            job, errors = make_given(test, self.project)
            findings += errors
            jobs = [job] if job else []
        else:
            jobs = select_jobs(self.jobs, test.jobs)
            for pattern in test.jobs:
                if not select_jobs(jobs, (pattern,)):
                    yield Outcome(test, "", pattern, "jobs", f"there is no job `{pattern}`", test.location)
        patterns = test.environments or ("*",)
        runners = [each for each in self.runners if any(fnmatchcase(each.name, pattern) for pattern in patterns)]
        for job in jobs:
            subjects = [self._render(test, job, runner) for runner in runners]
            if not test.environments and "rendered" not in test.expect:
                # Without environments, those count that the job belongs to.
                subjects = [each for each in subjects if each.is_member] or subjects[:1]
            for subject in subjects:
                yield from self._compare(subject, job)
        if not runners:
            listed = ", ".join(f"`{name}`" for name in test.environments)
            yield Outcome(test, "", "", "jobs", f"there is no environment {listed}", test.location)

    def _render(self, test: JobTest, job: Job, runner: EnvironmentRunner) -> Subject:
        """Render a job as the test changes it."""
        if test.change is None:
            return render_subject(test, job, runner)
        changed = change_job(job, test.change)
        errors = find_job_errors(changed.document.data, self.project)
        if errors:
            reason = f"the changed job has an error: {errors[0].sentence}"
            rules = frozenset(error.rule for error in errors)
            return Subject(test, runner.name, changed, (), reason, is_member=True, errors=rules)
        return render_subject(test, changed, runner)

    def _find_secrets(self, subject: Subject) -> frozenset[str]:
        """Return the secrets of a job, of its objects and layers, and of what the test says about it."""
        test = subject.test
        said = (untraced(each) for each in (test.given, test.change, test.expect) if each is not None)
        own = (find_secrets(each) for each in (*said, *(made.object for made in subject.made)))
        return self.layer_secrets.union(find_file_secrets(subject.job.file.content), *own)

    def _compare(self, subject: Subject, unchanged: Job) -> Iterator[Outcome]:
        expect = subject.test.expect
        subject = subject._replace(secrets=self._find_secrets(subject))
        if "rendered" in expect:
            wanted = value_of(expect["rendered"])
            is_wrong = wanted is not bool(subject.made)
            reason = "the job is rendered" if subject.made else f"the job is not rendered: {subject.reason}"
            yield _conclude(subject, "rendered", reason if is_wrong else "", expect["rendered"])
        if "findings" in expect and (subject.made or subject.errors):
            yield self._compare_findings(subject, expect["findings"])
        if not subject.made:
            is_met = "rendered" in expect or ("findings" in expect and subject.errors)
            if not is_met or any(name in expect for name in _OF_OBJECTS):
                yield _conclude(subject, "jobs", f"the job is not rendered: {subject.reason}", subject.test.location)
            return
        obj = subject.made[0].object
        for key, expected in expect.get("values", {}).items():
            yield self._compare_value(subject, obj, key, expected)
        yield from _evaluate_expressions(subject, obj, expect.get("cel", ()))
        if "effect" in expect:
            yield self._compare_effect(subject, unchanged, expect["effect"])
        if value_of(expect.get("snapshot")) is True:
            yield self._compare_snapshot(subject, expect["snapshot"])

    def _compare_value(self, subject: Subject, obj: Any, key: Node, expected: Node) -> Outcome:
        steps, wanted = parse_dotted(str(key)), untraced(expected)
        for value in _find_values(obj, steps):
            shown = ABSENT if value is ABSENT else redact_at(value, obj, steps, subject.secrets)
            # What is expected in place of a secret is one, too.
            is_secret = shown != value or may_name_secret(str(key)) or value_of(obj.get("kind")) == "Secret"
            mismatch = find_mismatch(value, wanted, hidden=is_secret)
            if mismatch:
                is_what = "is missing" if value is ABSENT else f"is {show(shown)}"
                found = _conclude(subject, "values", f"`{key}` {is_what}, {mismatch}", key)
                traced = None if "*" in steps else trace_object(subject, self.tracer)
                sources = _list_sources(traced, steps, hidden=is_secret) if traced is not None else ()
                return found._replace(sources=sources)
        return _conclude(subject, "values", "", key)

    def _compare_findings(self, subject: Subject, expected: Sequence[Node]) -> Outcome:
        wanted = frozenset(str(value_of(rule)) for rule in expected)
        found = self.find_rules(subject) if subject.made else subject.errors
        parts = [f"`{rule}` is found and not expected" for rule in sorted(found - wanted)]
        parts += [f"`{rule}` is expected and not found" for rule in sorted(wanted - found)]
        location = location_of(expected) if expected else None
        return _conclude(subject, "findings", "; ".join(parts), location or subject.test.location)

    def _compare_effect(self, subject: Subject, unchanged: Job, expected: Node) -> Outcome:
        runner = next(each for each in self.runners if each.name == subject.environment)
        before = render_subject(subject.test, unchanged, runner)
        wanted = str(value_of(expected))
        if not before.made:
            return _conclude(subject, "effect", f"without `change`, it is not rendered: {before.reason}", expected)
        name = subject.environment
        old, new = (
            Snapshot(name, self.project, [name], list(each.made), [], {}, self.project.root)
            for each in (before, subject)
        )
        impact = assess_change(old, new, before.made[0], subject.made[0])
        effect = "none" if impact.action == "unchanged" else impact.outcome.effect.value
        reason = f" ({impact.outcome.reason})" if impact.outcome.reason else ""
        message = f"the effect is `{effect}`{reason}, expected `{wanted}`" if effect != wanted else ""
        return _conclude(subject, "effect", message, expected)

    def _compare_snapshot(self, subject: Subject, expected: Node) -> Outcome:
        path = name_snapshot(subject)
        secrets = frozenset[str]().union(*(find_secrets(each.object) for each in subject.made))
        text = "---\n".join(to_yaml(redact_tree(untraced(each.object), secrets)) for each in subject.made)
        if self.snapshots.setdefault(path, text) != text:
            others = "give the tests names that differ in letters or digits"
            return _conclude(subject, "snapshot", f"another test also has the snapshot {path}; {others}", expected)
        known = self.read_snapshot(path)
        if known is None:
            message = f"there is no snapshot {path}; run `jobgen test --update`"
            return _conclude(subject, "snapshot", message, expected)
        if known == text:
            return _conclude(subject, "snapshot", "", expected)
        lines = list(unified_diff(known.splitlines(), text.splitlines(), path, "rendered", n=2, lineterm=""))
        found = _conclude(subject, "snapshot", f"the manifest differs from {path}", expected)
        shown = (redact(line, subject.secrets) for line in redact_diff(lines[:40], known))
        return found._replace(sources=tuple(shown))


def _list_sources(traced: Mapping[str, Node], steps: tuple[Step, ...], *, hidden: bool) -> tuple[str, ...]:
    """Return the layers that set a value, the last first."""
    try:
        leaves = list(explain_path(traced, steps))
    except NoSuchFieldError:
        return ()
    return tuple(
        f"{each.location or 'jobgen'}  {each.layer}: {show(untraced(each.value), hidden=hidden)}"
        for leaf in leaves[:1]
        for each in leaf.assignments[:5]
    )


def name_snapshot(subject: Subject) -> str:
    """Return the path of a snapshot."""
    stem = subject.test.file.rpartition("/")[2].rpartition(".")[0]
    names = (subject.test.name, subject.environment, subject.job.document.name)
    safe = ("".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)[:80] for name in names)
    return f"{FOLDER}/snapshots/{stem}/{'.'.join(filter(None, safe))}.yaml"


def _find_values(node: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    """Yield the values at a path; `ABSENT` for each item of `*` that has none, and if there are no items."""
    if "*" not in steps:
        yield from list(find_nodes(node, steps)) or [ABSENT]
        return
    star = steps.index("*")
    items = list(find_nodes(node, steps[: star + 1]))
    for item in items:
        yield from _find_values(item, steps[star + 1 :])
    if not items:
        yield ABSENT


def _evaluate_expressions(subject: Subject, obj: Mapping[str, Any], expressions: Sequence[Node]) -> Iterator[Outcome]:
    message = available() if expressions else ""
    bound = Bound({"object": obj}) if expressions and not message else None
    for node in expressions:
        text = str(value_of(node))
        # What an expression compares with the value of a secret is one, too.
        shown = f"`{text}`" if not may_name_secret(text) else "the expression, which names a secret,"
        compiled = compile_cel(text, ("object",)) if bound is not None else None
        if isinstance(compiled, CompileError):
            message = f"{shown} is not an expression: {compiled.message}"
        elif compiled is not None and bound is not None:
            value = compiled(bound)
            message = f"{shown} cannot be evaluated: {value.message}" if isinstance(value, Failed) else ""
            if not message and value is not True:
                message = f"{shown} is {show(redact_tree(value, subject.secrets))}, expected `true`"
        yield _conclude(subject, "cel", message, node)


def _conclude(subject: Subject, expectation: str, message: str, node: Node | Location) -> Outcome:
    location = node if isinstance(node, Location) else location_of(node) or subject.test.location
    shown = redact(message, subject.secrets)
    return Outcome(subject.test, subject.environment, subject.job.document.name, expectation, shown, location)


def summarize(outcomes: Sequence[Outcome], errors: Sequence[Finding]) -> str:
    """Return how many expectations there were, and how many are not met."""
    failed = sum(1 for each in outcomes if each.is_failed)
    tests = {(each.test.file, each.test.name) for each in outcomes}
    counts = f"{pluralize(len(outcomes), 'expectation')} of {pluralize(len(tests), 'test')}"
    parts = [f"{failed} failed"] if failed else []
    files = sorted({each.location.file for each in errors})
    where = f"in {visible(files[0])}" if len(files) == 1 else f"in {len(files)} files"
    parts += [f"{pluralize(len(errors), 'error')} {where}"] if errors else []
    return f"{counts}: {', '.join(parts) or 'all ok'}"
