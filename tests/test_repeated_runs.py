"""A run after a change of one job among many does the work of that job, and little for each of the others.

Work is counted in calls, which are the same on a busy machine. The shares of a lint without a cache are lower in a
large repository: what is the same for any number of jobs, such as loading overlays, is most of what these runs do here.
"""

from __future__ import annotations

import cProfile
import pstats
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gitrepository import Repository
from linting import lint_paths

from jobgen import cache, diff, report

JOBS, ENVIRONMENTS = 24, ("dev", "prod", "staging", "test")
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: job-{number}, labels: {{team: nlp}}}}
spec:
  framework: pytorch
  image: registry.example.com/bert:{tag}
  command: [torchrun, train.py, --seed={number}]
  env: {{NCCL_DEBUG: WARN, API_TOKEN: "walrus-{number}"}}
  resources: {{cpu: 8, memory: 64Gi, gpu: 4}}
  volumes:
    data: {{pvc: data-{number}, mountPath: /data}}
  roles: {{master: {{replicas: 1}}, worker: {{replicas: 2}}}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-{env}
  cluster: {{operators: {{training-operator: 1.9.4}}}}
  defaults: {{labels: {{stage: {env}}}}}
  patches:
    - merge: {{nodeSelector: {{pool: gpu}}}}
    - match: {{names: ["job-1*"]}}
      manifest: {{spec: {{runPolicy: {{backoffLimit: 3}}}}}}
"""


class Work(NamedTuple):
    """What a run did."""

    total: int
    calls: Counter[str]
    """How often each function of jobgen was called, by module and name."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose jobs have findings, with a store that a lint and a report have filled."""
    home = tmp_path_factory.mktemp("repeated")
    folder = home / "jobs"
    for number in range(JOBS):
        write(folder, f"jobs/job-{number}.yaml", JOB.format(number=number, tag="latest"))
    for env in ENVIRONMENTS:
        write(folder, f"overlays/{env}/overlay.yaml", OVERLAY.format(env=env))
    write(folder, "jobgen.yaml", "")
    Repository(folder, home / "home").commit()
    return folder


@pytest.fixture(scope="module")
def works(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Work]]:
    """The work of each run: without a cache, and after a change of one job."""
    # What is imported and compiled once is no part of the work.
    lint(repository)
    cache.enable(tmp_path_factory.mktemp("store"), "test")
    try:
        found = {"first lint": count(lambda: lint(repository)), "first report": count(lambda: report(repository))}
        change(repository, "1.4.2")
        # A report follows the lint of the same change.
        found |= {"lint": count(lambda: lint(repository)), "report": count(lambda: report(repository))}
        change(repository, "1.4.3")
        found["lint --since"] = count(lambda: lint(repository, since="HEAD"))
        change(repository, "1.4.4")
        found["diff"] = count(lambda: diff(repository, "HEAD"))
        yield found
    finally:
        cache.disable()


def change(folder: Path, tag: str) -> None:
    write(folder, "jobs/job-7.yaml", JOB.format(number=7, tag=tag))


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, "utf-8")


def lint(folder: Path, since: str = "") -> Any:
    return lint_paths(folder, (), (), format_="text", since=since)


def count(work: Callable[[], object]) -> Work:
    profile = cProfile.Profile()
    profile.runcall(work)
    calls: Counter[str] = Counter()
    for (file, _, name), (_, number, *_) in pstats.Stats(profile).stats.items():
        calls[f"{Path(file).stem}.{name}"] += number
    return Work(calls.total(), calls)


def test_a_lint_checks_the_changed_job_alone(works):
    cold, work = works["first lint"], works["lint"]

    assert cold.calls["checker.find_problems"] == JOBS * len(ENVIRONMENTS)
    assert work.calls["checker.find_problems"] == len(ENVIRONMENTS)
    assert work.calls["environment.render_job"] == len(ENVIRONMENTS)
    assert work.calls["named_paths.read_first"] == 0, "a file with a finding is read again to print its line"
    assert work.calls["redact._search_source"] <= 1, "a file is searched for secrets again"
    assert work.calls["secrets.find_token"] < 2 * JOBS, "results are searched for secrets text by text"
    # For 1,000 jobs in 4 environments, at most 0.04.
    assert work.total < 0.17 * cold.total, work.total / cold.total


def test_a_lint_since_a_revision_checks_the_changed_job_alone(works):
    cold, work = works["first lint"], works["lint --since"]

    assert work.calls["checker.find_problems"] == len(ENVIRONMENTS), "the old side is that of the lint before"
    # In the lint, and on both sides of what the change does to running jobs.
    assert work.calls["environment.render_job"] == 3 * len(ENVIRONMENTS)
    # For 1,000 jobs in 4 environments, at most 0.10.
    assert work.total < 0.5 * cold.total, work.total / cold.total


def test_a_diff_renders_the_changed_job_alone(works):
    cold, work = works["first lint"], works["diff"]

    assert work.calls["checker.find_problems"] == 0
    assert work.calls["environment.render_job"] == 2 * len(ENVIRONMENTS)
    # For 1,000 jobs in 4 environments, at most 0.05.
    assert work.total < 0.4 * cold.total, work.total / cold.total


def test_a_report_after_a_lint_traces_the_changed_job_alone(works):
    first, work = works["first report"], works["report"]

    assert first.calls["report.list_manifest_lines"] == JOBS
    assert work.calls["report.list_manifest_lines"] == 1
    assert work.calls["checker.find_problems"] == 0
    # Objects are rendered again: they are never stored, because they can hold secrets.
    assert work.calls["environment.render_job"] == JOBS * len(ENVIRONMENTS)
    # These jobs are simple: rendering them takes half as many calls as checking them. Of varied jobs, it is a tenth.
    assert work.total < 0.8 * first.total, work.total / first.total
