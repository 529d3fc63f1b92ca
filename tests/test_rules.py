"""Every rule has cases: findings are on the lines that expect them, and good cases have none."""

import json
import os
import re
from pathlib import Path

import pytest
from examples import EXAMPLES, cases
from helm_charts import HELM, needs_helm
from linting import lint_paths
from transcripts import find_transcripts

from jobgen.check.rule_docs import all_rule_docs
from jobgen.check.rules import all_rules
from jobgen.compare.change_rules import check_change
from jobgen.pipeline.policies import load_policies
from jobgen.repo.layout import own_layers

TESTS = Path(__file__).parent
TODAY = "2025-01-31"
CASES = [(path.stem, case) for path in sorted(EXAMPLES.glob("*.yaml")) for case in cases(path)]


# Their functions may set the severity of a finding.
OWN = {rule.name for rule in all_rules()}
# Rules that no small repository can show, and the test that covers them.
UNSHOWN = {
    "tool-built-kustomization": "another program builds it: tests/test_lint_kustomize.py",
    "kustomize-disagrees": "kustomize is another program: tests/test_second_opinion.py",
    "kustomize-failed": "kustomize is another program: tests/test_second_opinion.py",
    "gitops-path-missing": "an example is a jobs repository: tests/test_gitops_paths.py",
    "unjudged-chart": "another program renders charts: tests/test_helm.py",
    "unbuilt-kustomization": "an example is a jobs repository: tests/test_lint_kustomize.py",
    "unjudged-file": "an example is a jobs repository: tests/test_recognize.py",
    "backdated-commit": "a commit is no file: tests/attacks/test_judge.py",
    "governance-change": "a change has two sides: tests/attacks/test_judge.py",
    "weaker-governance": "a change has two sides: tests/attacks/test_judge.py",
    "running-job-deleted": "a change has two sides: tests/diff/every-effect.txt",
    "edited-rendered-file": "only a tree has files: tests/test_escapes.py",
    "ignored-rendered-tree": "only a tree has files: tests/attacks/test_rendered_tree.py",
    "rendered-tree-not-compared": "only a tree has files: tests/attacks/test_rendered_tree.py",
    "stale-rendered-tree": "only a tree has files: tests/attacks/test_rendered_tree.py",
    "unlisted-rendered-file": "only a tree has files: tests/test_escapes.py",
    "empty-file": "an example is not empty: tests/test_silently_green.py",
    "file-name-too-long": "only a tree has files: tests/hostile/file-name-too-long.txt",
    "file-too-large": "8 MiB are no example: tests/hostile/file-of-50-mb.txt",
    "invalid-encoding": "an example is UTF-8: tests/hostile/latin-1-file.txt",
    "internal-error": "no check is meant to fail: tests/test_checker.py",
    "invalid-form": "no schema that is shipped asks for it: tests/crd/objects.yaml",
    "jsonschema-disagrees": "jsonschema is another program: tests/test_second_opinion.py",
    "jsonschema-failed": "jsonschema is another program: tests/test_second_opinion.py",
    "kubeconform-disagrees": "kubeconform is another program: tests/test_second_opinion.py",
    "kubeconform-failed": "kubeconform is another program: tests/test_second_opinion.py",
    "link-out-of-repository": "a text has no links: tests/hostile/symlinks-out-of-the-tree.txt",
    "linked-folder": "a text has no links: tests/hostile/symlinks-within-the-tree.txt",
    "nesting-too-deep": "200 levels are no example: tests/hostile/nesting-of-300-levels.txt",
    "name-too-long-for-hash": "no kind that is shipped takes so much: tests/test_runs.py",
    "shared-file-name": "only a tree has files: tests/hostile/file-names-that-differ-in-case.txt",
    "stale-baseline": "a baseline is JSON: tests/test_baseline.py",
    "too-many-errors": "a hundred faults are no example: tests/test_hostile.py",
    "too-many-files": "50,000 files are no example: tests/test_silently_green.py",
    "too-many-steps": "it takes a minute: tests/attacks/test_stalls.py",
    "too-many-nodes": "a million nodes are no example: tests/test_hostile.py",
    "unknown-current-date": "examples have their day: tests/test_runs.py",
    "unread-file": "an example is read: tests/test_silently_green.py",
    "unreadable-file": "a text can be read: tests/hostile/unreadable-file.txt",
}
OF_CHARTS = {
    "chart-object-conflict",
    "chart-render-fails",
    "chart-value-missing",
    "chart-values-invalid",
    "unknown-hook",
}
"""Rules whose examples helm renders."""
FIXED = {path.name.partition(".")[0] for path in find_transcripts("fix")}
"""Rules with a fix that docs/fixes.md shows: tests/test_fix.py compares that page with these transcripts."""
_LINE = re.compile(r"^[^\s:]+:(\d+):\d+: (\w+): .* \[([\w-]+)\]$", re.MULTILINE)


def found(folder):
    """The findings of a lint, with those about settings and policies, which are reported as text; those of a change."""
    if (folder / "old").is_dir():
        changes = check_change(folder / "old", folder / "new")
        return [{"line": each.location.line, "severity": each.severity.value, "rule": each.rule} for each in changes]
    paths = () if (folder / "jobs").is_dir() else (".",)
    done = lint_paths(folder, paths, (), format_="json", today=TODAY)
    findings = json.loads(done.out)["findings"] if done.out else []
    # A finding that is merged into another one is listed there.
    findings += [{**found, "rule": name} for found in findings for name in found.get("alsoReportedBy", ())]
    findings += [{"line": int(line), "severity": word, "rule": rule} for line, word, rule in _LINE.findall(done.err)]
    for finding in load_policies(own_layers(folder)).findings if (folder / "policies").is_dir() else ():
        entry = {"line": finding.location.line, "severity": finding.severity.value}
        findings.append({**entry, "rule": finding.rule, "category": finding.category})
    return findings


@pytest.mark.parametrize(
    "rule", [pytest.param(name, marks=[needs_helm] if name in OF_CHARTS else []) for name in dict(CASES)]
)
def test_rule_cases(rule, tmp_path, request, stress, monkeypatch):
    """What `explain` shows and every third other case, unless the rule is named; `--stress` tries all."""
    if rule in OF_CHARTS:
        monkeypatch.setenv("PATH", f"{HELM.parent}{os.pathsep}{os.environ['PATH']}")
    own = [case for name, case in CASES if name == rule]
    if stress == 1 and not request.config.option.keyword:
        others = [case for case in own if case not in (shown(rule, bad=True), shown(rule, bad=False))]
        own = [case for case in own if case not in others or case in others[::3]]
    wrong = {}
    for at, case in enumerate(own):
        (folder := tmp_path / str(at)).mkdir()
        case.write(folder)
        if faults := list(list_faults(rule, case, found(folder))):
            wrong[case.title] = faults

    assert wrong == {}


def list_faults(rule, case, findings):
    """What the findings of a case have that it does not expect, or lack."""
    # Rules that are merged into another one have no fix of their own.
    fixed = {each["rule"] for each in findings if each.get("fixable") and "alsoReportedBy" not in each}
    yield from (f"docs/fixes.md shows no fix of {name}" for name in fixed - FIXED)
    # Other rules may fire in a case; only the expected ones are compared.
    wanted = {rule, *(name for _, name in case.expected)}
    told = {(entry["line"], entry["rule"]) for entry in findings if entry["rule"] in wanted}
    yield from (f"not found: {each}" for each in set(case.expected) - told)
    yield from (f"not expected: {each}" for each in told - set(case.expected))
    if case == shown(rule, bad=False):
        yield from (f"an error: {entry}" for entry in findings if entry["severity"] == "error")
    if case == shown(rule, bad=True) and rule not in OWN:
        severities = [entry["severity"] for entry in findings if entry["rule"] == rule]
        if (documented := all_rule_docs()[rule].severity) not in severities:
            yield f"documented as {documented}, found as {severities}"


def shown(rule, *, bad):
    """The bad or the good case that `explain` shows."""
    return next((case for name, case in CASES if name == rule and bool(case.expected) is bad), None)


def test_every_rule_has_a_bad_case_first_and_a_good_one():
    for rule in sorted(all_rule_docs().keys() - UNSHOWN.keys()):
        own = [case for name, case in CASES if name == rule]

        assert own, f"jobgen/data/examples/{rule}.yaml is missing"
        assert rule in [name for _, name in own[0].expected]
        assert any(not case.expected for case in own), rule


def test_every_example_belongs_to_a_rule():
    assert {rule for rule, _ in CASES} <= set(all_rule_docs())


def test_rules_without_examples_are_tested_elsewhere():
    for rule, place in UNSHOWN.items():
        text = (TESTS.parent / place.rpartition(": ")[2]).read_text()

        assert rule in all_rule_docs()
        assert re.search(rf"\b{rule}\b", text), rule


def test_rule_docstrings():
    for rule in all_rules():
        assert rule.check.__name__ == rule.name.replace("-", "_")
        assert all_rule_docs()[rule.name].text, f"the docstring of {rule.name} says why it matters and how to mend it"
