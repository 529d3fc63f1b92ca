"""`jobgen diff --format delta`: DeepDiff's `Delta` makes the new object of the old one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deepdiff import Delta
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

import jobgen
from jobgen.compare.formats.delta import make_delta

ROOT = Path(__file__).parent.parent
KEYS = st.sampled_from(
    [
        "a",
        "b",
        "a.b",
        "a/b",
        "it's",
        'say "hi"',
        "both'\"",
        "[0]",
        "a]b",
        "root",
        "",
        "0",
        "\\",
        "a\nb",
        "é",
        "root['a']",
    ]
)
LEAVES = st.sampled_from([None, True, False, 0, 1, 1.0, 2.5, "1", "true", "", "x", [], {}])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, TREES, max_size=4)


def canonical(tree):
    """`True` equals 1 in Python, but not in JSON."""
    return json.dumps(tree, sort_keys=True)


def apply(old, text):
    return old + Delta(json.loads(text), raise_errors=True)


@laws(23)
@given(OBJECTS, OBJECTS)
def test_delta_leads_from_the_old_object_to_the_new_one(old, new):
    before = canonical(old)

    assert canonical(apply(old, json.dumps(make_delta(old, new)))) == canonical(new)
    assert canonical(old) == before


@laws(13)
@given(st.lists(TREES, max_size=5), st.randoms(use_true_random=False))
def test_delta_reorders_lists(items, random):
    shuffled = random.sample(items, len(items))

    assert canonical(apply({"a": items}, json.dumps(make_delta({"a": items}, {"a": shuffled})))) == canonical(
        {"a": shuffled}
    )


@pytest.mark.parametrize(
    ("old", "new", "delta"),
    [
        ({"a": 1}, {"a": "1"}, {"values_changed": {"root['a']": {"new_value": "1"}}}),
        ({"a": True}, {"a": 1}, {"values_changed": {"root['a']": {"new_value": 1}}}),
        ({"a": [1]}, {"a": [1, 2]}, {"iterable_item_added": {"root['a'][1]": 2}}),
        ({"a": [1, 2]}, {"a": [1]}, {"iterable_item_removed": {"root['a'][1]": 2}}),
        ({"a.b": None}, {"a.b": 1}, {"values_changed": {"root['a.b']": {"new_value": 1}}}),
        ({}, {"c'd": 2}, {"dictionary_item_added": {"root[\"c'd\"]": 2}}),
        ({"'\"": 1}, {"'\"": 2}, {"values_changed": {"root": {"new_value": {"'\"": 2}}}}),
        ({}, {"a": 1}, {"dictionary_item_added": {"root['a']": 1}}),
        ({"a": 1}, {}, {"dictionary_item_removed": {"root['a']": 1}}),
        ({"a": 1}, {"a": 1}, {}),
    ],
)  # fmt: skip
def test_deltas(old, new, delta):
    assert make_delta(old, new) == delta


JOB = """\
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: %s, namespace: ml, labels: {"example.com/a.b": "%s"}}
spec:
  jaxReplicaSpecs:
    Worker:
      replicas: %s
      template: {spec: {containers: [{name: jax, image: "a:1", env: [{name: %s, value: "%s"}]}]}}
"""


@pytest.fixture
def folders(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "old/a.yaml").write_text(JOB % ("changed", "x", 1, "A", "1"))
    (tmp_path / "new/a.yaml").write_text(JOB % ("changed", "y", 2, "A", "1"))
    (tmp_path / "old/b.yaml").write_text(JOB % ("removed", "x", 1, "A", "1"))
    (tmp_path / "new/c.yaml").write_text(JOB % ("added", "x", 1, "A", "1"))
    return tmp_path


def test_deltas_of_added_removed_and_changed_objects(folders):
    report = json.loads(jobgen.diff(folders, folders=("old", "new"), format="delta").text)
    by_name = {(one["object"] or one["was"])["name"]: one for one in report["objects"]}

    assert {name: one["happening"] for name, one in by_name.items()} == {
        "added": "added",
        "changed": "changed",
        "removed": "removed",
    }
    assert (by_name["added"]["was"], by_name["removed"]["object"]) == (None, None)
    assert by_name["changed"]["delta"] == {
        "values_changed": {
            "root['metadata']['labels']['example.com/a.b']": {"new_value": "y"},
            "root['spec']['jaxReplicaSpecs']['Worker']['replicas']": {"new_value": 2},
        }
    }
    added = {} + Delta(by_name["added"]["delta"])
    assert (added["metadata"]["name"], added["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"]) == ("added", 1)
    removed = {**added, "metadata": {**added["metadata"], "name": "removed"}}
    assert removed + Delta(by_name["removed"]["delta"]) == {}


def test_secrets_are_masked_and_said(folders):
    (folders / "old/a.yaml").write_text(JOB % ("changed", "x", 1, "API_TOKEN", "hunter2hunter2"))
    (folders / "new/a.yaml").write_text(JOB % ("changed", "x", 2, "API_TOKEN", "swordfish12345"))
    text = jobgen.diff(folders, folders=("old", "new"), format="delta").text
    redacted = {(one["object"] or one["was"])["name"]: one["redacted"] for one in json.loads(text)["objects"]}

    assert redacted == {"changed": True, "added": False, "removed": False}
    assert "hunter2" not in text
    assert "swordfish" not in text


def test_missing_deepdiff_is_an_error_that_says_how_to_install_it(folders):
    script = (
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'deepdiff' else find(name, *rest)\n"
        "from jobgen.cli.main import main\nmain()\n"
    )
    command = [sys.executable, "-c", script, "diff", "--folders", "old", "new", "--format", "delta"]
    done = subprocess.run(command, cwd=folders, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert "run `pip install 'jobgen[delta]'`" in done.stderr


def test_documented_example_applies_a_delta(folders):
    """The Python example of docs/diff.md, on files that jobgen wrote."""
    page = (ROOT / "docs/diff.md").read_text("utf-8")
    example = page.split("```python\n", 1)[1].split("```", 1)[0]
    run = [sys.executable, "-P", "-m", "jobgen"]
    for side, replicas in (("old", 1), ("new", 3)):
        home = folders / side
        (home / "jobs").mkdir()
        for name, metadata in (("bert", "name: bert, namespace: ml"), ("gpt", "name: gpt")):
            (home / f"jobs/{name}.yaml").write_text(
                f"apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {{{metadata}}}\n"
                f"spec: {{framework: jax, image: 'a:1', roles: {{worker: {{replicas: {replicas}}}}}}}\n"
            )
        done = subprocess.run(
            [*run, "render", "--format", "json"], cwd=home, capture_output=True, text=True, check=True
        )
        (folders / f"{side}.json").write_text(done.stdout)
    command = [*run, "diff", "--folders", "old", "new", "--format", "delta"]
    done = subprocess.run(command, cwd=folders, capture_output=True, text=True, check=True)
    (folders / "delta.json").write_text(done.stdout)
    ran = subprocess.run([sys.executable, "-c", example], cwd=folders, capture_output=True, text=True, check=False)

    assert ran.stderr == ""
    assert sorted(ran.stdout.splitlines()) == [
        "JAXJob gpt is now as in new.json",
        "JAXJob ml/bert is now as in new.json",
    ]
