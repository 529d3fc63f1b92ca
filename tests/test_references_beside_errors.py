"""References are followed beside documents with errors, except to what these may define."""

import pytest
from transcripts import write_files

import jobgen
from jobgen.check.cluster.unread import Unread, split_unread

OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec: {CLUSTER}\n"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: NAME, labels: {team: nlp}}
spec:
  framework: pytorch
  image: registry.example.com/nlp/bert:1.4.2
  command: [python, train.py]
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
"""
OBJECT = "apiVersion: v1\nkind: KIND\nmetadata: {name: hf}\nDATA: {hf-token: some}\n"
USER = JOB.replace("NAME", "user") + "  env:\n    HF_TOKEN: {FIELDKeyRef: {name: hf, key: hf_token}}\n"
OTHER = JOB.replace("NAME", "other")
BROKEN = {
    "a wrong type": OTHER + "  replicas: many\n",
    "an unknown field": OTHER + "  replica: 4\n",
    "a value that is not rendered": OTHER + "  replicas: 2\n  roles: {wrker: {replicas: 3}}\n",
    "a syntax error": OTHER + "  env: {A: b\n",
    "no mapping": "- a\n",
    "the same reference": OTHER + "  replica: 4\n  env:\n    A: {secretKeyRef: {name: hf, key: hf_token}}\n",
    "another Secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: hf-two, name: hf-three}\n",
}
KINDS = [("Secret", "stringData", "secret"), ("ConfigMap", "data", "configMap")]


def find_references(folder, files, cluster=""):
    spec = f"cluster: {{{cluster}}}" if cluster else ""
    files = {"overlays/prod/overlay.yaml": OVERLAY.replace("CLUSTER", spec), **files}
    write_files(folder, {path: text.encode() for path, text in files.items()})
    found = jobgen.lint(folder).findings
    return [(each.location.file, each.message) for each in found if each.rule == "unknown-reference"], found


def write_reference(kind, data, field):
    return OBJECT.replace("KIND", kind).replace("DATA", data), USER.replace("FIELD", field)


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize(("kind", "data", "field"), KINDS)
@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_missing_key_is_found_beside_errors(kind, data, field, broken, is_one_file, tmp_path):
    known, user = write_reference(kind, data, field)
    files = {"jobs/user.yaml": f"{known}---\n{user}"}
    files |= {"jobs/user.yaml": f"{known}---\n{user}---\n{broken}"} if is_one_file else {"jobs/other.yaml": broken}
    references, found = find_references(tmp_path, files)
    message = f"{kind} `hf` has no key `hf_token`; did you mean `hf-token`?"
    assert references == [("jobs/user.yaml", message)]
    assert {each.rule for each in found if each.severity.value == "error"} > {"unknown-reference"}


DEFINING = {
    "the object twice": "apiVersion: v1\nkind: Secret\nmetadata: {name: hf\nstringData: {hf_token: a}\n",
    "what creates it": "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, name: b}\n"
    "spec: {target: {name: hf}, data: [{secretKey: hf_token}]}\n",
    "a misspelled kind": "apiVersion: v1\nkind: Secrt\nmetadata: {name: hf\nstringData: {hf_token: a}\n",
    "no kind": "apiVersion: v1\nmetadata: {name: hf\nstringData: {hf_token: a}\n",
}


@pytest.mark.parametrize("broken", DEFINING.values(), ids=DEFINING)
def test_what_a_document_with_errors_may_define_is_not_compared(broken, tmp_path):
    known, user = write_reference(*KINDS[0])
    files = {"jobs/user.yaml": f"{known}---\n{user}", "jobs/other.yaml": broken}
    references, found = find_references(tmp_path, files)
    assert references == []
    assert any(each.location.file == "jobs/other.yaml" for each in found)


@pytest.mark.parametrize(
    ("broken", "is_reported"),
    [
        (OTHER + "  replica: 4\n", True),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: other\n", True),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: hf\n", False),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hf\n", True),
    ],
)
def test_a_missing_object_is_found_beside_errors(broken, is_reported, tmp_path):
    files = {"jobs/user.yaml": USER.replace("FIELD", "secret"), "jobs/other.yaml": broken}
    references, _ = find_references(tmp_path, files, "complete: [Secret]")
    assert [file for file, _ in references] == ["jobs/user.yaml"] * is_reported


@pytest.mark.parametrize(
    ("text", "complete", "name", "may_define"),
    [
        ("kind: TrainingJob", ["ServiceAccount"], ("ServiceAccount", "ml", "a"), True),
        ("kind: TrainingJob", ["ConfigMap"], ("ConfigMap", "ml", "a-0123456789"), True),
        ("kind: TrainingJob", ["ConfigMap"], ("ConfigMap", "ml", "a"), False),
        ("kind: TrainingJob\nname: a", [], ("Secret", "ml", "a"), False),
        ("kind: StatefulSet", ["PersistentVolumeClaim"], ("PersistentVolumeClaim", "ml", "a-b-0"), True),
        ("kind: Profile\nname: ml", ["Namespace"], ("Namespace", "", "ml"), True),
        ("kind: AppWrapper\n x: {kind: Secret, name: a}", [], ("Secret", "ml", "a"), True),
        ("kind: Secret\nname: a.b", [], ("Secret", "ml", "a"), False),
        ("kind: LocalQueue\nname: a", ["LocalQueue"], ("LocalQueue", "ml", "a"), True),
        ("kind: LocalQueue\nname: a", ["Secret"], ("Secret", "ml", "a"), False),
    ],
)
def test_what_a_document_may_define(text, complete, name, may_define):
    assert Unread((text,)).select(complete).may_define(name) is may_define


def test_the_text_of_a_job_makes_no_difference_while_it_is_edited():
    unread = [Unread((JOB + rest,)).select(["ServiceAccount"]) for rest in ("", "  replica: 4\n")]
    assert unread[0] == unread[1] == Unread(("kind: TrainingJob",))
    assert Unread((JOB,)).select([]) == Unread()


def test_documents_without_known_lines():
    text = "kind: A\n---\nkind: B\nname: b\n---\nkind: SecretList\n--- \nkind: D"
    assert list(split_unread(text, {1, 6})) == ["---\nkind: B\nname: b\n", "---\nkind: SecretList\n", "--- \nkind: D"]
    assert list(split_unread(text, {3, 6, 8})) == ["kind: A\n", "---\nkind: SecretList\n"]
    assert list(split_unread("", set())) == []


@pytest.mark.parametrize(
    ("name", "rest", "rules"),
    [
        ("bert", "", {"invalid-label"}),
        ("Bert_Large", "", {"invalid-value", "invalid-label"}),
        ("Bert_Large", "  replica: 3\n", {"invalid-value", "invalid-label", "unknown-field"}),
    ],
)
def test_an_invalid_name_hides_no_invalid_label(name, rest, rules, tmp_path):
    job = JOB.replace("NAME", name).replace("team: nlp", "team: NLP Team") + rest
    _, found = find_references(tmp_path, {"jobs/a.yaml": job})
    errors = [each for each in found if each.severity.value == "error"]
    assert {each.rule for each in errors} == rules
    assert {each.location.line for each in errors if each.rule == "invalid-label"} == {3}
