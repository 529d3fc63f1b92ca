"""`lint`, `queue`, `diff`, the page and the editor say the same of each job, and so does the library."""

import json

import pytest
from capacity_repository import FILES as CAPACITY
from capacity_repository import make_job, write
from gitrepository import Repository
from pagedata import PageData

import jobgen
from jobgen import kueue
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.kueue.answers import NEVER, UNMANAGED
from jobgen.features.page.report import report

JOBS = "jobs/"
# Kueue manages PyTorchJobs only.
FILES = {**CAPACITY, "jobs/e-other.yaml": make_job("e-other", "team-a", 1, 1, framework="xgboost")}


@pytest.fixture(scope="module")
def git(tmp_path_factory):
    """A repository whose last commit has queues, and whose work tree has the jobs."""
    home = tmp_path_factory.mktemp("answers")
    (home / "repo").mkdir()
    found = Repository(home / "repo", home)
    write(found.folder, {path: text for path, text in FILES.items() if not path.startswith(JOBS)})
    found.commit()
    write(found.folder, FILES)
    return found


@pytest.fixture(scope="module")
def decided(git):
    """The decision about each job with a queue, by environment, namespace and name."""
    found = jobgen.queue(git.folder, environments=["prod", "dev"]).workloads
    return {(each.environment, each.namespace, each.name): each.decision for each in found if each.queue}


def test_the_repository_has_every_decision(decided):
    assert {*decided.values()} == {"admitted", "preempts", "waits", "never", "unmanaged"}


def test_lint_reports_what_is_never_admitted_or_not_managed(git, decided):
    findings = jobgen.lint(git.folder).findings
    reported = {
        (each.env, each.object.namespace, each.object.name): "unmanaged" in each.message
        for each in findings
        if "inadmissible-job" in (each.rule, *each.also_reported_by)
    }
    failures = {key: each == UNMANAGED for key, each in decided.items() if each in (NEVER, UNMANAGED)}
    assert reported == failures


def test_diff_decides_about_new_jobs_as_queue_does(git, decided):
    changes = {each.environment: each for each in jobgen.diff(git.folder, "HEAD").queues}
    found = {(env, *each.workload.split("/")): each.after for env, one in changes.items() for each in one.workloads}
    assert found == decided


def test_the_page_shows_the_decisions_of_queue(git, decided):
    rows = PageData(report(git.folder).data).table("workloads")
    assert {
        (row["environment"], row["namespace"], row["name"]): row["decision"] for row in rows if row["queue"]
    } == decided


def test_the_editor_shows_the_decisions_of_queue(git, decided):
    linter = WorkspaceLinter(git.folder)
    linter.lint({}, lambda *_: None)
    found = linter.decide({}, lambda: None)
    assert {
        (env, namespace, name): each.decision
        for env, known in found.items()
        for (_, namespace, name), each in known.items()
    } == decided


def test_the_library_decides_about_rendered_objects_as_queue_does(git, decided):
    rendered = [
        json.loads(each.text) for each in jobgen.render(git.folder, environments=["dev"], format="json").objects
    ]
    settings = {"frameworks": ["kubeflow.org/pytorchjob"]}
    found = kueue.decide([*rendered, git.folder / "cluster/dev/state.json"], version="0.19", configuration=settings)
    wanted = {f"{namespace}/{name}": each for (env, namespace, name), each in decided.items() if env == "dev"}
    assert {each.workload: each.decision for each in found.workloads if each.queue} == wanted
