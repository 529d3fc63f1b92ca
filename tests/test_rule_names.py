"""A former name of a rule is accepted wherever a user can name a rule; fingerprints and baselines keep it."""

import json

import pytest
from linting import lint_paths

from jobgen.check.rule_docs import all_docs
from jobgen.cli.commands.explain import explain_name
from jobgen.cli.result import ExitCode
from jobgen.model import builtin_rules
from jobgen.repo.known_rules import list_known_rules
from jobgen.repo.layout import own_layers
from jobgen.reports import baseline

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: one}}
spec:
  framework: jax
  image: {image}{comment}
"""


@pytest.fixture
def renamed(monkeypatch):
    """`mutable-image-tag` was called `ancient-tag`, and then `old-tag`."""
    monkeypatch.setattr(builtin_rules, "_RENAMED", {"ancient-tag": "mutable-image-tag", "old-tag": "mutable-image-tag"})


def lint(folder, *, image="a:latest", comment="", settings="", **options):
    for path, text in (("jobs/one.yaml", JOB.format(image=image, comment=comment)), ("jobgen.yaml", settings)):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    done = lint_paths(folder, (), (), format_="json", today="2025-01-31", **options)
    return {finding["rule"] for finding in json.loads(done.out)["findings"]} if done.out else done.err


def test_every_former_name_leads_to_a_rule_and_is_none():
    docs = all_docs(None)

    assert {current for current in builtin_rules._RENAMED.values() if current not in docs} == set()
    assert {former for former in builtin_rules._RENAMED if former in docs} == set()


def test_the_names_of_rules_are_known_without_the_rules(tmp_path):
    policy = "kind: {}\nmetadata: {{name: {}}}\n"
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "a.yaml").write_text(policy.format("ValidatingAdmissionPolicy", "zz-last"))
    (policies / "b.yaml").write_text(policy.format("MutatingAdmissionPolicy", "aa-first"))

    for layers in (None, own_layers(tmp_path)):
        assert list_known_rules(layers) == list(all_docs(layers))
    assert list_known_rules(own_layers(tmp_path))[0] == "aa-first"


def test_names(renamed):
    assert [
        builtin_rules.canonical_rule_name(name) for name in ("ancient-tag", "old-tag", "mutable-image-tag", "x")
    ] == [
        "mutable-image-tag",
        "mutable-image-tag",
        "mutable-image-tag",
        "x",
    ]
    assert [
        builtin_rules.original_rule_name(name) for name in ("ancient-tag", "old-tag", "mutable-image-tag", "x")
    ] == [
        "ancient-tag",
        "ancient-tag",
        "ancient-tag",
        "x",
    ]


def test_suppression(tmp_path, renamed):
    found = lint(tmp_path, comment="  # jobgen: ignore[old-tag] -- known")

    assert "mutable-image-tag" not in found
    assert not {rule for rule in found if rule.endswith("-suppression")}


def test_unused_suppression(tmp_path, renamed):
    found = lint(tmp_path, image="a:1", comment="  # jobgen: ignore[old-tag] -- known")

    assert "unused-suppression" in found
    assert "unknown-suppression" not in found


def test_settings(tmp_path, renamed):
    assert "mutable-image-tag" in lint(tmp_path)
    assert "mutable-image-tag" not in lint(tmp_path, settings="rules: {old-tag: off}\n")
    assert "mutable-image-tag" in lint(tmp_path, settings="rules: {mutable-image-tag: error, old-tag: off}\n")
    assert "mandatory-suppressed" in lint(
        tmp_path, comment="  # jobgen: ignore[mutable-image-tag] -- known", settings="mandatory: [ancient-tag]\n"
    )


@pytest.mark.parametrize("written", ["ancient-tag", "old-tag", "mutable-image-tag"])
def test_baseline(tmp_path, renamed, written):
    lint(tmp_path, write_baseline=True, baseline="known.json")
    text = (tmp_path / "known.json").read_text()

    assert '"rule": "ancient-tag"' in text
    (tmp_path / "known.json").write_text(text.replace('"ancient-tag"', f'"{written}"'))
    assert not lint(tmp_path, baseline="known.json") & {"mutable-image-tag", "stale-baseline"}


def test_fingerprint(tmp_path, monkeypatch):
    def fingerprints():
        lint(tmp_path)
        done = lint_paths(tmp_path, (), (), format_="gitlab", today="2025-01-31")
        return {item["check_name"]: item["fingerprint"] for item in json.loads(done.out)}

    before = fingerprints()
    monkeypatch.setattr(builtin_rules, "_RENAMED", {"old-tag": "mutable-image-tag"})
    after = fingerprints()

    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"mutable-image-tag"}


def test_explain(tmp_path, renamed):
    def explain(name):
        return explain_name(tmp_path, name, "", (), "text")

    assert explain("old-tag").out == explain("mutable-image-tag").out
    assert "Former names: ancient-tag, old-tag\n" in explain("old-tag").out
    assert explain("older-tag").code is ExitCode.NOTHING_TO_DO


def test_a_baseline_names_a_rule_by_its_current_name(renamed):
    text = json.dumps({"version": 1, "findings": [{"rule": "old-tag", "object": "a/b c/d"}]})

    assert [
        finding.message.split("`")[1] for finding in baseline.find_stale(baseline.parse(text), text, "known.json")
    ] == ["mutable-image-tag"]


def test_a_misspelled_former_name_suggests_the_current_one(renamed):
    assert builtin_rules.find_similar_rule("anciennt-tag", ["host-path", "mutable-image-tag"]) == "mutable-image-tag"
    assert builtin_rules.find_similar_rule("something-else", ["host-path"]) == ""
