"""One repository full of secrets: no command and no format prints or writes one, unless it was asked for the manifest.

The tools of `jobgen mcp` run these commands with `--format json`.

No token is written out here, so that no scanner reports it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from shutil import copytree

import pytest
from command import run_jobgen, run_jobgen_text
from gitrepository import Repository

from jobgen.features.editor.context import make_context
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.workspace import Workspace

LETTERS = "ZqLeAkabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
SECRETS = {
    "PLAIN": "Zq1LeAkW2v9Lp",
    "OVERLAID": "Zq2LeAkKd4TnX",
    "OLD": "Zq3LeAkhorse8",
    "HUB": "hf" + "_" + LETTERS[:34],
    "GITHUB": "ghp" + "_" + LETTERS[:36],
    "ADDRESS": "Zq4LeAkp4ssWq",
    "PEM": "MIIEvQIBADANZq5LeAkG9w0BAQEF",
    "TEXT": "Zq6LeAkstringY",
    "DATA": b64encode(b"Zq7LeAk-in-data").decode(),
    "COMMENT": "Zq8LeAkcomment",
    "ARGUMENT": "Zq9LeAkargument",
    "CONFIG": "Zq0LeAkconfig",
    "EXPECTED": "ZqALeAkexpected",
    "SETTING": "ZqBLeAksetting",
    "POLICY": "ZqCLeAkpolicy",
    "LITERAL": "ZqDLeAkliteral",
}
FILES = {
    "jobgen.yaml": """\
environments: [prod]
exceptions:
  - rule: plain-secret
    jobs: [bert]
    environments: [prod]
    reason: see https://me:@SETTING@@wiki.example.com/x
    owner: ml-platform
    expires: 2099-01-01
""",
    "jobs/bert.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml, labels: {kueue.x-k8s.io/queue-name: a}}
spec:
  framework: pytorch
  image: registry.example.com/bert:latest
  imag: 1
  # DB_PASSWORD: @COMMENT@
  args: [--db-password=@ARGUMENT@, --api-key, @ARGUMENT@, "https://me:@ADDRESS@@example.com/a"]
  env:
    DB_PASSWORD: @PLAIN@ # was password: @COMMENT@
    API_TOKEN: [@PLAIN@]
    HUB: @HUB@
    ADDRESS: https://me:@ADDRESS@@example.com/a
    KEY: |
      -----BEGIN PRIVATE KEY-----
      @PEM@
      -----END PRIVATE KEY-----
""",
    "jobs/gpt.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: gpt, namespace: ml, annotations: {source: "https://me:@ADDRESS@@example.com/a"}}
spec:
  framework: pytorch
  image: registry.example.com/gpt:1.0.0
  # DB_PASSWORD: @COMMENT@
  args: [--db-password=@ARGUMENT@, --api-key, @ARGUMENT@, "https://me:@ADDRESS@@example.com/a"]
  env:
    DB_PASSWORD: @PLAIN@ # was password: @COMMENT@
    HUB: @HUB@
    GITHUB: @GITHUB@
    KEY: |
      -----BEGIN PRIVATE KEY-----
      @PEM@
      -----END PRIVATE KEY-----
  configs: {c: {mountPath: /c, data: {password: @CONFIG@, own.yaml: "api_token: @CONFIG@"}}}
  resources: {gpu: 1, memory: 1Gi}
  roles: {master: {}, worker: {replicas: 2}}
""",
    "jobs/secret.yaml": """\
apiVersion: v1
kind: Secret
metadata: {name: hub, namespace: ml}
type: Opaque
stringData: {a: @TEXT@}
data: {b: @DATA@}
""",
    "jobs/broken.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: broken}\nstringData:\n  a: @TEXT@: x\n",
    "jobs/wrong.yaml": """\
apiVersion: v1
kind: Secret
metadata: {name: wrong, namespace: ml}
type: [@TEXT@]
stringData: [@TEXT@]
data: {b: "@TEXT@"}
immutable: "@TEXT@"
""",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  cluster: {platform: kubeflow, operators: {training-operator: 1.8.1}}
  patches:
    - merge: {env: {DB_PASSWORD: @OVERLAID@, ADDRESS: "https://me:@ADDRESS@@example.com/a"}}
    - match: {names: [nobody]}
      merge: {env: {DB_PASSWORD: @OVERLAID@}}
    - match: {kinds: [PyTorchJob]}
      manifest: {metadata: {annotations: {note: @GITHUB@}}}
""",
    "policies/own.yaml": """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own, annotations: {jobgen.dev/description: "as https://me:@POLICY@@wiki.example.com says"}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: [pytorchjobs]}]
  validations:
    - expression: "!('note' in object.metadata.annotations)"
      message: "call https://me:@POLICY@@wiki.example.com"
    - expression: "object.metadata.name == 'x'"
      messageExpression: "string(object.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env[0].value)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own}
spec: {policyName: own, validationActions: [Deny]}
""",
    "tests/own.yaml": """\
apiVersion: jobgen.dev/v1
kind: JobTests
spec:
  - name: values
    jobs: [gpt]
    expect:
      values:
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env": [@EXPECTED@]
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env.[name=DB_PASSWORD].value": @EXPECTED@
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env.[name=NO_PASSWORD].value": @EXPECTED@
        "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].args": {contains: @EXPECTED@}
        metadata.annotations: {equals: {note: "https://me:@EXPECTED@@example.com"}}
      cel:
        - "object.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env[0].value == '@PLAIN@'"
        - "[object].exists(e, e.spec == 'DB_PASSWORD' && e.value == '@EXPECTED@')"
        - "int(object.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].args[0]) == 1"
      snapshot: true
  - name: secret
    jobs: [hub]
    expect: {values: {stringData.a: @EXPECTED@, data.b: {matches: @EXPECTED@}, data: {present: false}}, snapshot: true}
  - name: given
    given:
      metadata: {name: tiny}
      spec: {framework: pytorch, image: "a.example.com/b:1.0.0", env: {API_TOKEN: [@EXPECTED@]}}
    expect: {snapshot: true}
  - name: small
    given:
      metadata: {name: tiny}
      spec: {framework: pytorch, image: "a.example.com/b:1.0.0", env: {DB_PASSWORD: @EXPECTED@}}
    expect: {snapshot: true, values: {spec: 1}}
  - name: changed
    jobs: [gpt]
    change: {env: {DB_PASSWORD: [@EXPECTED@]}}
    expect: {effect: none, findings: []}
  - name: changed well
    jobs: [gpt]
    change: {env: {DB_PASSWORD: @EXPECTED@}}
    expect: {effect: none, findings: [], snapshot: true}
""",
    "tests/snapshots/own/values.prod.gpt.yaml": "kind: PyTorchJob\nenv: [{name: A_PASSWORD, value: @OLD@}]\nx: @PLAIN@",
    "base/kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
secretGenerator: [{name: s, literals: [a=@LITERAL@]}, {name: s, literals: [a=@LITERAL@]}]
""",
    "old/jobs.yaml": """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              image: a
              env: [{name: DB_PASSWORD, value: @PLAIN@}, {name: DB_PASSWORD, value: @PLAIN@, valu: @PLAIN@}]
              unknown: @HUB@
""",
}  # fmt: skip


def fill(text: str) -> str:
    for name, value in SECRETS.items():
        text = text.replace(f"@{name}@", value)
    return text


def find_leaks(text: str) -> dict[str, str]:
    """Return the secrets in a text, each with what is around it."""
    found = {}
    for name, value in SECRETS.items():
        # The part that makes each of them unique; a long output may break or cut the rest.
        part = next((value[at : at + 8] for at in range(len(value)) if value[at:].startswith(("Zq", "WnE"))), value[:8])
        if name in ("HUB", "GITHUB"):
            part = value[:12]
        if (at := text.find(part)) >= 0:
            found[name] = text[max(0, at - 150) : at + 60]
    return found


FAULTY = ("jobs/bert.yaml", "jobs/broken.yaml", "jobs/wrong.yaml")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return a repository with two commits; the first has other secrets at the same places."""
    made = Repository(tmp_path_factory.mktemp("secrets"), tmp_path_factory.mktemp("home"))
    for older in (("PLAIN", "OVERLAID", "TEXT"), ()):
        for path, text in FILES.items():
            for name in older:
                text = text.replace(f"@{name}@", "@OLD@")  # noqa: PLW2901
            (made.folder / path).parent.mkdir(parents=True, exist_ok=True)
            if path not in FAULTY:
                (made.folder / path).write_text(fill(text))
        # The tree in the repository is older than the jobs.
        made.jobgen("render", "-o", "rendered") if older else None
        made.commit()
    return made


LINT = ("concise", "github", "gitlab", "json", "junit", "policyreport", "sarif", "tap", "text")
COMMANDS = (
    *(f"lint --format {form}" for form in LINT),
    "lint --since HEAD~1",
    "lint --show-suppressed --statistics",
    "lint old base --format json",
    *(f"diff HEAD~1 --format {form}" for form in ("delta", "html", "json", "markdown", "text")),
    "diff --folders old rendered",
    *(f"explain {name} --format {form}" for name in ("gpt", "hub") for form in ("text", "json")),
    "explain gpt env",
    "explain gpt configs",
    "explain gpt spec.pytorchReplicaSpecs.Master.template.spec.containers[0]",
    "explain own",
    "report --output -",
    *(f"queue --format {form}" for form in ("json", "markdown", "text")),
    *(f"test --format {form}" for form in ("json", "junit", "text")),
    *(f"exceptions --format {form}" for form in ("json", "markdown", "text")),
    *(f"teams --format {form}" for form in ("json", "markdown", "text")),
    "doctor --format json",
    *(f"policy {name}" for name in ("list", "check", "docs", "test")),
    "gitops argocd",
    "gitops flux",
    "codeowners --check",
    "render --check --output rendered",
    "migrate --to trainer --all",
    "schema list",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_secret(repository: Repository, command: str) -> None:
    done = repository.jobgen(*command.split())

    assert done.returncode != 4, done.stderr
    assert (find_leaks(done.stdout), find_leaks(done.stderr)) == ({}, {})


@pytest.mark.parametrize("command", ["render", "migrate gpt --to jobset", "import old/jobs.yaml", "lint --diff"])
def test_a_manifest_is_printed_as_it_is_and_messages_hold_no_secret(repository: Repository, command: str) -> None:
    done = repository.jobgen(*command.split())

    assert find_leaks(done.stderr) == {}


@pytest.mark.parametrize("path", FAULTY)
@pytest.mark.parametrize("command", ["lint", "diff HEAD", "test", "render"])
def test_errors_hold_no_secret(repository: Repository, tmp_path: Path, command: str, path: str) -> None:
    copytree(repository.folder, tmp_path / "copy")
    (tmp_path / "copy" / path).write_text(fill(FILES[path]))
    done = run_jobgen_text(tmp_path / "copy", *command.split())

    assert done.returncode != 4
    assert find_leaks(done.stderr) == {}
    assert command == "render" or find_leaks(done.stdout) == {}


def test_snapshots_hold_no_secret(repository: Repository, tmp_path: Path) -> None:
    copytree(repository.folder, tmp_path / "copy")
    run_jobgen_text(tmp_path / "copy", "test", "--update")
    written = {path.name: path.read_text() for path in (tmp_path / "copy/tests/snapshots").rglob("*.yaml")}
    again = run_jobgen_text(tmp_path / "copy", "test", "--format", "json")

    assert len(written) == 4
    assert not [text for text in written.values() if find_leaks(text)]
    assert '- name: DB_PASSWORD\n              value: "…"\n' in written["values.prod.gpt.yaml"]
    # What is masked is equal to what is masked.
    assert all(each["passed"] for each in json.loads(again.stdout)["outcomes"] if each["expectation"] == "snapshot")


def test_no_hover_shows_a_secret(repository: Repository) -> None:
    workspace = Workspace(repository.folder)
    workspace.take(WorkspaceLinter(repository.folder).lint({}, lambda *_: None))
    shown = []
    for path in (path for path in FILES if path.startswith(("jobs/", "overlays/")) and path not in FAULTY):
        text = fill(FILES[path])
        for number, line in enumerate(text.splitlines()):
            for column in range(0, len(line), 7):
                found = find_hover(make_context(workspace, path, find_cursor(text, number, column, path)))
                shown.append(found.markdown if found else "")

    assert any("DB_PASSWORD" in text or "…" in text for text in shown)
    assert [leaks for text in shown if (leaks := find_leaks(text))] == []


@pytest.mark.parametrize(
    "command",
    [
        *("fn", "import a.yaml", "lint a.yaml", "migrate a.yaml --to trainer", "policy test a.yaml"),
        *("schema import a.yaml", "queue --what-if-file a.yaml", "test", "report -o - --prices a.yaml"),
    ],
)
def test_text_that_is_not_yaml_is_quoted_without_secrets(tmp_path: Path, command: str) -> None:
    """Commands that print findings of one file as they are mask them, too."""
    text = fill("kind: JobTests\nmetadata: {name: a}\ndata:\n  DB_PASSWORD @PLAIN@\n  x: y\n")
    for path in ("a.yaml", "tests/a.yaml", "jobgen.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text if path != "jobgen.yaml" else "")
    done = run_jobgen(tmp_path, *command.split(), given=text.encode())
    printed = (done.stdout + done.stderr).decode()

    assert "`DB_PASSWORD …` has no colon; write `DB_PASSWORD: …`" in printed
    assert find_leaks(printed) == {}
