"""Sweeps: one document, many jobs; the name of each depends on its own values only."""

from __future__ import annotations

import json
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths

from jobgen.cli.commands.explain import explain_name
from jobgen.cli.commands.schema import write_editor_files
from jobgen.cli.run_render import render
from jobgen.model.data import untraced
from jobgen.rendering import config
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.render_task import render_jobs
from jobgen.rendering.trace import Tracer
from jobgen.repo import layout
from jobgen.spec.sweeps import expand_matrix, expand_member, expand_sweep, find_matrix_errors

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1
  matrix:
    lr: [0.1, 0.01]
    seed: [1, 2]
  args:
    - --lr=${{ matrix.lr }}
    - --seed
    - ${{ matrix.seed }}
  roles: {worker: {replicas: "${{ matrix.seed }}"}}
"""

VALUES = st.one_of(
    st.integers(-1000, 1000), st.booleans(), st.sampled_from(["a", "b-c", "0.5", "x/y"]), st.floats(0, 1)
)
AXES = st.dictionaries(
    st.sampled_from(["lr", "seed", "model", "batch"]), st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3
)


def data(matrix, name="bert"):
    args = [f"{key}=${{{{ matrix.{key} }}}}" for key in matrix if key not in ("zip", "include", "exclude", "limit")]
    spec = {"framework": "pytorch", "matrix": matrix, "args": args}
    return {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}


def named(matrix):
    """The members of a matrix by name; those whose values make the same name are one here."""
    return {one["metadata"]["name"]: one["spec"]["args"] for one in expand_sweep(data(matrix), [])}


@given(AXES)
def test_matrix_is_the_product_of_its_values(axes):
    assert len(expand_matrix(axes)) == prod(map(len, axes.values()))
    assert [tuple(one.values.values()) for one in expand_matrix(axes)] == list(product(*axes.values()))


@given(AXES, st.data())
def test_added_value_keeps_other_members(axes, draw):
    key = draw.draw(st.sampled_from(sorted(axes)))
    more = {**axes, key: [*axes[key], "new-value"]}
    before, after = named(axes), named(more)

    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)


@given(AXES, st.data())
def test_member_names_do_not_depend_on_order(axes, draw):
    keys = draw.draw(st.permutations(sorted(axes)))
    other = {key: draw.draw(st.permutations(axes[key])) for key in keys}

    assert set(named(axes)) == set(named(other))


@given(AXES)
def test_member_names_are_valid_and_leave_room_for_suffixes(axes):
    for name in named(axes):
        assert len(name) <= 40
        assert name.replace("-", "").isalnum()
        assert name == name.lower().strip("-")


@given(AXES)
def test_members_with_the_same_name_are_reported(axes):
    problems = []
    found = expand_sweep(data(axes), problems)

    assert len(found) + sum(problem.rule == "duplicate-member" for problem in problems) == len(expand_matrix(axes))


@given(AXES)
def test_member_is_found_by_its_index(axes):
    if not any(find_matrix_errors(axes)):
        problems = []
        found = expand_sweep(data(axes), problems)
        if not problems:
            assert [expand_member(data(axes), number) for number in range(len(found))] == found


def test_include_works_as_in_github_actions():
    # The example of GitHub's own documentation.
    matrix = {
        "fruit": ["apple", "pear"],
        "animal": ["cat", "dog"],
        "include": [
            {"color": "green"},
            {"color": "pink", "animal": "cat"},
            {"fruit": "apple", "shape": "circle"},
            {"fruit": "banana"},
            {"fruit": "banana", "animal": "cat"},
        ],
    }

    assert [one.values for one in expand_matrix(matrix)] == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_unrelated_variables_do_not_rename_a_member():
    axes = {"lr": [0.1, 0.01]}

    assert list(named({**axes, "include": [{"lr": 0.1, "warmup": 10}]})) == list(named(axes))


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0p1"), (1e-5, "1e-05"), (-1, "m1"), (1.0, "1"), (True, "true"), ("A/b_c", "a-b-c")]
)
def test_values_in_member_names(value, text):
    assert list(named({"x": [value]})) == [f"bert-{text}"]


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    return tmp_path


def test_plain_and_traced_members_are_the_same(repository):
    project = config.load_own(repository)
    tracer = Tracer(project)
    jobs = list(read_jobs(layout.find_jobs(repository), project.kinds, []))

    assert [job.document.name for job in jobs] == ["bert-0p1-1", "bert-0p1-2", "bert-0p01-1", "bert-0p01-2"]
    assert [untraced(tracer.trace(job, "").object) for job in jobs] == [
        made.object for made in render_jobs(project, [""]).objects
    ]


def rendered(root, *jobs):
    done = render(root, jobs, (), None, format_="json")
    return [item["metadata"]["name"] for item in json.loads(done.out)["items"]] if done.out else done.err


def test_render_of_members_and_of_the_sweep(repository):
    assert len(rendered(repository)) == len(rendered(repository, "bert")) == 4
    assert rendered(repository, "bert-0p1-1") == ["bert-0p1-1"]
    assert rendered(repository, "bert-*-2") == ["bert-0p01-2", "bert-0p1-2"]
    assert "did you mean `bert-0p1-2`?" in rendered(repository, "bert-0p1-x")


def test_member_is_explained_by_its_matrix_value(repository):
    done = explain_name(repository, "bert-0p01-2", "spec.pytorchReplicaSpecs.Worker", (), "text")

    assert (
        'args[0] = "--lr=0.01"\n  jobs/bert.yaml:11:7  job: 0.01 → "--lr=0.01"\n  jobs/bert.yaml:8:15  matrix: 0.01\n'
        in done.out
    )
    assert "replicas = 2\n  jobs/bert.yaml:14:30 " in done.out


def test_explain_of_a_sweep_lists_its_members(repository):
    done = explain_name(repository, "bert", "", (), "text")

    assert done.code == 3
    assert "`bert` is a sweep of 4 jobs; explain one of them: `bert-0p01-1`, " in done.err


def test_findings_common_to_all_members_are_reported_once(repository):
    (repository / "jobs/bert.yaml").write_text(JOB.replace("bert:1", "bert"))
    told = json.loads(lint_paths(repository, (), (), format_="json").out)["findings"]
    said = [(entry["rule"], entry["line"], entry["message"]) for entry in told]

    assert "untagged-image" in {rule for rule, *_ in said}
    assert len(said) == len(set(said))


def test_check_of_a_tree_of_members(repository, tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")

    assert render(repository, (), (), tree, format_="yaml").code == 0
    assert len(list(tree.rglob("pytorchjob-*.yaml"))) == 4
    assert render(repository, (), (), tree, format_="yaml", check=True).code == 0


def test_editor_schema_allows_the_matrix(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("")
    write_editor_files(tmp_path)

    assert '"exclude"' in (tmp_path / "schemas/jobgen.dev/trainingjob_v1.json").read_text()
