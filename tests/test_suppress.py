"""Comments that suppress findings: on the line, above it, or at the top of the file; each with a reason."""

import json
import subprocess

import pytest
from linting import lint_paths

from jobgen.reports.suppress import parse_suppressions

SPEC = """\
{top}apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: bert}}
spec:
  framework: pytorch
{above}  image: registry.example.com/bert:latest{beside}
"""


def linted(folder, **options):
    result = lint_paths(folder, (), (), format_="json", **options)
    return json.loads(result.out)


def told(folder, *, top="", above="", beside="", **options):
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs/a.yaml").write_text(SPEC.format(top=top, above=above, beside=beside))
    document = linted(folder, **options)
    wanted = ("mutable-image-tag", "meta")
    found = [
        entry["rule"] for entry in document["findings"] if wanted[0] == entry["rule"] or wanted[1] == entry["category"]
    ]
    return sorted(found), document["summary"]["suppressed"]


@pytest.mark.parametrize(
    "place",
    [
        {"beside": " # jobgen: ignore[mutable-image-tag] -- a demo"},
        {"above": "  # jobgen: ignore[mutable-image-tag] -- a demo\n"},
        {"above": "  # jobgen: ignore[mutable-image-tag] -- a demo\n\n  # another comment\n"},
        {"top": "# jobgen: ignore-file[mutable-image-tag] -- a demo\n"},
        {"top": "# x: y\n# jobgen: ignore-file[mutable-image-tag] until=2999-01-01 -- a demo\n---\n"},
        {"beside": " # jobgen: ignore[mutable-image-tag] until=2999-01-01 -- a demo"},
    ],
)
def test_suppression_with_a_reason(place, tmp_path):
    # Without a commit there is no date to compare with.
    assert told(tmp_path, **place) == (["unknown-current-date"] if "until" in str(place) else [], 1)


@pytest.mark.parametrize(
    ("place", "faults"),
    [
        ({"beside": " # jobgen: ignore[mutable-image-tag]"}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore[mutable-image-tag] --  "}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore -- all of it"}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore[] -- nothing"}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore[mutable-image-tag] until=soon -- a demo"}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore-file[mutable-image-tag] -- not at the top"}, ["malformed-suppression"]),
        ({"beside": " # jobgen: ignore[mutable-image-tagg] -- a demo"}, ["unknown-suppression"]),
        ({"top": "# jobgen: ignore[mutable-image-tag] -- the wrong line\n"}, ["unused-suppression"]),
    ],
)
def test_unused_suppression_is_reported(place, faults, tmp_path):
    assert told(tmp_path, **place) == (sorted([*faults, "mutable-image-tag"]), 0)


def test_unknown_rule_in_a_suppression_suggests_the_nearest(tmp_path):
    told(tmp_path, beside=" # jobgen: ignore[mutable-image-tagg] -- a demo")
    messages = [entry["message"] for entry in linted(tmp_path)["findings"]]

    assert "there is no rule `mutable-image-tagg`; did you mean `mutable-image-tag`?" in messages


def test_unused_rule_of_a_list_is_reported(tmp_path):
    place = {"beside": " # jobgen: ignore[mutable-image-tag, host-path] -- a demo"}

    assert told(tmp_path, **place) == (["unused-suppression"], 1)


def test_suppression_expires_by_commit_date(tmp_path):
    place = {"beside": " # jobgen: ignore[mutable-image-tag] until=2026-03-01 -- a demo"}

    # Without a commit there is no date, and nothing ends by the clock alone.
    assert told(tmp_path, **place) == (["unknown-current-date"], 1)
    assert told(tmp_path, today="2026-03-01", **place) == ([], 1)
    assert told(tmp_path, today="2026-03-02", **place) == (["expired-suppression", "mutable-image-tag"], 0)

    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x", "--date", "2026-03-05T00:00:00Z"]):
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        subprocess.run(
            ["git", *words],
            cwd=tmp_path,
            check=True,
            env={**who, "GIT_COMMITTER_DATE": "2026-03-05T00:00:00Z", "PATH": "/usr/bin:/bin"},
        )
    assert told(tmp_path, **place) == (["expired-suppression", "mutable-image-tag"], 0)


def test_mandatory_rule_cannot_be_suppressed(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("mandatory: [mutable-image-tag]\n")
    place = {"beside": " # jobgen: ignore[mutable-image-tag] -- a demo"}

    assert told(tmp_path, **place) == (["mandatory-suppressed", "mutable-image-tag"], 0)


def test_suppression_in_an_overlay(tmp_path):
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "overlays/prod/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n    - merge:\n"
        "        image: registry.example.com/bert:main # jobgen: ignore[mutable-image-tag] -- follows the branch\n"
    )
    assert told(tmp_path) == ([], 1)


def test_suppression_in_a_manifest(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a, namespace: ml}\nspec:\n  jaxReplicaSpecs:\n"
        "    Worker:\n      template:\n        spec:\n          containers:\n            - name: jax\n"
        "              # jobgen: ignore[mutable-image-tag] -- a demo\n              image: a:latest\n"
    )
    result = json.loads(lint_paths(tmp_path, ["a.yaml"], (), format_="json").out)

    assert "mutable-image-tag" not in [entry["rule"] for entry in result["findings"]]
    assert result["summary"]["suppressed"] == 1


def test_suppression_is_not_unused_if_an_environment_was_skipped(tmp_path):
    for env, image in (("dev", "a:1"), ("prod", "a:latest # jobgen: ignore[mutable-image-tag] -- a demo")):
        (tmp_path / f"overlays/{env}").mkdir(parents=True)
        (tmp_path / f"overlays/{env}/o.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n    - merge:\n        image: {image}\n"
        )
    told(tmp_path)
    rules = [entry["rule"] for entry in json.loads(lint_paths(tmp_path, (), ["dev"], format_="json").out)["findings"]]

    assert "unused-suppression" not in rules


def test_text_that_looks_like_a_comment_suppresses_nothing():
    comment = b"# jobgen: ignore[mutable-image-tag] -- text"
    text = b"script: |\n  echo " + comment + b'\nother: "' + comment + b'"\n'

    assert parse_suppressions(text, "a.yaml") == ([], [])
