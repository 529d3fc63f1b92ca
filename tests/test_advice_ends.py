"""Whoever follows the advice of a message gets rid of the finding, and of no other message for it."""

from __future__ import annotations

import re

import pytest
from lintfiles import JOB, lint_files, lint_with_infos, overlay

# What is wrong in the overlay, what the message must advise, and the overlay after following it.
OVERLAYS = {
    "{patches: [{merge: {namespace: x}}]}": (
        "write `namespace` of the overlay, or `manifest: {metadata: {namespace: …}}` in `patches`",
        ("{namespace: x}", "{patches: [{manifest: {metadata: {namespace: x}}}]}"),
    ),
    "{patches: [{merge: {metadata: {namespace: x}}}]}": (
        "write `manifest: {metadata: …}` in `patches`",
        ("{patches: [{manifest: {metadata: {namespace: x}}}]}",),
    ),
    "{defaults: {namespace: x}}": (
        "write `namespace` of the overlay, or `manifest: {metadata: {namespace: …}}` in `patches`",
        ("{namespace: x}",),
    ),
}


@pytest.mark.parametrize("spec", OVERLAYS)
def test_advice_about_an_overlay_can_be_followed(spec, tmp_path):
    advice, fixed = OVERLAYS[spec]
    settings = {"jobgen.yaml": "environments: [prod]\n", "jobs/bert.yaml": JOB}

    [found] = lint_files(tmp_path, {**settings, **overlay(spec)})

    assert found["message"].endswith(advice)
    for each in fixed:
        assert lint_files(tmp_path, {**settings, **overlay(each)}) == []


FIELDS = ("volumes: [{name: scratch, mountPath: /tmp/x, emptyDir: {}}]", "env: [NCCL_DEBUG=INFO]", "args: --epochs=10")


@pytest.mark.parametrize("field", FIELDS)
def test_the_right_form_of_a_field_has_no_finding(field, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("  roles:", f"  {field}\n  roles:")})
    [form] = re.findall("; write `([^`]*)`", found["message"])

    assert lint_files(tmp_path, {"jobs/bert.yaml": JOB.replace("  roles:", f"  {form}\n  roles:")}) == []


JOB_WITHOUT_ROLES = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/a:1.0.0
          command: [torchrun, --nproc_per_node=8, train.py]
          resources: {limits: {nvidia.com/gpu: 4}}
"""


def test_a_job_without_roles_has_a_pod_in_messages(tmp_path):
    found = lint_with_infos(tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": JOB_WITHOUT_ROLES})
    messages = {each["rule"]: each["message"] for each in found}

    assert messages["missing-memory"].startswith("the pod has GPUs but requests no memory")
    assert not any("`node`" in message for message in messages.values())
