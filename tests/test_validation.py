"""What holds for the validation of all of Kubernetes' own kinds."""

from collections import Counter
from importlib import import_module

import pytest
from placedproblems import check_located
from sampling import sample
from validationcases import find_problems, list_cases, read_expected, read_objects

from jobgen.check.validation import MODULES, find_kind
from jobgen.model.data import untraced

CASES = [case for part in ("access", "core", "workloads") for case in list_cases(part)]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")


@every_case
def test_problems_are_on_their_lines(case):
    problems = [problem for obj in read_objects(case) for problem in check_located(find_problems, obj)]

    assert Counter((problem.location.line, problem.rule) for problem in problems) == read_expected(case)
    assert {problem.category for problem in problems} <= {"schema", "pod"}


@every_case
def test_the_objects_of_cases_have_known_kinds(case):
    for obj in map(untraced, read_objects(case)):
        assert find_kind(obj) is not None or case.parent.name == "workloads", obj["kind"]


def test_every_kind_is_listed_once():
    listed = {}
    for group, modules in MODULES.items():
        for module, kinds in modules.items():
            objects = [{"apiVersion": f"{group}/v1" if group else "v1", "kind": kind} for kind in kinds.split()]
            listed.setdefault(module, []).extend(map(find_kind, objects))
    for module, kinds in listed.items():
        known = import_module(f"jobgen.check.validation.{module}").KINDS.values()
        assert Counter(map(id, kinds)) == Counter(map(id, known))


def test_messages_are_one_line():
    for message in (str(each.sentence) for case in CASES for obj in read_objects(case) for each in find_problems(obj)):
        assert message[0] == "`" or message[0].islower(), message
        assert "\n" not in message, message
        assert not message.endswith("."), message


def replace_each_node(obj, value):
    """Yield copies of the object in which one node has another value."""
    for key, child in obj.items() if isinstance(obj, dict) else enumerate(obj):
        changed = obj.copy()
        changed[key] = value
        yield changed
        if isinstance(child, (dict, list)):
            for part in replace_each_node(child, value):
                changed = obj.copy()
                changed[key] = part
                yield changed


WRONG = [None, "", "a", 0, 1.5, True, [], [None], {}, {"a": None}, [[]], [{}]]


@pytest.mark.parametrize("value", sample(WRONG, 3), ids=repr)
def test_values_of_any_type_are_no_exception(value):
    for obj in (obj for case in CASES for obj in read_objects(case)):
        for changed in replace_each_node(untraced(obj), value):
            assert all(problem.rule != "internal-error" for problem in find_problems(changed))
