"""All effects of a change, in every format: what scales now, what the next run uses, what stops and starts."""

from __future__ import annotations

import json

import pytest
from test_diff import OVERLAY, spec, write

import jobgen

FORMATS = ("text", "markdown", "json")
QUEUED = OVERLAY.replace("cluster: {", 'cluster: {kueue: {version: "0.19", frameworks: [kubeflow.org/pytorchjob]}, ')


def write_repository(folder, overlay, job):
    write(folder, "overlays/prod/overlay.yaml", overlay)
    write(folder, "jobs/bert.yaml", job)


def compare(tmp_path, before, after):
    """Return the comparison of two versions of a job in each format."""
    for side, text in (("old", before), ("new", after)):
        write_repository(tmp_path / side, OVERLAY, text)
    return {name: jobgen.diff(tmp_path, folders=("old", "new"), format=name) for name in FORMATS}


BASE = spec(replicas=4)
PROD, LATER = "in-place and next run", "next run only"
CASES = {
    "replicas and image": (
        spec(replicas=8, image="x:2"),
        ("no-effect", "in-place"),
        PROD,
        "scales in place: +4 GPUs; the new image from the next run on; GPUs 4 → 8 (+4)",
    ),
    "fewer replicas and another image": (
        spec(replicas=3, image="x:2"),
        ("no-effect", "in-place"),
        PROD,
        "scales in place: -1 GPU; the new image from the next run on; GPUs 4 → 3 (-1)",
    ),
    # The sum says nothing about each of them.
    "replicas and GPUs of a pod": (
        spec(replicas=8, gpus=2),
        ("no-effect", "in-place"),
        PROD,
        "scales in place; the new resources from the next run on; GPUs 4 → 16 (+12)",
    ),
    "GPUs of a pod": (
        spec(replicas=4, gpus=2),
        ("no-effect",),
        LATER,
        (
            "running pods are never changed; only pods created later use the new value; "
            "GPUs 4 → 8 (+4) from the next run on"
        ),
    ),
    "label and image": (
        spec(replicas=4, team="vision", image="x:2"),
        ("no-effect", "in-place"),
        PROD,
        "the new label `team` at once; the new image from the next run on",
    ),
    "replicas": (
        spec(replicas=8),
        ("in-place",),
        "in-place",
        "pods are added or removed; running pods keep the number of peers that they started with; GPUs 4 → 8 (+4)",
    ),
    "image": (
        spec(replicas=4, image="x:2"),
        ("no-effect",),
        LATER,
        "running pods are never changed; only pods created later use the new value",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_has_all_its_effects_in_every_format(tmp_path, name):
    after, effects, title, summary = CASES[name]

    results = compare(tmp_path, BASE, after)

    (entry,) = json.loads(results["json"].text)["objects"]
    assert (tuple(entry["effects"]), entry["effect"], entry["summary"]) == (effects, effects[0], summary)
    (found,) = results["json"].objects
    assert (found.effects, found.summary) == (effects, summary)
    lines = results["text"].text.splitlines()
    assert lines[0] == f"changed PyTorchJob ml/bert in prod: {title}"
    assert lines[1].strip() == summary
    shown = results["markdown"].text.replace("<code>", "`").replace("</code>", "`").replace("&#58;", ":")
    assert f"<b>{title}</b>" in shown
    assert summary in shown
    assert "no-effect" not in results["text"].text + results["markdown"].text


def test_fields_that_are_many_or_removed_are_named_in_short(tmp_path):
    more = "  env: {A: '1', B: '2'}\n  nodeSelector: {pool: a}\n"
    results = compare(tmp_path, spec(replicas=2, image="x:1") + more, spec(replicas=3, image="x:2", gpus=2))

    (entry,) = json.loads(results["json"].text)["objects"]
    assert entry["summary"].startswith(
        "scales in place; the new image and resources, without variables and `nodeSelector.pool` from the next run on"
    )


def test_a_job_that_restarts_has_no_other_effect(tmp_path):
    for side, replicas, image in (("old", 2, "x:1"), ("new", 4, "x:2")):
        text = spec(replicas=replicas, image=image) + "  queue: main\n"
        write_repository(tmp_path / side, QUEUED, text)

    (found,) = jobgen.diff(tmp_path, folders=("old", "new")).objects

    assert found.effects == ("restart",)
    assert found.stops
