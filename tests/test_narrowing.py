"""What `--select`, `--ignore`, `--severity` and the settings leave out, and what they cannot hide."""

from __future__ import annotations

import json
import subprocess

import pytest
from command import run_jobgen, run_jobgen_text
from linting import lint_paths

import jobgen
from jobgen.check.rule_docs import all_docs
from jobgen.model.builtin_rules import UNCHECKED_RULES
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.reports.narrowing import ALL, CATEGORIES, DEFAULT, ESSENTIAL, Narrowing

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  restartPolicy: Sometimes
  containers:
    - name: main
      image: registry.example.com/bert:latest
      resources: {limits: {memory: 16}}
    - name: log
      image: registry.example.com/log
"""
ERRORS, IMAGE = {"unsupported-value", "memory-too-small"}, {"mutable-image-tag", "untagged-image"}
FOUND = ERRORS | IMAGE
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "overlays/dev").mkdir(parents=True)
    (tmp_path / "overlays/dev/overlay.yaml").write_text(OVERLAY)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(POD)
    (tmp_path / "jobgen.yaml").write_text("")
    return tmp_path


def find_rules(folder, **options):
    done = lint_paths(folder, (), (), format_="json", **options)
    return {finding["rule"] for finding in json.loads(done.out)["findings"]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, FOUND),
        ({"select": ["image"]}, IMAGE),
        ({"select": ["image,memory-too-small"]}, IMAGE | {"memory-too-small"}),
        ({"select": ["image", "memory-too-small"]}, IMAGE | {"memory-too-small"}),
        ({"ignore": ["image"]}, ERRORS),
        ({"select": ["image"], "ignore": ["untagged-image"]}, {"mutable-image-tag"}),
        ({"select": ["untagged-image"], "ignore": ["image"]}, {"untagged-image"}),
        ({"select": ["untagged-image"], "ignore": ["untagged-image"]}, set()),
        ({"select": ["essential"]}, ERRORS),
        ({"select": ["essential,untagged-image"]}, ERRORS | {"untagged-image"}),
        ({"select": ["all"]}, FOUND),
        ({"severity": "error"}, ERRORS),
        ({"severity": "warning", "select": ["image"]}, IMAGE),
    ],
)
def test_options_narrow_what_is_shown(root, options, expected):
    assert find_rules(root, **options) == expected


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ("select: [image]\n", {}, IMAGE),
        ("ignore: [image]\n", {}, ERRORS),
        ("ignore: [image]\n", {"select": ["image"]}, IMAGE),
        ("ignore: [image]\n", {"select": ["all"]}, FOUND),
        ("select: [image]\n", {"select": ["default", "memory-too-small"]}, IMAGE | {"memory-too-small"}),
        ("select: [image]\n", {"ignore": ["untagged-image"]}, {"mutable-image-tag"}),
        ("ignore: [image]\nmandatory: [untagged-image]\n", {}, ERRORS | {"untagged-image"}),
        ("mandatory: [untagged-image]\n", {"severity": "error"}, ERRORS | {"untagged-image"}),
        ("rules: {untagged-image: off}\n", {"select": ["all"]}, FOUND - {"untagged-image"}),
    ],
)
def test_settings_narrow_and_the_command_line_decides(root, settings, options, expected):
    (root / "jobgen.yaml").write_text(settings)

    assert find_rules(root, **options) == expected


def test_the_exit_code_is_that_of_what_is_shown_and_the_last_line_counts_the_rest(root):
    done = lint_paths(root, (), (), format_="text", ignore=["memory-too-small", "unsupported-value"])

    assert done.code == 0
    assert done.err.startswith("2 warnings in 1 file; 1 object in 1 environment checked by ")
    assert "; 2 not selected" in done.err


def test_a_finding_stays_that_stood_for_one_of_an_ignored_rule(root):
    """Which of two rules about one fault is shown is decided after the selection."""
    everything = lint_paths(root, (), (), format_="json").out
    merged = [each for each in json.loads(everything)["findings"] if each.get("alsoReportedBy")]
    for finding in merged:
        for other in finding["alsoReportedBy"]:
            assert other in find_rules(root, ignore=[finding["rule"]])


def test_narrowing_never_hides_what_was_not_checked(root):
    (root / "jobs/b.yaml").write_text("a: [")

    for options in ({"select": ["image"]}, {"ignore": ["yaml"]}):
        assert "yaml-syntax" in find_rules(root, **options)


def test_a_narrowed_lint_reports_no_unused_suppressions(root):
    text = POD.replace("bert:latest", "bert:1.2 # jobgen: ignore[mutable-image-tag] -- soon")
    (root / "jobs/a.yaml").write_text(text)

    assert "unused-suppression" in find_rules(root)
    for options in ({"ignore": ["image"]}, {"select": ["essential"]}, {"severity": "warning"}):
        assert "unused-suppression" not in find_rules(root, **options)
    assert "unused-suppression" in find_rules(root, select=["unused-suppression"])


def test_a_change_cannot_narrow_how_it_is_judged(root):
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    (root / "jobs/a.yaml").write_text(POD.replace("memory: 16}", "memory: 16Gi}"))
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    (root / "jobs/a.yaml").write_text(POD)
    (root / "jobgen.yaml").write_text("select: [image]\nignore: [memory-too-small]\n")

    found = json.loads(lint_paths(root, (), (), format_="json", since="HEAD", select=["resources"]).out)["findings"]
    told = {finding["rule"]: finding["message"] for finding in found}
    assert "memory-too-small" in told
    assert "fewer findings are shown" in told["weaker-governance"]
    assert len([each for each in found if each["rule"] == "weaker-governance"]) == 2


def test_a_baseline_has_what_is_shown(root):
    lint_paths(root, (), (), format_="text", write_baseline=True, select=["image"])

    assert find_rules(root, baseline="jobgen-baseline.json") == ERRORS
    # An entry that is only not selected is not stale.
    assert find_rules(root, baseline="jobgen-baseline.json", ignore=["image"]) == ERRORS


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_name_is_a_mistake(root, option):
    done = run_jobgen_text(root, "lint", option, "imge")

    assert done.returncode == 2
    assert "there is no rule, category or policy `imge`; did you mean `image`?" in done.stderr


def test_an_unknown_name_in_the_settings_is_a_finding_on_its_line(root):
    (root / "jobgen.yaml").write_text("select: [image]\nignore:\n  - mutable-imag-tag\n  - all\n")

    done = lint_paths(root, (), (), format_="concise")
    assert "jobgen.yaml:3:5: error: there is no rule, category or policy `mutable-imag-tag`; did you mean" in done.out
    assert "jobgen.yaml:4:5: error: the preset `all` can only be selected" in done.out


def test_python_narrows_as_the_command_does(root):
    assert {each.rule for each in jobgen.lint(root, select=["image"]).findings} == IMAGE
    assert {each.rule for each in jobgen.lint(root, severity="error").findings} == ERRORS
    assert {each.rule for each in jobgen.lint(root, select=["image"]).left_out} == ERRORS
    with pytest.raises(jobgen.UsageError, match="there is no severity `fatal`"):
        jobgen.lint(root, severity="fatal")
    with pytest.raises(jobgen.UsageError, match="there is no rule"):
        jobgen.lint(root, ignore=["nothing"])


@pytest.mark.parametrize(
    ("options", "color"), [(["--color", "always"], True), (["--color", "never"], False), ([], False)]
)
def test_color_is_an_option(root, options, color):
    assert ("\x1b[" in run_jobgen_text(root, "lint", *options).stdout) is color


def test_quiet_prints_findings_only(root):
    done = run_jobgen(root, "lint", "-q")

    assert done.stdout
    assert done.stderr == b""


def test_errors_are_first(root):
    lines = [line for line in lint_paths(root, (), (), format_="concise").out.splitlines() if line.startswith("jobs/")]

    severities = [line.split(": ")[1] for line in lines]
    assert severities == sorted(severities)
    assert set(severities) == {"error", "warning"}


def test_categories_are_those_of_the_rules():
    assert {doc.category for doc in all_docs(None).values()} == set(CATEGORIES)


def test_no_rule_has_the_name_of_a_category_or_a_preset():
    assert {*CATEGORIES, ESSENTIAL, DEFAULT, ALL}.isdisjoint(all_docs(None))


def test_each_rule_about_what_was_not_checked_is_always_shown():
    hides_all = Narrowing(ignore=(*CATEGORIES, *all_docs(None)))

    for rule in UNCHECKED_RULES:
        assert hides_all.shows(Finding(rule, "meta", Severity.INFO, "", Location("a.yaml")))


# jobgen rules


def test_rules_are_listed_with_their_state_here(root):
    (root / "jobgen.yaml").write_text(
        "rules: {stale-image: off, untagged-image: error, memory-too-small: [{severity: warning, paths: [jobs/x]}]}\n"
        "categories: {launch: info}\nignore: [mutable-image-tag]\nmandatory: [malformed-image]\n"
    )
    rows = {each["name"]: each for each in json.loads(run_jobgen_text(root, "rules", "--format", "json").stdout)}

    assert rows.keys() >= {*all_docs(None)}
    states = {
        name: rows[name]["state"] for name in ("stale-image", "untagged-image", "memory-too-small", "script-syntax")
    }
    assert states == {
        "stale-image": "off",
        "untagged-image": "error",
        "memory-too-small": "error",
        "script-syntax": "info",
    }
    assert [name for name, row in rows.items() if not row["shown"]] == [
        "mutable-image-tag",
        "unused-exception",
        "unused-suppression",
    ]
    assert rows["malformed-image"]["mandatory"]
    assert [name for name, row in rows.items() if row["partial"]] == ["memory-too-small"]
    customized = run_jobgen_text(root, "rules", "--customized", "image", "resources").stdout
    assert [line.split()[0] for line in customized.splitlines() if line.startswith("  ")] == [
        "mutable-image-tag",
        "stale-image",
        "untagged-image",
        "memory-too-small",
    ]


def test_rules_are_selected_by_name_category_and_severity(tmp_path):
    assert run_jobgen_text(tmp_path, "rules", "stale-image", "malformed-image").stdout.splitlines() == [
        "image",
        "  malformed-image  error    An image name that no container runtime accepts.",
        "  stale-image      warning  A mutable tag with `imagePullPolicy: IfNotPresent`.",
    ]
    only = json.loads(run_jobgen_text(tmp_path, "rules", "image", "--severity", "error", "--format", "json").stdout)
    assert [row["name"] for row in only] == ["malformed-image"]
    done = run_jobgen_text(tmp_path, "rules", "imgae")
    assert (done.returncode, "did you mean `image`?" in done.stderr) == (2, True)
