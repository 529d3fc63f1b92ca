"""Baselines: entries are keyed by rule, object and pointer; new findings fail, fixed ones are reported."""

import json

import pytest
from findings import without_infos
from linting import lint_paths

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.reports import baseline

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/{image}
"""
FILE = "known.json"


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "jobs").mkdir()
    write(tmp_path, "a", "bert:latest")
    lint_paths(tmp_path, (), (), format_="text", baseline=FILE, write_baseline=True)
    return tmp_path


def write(folder, name, image, above=""):
    (folder / f"jobs/{name}.yaml").write_text(above + SPEC.format(name=name, image=image))


def rules(folder, **options):
    document = json.loads(lint_paths(folder, (), (), format_="json", baseline=FILE, **options).out)
    return [(entry["rule"], entry["file"]) for entry in without_infos(document["findings"])]


def test_baselined_findings_are_not_reported(repository):
    assert rules(repository) == []


def test_baseline_ignores_line_numbers(repository):
    write(repository, "a", "bert:latest", above="# a line\n" * 100)

    assert rules(repository) == []


def test_same_error_in_a_new_file_is_reported(repository):
    write(repository, "b", "bert:latest")

    assert rules(repository) == [("mutable-image-tag", "jobs/b.yaml")]


PATCH = Finding(
    "patch-matches-nothing",
    "spec",
    Severity.ERROR,
    "the patch matches no job; change its `match` or remove it",
    Location("overlays/prod/overlay.yaml", 4),
)


def test_baseline_matches_a_finding_without_an_object_whatever_its_message():
    known = baseline.parse(baseline.to_text([PATCH._replace(message="the patch matches no job")]))

    assert baseline.split([PATCH], known) == ([], [PATCH], {})
    assert baseline.split([PATCH, PATCH], known)[0] == [PATCH]


def test_another_fault_of_the_same_rule_in_the_same_file_is_new():
    known = PATCH._replace(rule="unknown-field", message="`shn` is not a field of a job; did you mean `shm`?")
    other = known._replace(message="`imge` is not a field of a job; did you mean `image`?")

    assert baseline.split([known, other], baseline.parse(baseline.to_text([known]))) == ([other], [known], {})


OLD = """\
{
  "version": 1,
  "findings": [
    {"rule": "moving-tag", "object": "kubeflow.org/PyTorchJob /a", "pointer": "POINTER"},
    {"rule": "patch-matches-nothing", "file": "overlays/prod/overlay.yaml", "message": "the patch matches no job"},
    {"rule": "patch-matches-nothing", "file": "overlays/prod/overlay.yaml", "message": "`x` is no job"}
  ]
}
"""


def test_entries_of_version_1_match_without_their_messages():
    known = baseline.parse(OLD)
    new, old, left = baseline.split([PATCH], known)

    assert (new, old) == ([], [PATCH])
    assert sorted((key.rule, count) for key, count in left.items()) == [("moving-tag", 1), ("patch-matches-nothing", 1)]
    assert [finding.location.line for finding in baseline.find_stale(left, OLD, FILE)] == [4, 6]
    assert baseline.parse(baseline.remove_stale(OLD, left)) == {baseline.key_of(PATCH): 1}


def test_a_baseline_of_version_1_is_an_info_until_it_is_written_again(repository):
    text = (repository / FILE).read_text()
    (repository / FILE).write_text(text.replace('"version": 2', '"version": 1'))
    [found] = json.loads(lint_paths(repository, (), (), format_="json", baseline=FILE).out)["findings"]

    assert (found["rule"], found["severity"], found["file"]) == ("stale-baseline", "info", FILE)
    lint_paths(repository, (), (), format_="text", baseline=FILE, write_baseline=True)
    assert (repository / FILE).read_text() == text
    assert rules(repository) == []


def test_findings_of_a_copied_manifest_are_reported(tmp_path):
    manifest = (
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a, namespace: ml}\n"
        "spec: {jaxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: jax, image: 'a:latest'}]}}}}}\n"
    )
    (tmp_path / "a.yaml").write_text(manifest)
    lint_paths(tmp_path, ["a.yaml"], (), format_="text", baseline=FILE, write_baseline=True)
    (tmp_path / "b.yaml").write_text(manifest)
    found = json.loads(lint_paths(tmp_path, ["a.yaml", "b.yaml"], (), format_="json", baseline=FILE).out)["findings"]

    assert [entry["file"] for entry in found if entry["rule"] == "mutable-image-tag"] == ["b.yaml"]


def test_fixed_entry_is_reported_on_its_line(repository):
    write(repository, "a", "bert:1.2")
    found = json.loads(lint_paths(repository, (), (), format_="json", baseline=FILE).out)["findings"]
    line = (repository / FILE).read_text().splitlines()[found[0]["line"] - 1]

    assert [(entry["rule"], entry["severity"], entry["file"]) for entry in found] == [
        ("stale-baseline", "warning", FILE)
    ]
    assert '"rule": "moving-tag"' in line


@pytest.mark.parametrize("part", ["paths", "a new error"])
def test_entries_outside_the_linted_scope_are_not_stale(part, repository):
    before = (repository / FILE).read_text()
    write(repository, "other", "bert:1.2" if part != "a new error" else "bert:1.2\n  imag: x")
    paths = ["jobs/other.yaml"] if part == "paths" else []
    (repository / "jobs/a.yaml").write_text((repository / "jobs/a.yaml").read_text().replace("latest", "1.2"))
    for fix in ("", "safe"):
        done = lint_paths(repository, paths, (), format_="json", baseline=FILE, fix=fix)

        assert "stale-baseline" not in done.out
        assert (repository / FILE).read_text() == before


def test_baseline_never_grows_by_itself(repository):
    before = (repository / FILE).read_text()
    write(repository, "b", "bert:latest")
    lint_paths(repository, (), (), format_="text", baseline=FILE)

    assert (repository / FILE).read_text() == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 3, "findings": []}', '{"version": 2, "findings": [1]}'])
def test_malformed_baseline_is_a_usage_error(text, repository):
    (repository / FILE).write_text(text)

    assert lint_paths(repository, (), (), format_="text", baseline=FILE).code == 2


def test_missing_baseline_is_a_usage_error(repository):
    assert lint_paths(repository, (), (), format_="text", baseline="nowhere.json").code == 2


def test_fixed_entries_can_be_removed(repository):
    text = (repository / FILE).read_text()

    assert baseline.parse(baseline.remove_stale(text, baseline.parse(text))) == {}
    assert baseline.remove_stale(text, type(baseline.parse(text))()) == text


def test_baseline_lists_findings_that_others_hide(tmp_path):
    """Both rules report this GPU mismatch; a lint shows one of them, and a baseline must know both."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobgen.yaml").write_text("")
    resources = "  resources: {requests: {gpu: 1}, limits: {gpu: 2}}\n"
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a, namespace: b}\nspec:\n"
    (tmp_path / "jobs/a.yaml").write_text(f"{job}  framework: pytorch\n  image: r.io/a:1.0\n{resources}")
    assert lint_paths(tmp_path, (), (), format_="text").code == 1

    lint_paths(tmp_path, (), (), format_="text", write_baseline=True)
    assert lint_paths(tmp_path, (), (), format_="text", baseline="jobgen-baseline.json").code == 0
