"""Compare the objects of tests with what is expected of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from jobgen.check.cel import Bound, CompileError, Failed, available, compile_cel
from jobgen.compare.impact import assess_change
from jobgen.compare.snapshot import Snapshot
from jobgen.features.testing.cases import ABSENT, FOLDER, JobTest, find_mismatch, show
from jobgen.k8s.nodes import find_nodes
from jobgen.k8s.secrets import find_secrets, may_name_secret, redact, redact_tree
from jobgen.model.data import Location, Node, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.path import Step, parse_dotted
from jobgen.rendering.build import build_objects, is_spec, job_attributes, manifest_errors
from jobgen.rendering.config import ProjectConfig, find_errors
from jobgen.rendering.environment import EnvironmentRunner, Rendered, new_overlay_use
from jobgen.rendering.expand import JobDocument
from jobgen.rendering.locate import locate
from jobgen.rendering.provenance import NoSuchFieldError, explain_path
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import find_file_secrets, redact_diff
from jobgen.rendering.redact_results import find_layer_secrets
from jobgen.rendering.trace import WHOLE, Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible
from jobgen.reports.shard_part import ShardPart
from jobgen.spec.merge import merge
from jobgen.spec.sweeps import is_sweep
from jobgen.yamlio.write import to_yaml

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
    return select_jobs(read_jobs(entries, project.frameworks, findings), patterns)


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
        reason = "it has errors: " + "; ".join(dict.fromkeys(problem.message for problem in problems))
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
            reason = f"the changed job has an error: {errors[0].message}"
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
            shown = ABSENT if value is ABSENT else redact_tree(value, subject.secrets)
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


def summarize(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Return how many expectations there were, and how many are not met."""
    failed = sum(1 for each in outcomes if each.message)
    tests = {(each.test.file, each.test.name) for each in outcomes}
    counts = f"{pluralize(len(outcomes), 'expectation')} of {pluralize(len(tests), 'test')}"
    parts = [f"{failed} failed"] if failed else []
    files = sorted({each.location.file for each in errors})
    where = f"in {visible(files[0])}" if len(files) == 1 else f"in {len(files)} files"
    parts += [f"{pluralize(len(errors), 'error')} {where}"] if errors else []
    share = f"{shard.shard}: " if shard else ""
    return f"{share}{counts}: {', '.join(parts) or 'all ok'}"
