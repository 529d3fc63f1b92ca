"""`lint --since` checks only the files whose findings may differ, and says what the comparison of two lints says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from growth import count_calls
from lawfiles import JOBS_REPOSITORY, EditedFolder, Maker
from sampling import sample

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from teams import write_teams

from jobgen import cache, diff
from jobgen.api.errors import JobgenError
from jobgen.api.lint import LintResult, lint, lint_request, lint_twice
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
QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: default, namespace: ml}
spec: {clusterQueue: gpus}
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
_MATCHES = (
    "{teams: [nlp]}",
    "{teams: [vision]}",
    "{names: [nlp-a]}",
    "{labels: {team: nlp}}",
    "{frameworks: [tensorflow]}",
)
_MERGES = (
    "{image: 'registry.example.com/other:latest'}",
    "{image: 'registry.example.com/other:1.0'}",
    "{env: {LOG: debug}}",
    "{env: {VISIBLE: 0,1,2}}",
    "{env: {ZONE: '<ZONE>'}}",
    "{resources: {gpu: 8}}",
    "{resources: {gpus: 8}}",
    "{roles: {wroker: {replicas: 2}}}",
    "{nodeSelector: {pool: a}}",
    "{nodeSelector: {pool: null}}",
    "{command: [torchrun, --nnodes=4, train.py]}",
    "{queue: train}",
    "{run: {expires: 2026-06-01}}",
    "{volumes: {data: {pvc: data, mountPath: /data}}}",
)
_MANIFESTS = (
    "{metadata: {labels: {stage: test}}}",
    "{metadata: {namespace: other}}",
    "{spec: {runPolicy: {backofLimit: 3}}}",
    "{spec: {runPolicy: {backoffLimit: many}}}",
)


def make_blocks(random: Random) -> str:
    """Return an overlay with patches and defaults for some jobs, each on lines of its own, some with faults."""
    lines = ["# A comment."] * random.randrange(3) + ["apiVersion: jobgen.dev/v1", "kind: Overlay", "spec:"]
    lines += random.choice(([], [], ["  jobs: {teams: [nlp]}"], ["  jobs: {names: ['*-a', '*-b']}"]))
    lines += random.choice(([], ["  namespace: ml"], ["  namespace: 'ml-{team}'"]))
    lines += random.choice(
        ([], [], ["  locked: [nodeSelector]"], ["  images: [{name: registry.example.com/nlp-a, newTag: '3'}]"])
    )
    lines += random.choice(([], [], ["  cluster: {budgets: {teams: {nlp: {gpus: 2}}}}"]))
    for key in ("defaults", "patches"):
        count = random.randrange(4)
        lines += [f"  {key}:"] if count else []
        for _ in range(count):
            lines += ["    # It is about some jobs."] * (random.randrange(4) == 0)
            lines += [f"    - match: {random.choice(_MATCHES)}"]
            kind = random.choice(("merge", "merge", "manifest")) if key == "patches" else "merge"
            value = random.choice(_MERGES if kind == "merge" else _MANIFESTS)
            if random.randrange(3):
                lines += [f"      {kind}: {value}"]
            else:
                name, _, rest = value[1:-1].partition(": ")
                lines += [f"      {kind}:", f"        {name}: {rest}"]
    return "\n".join(lines if len(lines) > 6 else [*lines, "  defaults: {env: {A: '1'}}"]) + "\n"


def make_faulty(random: Random) -> str:
    """Return a job, or one that cannot be rendered, which matches other patches without its faults."""
    text = make_job("nlp-f", "nlp")(random)
    fault = random.choice(
        ("", "  replicas: many\n", "  imag: x\n", "  env: {A: [1]}\n", "  run: {expires: 2026-06-01}\n")
    )
    labels = random.choice(("{team: nlp}", "{team: [nlp]}", "{team: vision}"))
    return text.replace("{team: nlp}", labels) + fault


def make_many(random: Random) -> str:
    """Return several jobs in a file, or a sweep, or manifests that others refer to."""
    job = JOB.format(name="vision-m", team="vision", framework="pytorch", tag="1.0", gpus=random.choice((1, 4)))
    sweep = "  matrix: {lr: ['1', '2']}\n  command: [train, '${{ matrix.lr }}']\n"
    return random.choice(
        (
            job + sweep,
            job + "---\n" + job.replace("vision-m", "vision-n"),
            job + "  configs: {settings: {mountPath: /etc/x, files: {mode: fast}}}\n",
            CONFIG.format(kind="ConfigMap", field="data", key="mode") + "---\n" + job,
            QUEUE,
        )
    )


LAYERS: Mapping[str, Maker] = {
    **{path: make for path, make in TEAMS.items() if path.startswith(("jobs/", "policies/", "schemas/"))},
    "jobs/nlp/faulty.yaml": make_faulty,
    "jobs/vision/many.yaml": make_many,
    **{f"overlays/{env}/overlay.yaml": make_blocks for env in ("base", "dev", "prod")},
    "overlays/prod/more.yaml": make_blocks,
    "overlays/sub/overlay.yaml": lambda random: make_blocks(random).replace("spec:", "spec:\n  extends: [base]", 1),
    "teams/nlp.yaml": TEAMS["teams/nlp.yaml"],
    "teams/vision.yaml": lambda random: TEAM.format(name="vision", gpus=random.choice((2, 80))),
}
"""A repository of two teams, whose overlays have many patches and defaults for some jobs, often with faults."""
REPOSITORIES = {
    "teams": TEAMS,
    "layers": LAYERS,
    "everything": {**JOBS_REPOSITORY, "jobs/reader.yaml": make_reader, "jobs/settings.yaml": make_config},
}


FIELDS = """captures directory environments files findings left_out merged objects opinions pruned root rules skipped
    suppressed taken trees weaker""".split()


def compare(folder: Path, judge: str, paths: tuple[str, ...] = ()) -> tuple[object, object]:
    """Return what is said of a change: by a lint of some files, and by two whole lints."""

    def tell(lint: Callable[[LintRequest], LintResult]) -> object:
        try:
            with open_judge(LintRequest(folder, paths), judge) as request:
                found = lint(request)
                fields = {name: getattr(found, name) for name in FIELDS}
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


OF_VISION = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  jobs: {teams: [vision]}\n"
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


def pair(files: Sequence[str], *envs: str) -> set[tuple[str, str]]:
    """Return files, each with each of the environments, by default with both."""
    return {(file, env) for file in files for env in envs or ("dev", "prod")}


PROD = "overlays/prod/overlay.yaml"
CHANGES: Mapping[str, tuple[Callable[[EditedFolder], None], set[tuple[str, str]]]] = {
    "an image": (lambda edited: replace(edited, JOBS[0], ":1.0", ":1.1"), pair(JOBS[1:])),
    "an image that has a finding": (lambda edited: replace(edited, JOBS[0], ":1.0", ":latest"), pair(JOBS[1:])),
    "GPUs": (lambda edited: replace(edited, JOBS[0], "gpu: 1", "gpu: 8"), pair(JOBS[1:])),
    "another job": (lambda edited: edited.write("jobs/nlp/d.yaml", write_job("d")), pair(JOBS)),
    "no job": (lambda edited: edited.remove(JOBS[0]), pair(JOBS[1:])),
    "a patch of a team": (
        lambda edited: replace(edited, PROD, "labels: {a: b}", "labels: {a: c}"),
        pair(JOBS, "dev") | pair(JOBS[2:], "prod"),
    ),
    "a line that says the same of a team": (
        lambda edited: replace(edited, PROD, "labels: {a: b}", "labels: {'a': b}"),
        pair(JOBS, "dev") | pair(JOBS[2:], "prod"),
    ),
    "a line that says the same of all": (
        lambda edited: replace(edited, PROD, "namespace: ml", "namespace: 'ml'"),
        pair(JOBS, "dev"),
    ),
    "lines above a patch": (
        lambda edited: replace(edited, PROD, "    - match", "    # Of a team.\n    - match"),
        pair(JOBS, "dev") | pair(JOBS[2:], "prod"),
    ),
    "a default of all jobs": (
        lambda edited: replace(edited, PROD, "defaults: {}", "defaults: {env: {A: b}}"),
        pair(JOBS, "dev"),
    ),
    "a default of a team": (
        lambda edited: replace(
            edited, PROD, "defaults: {}", "defaults:\n    - match: {teams: [nlp]}\n      merge: {env: {A: b}}"
        ),
        pair(JOBS, "dev"),
    ),
    "a patch of a team with an anchor": (
        lambda edited: replace(edited, PROD, "merge: {labels: {a: b}}", "merge: {labels: {a: &tag b}}"),
        pair(JOBS, "dev"),
    ),
    "an environment of a team": (
        lambda edited: edited.write("overlays/prod/overlay.yaml", f"{OF_VISION}  namespace: ml\n"),
        pair(JOBS, "dev"),
    ),
    "a ConfigMap": (
        lambda edited: edited.write("jobs/nlp/d.yaml", CONFIG.format(kind="ConfigMap", field="data", key="mode")),
        set(),
    ),
    "a comment that hides": (
        lambda edited: edited.write(JOBS[1], f"# jobgen: ignore-file[mutable-image-tag] -- x\n{write_job('b')}"),
        pair((JOBS[0], JOBS[2])),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_files_that_read_the_same_are_not_checked(name: str, repository: EditedFolder) -> None:
    change, same = CHANGES[name]
    change(repository)

    assert lint_some(repository.folder).same.pairs == same
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
    same = lint_some(repository.folder).same
    assert same.list_rules("prod") >= {"gpu-budget-exceeded", "team-budget-exceeded"}
    assert same.teams == {"nlp"}


def test_a_budget_of_an_environment_decides_there(repository: EditedFolder) -> None:
    replace(repository, PROD, "nlp: {gpus: 40}", "nlp: {gpus: 1}")

    same = lint_some(repository.folder, ".").same
    # The file in which the jobs are reported is checked in all environments.
    assert same.pairs == pair(JOBS[1:], "dev")
    assert "gpu-budget-exceeded" in same.list_rules("prod") - same.list_rules("dev")
    some, whole = compare(repository.folder, ".")
    assert some == whole
    assert "gpu-budget-exceeded" in str(some)


def test_what_facts_say_decides_however_many_jobs_change(repository: EditedFolder) -> None:
    names = [f"job-{number}" for number in range(60)]
    for name in names:
        repository.write(f"jobs/nlp/{name}.yaml", write_job(name))
    repository.commit()
    for name in names:
        replace(repository, f"jobs/nlp/{name}.yaml", ":1.0", ":1.1")

    same = lint_some(repository.folder).same
    assert (same.pairs, same.rules) == (pair(JOBS), set())


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

    def count(name: str, change: Callable[[Path], object], work: Callable[[Path], object], *sizes: int) -> int:
        counts = []
        for jobs in sizes:
            folder = tmp_path / f"{name}-{jobs}"
            write_teams(folder, 4, jobs, 4)
            (folder / CHANGED).write_text(write_job("changed"), "utf-8")
            run_git(folder, "add", ".")
            run_git(folder, "commit", "-q", "-m", "Add a job")
            change(folder)
            counts.append(count_calls(lambda: work(folder)))  # noqa: B023 -- it is called here
        return counts[-1] - counts[0]

    # The first run loads modules and schemas.
    count("first", change_tag, lint_change, LARGE)
    whole = count("whole", change_tag, lint, SMALL, LARGE)
    assert count("job", change_tag, lint_change, SMALL, LARGE) < 0.25 * whole
    assert count("GPUs", change_gpus, lint_change, SMALL, LARGE) < 0.25 * whole
    # Most of it is the render of both sides, whose share falls with the jobs: 0.2 here, 0.15 of 1,000 jobs.
    assert count("diff", change_tag, lambda folder: diff(folder, "HEAD"), SMALL, LARGE) < 0.22 * whole
    # The jobs of one team of four are checked in one environment of four, at both revisions, and compared.
    assert count("team", change_team, lint_change, SMALL, LARGE) < (0.25 + 1 / 4) * whole


CHANGED = "jobs/team-00/changed.yaml"


def lint_change(folder: Path) -> object:
    return lint(folder, since="HEAD")


def change_tag(folder: Path) -> None:
    path = folder / CHANGED
    path.write_text(path.read_text("utf-8").replace(":1.0", ":1.1"), "utf-8")


def change_gpus(folder: Path) -> None:
    path = folder / CHANGED
    path.write_text(path.read_text("utf-8").replace("gpu: 1", "gpu: 8"), "utf-8")


def change_team(folder: Path) -> None:
    path = folder / "overlays/dev/overlay.yaml"
    text = path.read_text("utf-8")
    assert "namespace: team-01-dev}" in text
    path.write_text(text.replace("team-01-dev}", "team-01-dev, annotations: {a: b}}"), "utf-8")
