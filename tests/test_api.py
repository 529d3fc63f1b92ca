"""The public Python API: documented, typed, lazy, and the examples of docs/api.md run."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jobgen

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/api.md").read_text("utf-8")
PUBLIC = [name for name in jobgen.__all__ if name != "__version__"]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(jobgen, name))]
VALUES = [name for name in PUBLIC if hasattr(getattr(jobgen, name), "_fields")]
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec: {framework: pytorch, image: "registry.example.com/bert:1.4.2"}
"""


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    return tmp_path


def test_examples_of_the_page_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/api.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    output: list[str] = []
    runner.run(example, out=output.append)

    assert "".join(output) == ""
    assert runner.summarize(verbose=False).attempted > 20


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    assert re.search(rf"^#+ {name}$|^\| `{name}` \|", PAGE, re.MULTILINE)
    assert getattr(jobgen, name).__doc__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_typed_and_documented(name):
    function = getattr(jobgen, name)
    signature = inspect.signature(function)
    shown = re.search(rf"^```python\n{name}\((.*)\) -> (\w+)\n```$", PAGE, re.MULTILINE)

    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values())
    assert signature.return_annotation == shown[2]
    assert re.findall(r"(\w+)(?==|,|$)", re.sub(r"=\S+?(?=,|$)", "", shown[1])) == list(signature.parameters)
    assert all(f"{parameter}: " in function.__doc__ for parameter in signature.parameters)


@pytest.mark.parametrize("name", VALUES)
def test_values_are_frozen_and_every_field_is_documented(name):
    value = getattr(jobgen, name)
    section = re.search(rf"^### {name}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    private = {"cause", "config", "fix", "evidence", "lines", "meant", "place", "reports", "timelines"}

    assert issubclass(value, tuple)
    assert set(value.__annotations__) == set(value._fields)
    assert [field for field in value._fields if field not in private and f"`{field}`" not in section] == []


def test_no_private_package_has_the_name_of_a_public_function():
    packages = {path.parent.name for path in (ROOT / "jobgen").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "jobgen").glob("*.py")}

    assert (packages | modules) & set(PUBLIC) == set()


def test_import_is_lazy():
    code = "import sys, jobgen; print(sorted(name for name in sys.modules if name.startswith('jobgen')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['jobgen']\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jobgen.nothing


def test_mistakes_of_users_are_findings(repository):
    (repository / "jobs/broken.yaml").write_text("a: [\n")
    rendered = jobgen.render(repository)

    assert rendered.failed
    assert rendered.objects == ()
    assert jobgen.lint(repository).failed
    assert jobgen.explain(repository, "gpt").failed
    compared = jobgen.diff(repository, folders=(".", "."))
    assert not compared.failed
    assert {each.left_out.file for each in compared.not_compared} == {"jobs/broken.yaml"}
    assert {finding.rule for finding in compared.findings} == {"yaml-syntax"}


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: jobgen.load(folder / "nowhere"),
        lambda folder: jobgen.load(folder, today="tomorrow"),
        lambda folder: jobgen.render(folder, environments=["prod"]),
        lambda folder: jobgen.lint(folder / "nowhere"),
        lambda folder: jobgen.lint(folder, since="nothing"),
        lambda folder: jobgen.lint(folder, baseline="nothing.json"),
        lambda folder: jobgen.lint(folder).to_text("morse"),
        lambda folder: jobgen.diff(folder, "nothing"),
        lambda folder: jobgen.diff(folder, folders=("a", "b")),
        lambda folder: jobgen.diff(folder, "a", folders=("a", "b")),
        lambda folder: jobgen.diff(folder, format="morse"),
        lambda folder: jobgen.diff(folder, folders=(folder, folder), format="html", repo_url="javascript:alert(1)"),
        lambda folder: jobgen.report(folder, environments=["prod"]),
        lambda folder: jobgen.report(folder, since="nothing"),
        lambda folder: jobgen.report(folder, prices="nothing.yaml"),
        lambda folder: jobgen.report(folder, repo_url="javascript:alert(1)"),
        lambda folder: jobgen.exceptions(folder, format="morse"),
        lambda folder: jobgen.run_tests(folder, environments=["prod"]),
        lambda folder: jobgen.run_tests(folder, format="morse"),
        jobgen.teams,
        lambda folder: jobgen.teams(folder, format="morse"),
        lambda folder: jobgen.explain(folder, "bert", "a["),
        lambda folder: jobgen.explain(folder, "missing-memory", "spec"),
    ],
)
def test_misuse_is_a_usage_error(call, repository):
    with pytest.raises(jobgen.UsageError):
        call(repository)


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: jobgen.render(folder, ["gpt"]),
        lambda folder: jobgen.explain(folder, "gpt"),
        lambda folder: jobgen.explain(folder, "bert", "spec.nothing"),
        jobgen.run_tests,
        lambda folder: jobgen.lint(folder / "jobs", ["../nothing-here"]),
        lambda folder: (folder / "jobs/bert.yaml").unlink() or jobgen.report(folder),
    ],
)
def test_nothing_found_is_a_not_found_error(call, repository):
    (repository / "nothing-here").mkdir()

    with pytest.raises(jobgen.NotFoundError):
        call(repository)


def test_report_names_what_is_not_in_its_page(repository):
    complete = jobgen.report(repository)
    (repository / "jobs/broken.yaml").write_text("a: [\n")
    found = jobgen.report(repository)

    assert (complete.jobs, complete.failed, complete.errors, complete.incomplete) == (1, False, (), False)
    assert complete.findings == jobgen.lint(repository, ["jobs/bert.yaml"]).findings
    assert (found.jobs, found.failed, [error.rule for error in found.errors]) == (1, True, ["yaml-syntax"])
    assert complete.data in complete.page


SETTINGS = """\
teams:
  nlp: {folders: [jobs], namespaces: [ml], budget: {jobs: 1}}
exceptions:
  - {rule: foreign-namespace, teams: [nlp], reason: soon, owner: "@nlp", expires: "2026-01-31"}
"""
TESTS = """\
apiVersion: jobgen.dev/v1
kind: JobTests
spec:
  - {name: kind, jobs: [bert], expect: {values: {kind: PyTorchJob, metadata.name: gpt}}}
"""


def test_teams_tests_and_exceptions(repository):
    (repository / "tests").mkdir()
    (repository / "tests/bert.yaml").write_text(TESTS)
    (repository / "jobgen.yaml").write_text(SETTINGS)
    project = jobgen.load(repository, today="2026-02-01")
    [team] = jobgen.teams(project, ["nlp"]).teams
    tests = jobgen.run_tests(project)
    [exception] = jobgen.exceptions(project, expired=True).exceptions

    assert (team.name, team.folders, team.environments[0].allowed) == ("nlp", ("jobs",), {"namespaces": ("ml",)})
    assert jobgen.BudgetLine("jobs", 1, 1) in team.environments[0].budget
    assert [(each.test, each.job, bool(each.message)) for each in tests.outcomes] == [
        ("kind", "bert", False),
        ("kind", "bert", True),
    ]
    assert tests.failed
    assert (exception.rule, exception.scope, exception.expired) == ("foreign-namespace", {"teams": ("nlp",)}, True)
    with pytest.raises(jobgen.UsageError, match=r"no team `npl`; did you mean `nlp`\?"):
        jobgen.teams(project, ["npl"])


def test_diff_as_a_page(repository):
    folders = (str(repository), str(repository))
    page = jobgen.diff(repository, folders=folders, format="html", repo_url="https://git.example.com/ml/jobs").text

    assert page.startswith("<!doctype html>")
    assert '"https://git.example.com/ml/jobs"' in page


def test_json_and_yaml_have_the_same_manifest(repository):
    as_yaml, as_json = (jobgen.render(repository, format=name).objects[0] for name in ("yaml", "json"))

    assert as_yaml.manifest == as_json.manifest
    assert as_yaml.path.endswith(".yaml")
    assert as_json.path.endswith(".json")
