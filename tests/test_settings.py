"""The `rules` of jobgen.yaml: they set severities, and unknown names are errors."""

import json

import pytest
from linting import lint_paths

from jobgen.api.lint import lint
from jobgen.model.finding import Severity
from jobgen.reports.severities import parse_severities

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  framework: pytorch
  image: registry.example.com/{name}:latest
"""
WRONG = JOB + "  resources: {{memory: -1Gi}}\n"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"


@pytest.fixture
def repository(tmp_path):
    """Two jobs with moving tags in two environments."""
    for name, namespace in (("a", "research"), ("b", "product")):
        write(tmp_path / f"jobs/{name}/job.yaml", JOB.format(name=name, namespace=namespace))
    for env in ("dev", "prod"):
        write(tmp_path / f"overlays/{env}/overlay.yaml", OVERLAY)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def told(repository, settings, rule="mutable-image-tag"):
    """The severities of a rule by file and environment, under some settings; and the exit code."""
    (repository / "jobgen.yaml").write_text(settings)
    done = lint_paths(repository, (), (), format_="json")
    findings = json.loads(done.out)["findings"]
    return {
        (entry["file"].split("/")[1], entry["env"]): entry["severity"] for entry in findings if entry["rule"] == rule
    }, done.code


def everywhere(severity):
    return {(job, env): severity for job in "ab" for env in ("dev", "prod")}


@pytest.mark.parametrize(
    ("settings", "severities"),
    [
        ("{}", everywhere("warning")),
        ("rules: {mutable-image-tag: off}", {}),
        ("rules: {mutable-image-tag: 'off'}", {}),
        ("rules: {mutable-image-tag: {severity: off}}", {}),
        ("rules: {mutable-image-tag: [{severity: off}]}", {}),
        ("rules: {mutable-image-tag: error}", everywhere("error")),
        ("rules: {mutable-image-tag: info}", everywhere("info")),
        ("rules: {mutable-image-tag: []}", everywhere("warning")),
        ("rules: {negative-quantity: off}", everywhere("warning")),
        (
            "rules: {mutable-image-tag: {severity: error, paths: [jobs/a/*]}}",
            {**everywhere("warning"), ("a", "dev"): "error", ("a", "prod"): "error"},
        ),
        (
            "rules: {mutable-image-tag: [{severity: error, environments: [p*]}]}",
            {**everywhere("warning"), ("a", "prod"): "error", ("b", "prod"): "error"},
        ),
        (
            "rules: {mutable-image-tag: [{severity: off, namespaces: [research]}]}",
            {("b", "dev"): "warning", ("b", "prod"): "warning"},
        ),
        (
            "rules: {mutable-image-tag: [{severity: error, environments: [prod], namespaces: [research]}]}",
            {**everywhere("warning"), ("a", "prod"): "error"},
        ),
    ],
)
def test_settings_set_the_severity(settings, severities, repository):
    found, code = told(repository, settings)

    assert found == severities
    assert code == (1 if "error" in severities.values() else 0)


def test_first_matching_setting_applies(repository):
    first, second = "{severity: info, environments: [dev]}", "{severity: error}"

    assert told(repository, f"rules: {{mutable-image-tag: [{first}, {second}]}}") == (
        {("a", "dev"): "info", ("b", "dev"): "info", ("a", "prod"): "error", ("b", "prod"): "error"},
        1,
    )
    assert told(repository, f"rules: {{mutable-image-tag: [{second}, {first}]}}") == (everywhere("error"), 1)


def test_error_turned_into_a_warning_passes(repository):
    write(repository / "jobs/a/job.yaml", WRONG.format(name="a", namespace="research"))
    as_it_is = told(repository, "{}", "negative-quantity")
    changed = told(repository, "rules: {negative-quantity: warning}", "negative-quantity")

    assert as_it_is == ({("a", "dev"): "error", ("a", "prod"): "error"}, 1)
    assert changed == ({("a", "dev"): "warning", ("a", "prod"): "warning"}, 0)


def test_rule_that_is_off_everywhere_is_not_run():
    settings = {"a": "off", "b": False, "c": "error", "d": [{"severity": "off", "paths": ["x"]}], "e": []}

    assert parse_severities({"rules": settings}).off == {"a", "b"}


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        (
            "rules:\n  mutable-image-tags: off\n",
            "2:3",
            "there is no rule or policy `mutable-image-tags`; did you mean `mutable-image-tag`?",
        ),
        ("rules: {xyzzy: error}\n", "1:9", "there is no rule or policy `xyzzy`; `jobgen rules` lists them"),
        ("rules: {unknown-fields: [{severity: info}]}\n", "1:9", "did you mean `unknown-field`?"),
    ],
)
def test_unknown_rule_in_settings_is_an_error(settings, place, message, repository):
    (repository / "jobgen.yaml").write_text(settings)
    done = lint_paths(repository, (), (), format_="text")

    assert done.code == 1
    assert done.out.startswith(f"jobgen.yaml:{place}: error: ")
    assert f"{message} [unknown-rule]" in done.out


def test_settings_apply_to_policies(repository):
    policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: our-own}\n"
    write(repository / "policies/own.yaml", policy)
    (repository / "jobgen.yaml").write_text("rules: {our-own: off, mxjob-deprecated: off}\n")

    assert "unknown-rule" not in lint_paths(repository, (), (), format_="text").out


@pytest.mark.parametrize("severity", ["fatal", "true", "null", "3", "{paths: [a]}", "[off]"])
def test_unknown_severity_in_settings_is_an_error(severity, repository):
    (repository / "jobgen.yaml").write_text(f"rules: {{mutable-image-tag: {severity}}}\n")

    result = lint_paths(repository, (), (), format_="text")

    assert result.code == 1
    assert result.out.startswith("jobgen.yaml:1:2")


@pytest.mark.parametrize(
    ("cluster", "checked"),
    [
        ('{operators: {trainer: "9.9"}}', "2.3"),
        ('{operators: {trainer: "1.9"}}', "2.0"),
        ('{operators: {kueue: "0.20"}}', "0.19"),
        ('{kueue: {version: "0.7"}}', "0.8"),
        ("{operators: {trainer: v2.3.9, jobset: 0.4.1, kueue: 0.19.7, cert-manager: 9.9.9}}", ""),
    ],
)
@pytest.mark.parametrize("file", ["jobgen.yaml", "overlays/prod/overlay.yaml"])
def test_versions_that_jobgen_does_not_know_are_named(tmp_path, cluster, checked, file):
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  namespace: ml\n"
    job = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    files = {"jobgen.yaml": "", "overlays/prod/overlay.yaml": overlay, "jobs/a.yaml": job}
    files[file] += f"  cluster: {cluster}\n" if files[file] else f"cluster: {cluster}\n"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = [each for each in lint(tmp_path).findings if each.rule == "unknown-release"]

    line = files[file].count("\n")
    expected = [(file, line, Severity.WARNING)] if checked else []
    assert [(each.location.file, each.location.line, each.severity) for each in found] == expected
    assert all(f"is checked as {checked};" in each.message for each in found)
