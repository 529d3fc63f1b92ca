"""What a rule says about the objects that it concerns is true: without it, the rule reports the same."""

import pytest
from examples import EXAMPLES, cases

from jobgen import JobgenError, load, render
from jobgen.check.rule_runner import RuleRunner
from jobgen.check.rules import all_rules
from jobgen.k8s.objects import Manifest
from jobgen.model.place import Places
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.spec.overlay import Cluster

TODAY = "2025-01-31"
WHOLE = ("manifest", "job")


def without_triggers(rule):
    """The rule without words, and without the fields of objects: it relies on those of pods and containers only."""
    return rule._replace(words=(), fields=() if rule.scope in WHOLE else rule.fields)


TRIGGERED = [rule for rule in all_rules() if rule != without_triggers(rule)]


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """What the rules report about the objects of all examples, with and without triggers."""
    found = []
    with_triggers, without = RuleRunner(all_rules()), RuleRunner(map(without_triggers, all_rules()))
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for number, case in enumerate(cases(path)):
            folder = tmp_path_factory.mktemp(f"{path.stem}-{number}")
            case.write(folder)
            for manifest in list_manifests(folder):
                problems = [runner.find_problems(manifest) for runner in (with_triggers, without)]
                found.append((f"{path.stem}: {case.title}", manifest, *problems))
    return found


def list_manifests(folder):
    try:
        project = load(folder, today=TODAY)
        objects = render(project, format="json").objects
    except JobgenError:
        # The example is about a repository that cannot be rendered.
        return
    checkers = {}
    for each in objects:
        if each.environment not in checkers:
            checkers[each.environment] = EnvironmentChecker(EnvironmentRunner(project.config, each.environment))
        yield checkers[each.environment].find_checker(each.location.file).manifest(each.manifest)


def test_rules_report_the_same_without_triggers(reported):
    for title, _, *problems in reported:
        # What completes a problem is made for each run.
        with_triggers, without = ([each._replace(finish=None) for each in found] for found in problems)
        assert with_triggers == without, title


def test_rules_report_places_of_their_objects(reported):
    outside = []
    for title, manifest, problems, _ in reported:
        places = Places(manifest.object) if problems else None
        for problem in problems:
            steps = [step.node for step in problem.fix_steps]
            named = (problem.node, problem.at, *(node for node, _ in problem.related), *steps)
            if any(node is not None and places.find(node) is None for node in named):
                outside.append(f"{title}: {problem.rule}: {problem.sentence}")

    assert outside == []


def test_examples_wake_every_rule_with_triggers(reported):
    names = {problem.rule for _, _, problems, _ in reported for problem in problems}
    assert {rule.name for rule in TRIGGERED} <= names


def test_words_are_found_in_the_text_of_an_object():
    for rule in TRIGGERED:
        for word in rule.words:
            manifest = Manifest({"kind": "Pod", "spec": {word: 1, "args": [f"a{word}b"]}}, None, Cluster())
            assert manifest.text.count(word) == 2, f"{rule.name}: Python escapes `{word}`"
