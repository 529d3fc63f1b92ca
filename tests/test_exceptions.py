"""Exceptions in the settings: what they apply to, when they expire, and their list."""

from __future__ import annotations

import json

import pytest
from command import run_jobgen_text
from growth import grows_with_the_square

import jobgen
from jobgen.compare.change_rules import check_change
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.workspace import Workspace
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.reports.severities import parse_severities

TODAY = "2026-06-01"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:latest
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  patches:
    - merge: {image: "registry.example.com/x:latest"}
"""
TEAM = "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs/nlp]}\n"
RULE = "mutable-image-tag"


def write(root, scope, *, expires="2026-12-31", files=(), rule=RULE):
    entry = {"rule": rule, "reason": "soon", "owner": "@example/nlp", "expires": expires, **scope}
    texts = {"jobgen.yaml": json.dumps({"exceptions": [entry]}), "jobs/nlp/bert.yaml": JOB, **dict(files)}
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def list_rules(root, today=TODAY, **options):
    found = jobgen.lint(root, today=today, **options).findings
    return [each.rule for each in found if each.rule in (RULE, "expired-exception", "unused-exception")]


@pytest.mark.parametrize(
    "scope",
    [
        {},
        {"jobs": ["be*"]},
        {"paths": ["jobs/nlp/*"]},
        {"namespaces": ["ml"]},
        {"environments": ["prod"]},
        {"teams": ["nlp"]},
        {"teams": ["nlp"], "jobs": ["bert"], "environments": ["p*"]},
    ],
)
def test_an_exception_applies_to_its_scope(tmp_path, scope):
    empty = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"
    write(tmp_path, scope, files={"teams/nlp.yaml": TEAM, "overlays/prod/overlay.yaml": empty})

    assert list_rules(tmp_path) == []


@pytest.mark.parametrize(
    "scope",
    [{"jobs": ["gpt"]}, {"paths": ["jobs/vision/*"]}, {"namespaces": ["x"]}, {"environments": ["x"]}, {"teams": ["x"]}],
)
def test_an_exception_does_not_apply_elsewhere(tmp_path, scope):
    write(tmp_path, scope, files={"teams/nlp.yaml": TEAM})

    assert sorted(list_rules(tmp_path)) == [RULE, "unused-exception"]


@pytest.mark.parametrize(
    ("teams", "declared", "words"),
    [
        (["nlp"], (), "there is no team `nlp`, so this exception has no effect; add it as `teams/nlp.yaml`"),
        (["nlpp"], ("nlp",), "there is no team `nlpp`, so this exception has no effect; did you mean `nlp`?"),
        (["x*", "y"], ("nlp",), "there is no team `y`, so this exception has no effect; there is `nlp`"),
        (["y", "vision"], ("nlp", "vision"), f"`{RULE}` finds nothing that this exception is for; remove it"),
        (["x*"], ("nlp",), f"`{RULE}` finds nothing that this exception is for; remove it"),
    ],
)
def test_an_exception_for_an_unknown_team_names_it(tmp_path, teams, declared, words):
    write(tmp_path, {"teams": teams}, files={f"teams/{each}.yaml": TEAM.replace("nlp", each) for each in declared})

    [found] = [each for each in jobgen.lint(tmp_path, today=TODAY).findings if each.rule == "unused-exception"]
    assert found.message == words


def test_a_finding_in_an_overlay_is_about_the_team_of_the_job(tmp_path):
    files = {"teams/nlp.yaml": TEAM, "overlays/prod/overlay.yaml": OVERLAY}
    write(tmp_path, {"teams": ["nlp"]}, files=files)

    assert list_rules(tmp_path) == []
    (tmp_path / "jobs/other.yaml").write_text(JOB.replace("name: bert", "name: gpt"))
    assert list_rules(tmp_path) == [RULE]


@pytest.mark.parametrize("team", ["nlp", "vision"])
def test_the_editor_finds_what_lint_finds(tmp_path, team):
    files = {"overlays/prod/overlay.yaml": OVERLAY}
    for name in ("nlp", "vision"):
        files[f"teams/{name}.yaml"] = TEAM.replace("nlp", name)
        files[f"jobs/{name}/bert.yaml"] = JOB.replace("bert,", f"{name},")
    write(tmp_path, {"teams": [team]}, files=files)
    workspace = Workspace(tmp_path, TODAY)
    workspace.take(WorkspaceLinter(tmp_path, TODAY).lint({}, lambda *_: None))

    found = [each for several in workspace.snapshot.findings.values() for each in several.all]
    assert sorted(found) == sorted(jobgen.lint(tmp_path, today=TODAY).findings)
    for name in ("nlp", "vision"):
        alone = workspace.lint_job(workspace.load(), f"jobs/{name}/bert.yaml")
        assert [each.rule for each in alone if each.rule == RULE] == ([] if name == team else [RULE])


def test_an_exception_applies_to_what_a_change_does_to_jobs_of_a_team(tmp_path):
    for side, tag in (("old", "1"), ("new", "2")):
        files = {"overlays/prod/overlay.yaml": OVERLAY.replace("latest", tag)}
        for name in ("nlp", "vision"):
            files[f"teams/{name}.yaml"] = TEAM.replace("nlp", name)
            files[f"jobs/{name}/bert.yaml"] = JOB.replace("bert,", f"{name},")
        write(tmp_path / side, {"teams": ["nlp"]}, files=files, rule="edit-without-effect")

    [found] = check_change(tmp_path / "old", tmp_path / "new", days=(TODAY, TODAY))

    assert (found.location.file, found.object.name) == ("overlays/prod/overlay.yaml", "vision")
    assert " more" not in found.message


def test_accepted_findings_can_be_shown(tmp_path):
    result = jobgen.lint(write(tmp_path, {"teams": ["nlp"]}, files={"teams/nlp.yaml": TEAM}), today=TODAY)

    assert [(each.finding.rule, each.reason, each.by) for each in result.suppressed] == [(RULE, "soon", "exception")]
    assert "suppressed by exception: soon" in result.to_text(show_suppressed=True)
    assert RULE not in result.to_text()


def test_an_expired_exception_is_an_error_and_has_no_effect(tmp_path):
    write(tmp_path, {}, expires="2026-05-31")

    assert sorted(list_rules(tmp_path)) == ["expired-exception", RULE]
    assert list_rules(tmp_path, today="2026-05-31") == []


def test_a_setting_of_a_rule_expires(tmp_path):
    write(tmp_path, {})
    setting = {"severity": "off", "reason": "soon", "expires": "2026-05-31"}
    (tmp_path / "jobgen.yaml").write_text(json.dumps({"rules": {RULE: setting}}))

    assert sorted(list_rules(tmp_path)) == ["expired-exception", RULE]
    assert list_rules(tmp_path, today="2026-05-30") == []


def test_settings_of_rules_that_expire_are_listed(tmp_path):
    write(tmp_path, {})
    setting = {"severity": "info", "paths": ["jobs/*"], "reason": "soon", "expires": "2026-05-31"}
    (tmp_path / "jobgen.yaml").write_text(json.dumps({"rules": {RULE: [setting]}}))

    assert jobgen.exceptions(jobgen.load(tmp_path, today="2026-05-31"), expired=True).exceptions == ()
    [listed] = jobgen.exceptions(jobgen.load(tmp_path, today=TODAY), expired=True).exceptions
    assert (listed.rule, listed.severity, listed.scope, listed.expired) == (RULE, "info", {"paths": ("jobs/*",)}, True)
    text = jobgen.exceptions(jobgen.load(tmp_path, today=TODAY)).text
    assert text.endswith(f": {RULE}: info paths jobs/*: soon (expired 2026-05-31)\n")


def test_a_mandatory_rule_can_have_an_exception(tmp_path):
    write(tmp_path, {})
    settings = json.loads((tmp_path / "jobgen.yaml").read_text())
    (tmp_path / "jobgen.yaml").write_text(json.dumps({**settings, "mandatory": [RULE]}))

    assert list_rules(tmp_path) == []


def test_some_environments_only_do_not_show_that_an_exception_is_unused(tmp_path):
    empty = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"
    overlays = {f"overlays/{name}/overlay.yaml": empty for name in ("dev", "prod")}
    write(tmp_path, {"environments": ["dev"]}, files=overlays)

    assert list_rules(tmp_path, environments=["prod"]) == [RULE]


@pytest.mark.parametrize("missing", ["reason", "owner", "expires", "rule"])
def test_every_exception_says_why_who_and_until_when(tmp_path, missing):
    write(tmp_path, {})
    settings = json.loads((tmp_path / "jobgen.yaml").read_text())
    del settings["exceptions"][0][missing]
    (tmp_path / "jobgen.yaml").write_text(json.dumps(settings))

    found = [each for each in jobgen.lint(tmp_path).findings if each.location.file == "jobgen.yaml"]

    assert [each.rule for each in found] == ["missing-field"]


def test_unknown_rules_are_errors(tmp_path):
    write(tmp_path, {}, rule="mutable-image-tg")

    found = [each for each in jobgen.lint(tmp_path).findings if each.location.file == "jobgen.yaml"]

    assert "did you mean `mutable-image-tag`?" in found[0].message


@pytest.mark.parametrize("rule", ["yaml-syntax", "unread-file", "internal-error", "broken-schema", "expired-exception"])
def test_no_exception_hides_what_was_not_checked(tmp_path, rule):
    write(tmp_path, {}, rule=rule, files={"jobs/nlp/broken.yaml": "a: [\n"})

    found = [each for each in jobgen.lint(tmp_path).findings if each.location.file == "jobgen.yaml"]

    assert [(each.rule, each.location.file) for each in found] == [("invalid-value", "jobgen.yaml")]


def test_many_exceptions_and_findings_take_linear_time():
    entry = {"rule": RULE, "reason": "soon", "owner": "@example/nlp", "expires": "2026-12-31"}
    finding = Finding(RULE, "pod", Severity.ERROR, "wrong", Location("jobs/bert.yaml", 1, 1, 1, 1))

    def prepare(count):
        exceptions = [{**entry, "rule": f"rule-{at}", "jobs": [f"bert-{at}"]} for at in range(count)]
        exceptions += [{**entry, "teams": [f"team-{at}", "x*", "*y"]} for at in range(100)]
        severities = parse_severities({"exceptions": exceptions}, TODAY)
        assert [severities.apply(finding, team) for team in ("team-99", "xa", "ay")] == [None] * 3

        def apply():
            assert all(severities.apply(finding, "team-1000") for _ in range(count))

        return apply

    assert not grows_with_the_square(prepare, 120)


def test_the_list_of_exceptions(tmp_path):
    write(tmp_path, {"teams": ["nlp"]}, expires="2026-05-31")

    text = run_jobgen_text(tmp_path, "exceptions", "--today", TODAY)
    expired = run_jobgen_text(tmp_path, "exceptions", "--expired", "--today", TODAY, "--format", "json")
    none = run_jobgen_text(tmp_path, "exceptions", "--expired", "--today", "2026-01-01")

    assert text.stdout == f"jobgen.yaml:1:26: {RULE}: teams nlp: soon (@example/nlp, expired 2026-05-31)\n"
    assert (expired.returncode, json.loads(expired.stdout)["exceptions"][0]["expired"]) == (1, True)
    assert (none.returncode, none.stdout) == (0, "no exception has expired\n")
