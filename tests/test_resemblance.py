"""Objects like one that was fine: whoever is not asked about them would have had nothing to say."""

import json
import marshal
from itertools import chain, islice

import pytest
from examples import EXAMPLES, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from jobgen.check.checker import Checker
from jobgen.check.resemblance import EVERYBODY, Models, _survey
from jobgen.pipeline import config
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.load_policies import load_policies
from jobgen.render.build import build_object, is_spec, manifest_errors
from jobgen.render.expand import JobDocument
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

QUEUES = {"gpu-a": {"gpus": 64}}
CLUSTERS = (Cluster(), Cluster(gitops="argocd", queues=QUEUES), Cluster(gitops="flux", operators={"training": "1.9.0"}))
# What many fields would rather not hold.
NASTY = ("", " ", "x y", "-", "Always", "latest", "$(HOME)", "${HOME}", "-1", "99999999999", 0, -1, 10**12, True, False)


def documents(path):
    for case in cases(path):
        text = "\n".join(line for line in case.lines if not line.startswith("# file:"))
        yield from (document.data for document in read(text.encode(), path.name).documents)


def objects(runner, path):
    """Everything that the examples of a rule stand for, good and bad, each once."""
    found = {}
    for data in documents(path):
        if data.get("kind") == "Overlay" or "spec" not in data or "matrix" in str(data):
            continue
        problems = config.find_errors(data, "trainingjob") if is_spec(data) else manifest_errors(data)
        made = None if problems else build_object(JobDocument(data, "jobs/a.yaml"), runner.expander, [], problems, [])
        if made is not None and not problems:
            found[json.dumps(made)] = made
    return list(found.values())


def leaves(node, path=()):
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(child, (dict, list)):
            yield from leaves(child, (*path, key))
        else:
            yield (*path, key), child


def field_of(path):
    return path[-1] if isinstance(path[-1], str) else path[-2]


def pool(made):
    """The values that objects have, by field and type."""
    found = {}
    for path, value in chain.from_iterable(map(leaves, made)):
        found.setdefault((field_of(path), type(value)), {})[value] = True
    return found


def replaced(node, path, value):
    copy = node.copy()
    copy[path[0]] = replaced(node[path[0]], path[1:], value) if path[1:] else value
    return copy


class Bench:
    """A judge that knows who reads what of many fine objects."""

    def __init__(self, root, cluster):
        project = config.load(root)
        runner = EnvironmentRunner(project, "", load_policies(root).policies)
        self.checker = Checker(root, project.kinds, cluster, runner.checker.rulebook._rules, runner.checker.evaluator)
        self.of_rule = {path.stem: objects(runner, path) for path in sorted(EXAMPLES.glob("*.yaml"))}
        made = list(chain.from_iterable(self.of_rule.values()))
        self.fine = [each for each in made if not self.checker(each)]
        self.pool = pool(made)

    def surveyed(self, made):
        """The object, of which the judge has seen enough to know who reads what."""
        self.checker._models = Models()
        for _ in range(3):
            assert not self.checker.with_problems([self.checker.manifest(made)] * 50)
        return made


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    return [Bench(tmp_path_factory.mktemp("empty"), cluster) for cluster in CLUSTERS]


def test_who_is_not_asked_would_have_said_nothing(benches, stress):
    @settings(derandomize=True, deadline=None, max_examples=60 * stress)
    @given(st.data())
    def law(data):
        bench = data.draw(st.sampled_from(benches))
        made = bench.surveyed(data.draw(st.sampled_from(bench.fine)))
        places = list(leaves(made))
        for _ in range(60):
            changed = made
            for path, value in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
                others = [
                    *bench.pool[field_of(path), type(value)],
                    *(word for word in NASTY if type(word) is type(value)),
                ]
                changed = replaced(changed, path, data.draw(st.sampled_from(others or [value])))

            suspected = bench.checker.with_problems([bench.checker.manifest(changed)])

            assert bool(suspected) == bool(bench.checker(changed)), changed

    law()


def good_neighbours(bench, rule, bad):
    """Objects without a fault that differ from a bad one in a leaf."""
    values = pool(bench.of_rule[rule])
    for path, value in leaves(bad):
        for other in values[field_of(path), type(value)]:
            changed = replaced(bad, path, other)
            if other != value and not bench.checker(changed):
                yield changed


def test_a_bad_example_is_caught_beside_a_good_one_that_differs_in_a_leaf(benches, stress):
    caught = set()
    for bench in benches if stress > 1 else benches[:1]:
        for rule in bench.of_rule:
            for bad in filter(bench.checker, bench.of_rule[rule]):
                for good in islice(good_neighbours(bench, rule, bad), stress):
                    bench.surveyed(good)
                    caught.add(rule)

                    assert bench.checker.with_problems([bench.checker.manifest(bad)]), (rule, bad)

    assert len(caught) > 60


def test_there_are_fine_objects_of_many_kinds(benches):
    kinds = {made["kind"] for bench in benches for made in bench.fine}

    assert len(kinds) > 8


def test_few_are_asked_about_another_tag_and_everybody_about_another_shape(benches):
    bench = benches[0]
    made = next(each for each in bench.fine if each["kind"] == "PyTorchJob")
    bench.surveyed(made)
    image = next(path for path, _ in leaves(made) if path[-1] == "image")
    manifest = bench.checker.manifest

    asked = bench.checker._asked(manifest(replaced(made, image, "registry.example.com/bert:7.7.7")))
    rules = len(bench.checker.rulebook.concerned(manifest(made)))

    assert 0 < asked.bit_count() < rules / 4
    assert bench.checker._asked(manifest(made)) == 0
    assert bench.checker._asked(manifest({**made, "status": {}})) == EVERYBODY


def test_what_rules_about_all_objects_keep_of_one_can_be_remembered(benches):
    rows = [
        row
        for bench in benches
        for made in chain.from_iterable(bench.of_rule.values())
        for _, row in bench.checker.rows(bench.checker.manifest(made))
    ]

    assert len(rows) > 100
    for row in rows:
        marshal.dumps(tuple(row))


def test_a_check_that_says_something_of_a_fine_object_may_have_been_broken_off():
    made = {"a": 1, "b": ["x", {"c": None}]}

    readers = _survey(made, [lambda made: made["a"].value < 0, lambda _: ["no time left"]])

    assert readers == {"a": 0b11, "b": [0b10, {"c": 0b10}]}
