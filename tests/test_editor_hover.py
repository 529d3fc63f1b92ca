"""Hover: documentation, the value in every environment, rules and names."""

import json
import re

import pytest
from growth import count_calls
from navigationfiles import FILES, find_mark, write_files

from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.definition import find_definitions, find_references
from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.symbols import list_symbols
from jobgen.features.editor.values import code, escape, value_code
from jobgen.features.editor.workspace import Workspace
from jobgen.yamlio.read import read

BERT, SWEEP, MANIFESTS = "jobs/nlp/bert.yaml", "jobs/sweep.yaml", "jobs/manifests.yaml"
USES = "jobs/uses.yaml"
RENDERED = "rendered/prod/ml-prod/pytorchjob-bert.yaml"
BASE, DEV, PROD = (f"overlays/{name}/overlay.yaml" for name in ("base", "dev", "prod"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("repository"))
    workspace = Workspace(folder)
    workspace.take(WorkspaceLinter(folder).lint({}, lambda *_: None))
    return workspace


def hover(workspace, file, marked, text=None):
    """The Markdown with links in short form: `job@jobs/a.yaml:3`."""
    line, column = find_mark(FILES[file] if text is None else text, marked)
    found = find_hover(make_context(workspace, file, find_cursor(text or FILES[file], line, column, file)))
    if found is None:
        return ""
    shown = found.markdown.replace(workspace.root.as_uri() + "/", "")
    return re.sub(r"\[([^\]]*)\]\(([^)#]*)#L(\d+)\)", r"\1@\2:\3", shown)


CASES = [
    (BERT, "repl¦icas: 3", f"| dev | `3` | job@{BERT}:8 |"),
    (BERT, "repl¦icas: 3", f"| prod | `5` | patch of prod@{PROD}:10, overrides `3` of job@{BERT}:8 |"),
    (BERT, "LOG_LEVEL: in¦fo", f"| dev | `info` | job@{BERT}:11, overrides `debug` of defaults of base@{BASE}:8 |"),
    (BERT, "gp¦u: 1", f"| dev, prod | `1` | job@{BERT}:12 |"),
    (BERT, "API_TOKEN: s3¦cr3t-value", f"| dev, prod | `…` | job@{BERT}:11 |"),
    (BERT, "ro¦les:", "| dev, prod | `master.restartPolicy` | `OnFailure` | kind PyTorchJob@"),
    (BERT, "framework: py¦torch", "| dev, prod | `PyTorchJob` | training-operator | `master`, `worker` |"),
    (BERT, "team: n¦lp", f"| dev, prod | `nlp` | job@{BERT}:5 |"),
    (SWEEP, 'LR: "$¦{{', "In the 2 jobs of the sweep:\n\n| environment | value | jobs | set by |"),
    (SWEEP, 'LR: "$¦{{', f'| dev, prod | `"0.2"` | 1 | job@{SWEEP}:8 with matrix@{SWEEP}:7 |'),
    (
        PROD,
        "LOG_LEVEL: war¦ning",
        f"| bert@{BERT}:1 | prod | `warning` | patch of prod@{PROD}:11, overrides `info` of job@{BERT}:11",
    ),
    (PROD, "backoff¦Limit", "| sweep@jobs/sweep.yaml:1 | prod | `3` | patch of prod@overlays/prod/overlay.yaml:14 |"),
    (
        BASE,
        "REG¦ION: eu",
        f"| sweep@{SWEEP}:1 | dev, prod | `eu` | defaults of base@{BASE}:8 |",
    ),
    (DEV, "name¦space", "Reaches 8 jobs: "),
    (BERT, "que¦ue", "**`queue`**: string\n\nQueue that admits the job.\n\nExample: `queue: research`\n\n| env"),
    (
        BERT,
        "queue: te¦am-a",
        "**LocalQueue `team-a`**: defined in jobs/uses.yaml:1@jobs/uses.yaml:1; named in 2 files",
    ),
    (BERT, "[pyth¦on", "**`command`**: list of string"),
    (BERT, "LOG_LEVEL: in¦fo", "**`LOG_LEVEL`**: string or"),
    (PROD, "backoff¦Limit", "**`backoffLimit`**: integer\n\nReaches"),
    (PROD, "names: [swe¦ep*]", "Matches 2 jobs"),
    (
        BASE,
        "plat¦form",
        "default `kubeflow`\n\nThe platform whose CRDs the cluster has.\n\nOne of `kubeflow`, `trainer`",
    ),
    ("jobgen.yaml", "mand¦atory", "**`mandatory`**: list of string"),
    (MANIFESTS, "string¦Data", "**`stringData`**: mapping"),
    (MANIFESTS, "dat¦a: {a: b}", "**`data`**: mapping"),
    (USES, "restart¦Policy", "**`restartPolicy`**: string\n\nOne of `Always`, `OnFailure`, `Never`"),
    (USES, "runtimeRef: {name: to¦rch", "**ClusterTrainingRuntime `torch`**: defined in runtimes/torch.yaml:3@"),
    (PROD, "kinds: [PyTorch¦Job]", "**PyTorchJob** of `kubeflow.org/v1`: operator training-operator"),
    (
        RENDERED,
        "backoffLimit: ¦3",
        "**`backoffLimit`**: integer\n\n| environment | value | set by |\n| --- | --- | --- |\n| prod |",
    ),
    ("policies/own.yaml", "failure¦Policy", "**`failurePolicy`**: string"),
    (
        "jobgen.yaml",
        "dev, pr¦od",
        "**overlay `prod`**, extends `base`\n\nplatform `kubeflow`, training-operator 1.8.1\n\n8 jobs, 3 pat",
    ),
    (PROD, "extends: [ba¦se]", "0 patches in `dev`, `prod`"),
    ("jobgen.yaml", "own-¦policy", "**own-policy**: info (policy)\n\nNo x."),
    ("jobgen.yaml", "mutable-¦image-tag", "**mutable-image-tag**: warning (image)"),
    (MANIFESTS, "ignore[mutable-¦image-tag", "Reported:\n\n```yaml\napiVersion"),
    (MANIFESTS, ", gpu-¦limits", "**gpu-limits-match-requests**"),
]


@pytest.mark.parametrize(("file", "marked", "expected"), CASES, ids=str)
def test_hover(workspace, file, marked, expected):
    assert expected in hover(workspace, file, marked)


@pytest.mark.parametrize(
    ("file", "marked"),
    [
        (BERT, "metadata:\n ¦"),
        (MANIFESTS, "ignore¦["),
        (MANIFESTS, "-- a t¦est"),
    ],
    ids=str,
)
def test_nothing_to_show(workspace, file, marked):
    assert hover(workspace, file, marked) == ""


def test_secret_is_redacted_in_lower_layers(workspace):
    assert "s3cr3t" not in hover(workspace, BERT, "API_TO¦KEN")
    assert "hunter2" not in hover(workspace, MANIFESTS, "hunter2-hun¦ter2")


def test_hover_uses_the_text_of_the_editor(workspace):
    text = FILES[BERT].replace("16Gi", "17Gi")
    workspace.open(workspace.root / BERT, text)
    try:
        assert "| dev, prod | `17Gi` |" in hover(workspace, BERT, "mem¦ory", text)
    finally:
        workspace.close(workspace.root / BERT)


def test_every_environment_has_a_row(tmp_path):
    write_files(tmp_path)
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    for number in range(20):
        folder = tmp_path / f"overlays/env{number}"
        folder.mkdir()
        text = FILES[DEV].replace("name: dev", f"name: env{number}")
        (folder / "overlay.yaml").write_text(f"{text}  patches: [{{merge: {{env: {{LOG_LEVEL: of-{number}}}}}}}]\n")

    shown = hover(Workspace(tmp_path), BERT, "LOG_LEVEL: in¦fo")

    assert [f"| env{number} | `of-{number}` |" in shown for number in range(20)] == [True] * 20


MUTATING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: small}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
          [JSONPatch{op: 'replace', value: 2, path:
           '/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/resources/limits/nvidia.com~1gpu'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small}
"""


def test_what_a_policy_changes_in_the_cluster_is_shown(tmp_path):
    write_files(tmp_path)
    (tmp_path / "policies").mkdir(exist_ok=True)
    (tmp_path / "policies/small.yaml").write_text(MUTATING)

    shown = hover(Workspace(tmp_path), BERT, "gp¦u: 1")

    assert f"| `1` | job@{BERT}:12, in the cluster `2` of policy small@policies/small.yaml:13 |" in shown


def test_text_of_users_is_no_markup():
    assert escape("[x](http://a) <b> ![i](j) `c`") == r"\[x\]\(http://a\) \<b\> \!\[i\]\(j\) \`c\`"
    assert code("a|b") == r"`a\|b`"
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("a\nb") == r"`a\nb`"
    assert [value_code(each) for each in ("1", 1, "", None, True, "on")] == [
        '`"1"`',
        "`1`",
        '`""`',
        "`null`",
        "`true`",
        '`"on"`',
    ]


def test_a_second_hover_does_not_depend_on_the_number_of_jobs(tmp_path):
    def count_warm(jobs):
        root = write_files(tmp_path / str(jobs))
        for number in range(jobs):
            (root / f"jobs/more-{number}.yaml").write_text(FILES[BERT].replace("name: bert", f"name: more-{number}"))
        workspace = Workspace(root)
        hover(workspace, BERT, "LOG_LEVEL: in¦fo")
        return count_calls(lambda: hover(workspace, BERT, "LOG_LEVEL: in¦fo"))

    few, many = count_warm(0), count_warm(40)
    assert many < 2 * few, (few, many)


def make_texts():
    """Texts of each kind of file, whole, truncated, and with other line ends, tabs and characters."""
    for file, text in FILES.items():
        if not file.endswith("lock.json"):
            yield file, text
    for file in (BERT, PROD, "jobgen.yaml"):
        yield file, FILES[file][: len(FILES[file]) * 2 // 3]
    yield BERT, FILES[BERT].replace("\n", "\r\n")
    yield BERT, FILES[BERT].replace("  ", "\t")
    yield BERT, FILES[BERT].replace("info", "é😀\u2028").replace("pytorch", "[")
    yield PROD, "spec: {patches: [{match: 3}, 4], extends: [base, {a: b}], defaults: x}\n"
    yield BERT, ""
    yield "jobs/a.json", '{"kind": "TrainingJob", "spec": {"framework": ["x"]}}'


def test_every_position_has_an_answer(workspace):
    for file, text in make_texts():
        workspace.open(workspace.root / file, text)
        try:
            for line, content in enumerate(text.split("\n"), 1):
                for column in range(1, len(content) + 2, 11):
                    context = make_context(workspace, file, find_cursor(text, line, column, file))
                    found = find_hover(context)
                    assert found is None or (found.markdown and found.location.line <= line)
                    assert isinstance(find_definitions(context), list)
                    assert isinstance(find_references(context), list)
            assert isinstance(list_symbols(text, file), tuple)
        finally:
            workspace.close(workspace.root / file)


def test_documentation_is_shown_while_the_settings_have_errors(tmp_path):
    workspace = Workspace(write_files(tmp_path))
    (tmp_path / "jobgen.yaml").write_text("rules: 3\n")

    assert hover(workspace, BERT, "repl¦icas: 3").startswith("**`replicas`**: integer\n\nThe number of pods")
    assert hover(workspace, MANIFESTS, "ignore[mutable-¦image-tag").startswith("**mutable-image-tag**")


def test_hover_in_a_folder_without_settings(tmp_path):
    (tmp_path / "uses.yaml").write_text(FILES[USES])
    workspace = Workspace(tmp_path)

    assert hover(workspace, "uses.yaml", "restart¦Policy", FILES[USES]).startswith("**`restartPolicy`**: string")
    assert hover(workspace, "uses.yaml", "image: regis¦try", FILES[USES]).startswith("**`image`**: string")


def test_hover_in_json(workspace):
    text = json.dumps(read(FILES[BERT].encode(), BERT).documents[0].data).replace('"bert"', '"json"')
    workspace.open(workspace.root / "jobs/a.json", text)
    try:
        assert "| dev, prod | `info` | job@jobs/a.json:1" in hover(
            workspace, "jobs/a.json", '"LOG_LEVEL": "in¦fo"', text
        )
    finally:
        workspace.close(workspace.root / "jobs/a.json")
