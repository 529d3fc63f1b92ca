"""Fields beside the empty key that they belong below: one finding, on the first of them."""

from __future__ import annotations

import pytest
from lintfiles import lint_files
from test_misread import RUN, H

from jobgen.rendering.file_secrets import search_file

JOB = H + RUN
CONTAINER = "  podTemplate:\n    spec:\n      containers:\n        - name: pytorch\n"
# What is appended to a job of 9 lines; the line and the words of the only finding.
CASES = {
    "reference": (
        "  env:\n    WANDB_API_KEY:\n      valueFrom:\n        secretKeyRef:\n        name: wandb\n        key: api\n",
        14,
        "`name` belongs to `secretKeyRef`",
    ),
    "short reference": (
        "  env:\n    LR:\n      configMapKeyRef:\n      key: lr\n      name: tuning\n",
        13,
        "`key` belongs to `configMapKeyRef`",
    ),
    "source": (
        "  env:\n    NODE:\n      valueFrom:\n      fieldRef: {fieldPath: spec.nodeName}\n",
        13,
        "`fieldRef` belongs to `valueFrom`",
    ),
    "variable": (
        "  env:\n    TOKEN:\n    secretKeyRef: {name: hub, key: token}\n",
        12,
        "`secretKeyRef` belongs to `TOKEN`",
    ),
    "context of pods": (
        "  podTemplate:\n    spec:\n      securityContext:\n      runAsUser: 1000\n      fsGroup: 100\n",
        13,
        "`runAsUser` belongs to `securityContext`",
    ),
    "requests": (
        CONTAINER + "          resources:\n            requests:\n            cpu: 3\n",
        16,
        "`cpu` belongs to `requests`",
    ),
    "probe": (
        CONTAINER + "          startupProbe:\n          exec: {command: [ls]}\n",
        15,
        "`exec` belongs to `startupProbe`",
    ),
    "claim": (
        "  volumes:\n    d:\n      mountPath: /d\n      persistentVolumeClaim:\n      claimName: sets\n",
        14,
        "`claimName` belongs to `persistentVolumeClaim`",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fields_beside_their_empty_key_are_one_finding(name, tmp_path):
    text, line, words = CASES[name]
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB + text})

    assert [(each["line"], each["rule"]) for each in found] == [(line, "unknown-field")]
    assert words in found[0]["message"]
    assert "which has no value; indent what belongs to" in found[0]["message"]


def test_a_misspelled_field_below_an_empty_one_keeps_its_own_answer(tmp_path):
    text = "  podTemplate:\n    spec:\n      securityContext:\n      nodeSelectr: {a: b}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB + text})

    assert [each["line"] for each in found] == [12, 13]
    assert found[1]["message"].endswith("; did you mean `nodeSelector`?")


def test_an_empty_reference_is_no_secret():
    text = JOB + CASES["reference"][0]
    assert not search_file(text.encode(), "jobs/a.yaml").texts
    held = JOB + "  env:\n    WANDB_API_KEY:\n      valueFrom: {0123456789abcdef0123:}\n"
    assert search_file(held.encode(), "jobs/a.yaml").texts
