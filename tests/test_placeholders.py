"""Placeholders are found in values, not in text for people and programs, and each fault is reported once."""

from __future__ import annotations

import pytest
from growth import takes_the_square_of_time
from hypothesis import given
from hypothesis import strategies as st
from lintfiles import lint_with_infos as lint_files

from jobgen.k8s.images import is_unresolved
from jobgen.k8s.placeholders import find_placeholders, has_placeholder

STYLES = {
    "<namespace>": "angle",
    "<*.custom_domain>": "angle",
    "{username}/image:1": "braces",
    "${IMAGE}": "dollar",
    "$IMAGE": "dollar",
    "$ignore": "dollar",
    "{{ .Values.image }}": "handlebars",
    "${{ matrix.size }}": "handlebars",
    "YOUR-PVC-NAME": "word",
    "Your storageClassName": "word",
    "registry.example.com/YOUR_USER/x:1": "word",
    "yourname/x:1": "word",
    "REPLACE_ME": "word",
    "changeme": "word",
    "fs-xxxxxxxx": "word",
    "TODO": "word",
    "...": "word",
    "pod-__INDEX__": "word",
    "< your server >": "angle",
}
MEANT = [
    "$(HOME)/data",
    "Ada <ada@example.com>",
    "<none>",
    "(?P<year>[0-9]+)",
    '{"a": 1}',
    "a{2}",
    "placeholder-pod",
    "yourself",
    "exchange-mesh",
    "TODO-app",
    "__init__.py",
    "a < b > c",
    "your data is processed by a program that has many words in its text",
    "registry.example.com/x:1.4.2",
]


@pytest.mark.parametrize("text", STYLES)
def test_a_placeholder_has_a_style(text):
    assert [found.style for found in find_placeholders(text)] == [STYLES[text]]


@pytest.mark.parametrize("text", MEANT)
def test_other_text_is_no_placeholder(text):
    assert not has_placeholder(text)


@given(st.text(alphabet="<>{}$().*YourxXTODO-_ a1\n`@"))
def test_tokens_are_parts_of_the_text_in_their_order(text):
    at = 0
    for found in find_placeholders(text):
        assert found.token
        at = text.index(found.token, at) + len(found.token)


@pytest.mark.parametrize("sign", ["<", "<a", "{", "{{", "${", "$A", "your-", "x", "your_a-", "<a>"])
def test_long_text_is_searched_in_linear_time(sign):
    assert not takes_the_square_of_time(lambda count: lambda: list(find_placeholders(sign * count)), 4_000)


def test_an_image_that_a_tool_builds_is_not_resolved():
    assert is_unresolved("ko://example.com/cmd")
    assert not is_unresolved("registry.example.com/x:1")


POD = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  containers:
  - name: a
    image: IMAGE
    env:
    - {name: A, value: VALUE}
"""
FAULTS = {
    "a word that the cluster accepts": (
        POD.replace("IMAGE", "your-registry/x:latest").replace("VALUE", "a"),
        [("unfilled-placeholder", "warning", 8)],
    ),
    "one placeholder at two places": (
        POD.replace("IMAGE", "your-registry/x:1").replace("VALUE", "your-registry"),
        [("unfilled-placeholder", "warning", 8)],
    ),
    "two placeholders": (
        POD.replace("IMAGE", "your-registry/x:1").replace("VALUE", "<token>"),
        [("unfilled-placeholder", "warning", 8)],
    ),
    "a file that is refused": (
        POD.replace("IMAGE", "<your-registry>/x:latest").replace("VALUE", "<token>"),
        [("unfilled-placeholder", "error", 8)],
    ),
    "capitals that say what to write": (
        POD.replace("IMAGE", "REGION-docker.pkg.dev/PROJECT_ID/x:1").replace("VALUE", "a"),
        [("unfilled-placeholder", "error", 8)],
    ),
    "capitals as variables of a script": (
        POD.replace("IMAGE", "x/y:1").replace("name: a,", "name: V_KSA,").replace("VALUE", "a"),
        [("unfilled-placeholder", "error", 4)],
    ),
    "what kustomize replaces": (POD.replace("IMAGE", "replaced-by-kustomize").replace("VALUE", "a"), []),
    "a text that is searched for in an address": (
        POD.replace("IMAGE", "x/y:1").replace("VALUE", "'https://a.example/search?q=<query>'"),
        [],
    ),
    "a name in capitals": (
        POD.replace("IMAGE", "x/y:1").replace("name: a,", "name: BERT_LARGE,").replace("VALUE", "a"),
        [("invalid-name", "error", 4)],
    ),
    "braces that are no YAML": (
        POD.replace("IMAGE", "{username}/x:1").replace("VALUE", "a"),
        [("unfilled-placeholder", "error", 8)],
    ),
    "braces that are a mapping": (
        POD.replace("IMAGE", "x/y:1").replace("{name: A, value: VALUE}", "name: A\n      value: {token}"),
        [("unfilled-placeholder", "error", 11)],
    ),
    "braces in place of a list": (
        POD.replace("IMAGE", "x/y:1").replace("    env:\n    - {name: A, value: VALUE}", "    args: {train}"),
        [("wrong-type", "error", 9)],
    ),
    "a variable in an image": (
        POD.replace("IMAGE", "${IMAGE}").replace("VALUE", "a"),
        [("unjudged-variable", "info", 8)],
    ),
}


def test_one_finding_names_all_placeholders_of_a_file(tmp_path):
    text = POD.replace("IMAGE", "your-registry/x:1").replace("VALUE", "<token>")
    (found,) = lint_files(tmp_path, {"pod.yaml": text})
    assert found["message"] == "`your-registry` and `<token>` are placeholders; fill them in"
    assert [each["line"] for each in found["related"]] == [10]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_placeholder_is_one_finding(fault, tmp_path):
    text, expected = FAULTS[fault]
    found = lint_files(tmp_path, {"pod.yaml": text})
    assert [(each["rule"], each["severity"], each["line"]) for each in found] == expected


def test_the_other_places_of_a_placeholder_are_related(tmp_path):
    text, _ = FAULTS["one placeholder at two places"]
    (found,) = lint_files(tmp_path, {"pod.yaml": text})
    assert [each["line"] for each in found["related"]] == [10]


def test_a_template_names_its_tokens(tmp_path):
    text = POD.replace("IMAGE", "REGION-docker.pkg.dev/PROJECT_ID/x:1").replace("name: a,", "name: V_KSA,")
    (found,) = lint_files(tmp_path, {"pod.yaml": text.replace("VALUE", "<token>")})
    assert "`V_KSA`, `REGION`, `PROJECT_ID` and `<token>` must be filled in by a person or a script" in found["message"]


def test_a_template_names_the_others_of_a_series(tmp_path):
    text = POD.replace("IMAGE", "x/y:1").replace("name: a,", "name: V_KSA,").replace("VALUE", "V_MODEL_NAME-1")
    found = lint_files(tmp_path, {"pod.yaml": f"# V_KSA and V_BUCKET are filled in by run.sh.\n{text}"})
    [message] = [each["message"] for each in found if each["rule"] == "unfilled-placeholder"]

    assert "`V_KSA`, `V_BUCKET` and `V_MODEL_NAME` must be filled in by a person or a script" in message


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: a
        image: registry.example.com/a:1.0.0
        command: [python, train.py]
        env:
        - EPOCHS=3
        - ENTRY
        resources: {requests: {cpu: 1, memory: 2Gi}}
"""
SPEC = """
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:1.0.0
  command: [python, train.py]
  env:
  - EPOCHS=3
  - ENTRY
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
"""
NAMES = ["WANDB_PROJECT", "PROJECT", "MASTER_PORT", "MODEL_NAME", "DATASET_PATH", "CLUSTER_NAME", "V_KSA"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [JOB, SPEC], ids=["job", "spec"])
def test_the_name_of_a_variable_is_no_placeholder(text, name, tmp_path):
    found = lint_files(tmp_path, {"a.yaml": text.replace("ENTRY", f"{name}=bert")})
    errors = [each for each in found if each["severity"] == "error"]
    assert {each["rule"] for each in errors} == {"wrong-type"}
    form = f"- {{name: {name}, value: bert}}" if text is JOB else f'env: {{EPOCHS: "3", {name}: bert}}'
    assert errors[-1]["message"].endswith(f"; write `{form}`")


def test_a_name_before_a_space_and_a_sign_is_no_placeholder(tmp_path):
    found = lint_files(tmp_path, {"a.yaml": JOB.replace("ENTRY", "PROJECT = bert")})
    assert {each["rule"] for each in found if each["severity"] == "error"} == {"wrong-type"}


def test_the_form_of_a_secret_has_no_value(tmp_path):
    text = JOB.replace("ENTRY", "DB_PASSWORD=correct-horse-battery-9").replace("- EPOCHS=3\n", "")
    found = lint_files(tmp_path, {"a.yaml": text})
    [message] = [each["message"] for each in found if each["rule"] == "wrong-type"]
    assert message.endswith("; write `- {name: DB_PASSWORD, value: …}`")
    assert "correct-horse" not in message


@pytest.mark.parametrize("text", [JOB, SPEC], ids=["job", "spec"])
def test_the_value_of_a_variable_is_a_placeholder(text, tmp_path):
    found = lint_files(tmp_path, {"a.yaml": text.replace("EPOCHS=3", "MODEL_NAME=<model>").replace("ENTRY", "A=1")})
    rules = [each["rule"] for each in found if each["severity"] == "error"]
    assert rules[0] == "unfilled-placeholder"
    assert "`<model>` must" in found[0]["message"]
