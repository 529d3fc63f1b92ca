"""`lint --since` checks only the files whose findings may differ, and says what the comparison of two lints says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from growth import count_calls
from lawfiles import JOBS_REPOSITORY, EditedFolder, Maker
from sampling import sample

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from teams import write_teams

from jobgen import cache
from jobgen.api.errors import JobgenError
from jobgen.api.lint import lint, lint_request, lint_twice
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import LintRequest, open_judge
from jobgen.api.since import Compared, lint_since, set_day
from jobgen.check.rules import all_rules
from jobgen.engine.store import Store
from jobgen.reports import consequences, members, misread, placeholders, unindented

FORMATS = ("text", "json", "sarif")
CONFIG = """\
apiVersion: v1
kind: {kind}
metadata: {{name: settings, namespace: ml}}
{field}: {{{key}: fast}}
"""
READER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: pytorch
  image: registry.example.com/train:{tag}
  resources: {{cpu: 4, memory: 16Gi, gpu: {gpus}}}
  podTemplate:
    spec:
      containers:
        - name: pytorch
          env: [{{name: MODE, valueFrom: {{{source}: {{name: settings, key: mode}}}}}}]
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  cluster: {{budgets: {{teams: {{nlp: {{gpus: {gpus}}}}}}}}}
  defaults: {{{defaults}}}
  patches:
    - match: {{labels: {{team: nlp}}}}
      merge: {{{nlp}}}
    - match: {{labels: {{team: vision}}}}
      merge: {{{vision}}}
"""
TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
spec: {{folders: [jobs/{name}], namespaces: [ml], budget: {{gpus: {gpus}}}}}
"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: {framework}
  image: registry.example.com/{name}:{tag}
  resources: {{cpu: 1, memory: 1Gi, gpu: {gpus}}}
"""


def make_job(name: str, team: str) -> Maker:
    def make(random: Random) -> str:
        text = JOB.format(
            name=random.choice((name, name, name, "same")),
            team=team,
            framework=random.choice(("pytorch", "pytorch", "tensorflow", "pytorhc")),
            tag=random.choice(("1.0", "1.1", "latest")),
            gpus=random.choice((1, 2, 8)),
        )
        comment = "# jobgen: ignore-file[mutable-image-tag] -- known\n" if not random.randrange(8) else ""
        return comment + text

    return make


def make_reader(random: Random) -> str:
    source, tag = random.choice(("configMapKeyRef", "secretKeyRef")), random.choice(("1.0", "latest"))
    return READER.format(name="reader", team="nlp", tag=tag, gpus=1, source=source)


def make_config(random: Random) -> str:
    kind, field = random.choice((("ConfigMap", "data"), ("Secret", "stringData")))
    return CONFIG.format(kind=kind, field=field, key=random.choice(("mode", "Mode")))


def make_overlay(random: Random) -> str:
    merges = (
        "labels: {a: b}",
        "image: 'registry.example.com/other:latest'",
        "env: {LOG: debug}",
        "nodeSelector: {a: b}",
    )
    defaults = random.choice(("", "", "image: 'registry.example.com/d:latest'", "env: {A: '1'}"))
    nlp, vision = random.choice(merges), random.choice(merges)
    lines = random.choice(("", "", "# A comment.\n"))
    return lines + OVERLAY.format(gpus=random.choice((1, 4, 40)), defaults=defaults, nlp=nlp, vision=vision)


TEAMS: Mapping[str, Maker] = {
    **{
        f"jobs/{team}/{name}.yaml": make_job(name, team)
        for team in ("nlp", "vision")
        for name in (f"{team}-a", f"{team}-b", f"{team}-c")
    },
    "jobs/nlp/reader.yaml": make_reader,
    "jobs/nlp/settings.yaml": make_config,
    "overlays/dev/overlay.yaml": make_overlay,
    "overlays/prod/overlay.yaml": make_overlay,
    "teams/nlp.yaml": lambda random: TEAM.format(name="nlp", gpus=random.choice((1, 80))),
    "teams/vision.yaml": lambda random: TEAM.format(name="vision", gpus=80),
    "jobgen.yaml": lambda random: random.choice(("", "rules: {mutable-image-tag: error}\n")),
    "policies/own.yaml": JOBS_REPOSITORY["policies/own.yaml"],
    "schemas/example.dev/dancejob_v1.yaml": JOBS_REPOSITORY["schemas/example.dev/dancejob_v1.yaml"],
}
"""A repository of two teams, with little that concerns all jobs."""
REPOSITORIES = {
    "teams": TEAMS,
    "everything": {**JOBS_REPOSITORY, "jobs/reader.yaml": make_reader, "jobs/settings.yaml": make_config},
}


def compare(folder: Path, judge: str, paths: tuple[str, ...] = ()) -> tuple[object, object]:
    """Return what is said of a change: by a lint of some files, and by two whole lints."""

    def tell(lint: Callable[[LintRequest], object]) -> object:
        try:
            with open_judge(LintRequest(folder, paths), judge) as request:
                found = lint(request)
                fields = found._replace(lines={}, rules=sorted(found.rules), taken=dict(found.taken))
                return [found.to_text(each, show_suppressed=True) for each in FORMATS], fields
        except JobgenError as error:
            return type(error), str(error)

    store = Store()
    return (
        tell(lambda request: lint_request(request, since="HEAD")),
        tell(lambda request: lint_twice(request, "HEAD", store)[1]),
    )


def run_git(folder: Path, *words: str) -> None:
    who = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **who}, capture_output=True)


def lint_some(folder: Path, judge: str = "HEAD") -> Compared:
    """Lint a change without a store."""
    store = Store()
    with open_judge(LintRequest(folder), judge) as request:
        wanted = set_day(request, "HEAD")
        return lint_since(wanted, "HEAD", store, lambda each: ask_findings(each._replace(is_compared=True), store))


@pytest.mark.parametrize("name", REPOSITORIES)
@pytest.mark.parametrize("seed", sample(range(12), 4))
def test_the_same_is_said_as_by_two_whole_lints(seed: int, name: str, tmp_path: Path, stress: int) -> None:
    for round_ in range(stress):
        assert_same_for_edits(Random(f"{name} {seed} {round_}"), tmp_path / str(round_), REPOSITORIES[name])


def assert_same_for_edits(random: Random, folder: Path, makers: Mapping[str, Maker]) -> None:
    """Edit a repository at random, and compare what is said of each change."""
    edited = EditedFolder(folder, makers, random, 0.9)
    edited.commit()
    done: list[str] = []
    for _ in range(4):
        done += [edited.edit() for _ in range(random.choice((1, 1, 2)))]
        judge, paths = random.choice(("HEAD", "HEAD", ".")), random.choice(((), (), ("jobs",)))
        some, whole = compare(folder, judge, paths)
        assert some == whole, done
        if random.randrange(2):
            done.append(edited.commit())


def write_job(name: str, team: str = "nlp") -> str:
    return JOB.format(name=name, team=team, framework="pytorch", tag="1.0", gpus=1)


QUIET = OVERLAY.format(gpus=40, defaults="", nlp="labels: {a: b}", vision="labels: {a: b}")
JOBS = ("jobs/nlp/a.yaml", "jobs/nlp/b.yaml", "jobs/vision/c.yaml")


@pytest.fixture
def repository(tmp_path: Path) -> EditedFolder:
    """A repository without findings: two jobs of a team, and one of another team."""
    edited = EditedFolder(tmp_path / "repository", {}, Random(0))
    for path, name in zip(JOBS, "abc", strict=True):
        edited.write(path, write_job(name, path.split("/")[1]))
    for env in ("dev", "prod"):
        edited.write(f"overlays/{env}/overlay.yaml", QUIET)
    edited.write("teams/nlp.yaml", TEAM.format(name="nlp", gpus=80))
    edited.write("teams/vision.yaml", TEAM.format(name="vision", gpus=80))
    edited.commit()
    return edited


def replace(edited: EditedFolder, path: str, old: str, new: str) -> None:
    text = (edited.folder / path).read_text("utf-8")
    assert old in text
    edited.write(path, text.replace(old, new, 1))


CHANGES: Mapping[str, tuple[Callable[[EditedFolder], None], set[str]]] = {
    "an image": (lambda edited: replace(edited, JOBS[0], ":1.0", ":1.1"), {*JOBS[1:]}),
    "an image that has a finding": (lambda edited: replace(edited, JOBS[0], ":1.0", ":latest"), {*JOBS[1:]}),
    "GPUs": (lambda edited: replace(edited, JOBS[0], "gpu: 1", "gpu: 8"), {*JOBS[1:]}),
    "another job": (lambda edited: edited.write("jobs/nlp/d.yaml", write_job("d")), {*JOBS}),
    "no job": (lambda edited: edited.remove(JOBS[0]), {*JOBS[1:]}),
    "a patch of a team": (
        lambda edited: replace(edited, "overlays/prod/overlay.yaml", "labels: {a: b}", "labels: {a: c}"),
        {JOBS[2]},
    ),
    "a default of all jobs": (
        lambda edited: replace(edited, "overlays/prod/overlay.yaml", "defaults: {}", "defaults: {env: {A: b}}"),
        set(),
    ),
    "a ConfigMap": (
        lambda edited: edited.write("jobs/nlp/d.yaml", CONFIG.format(kind="ConfigMap", field="data", key="mode")),
        set(),
    ),
    "a comment that hides": (
        lambda edited: edited.write(JOBS[1], f"# jobgen: ignore-file[mutable-image-tag] -- x\n{write_job('b')}"),
        {JOBS[0], JOBS[2]},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_files_that_read_the_same_are_not_checked(name: str, repository: EditedFolder) -> None:
    change, same = CHANGES[name]
    change(repository)

    assert lint_some(repository.folder).same.files == same
    some, whole = compare(repository.folder, "HEAD")
    assert some == whole


def test_two_files_that_begin_to_conflict_are_both_checked(repository: EditedFolder) -> None:
    replace(repository, JOBS[1], "name: b", "name: a")

    assert JOBS[0] not in lint_some(repository.folder).same.files
    some, whole = compare(repository.folder, "HEAD")
    assert some == whole
    assert "duplicate-identity" in str(some)


def test_what_facts_say_decides_whether_all_jobs_are_compared(repository: EditedFolder) -> None:
    replace(repository, JOBS[0], ":1.0", ":1.1")
    assert lint_some(repository.folder).same.rules == set()

    replace(repository, JOBS[0], "gpu: 1", "gpu: 8")
    assert {"gpu-budget-exceeded", "team-budget-exceeded"} <= lint_some(repository.folder).same.rules


def test_what_facts_say_decides_however_many_jobs_change(repository: EditedFolder) -> None:
    names = [f"job-{number}" for number in range(60)]
    for name in names:
        repository.write(f"jobs/nlp/{name}.yaml", write_job(name))
    repository.commit()
    for name in names:
        replace(repository, f"jobs/nlp/{name}.yaml", ":1.0", ":1.1")

    same = lint_some(repository.folder).same
    assert (same.files, same.rules) == ({*JOBS}, set())


def test_no_stage_after_the_checks_knows_a_rule_about_several_jobs() -> None:
    """Otherwise such a finding could hide another one, or be hidden, and a lint would have to look for it always."""
    rules = {rule.name for rule in all_rules() if rule.scope == "fleet"}
    stages = (consequences, members, misread, placeholders, unindented)

    for module in stages:
        words = set(re.findall(r"[a-z]+(?:-[a-z]+)+", Path(str(module.__file__)).read_text("utf-8")))
        assert not words & rules, module.__name__


def test_a_stored_lint_of_some_files_is_no_lint_of_all(repository: EditedFolder, tmp_path: Path) -> None:
    replace(repository, JOBS[0], ":1.0", ":latest")
    replace(repository, JOBS[2], ":1.0", ":latest")
    repository.commit()
    replace(repository, JOBS[0], ":latest", ":main")
    folder = repository.folder
    expected = [lint(folder, since="HEAD").findings, lint(folder).findings, lint(folder, since="HEAD~").findings]
    cache.enable(tmp_path / "cache", "test")
    try:
        for _ in range(2):
            since, whole, older = (lint(folder, since="HEAD"), lint(folder), lint(folder, since="HEAD~"))
            assert [since.findings, whole.findings, older.findings] == expected
    finally:
        cache.disable()


SMALL, LARGE = 1, 3
"""How many jobs each of four teams has: what more jobs take is compared."""


def test_a_changed_job_takes_a_fraction_of_a_lint(tmp_path: Path) -> None:
    """Calls of functions for a further job in four environments, with what all jobs together take."""

    def count(name: str, change: Callable[[Path], object], since: str) -> int:
        counts = []
        for jobs in (SMALL, SMALL, LARGE):
            folder = tmp_path / f"{name}-{jobs}-{len(counts)}"
            write_teams(folder, 4, jobs, 4)
            path = folder / "jobs/team-00/changed.yaml"
            path.write_text(write_job("changed"), "utf-8")
            run_git(folder, "add", ".")
            run_git(folder, "commit", "-q", "-m", "Add a job")
            change(folder)
            counts.append(count_calls(lambda: lint(folder, since=since)))  # noqa: B023 -- it is called here
        # The first run loads modules.
        return counts[2] - counts[1]

    def change_job(folder: Path) -> None:
        path = folder / "jobs/team-00/changed.yaml"
        path.write_text(path.read_text("utf-8").replace(":1.0", ":1.1"), "utf-8")

    def change_team(folder: Path) -> None:
        path = folder / "overlays/dev/overlay.yaml"
        text = path.read_text("utf-8")
        assert "namespace: team-01-dev}" in text
        path.write_text(text.replace("team-01-dev}", "team-01-dev, annotations: {a: b}}"), "utf-8")

    whole = count("whole", lambda _: None, "")
    assert count("job", change_job, "HEAD") < 0.28 * whole
    # The jobs of the team are checked at both revisions.
    assert count("team", change_team, "HEAD") < (0.28 + 2 / 4) * whole
