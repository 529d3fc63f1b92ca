"""`{team}`, `{env}` and `{job}` in the namespace and the queue of an overlay stand for those of each job."""

from __future__ import annotations

import pytest
from command import jobgen
from lintfiles import JOB, lint_files, overlay

LABELED = JOB.replace("{name: bert, namespace: ml}", "{name: bert, labels: {team: nlp}}")
WITHOUT_TEAM = JOB.replace("{name: bert, namespace: ml}", "{name: bert}")
TEAM = "apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: vision}\nspec: {folders: [jobs/vision], %s}\n"
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {team: nlp}}
data: {a: b}
"""


def spec_with(namespace: str, queue: str = "research") -> dict[str, str]:
    return overlay(f"{{namespace: '{namespace}', defaults: {{queue: '{queue}'}}}}")


def test_render_fills_namespace_and_queue(tmp_path):
    files = {"jobs/bert.yaml": LABELED, "jobs/settings.yaml": MANIFEST, **spec_with("{team}-{env}", "q-{job}")}
    assert [each for each in lint_files(tmp_path, files) if each["severity"] == "error"] == []

    rendered = jobgen(tmp_path, "render").stdout.decode()

    assert rendered.count("namespace: nlp-prod\n") == 2
    assert "kueue.x-k8s.io/queue-name: q-bert\n" in rendered


def test_the_owner_of_the_folder_is_the_team(tmp_path):
    files = {"jobs/vision/bert.yaml": WITHOUT_TEAM, "teams/vision.yaml": TEAM % "namespaces: [vision-dev]"}

    found = lint_files(tmp_path, {**files, **spec_with("{team}-{env}")})

    assert [(each["rule"], "`vision-prod`" in each["message"]) for each in found] == [("foreign-namespace", True)]
    files["teams/vision.yaml"] = TEAM % "namespaces: [vision-prod]"
    assert lint_files(tmp_path, {**files, **spec_with("{team}-{env}")}) == []


def test_a_selector_matches_the_filled_namespace(tmp_path):
    spec = "{namespace: 'ml-{job}', patches: [{match: {namespaces: [ml-bert]}, merge: {env: {A: b}}}]}"

    assert lint_files(tmp_path, {"jobs/bert.yaml": LABELED, **overlay(spec)}) == []


def test_a_job_without_a_team_is_reported_in_the_job(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": WITHOUT_TEAM, **spec_with("ml-{team}")})

    assert (found["rule"], found["file"], found["line"]) == ("missing-field", "jobs/bert.yaml", 3)
    assert [each["file"] for each in found["related"]] == ["overlays/prod/overlay.yaml"]


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("ml-{tem}", "`{tem}` is not a placeholder of `namespace`; did you mean `{team}`?"),
        ("ml-{x}", "`{x}` is not a placeholder of `namespace`; use `{team}`, `{env}` or `{job}`"),
        ("ml-{}", "`{}` is not a placeholder of `namespace`; use `{team}`, `{env}` or `{job}`"),
    ],
)
def test_an_unknown_placeholder_is_reported_in_the_overlay(namespace, message, tmp_path):
    found = lint_files(tmp_path, {"jobs/bert.yaml": LABELED, **spec_with(namespace)})

    assert [(each["file"], each["message"]) for each in found] == [("overlays/prod/overlay.yaml", message)]


def test_a_name_that_becomes_invalid_is_reported_in_the_overlay(tmp_path):
    job = LABELED.replace("name: bert", f"name: {'b' * 63}")

    found = [
        each
        for each in lint_files(tmp_path, {"jobs/bert.yaml": job, **spec_with("ml-{job}")})
        if each["file"].startswith("overlays/")
    ]

    assert [each["rule"] for each in found] == ["invalid-value"]
    assert [each["file"] for each in found[0]["related"]] == ["jobs/bert.yaml"]


def test_the_queue_of_a_job_is_as_it_is_written(tmp_path):
    job = LABELED.replace("  shm:", "  queue: '{team}'\n  shm:")

    found = lint_files(tmp_path, {"jobs/bert.yaml": job, **spec_with("ml")})

    # The `namespace` of the overlay is a default that the job overrides.
    assert {each["file"] for each in found if each["rule"] != "overridden-value"} == {"jobs/bert.yaml"}
