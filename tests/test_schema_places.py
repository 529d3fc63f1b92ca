"""Where the checks of schemas report a problem: in the text, without reading the object with locations."""

from __future__ import annotations

import json

import pytest
from linting import lint_paths

from jobgen.check.independent import find_independent
from jobgen.model.data import value_of
from jobgen.model.finding import Problem
from jobgen.model.place import At
from jobgen.yamlio.read import read

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: registry.example.com/a:1.0.0
    resources: {{requests: {{cpu: 1, memory: 1Gi}}, limits: {{memory: 1Gi}}}}
{}"""
JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: a, namespace: b}}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            image: registry.example.com/a:1.0.0
{}"""
OF_JOBS = {
    "null": ("            args:\n            - null\n", ["13:15 wrong-type"]),
    "a missing field": ("            env:\n            - value: b\n", ["13:15 missing-field"]),
    "an empty item": ("            env:\n            - {}\n", ["13:15 missing-field"]),
    "an amount": ("            resources: {limits: {memory: 1x}}\n", ["12:42 invalid-quantity"]),
    "two of a name": ("            env: [{name: a}, {name: a}]\n", ["12:37 duplicate-item"]),
    "another value": ("  runPolicy: {cleanPodPolicy: 1}\n", ["12:31 wrong-type"]),
    "a field to move": ("  cleanPodPolicy: None\n", ["12:3 unknown-field"]),
    "a field of metadata": ("labels: {a: b}\n", ["12:1 unknown-field"]),
}
CASES = {
    "an unknown key": ("    imagePulPolicy: Always\n", ["10:5 unknown-field"]),
    "a key that YAML reads otherwise": ("    no: 1\n", ["10:5 unknown-field"]),
    "a value that YAML reads otherwise": ("    workingDir: yes\n", ["10:17 wrong-type"]),
    "a number": ("    workingDir: 0755\n", ["10:17 wrong-type"]),
    "a mapping": ("    workingDir: {a: b}\n", ["10:5 wrong-type"]),
    "an item": ("    args: [a, 1, {b: c}]\n", ["10:15 wrong-type", "10:19 wrong-type"]),
    "an item in lines": ("    args:\n    - a\n    - b: c\n", ["12:7 wrong-type"]),
    "a field of the pod": ("    hostNetwork: true\n", ["10:5 unknown-field"]),
    "too large a number": ("  priority: 9999999999\n", ["10:13 out-of-range"]),
    "an amount": ("    volumeMounts: []\n  overhead: {cpu: 1x}\n", ["11:19 invalid-quantity"]),
    "what follows from a wrong type": (
        "    args: {a: b}\n    env:\n    - {name: 'A B', value: c}\n",
        ["10:5 wrong-type"],
    ),
}


def lint(folder):
    found = json.loads(lint_paths(folder, (), (), format_="json").out)["findings"]
    return found, [f"{each['line']}:{each['column']} {each['rule']}" for each in found if each["category"] == "schema"]


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [(POD, *case) for case in CASES.values()] + [(JOB, *case) for case in OF_JOBS.values()],
    ids=[*CASES, *OF_JOBS],
)
def test_a_problem_is_at_its_place(text, lines, expected, tmp_path):
    (tmp_path / "object.yaml").write_text(text.format(lines))
    _, places = lint(tmp_path)

    assert places == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("    no: 1\n", "`no` is not a field of `containers[0]`; remove it"),
        ("    workingDir: yes\n", "`workingDir` is `yes`, which YAML reads as `true`, and must be a string; quote it"),
        ("    workingDir: 0x10\n", "`workingDir` is `0x10`, which YAML reads as `16`, and must be a string; quote it"),
        ("    workingDir: 16\n", "`workingDir` is `16`, and must be a string; quote it"),
    ],
)
def test_a_message_has_the_text_of_the_file(lines, message, tmp_path):
    (tmp_path / "object.yaml").write_text(POD.format(lines))

    assert message in [each["message"] for each in lint(tmp_path)[0]]


ARGS = "image: A\nargs: [a, {b: c}, D]\nenv: {E: f, g: 1}\n"


def find_capitals(tree):
    """Report the texts in capitals, each at its place."""
    for holder in (tree, tree.get("args", []), tree.get("env", {})):
        for key, child in holder.items() if isinstance(holder, dict) else enumerate(holder):
            text = value_of(child)
            if isinstance(text, str) and text.isupper():
                yield Problem("capital", text, At(holder, key))


def test_other_faults_have_their_places_in_the_whole_tree():
    tree = read(ARGS.encode(), "a.yaml").documents[0].data
    item = Problem("wrong-type", "", At(tree, "args", is_key=True), expected="a string", about="args[1]")
    named = Problem("wrong-type", "", At(tree["env"], "g"), expected="a mapping", about="g")

    found = find_independent(tree, [item, named], lambda copied: list(find_capitals(copied)))

    assert {str(problem.sentence): problem.node for problem in found} == {
        "A": At(tree, "image"),
        "D": At(tree["args"], 2),
    }


def test_the_value_at_fault_has_no_other_fault():
    tree = {"image": "A", "args": ["B"]}
    fault = Problem("wrong-type", "", At(tree, "image"), expected="a mapping", about="image")

    (found,) = find_independent(tree, [fault], lambda copied: list(find_capitals(copied)))

    assert found.node == At(tree["args"], 0)
