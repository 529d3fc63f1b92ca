"""Secrets that SOPS, External Secrets and Sealed Secrets keep: read as far as they can be, and never changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_jobgen_text

VALUE = "ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=,type:str]"
SIGNATURE = f"""\
sops:
    kms: []
    age:
        - recipient: age1x
          enc: |
            -----BEGIN AGE ENCRYPTED FILE-----
            YWdl
            -----END AGE ENCRYPTED FILE-----
    lastmodified: "2026-01-01T00:00:00Z"
    mac: {VALUE}
    encrypted_regex: ^(data|stringData)$
    version: 3.9.0
"""
# In an order and a style that jobgen would not write.
ENCRYPTED = f"""\
kind: Secret
apiVersion: v1
metadata:
    namespace: ml
    name: hub
stringData:
    zeta: {VALUE}
    #ENC[AES256_GCM,data:xx,type:comment]
    alpha: '{VALUE}'
data:
    token: {VALUE}
immutable: ENC[AES256_GCM,data:x,type:bool]
{SIGNATURE}"""
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.0.0
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  cluster: {platform: kubeflow}
  namespace: other
  patches:
    - manifest: {metadata: {labels: {team: nlp}}}
"""
EXTERNAL = """\
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: hub, namespace: ml}
spec:
  secretStoreRef: {name: vault, kind: ClusterSecretStore}
"""
SEALED = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: hub, namespace: ml}\nspec:\n"
PLAIN = "apiVersion: v1\nkind: Secret\nmetadata: {name: hub, namespace: ml}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with an encrypted file, and an overlay that patches every object."""
    files = {"jobgen.yaml": "environments: [prod]\n", "overlays/prod/overlay.yaml": OVERLAY, "jobs/bert.yaml": JOB}
    for path, text in {**files, "jobs/hub.yaml": f"# kept\n{ENCRYPTED}---\n{PLAIN.replace('hub', 'other')}"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def lint(root: Path) -> list[tuple[str, int, str]]:
    found = json.loads(run_jobgen_text(root, "lint", "--format", "json").stdout)["findings"]
    return [(each["rule"], each["line"], each["message"]) for each in found if each["rule"] != "missing-schema"]


def test_an_encrypted_file_is_rendered_as_it_is(repository: Path) -> None:
    printed = run_jobgen_text(repository, "render").stdout
    run_jobgen_text(repository, "render", "-o", "rendered")
    as_json = json.loads(run_jobgen_text(repository, "render", "--format", "json").stdout)["items"]

    assert f"---\n{ENCRYPTED}---\n" in printed
    assert (repository / "rendered/prod/ml/secret-hub.yaml").read_text() == ENCRYPTED
    assert run_jobgen_text(repository, "render", "--check", "-o", "rendered").returncode == 0
    [secret] = [each for each in as_json if each["metadata"]["name"] == "hub"]
    assert list(secret) == ["kind", "apiVersion", "metadata", "stringData", "data", "immutable", "sops"]
    assert list(secret["stringData"]) == ["zeta", "alpha"]
    # The next document gets what the overlay says.
    assert "team: nlp" in (repository / "rendered/prod/ml/secret-other.yaml").read_text()


def test_what_can_be_read_of_an_encrypted_file_is_checked(repository: Path) -> None:
    assert lint(repository) == []

    path = repository / "jobs/hub.yaml"
    path.write_text(path.read_text().replace("    name: hub\n", "    name: hub\n    labels: {a: b c}\n"))
    assert [(rule, line) for rule, line, _ in lint(repository)] == [("invalid-label", 7)]
    before = path.read_text()
    run_jobgen_text(repository, "lint", "--fix-unsafe")
    assert path.read_text() == before


def test_a_signature_does_not_hide_a_pod(repository: Path) -> None:
    """Only Secrets and ConfigMaps are read in part: anything else could run with it what nobody checked."""
    pod = "spec: {containers: [{name: a, image: 'a.example.com/a:1.0.0', securityContext: {privileged: true}, x: 1}]}\n"
    (repository / "jobs/pod.yaml").write_text(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, namespace: ml}}\n{pod}{SIGNATURE}"
    )
    rules = {rule for rule, _, _ in lint(repository)}

    assert {"unknown-field", "privileged-container"} <= rules


REFERENCES = """\
  env:
    A: {secretKeyRef: {name: hub, key: token}}
    B: {secretKeyRef: {name: hub, key: tokn}}
    C: {secretKeyRef: {name: hub, key: tokn, optional: true}}
    D: {secretKeyRef: {name: somewhere-else, key: tokn}}
  secrets:
    hub: {env: {HF_TOKEN: toke}}
"""
KNOWN = {
    "sops": ENCRYPTED,
    "plain": f"{PLAIN}stringData: {{token: a}}\n",
    "external": f"{EXTERNAL}  data: [{{secretKey: token, remoteRef: {{key: x}}}}]\n",
    "external with a target": EXTERNAL.replace("name: hub", "name: x")
    + "  target: {name: hub}\n  data: [{secretKey: token, remoteRef: {key: x}}]\n",
    "external with a template": f"{EXTERNAL}  target: {{template: {{data: {{token: '{{{{ .x }}}}'}}}}}}\n"
    "  data: [{secretKey: x, remoteRef: {key: x}}]\n",
    "sealed": f"{SEALED}  encryptedData: {{token: AgB}}\n",
    "two objects": f"{SEALED}  encryptedData: {{token: AgB}}\n---\n{PLAIN}stringData: {{other: a}}\n",
}
UNKNOWN = {
    "external with all keys of the store": f"{EXTERNAL}  dataFrom: [{{extract: {{key: x}}}}]\n",
    "external with another template": f"{EXTERNAL}  target: {{template: {{templateFrom: [{{literal: x}}]}}}}\n"
    "  data: [{secretKey: token, remoteRef: {key: x}}]\n",
    "external that adds": f"{EXTERNAL}  target: {{creationPolicy: Merge}}\n"
    "  data: [{secretKey: token, remoteRef: {key: x}}]\n",
    "sealed as a whole": f"{SEALED}  data: AgB\n",
    "empty": PLAIN,
    "in another namespace": f"{PLAIN}stringData: {{token: a}}\n".replace("namespace: ml", "namespace: other"),
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_key_that_the_repository_does_not_define_is_an_error(repository: Path, case: str) -> None:
    (repository / "jobs/hub.yaml").write_text(KNOWN[case])
    (repository / "jobs/bert.yaml").write_text(JOB + REFERENCES)
    found = [(rule, line, message.partition(";")[0]) for rule, line, message in lint(repository)]

    assert found == [
        ("unknown-reference", 9, "Secret `hub` has no key `tokn`"),
        ("unknown-reference", 13, "Secret `hub` has no key `toke`"),
    ]


@pytest.mark.parametrize("case", UNKNOWN)
def test_keys_that_are_not_all_known_are_not_checked(repository: Path, case: str) -> None:
    (repository / "jobs/hub.yaml").write_text(UNKNOWN[case])
    (repository / "jobs/bert.yaml").write_text(JOB + REFERENCES)

    assert [each for each in lint(repository) if each[0] == "unknown-reference"] == []
