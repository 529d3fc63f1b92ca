"""Places: the path to what a check names, and the line that it leads to, in the text and in data with locations."""

from __future__ import annotations

import json
import textwrap

import pytest
import yamltexts
from examples import EXAMPLES, cases
from growth import grows_with_the_square
from linting import lint_paths
from placedproblems import check_located, lost_places, place_problem, resolve
from validationcases import find_problems as find_validation_problems
from validationcases import list_cases, read_objects

from jobgen.check.operators.checks import find_written
from jobgen.check.rule_runner import RuleRunner
from jobgen.k8s.objects import Manifest
from jobgen.model import placed as placed_problems
from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, location_of, untraced
from jobgen.model.finding import FixStep, Problem
from jobgen.model.place import At, Derived, DerivedList, Gathered, PathTo, Places, find_at
from jobgen.model.placed import follow
from jobgen.pipeline.placed_findings import PlacedObject
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read
from jobgen.yamlio.read.find_node import Search
from jobgen.yamlio.read.locations import UnexpectedTextError

TODAY = "2026-11-14"


def search(text, document=0):
    found = read(text.encode(), "case.yaml").documents[document]
    return Search(found.data, text, "case.yaml", found.location.line)


def list_paths(tree, path=()):
    """The paths to all values and keys of data with locations, and the nodes there."""
    for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(tree, dict):
            yield PathTo((*path, str(key)), is_key=True), key
        place = (*path, key if isinstance(tree, list) else str(key))
        yield PathTo(place), child
        if isinstance(child, (dict, list)):
            yield from list_paths(child, place)


def list_leaves(node):
    """What a node knows of itself and of what is in it."""
    if isinstance(node, dict):
        return [(str(key), key.location, list_leaves(child)) for key, child in node.items()]
    if isinstance(node, TracedList):
        return [node.location, *node.item_locations, *map(list_leaves, node)]
    return node.location, getattr(node, "written", ""), str(getattr(node, "value", node))


def compare(text):
    """How many nodes of a text were found, and how many there are; those that are found are as the reader has them."""
    found = every = 0
    plain, traced = (read(text.encode(), "case.yaml", traced=traced).documents for traced in (False, True))
    for document, located in zip(plain, traced, strict=True):
        try:
            searched = Search(document.data, text, "case.yaml", document.location.line)
        except UnexpectedTextError:
            every += sum(1 for _ in list_paths(located.data))
            continue
        paths = [*list_paths(located.data)]
        # What a lookup keeps does not change what another one finds, in any order.
        for path, node in [*paths, *reversed(paths)]:
            every += 1
            try:
                own = searched.find(path.steps, is_key=path.is_key)
            except UnexpectedTextError:
                continue
            found += 1
            assert list_leaves(own) == list_leaves(node), path
    return found, every


def test_nodes_of_real_files_are_found_where_the_reader_has_them():
    counts = [compare(text) for text in yamltexts.REAL_DOCUMENTS if len(text) < 8000]
    found, every = map(sum, zip(*counts, strict=True))

    assert found > 0.9 * every


@pytest.mark.parametrize(
    "text",
    [
        'a:\n  "image": x\nb:\n  image: y\n',
        "a:\n- name: x\n  image: y\n-   name: z\n    image: w\nb:\n- image: v\n",
        "a:\n  - name: x\n  # image: comment\n  - b: 1\n    image: y # z\n",
        "a: &a\n  image: x\nb: *a\nc: &c y\nd: *c\n",
        "a: {image: x, b: [1, 2]}\nb: [{c: d}]\n",
        "a: |\n  image: x\nimage: y\n",
        "a:\n  text: >\n    image: x\n\n    image: y\n  image: z\n",
        "a: [b,\nimage: c]\nimage: y\n",
        "a:\n  image : x\nb: {}\nc:\nd: ~\ne: ''\n",
        "a: 0x10\nb: yes\nc: 'yes'\nd: \"a\\tb\"\n",
        "a: x\n---\nimage: y\n---\na: z\nimage: w\n",
        "# c\n\n---\n# d\na: x\n",
        '{"a": {"image": "x"}}\n',
        "a:\n  b: c\n  d\n  : e\n",
    ],
)
def test_text_that_looks_like_a_key_is_not_taken_for_it(text):
    found, every = compare(text)

    assert 0 <= found <= every


LONG = {
    "flow list": (lambda size: f"a: [{', '.join(f'x{n}' for n in range(size))}]\n", lambda n: PathTo(("a", n))),
    "flow mapping": (
        lambda size: f"a: {{{', '.join(f'k{n}: {n}' for n in range(size))}}}\n",
        lambda n: PathTo(("a", f"k{n}")),
    ),
    "keys in flow": (
        lambda size: f"a: {{{', '.join(f'k{n}: {n}' for n in range(size))}}}\n",
        lambda n: PathTo(("a", f"k{n}"), is_key=True),
    ),
    "mappings in flow": (
        lambda size: f"a: [{', '.join(f'{{b: {n}}}' for n in range(size))}]\n",
        lambda n: PathTo(("a", n, "b")),
    ),
    "block list": (lambda size: "a:\n" + "- b: 1\n  c: 2\n" * size, lambda n: PathTo(("a", n, "c"))),
}


@pytest.mark.parametrize("name", LONG)
def test_many_lookups_in_one_value_are_linear(name):
    """Looking up all of 100 places reads the line once, not a hundred times."""
    write, list_place = LONG[name]

    def prepare(size):
        searched = search(write(size))
        return lambda: [searched.find(list_place(n).steps, is_key=list_place(n).is_key) for n in range(size)]

    assert not grows_with_the_square(prepare, 100)


def test_a_key_and_an_item_are_found():
    text = "kind: Pod\nspec:\n  containers:\n  - name: a\n    image: b\n  - name: c\n    image: d\n"

    value = search(text).find(("spec", "containers", 1, "image"), is_key=False)
    key = search(text).find(("spec", "containers"), is_key=True)

    assert (type(value), value.value, value.location[1:]) == (TracedScalar, "d", (7, 12, 7, 13))
    assert (type(key), str(key), key.location[1:]) == (TracedKey, "containers", (3, 3, 3, 13))


OBJECT = {"kind": "Pod", "spec": {"containers": [{"name": "a", "env": []}], "hosts": {}}}


@pytest.mark.parametrize(
    ("place", "path"),
    [
        (At(OBJECT, "kind"), PathTo(("kind",))),
        (At(OBJECT["spec"], "containers", is_key=True), PathTo(("spec", "containers"), is_key=True)),
        (At(OBJECT["spec"]["containers"], 0), PathTo(("spec", "containers", 0))),
        (At(OBJECT["spec"]["containers"][0], "name"), PathTo(("spec", "containers", 0, "name"))),
        (OBJECT["spec"]["containers"][0], PathTo(("spec", "containers", 0))),
        (At(OBJECT["spec"], "missing"), None),
        (At(dict(OBJECT["spec"]), "containers"), None),
        (At(OBJECT["spec"]["containers"], "a", is_key=True), None),
        ("Pod", None),
        (OBJECT["spec"]["hosts"], PathTo(("spec", "hosts"))),
        ({}, None),
    ],
)
def test_a_place_has_a_path_if_it_is_in_the_object(place, path):
    assert Places(OBJECT).find(place) == path


def test_a_problem_is_placed_only_as_a_whole():
    image, unknown = At(OBJECT, "kind"), {"kind": "Pod"}
    places = Places(OBJECT)

    assert place_problem(Problem("a", "b", image, related=((image, "c"),)), places).related[0][0] == PathTo(("kind",))
    assert place_problem(Problem("a", "b", image, related=((At(unknown, "kind"), "c"),)), places) is None
    assert place_problem(Problem("a", "b", image, fix_steps=(FixStep("set", "Pod", "Job"),)), places) is None


def test_the_nodes_of_a_problem_come_back():
    problem = Problem("a", "b", At(OBJECT, "kind"), fix_steps=(FixStep("set", At(OBJECT, "kind"), "Job"),))
    placed = place_problem(problem, Places(OBJECT))

    assert resolve(problem) == follow(placed, lambda path: path.follow(OBJECT))
    assert resolve(problem).node == "Pod"


CASES = [(path.stem, case) for path in sorted(EXAMPLES.glob("*.yaml")) for case in cases(path)]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_no_check_names_what_is_nowhere_in_the_object(rule, case, tmp_path, monkeypatch):
    """And the line that a path leads to in the text is the line of the node at this path."""
    case.write(tmp_path)
    lost, different = [], []
    place, find = placed_problems._place_problem, PlacedObject.find

    def record(problem, places, around):
        lost.extend((problem.rule, each) for each in lost_places(problem, places))
        return place(problem, places, around)

    def find_twice(self, path):
        found = find(self, path)
        traced = path.follow(self._trace().object)
        if location_of(found) != location_of(traced):
            different.append((path, location_of(found), location_of(traced)))
        return found

    monkeypatch.setattr(placed_problems, "_place_problem", record)
    monkeypatch.setattr(PlacedObject, "find", find_twice)
    lint_paths(tmp_path, (), (), format_="json", today=TODAY)

    assert (lost, different) == ([], []), rule


def test_what_a_request_and_a_limit_share_is_one_finding(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(
        textwrap.dedent("""\
            apiVersion: jobgen.dev/v1
            kind: TrainingJob
            metadata: {name: bert}
            spec:
              framework: pytorch
              image: registry.example.com/bert:1.4.2
              resources: {nvidia.com/gpus: 1}
            """)
    )
    found = json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]

    assert [each["rule"] for each in found].count("gpu-typo") == 1


def test_equal_lines_are_two_places(tmp_path):
    container = (
        "  - name: {}\n    image: registry.example.com/a:1.0.0\n    resources: {{limits: {{nvidia.com/gpus: 8}}}}\n"
    )
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n" + "".join(map(container.format, "ab"))
    )
    found = json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]

    assert [each["line"] for each in found if each["rule"] == "gpu-typo"] == [8, 11]


OPERATOR_RULES = ["admits-nothing", "feature-gate-off", "never-starts", "rejected-by-operator"]


@pytest.mark.parametrize("name", OPERATOR_RULES)
def test_what_operators_reject_has_a_path(name, tmp_path, monkeypatch):
    seen = []
    find_problems = RuleRunner.find_problems

    def record(self, manifest):
        problems = find_problems(self, manifest)
        seen.extend((manifest, problem) for problem in problems if problem.rule == name)
        return problems

    monkeypatch.setattr(RuleRunner, "find_problems", record)
    for number, case in enumerate(cases(EXAMPLES / f"{name}.yaml")):
        case.write(tmp_path / str(number))
        lint_paths(tmp_path / str(number), (), (), format_="json", today=TODAY)

    assert seen
    assert [
        str(problem.sentence) for manifest, problem in seen if Places(manifest.object).find(problem.node) is None
    ] == []


DERIVED = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "rules": [{"name": "c"}, {}]}}}
TEMPLATE = DERIVED["spec"]["template"]


@pytest.mark.parametrize(
    ("place", "path"),
    [
        (At(Derived({**TEMPLATE, "kind": "Job"}, TEMPLATE), "rules"), PathTo(("spec", "template", "rules"))),
        (At(Derived({**TEMPLATE, "kind": "Job"}, TEMPLATE), "kind"), None),
        (At(DerivedList([{}, {}], TEMPLATE["rules"]), 1), PathTo(("spec", "template", "rules", 1))),
        (
            At(Gathered({"x": "b"}, {"x": At(TEMPLATE["metadata"]["labels"], "a")}), "x"),
            PathTo(("spec", "template", "metadata", "labels", "a")),
        ),
        (At(Gathered({"x": "b"}, {}), "x"), None),
        (find_at(DERIVED, "spec", "template", is_key=True), PathTo(("spec", "template"), is_key=True)),
    ],
)
def test_a_place_in_a_derived_mapping_leads_to_the_object(place, path):
    assert Places(DERIVED).find(place) == path


def test_nothing_is_at_a_path_of_which_a_step_is_missing():
    assert find_at(DERIVED, "spec", "missing") is None
    assert find_at(DERIVED, "spec", "template", "rules", "name") is None


def test_a_created_object_leads_back_to_what_somebody_wrote():
    obj = {"kind": "CronJob", "spec": {"template": {"a": 1}}}
    manifest = Manifest(obj, None, Cluster())
    template, parent = obj["spec"]["template"], At(obj["spec"], "template", is_key=True)
    created = Derived({**template, "added": 2}, template)

    assert find_written(manifest, At(created, "a"), parent) == At(created, "a")
    assert find_written(manifest, At(created, "added"), parent) == parent
    assert find_written(manifest, {"kind": "Job"}, parent) == parent


def test_a_value_of_another_object_stays_where_it_is():
    limit = TracedScalar(8, Location("quota.yaml", 3, 5), "manifest")
    problem = Problem("a", "b", At(OBJECT, "kind"), related=((At({"hard": limit}, "hard"), "the quota"),))

    assert place_problem(problem, Places(OBJECT)).related == ((limit, "the quota"),)


VALIDATED = [case for part in ("access", "core", "workloads") for case in list_cases(part)]


@pytest.mark.parametrize("case", VALIDATED, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_what_validation_reports_has_a_path_to_where_it_is(case):
    for obj in read_objects(case):
        plain = untraced(obj)
        places = Places(plain)

        placed = [place_problem(problem, places) for problem in find_validation_problems(plain)]
        located = check_located(find_validation_problems, obj)

        assert [follow(problem, lambda path, tree=obj: path.follow(tree)).location for problem in placed] == [
            problem.location for problem in located
        ]
