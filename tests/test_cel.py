"""CEL gives the same values, refusals and failures as the API server."""

from __future__ import annotations

import string
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobgen.check.cel import Bound, CompileError, Expression, Failed, available, compile_cel, mentions
from jobgen.check.cel.admission_scope import find_selector_fault
from jobgen.check.cel.cost import converts_in_loops
from jobgen.check.cel.values import OFFLINE
from jobgen.model.quantity import canonicalize_quantity

TABLE = yaml.load((Path(__file__).parent / "cel.yaml").read_text("utf-8"), yaml.CSafeLoader)
NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
BOUND = {"object": TABLE["object"]}
VALUES = [(text, value) for rows in TABLE["values"].values() for text, value in rows.items()]
_FACTORS = {"": 1, "m": Fraction(1, 1000), "k": 1000, "M": 10**6, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "e3": 1000}
_WORDS = "object self . ?. [ ] ( ) { } , : ? && || ! == < + - * / % in 1 2u 2.5 'a' \"b\" b'c' null true [?".split()
_CALLS = (
    "all exists map filter has size quantity sum indexOf optMap orValue transformMap find sortBy format dyn".split()
)


def quantities() -> st.SearchStrategy[tuple[str, Fraction]]:
    return st.builds(
        lambda number, suffix: (f"{number}{suffix}", number * Fraction(_FACTORS[suffix])),
        st.integers(-(10**6), 10**6),
        st.sampled_from(sorted(_FACTORS)),
    )


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_expression_values(text, value):
    compiled = compile_cel(text, NAMES, returns="any")

    assert isinstance(compiled, Expression), compiled
    assert (compiled(BOUND), type(compiled(BOUND))) == (value, type(value))


@pytest.mark.parametrize(("text", "reason"), TABLE["faults"].items(), ids=list(TABLE["faults"]))
def test_expressions_that_the_server_refuses_are_refused(text, reason):
    fault = compile_cel(text, NAMES, returns="any")

    assert isinstance(fault, CompileError), fault
    assert reason in fault.message
    assert "\n" not in fault.message


LONG = {"a sum": ("+", "'a'"), "comparisons": ("==", "object.a")}


@pytest.mark.parametrize(("operator", "operand"), LONG.values(), ids=list(LONG))
def test_an_expression_that_only_the_server_reads_is_not_refused(operator, operand):
    """The engine reads 32 levels, the server 250."""

    def write(count: int) -> str:
        return f" {operator} ".join([operand] * (count + 1))

    def compile_message(count: int) -> str:
        compiled = compile_cel(write(count), NAMES, returns="any")
        return compiled.message if isinstance(compiled, CompileError) else ""

    assert compile_message(30) == ""
    assert OFFLINE in compile_message(40)
    assert OFFLINE in compile_message(249)
    assert "than the API server reads" in compile_message(250)
    together = compile_cel(f"[{write(200)}, {write(200)}].size() == 2 && ({write(200)}) == ''", NAMES, returns="any")
    assert OFFLINE in together.message
    assert find_selector_fault(f"device.driver != {write(40)}".replace("object.a", "device.driver")) is None


@pytest.mark.parametrize("count", [250, 2000])
def test_parentheses_that_the_server_does_not_read_are_refused(count):
    fault = compile_cel("(-" * count + "1" + ")" * count, NAMES, returns="any")

    assert "than the API server reads" in fault.message


@pytest.mark.parametrize(("text", "reason"), TABLE["failures"].items(), ids=list(TABLE["failures"]))
def test_evaluation_failures_have_a_reason(text, reason):
    compiled = compile_cel(text, NAMES, returns="any")

    assert isinstance(compiled, Expression), compiled
    failed = compiled(BOUND)
    assert isinstance(failed, Failed), failed
    assert reason in failed.message


@pytest.mark.parametrize(
    ("text", "returns", "message"),
    [
        ("1", "bool", "must evaluate to bool but got int"),
        ("'a'", "bool", "must evaluate to bool but got string"),
        ("true", "string", "must evaluate to string but got bool"),
        ("object.spec.suspend", "bool", "must evaluate to bool but got dyn"),
        ("variables.suspend", "bool", ""),
        ("request.dryRun", "bool", ""),
        ("object.spec.suspend == true", "bool", ""),
    ],
)
def test_result_type_is_checked(text, returns, message):
    compiled = compile_cel(text, NAMES, returns=returns)

    assert (compiled.message if isinstance(compiled, CompileError) else "") == message


def test_compile_errors_have_a_position():
    assert compile_cel("true &&\n  nope", NAMES)[1:] == (2, 3)
    assert compile_cel("true &&\n  [1, 'a'].size() == 2", NAMES)[1:] == (2, 7)


def test_an_expression_is_compiled_once():
    assert compile_cel("object.a == 1", NAMES) is compile_cel("object.a == 1", NAMES)


def test_variables_are_bound_once_for_many_expressions():
    bound = Bound(BOUND)
    texts = ("object.spec.replicas == 3", "object.spec.port == 81")

    assert [compile_cel(text, NAMES)(bound) for text in texts] == [True, False]


def test_values_of_kubernetes_types_can_be_bound_again():
    half = compile_cel("quantity('500m')", NAMES, returns="any")({})
    listed = compile_cel("[ip('10.0.0.1')]", NAMES, returns="any")({})
    asked = "variables.half.add(variables.half) == quantity('1') && variables.listed[0].family() == 4"

    assert compile_cel(asked, NAMES)({"variables": {"half": half, "listed": listed}}) is True


def test_a_name_that_is_absent_is_an_empty_optional():
    rule = "!oldSelf.hasValue() || oldSelf.value().a == self.a"

    assert compile_cel(rule, ("self", "oldSelf"), absent=("oldSelf",))({"self": {"a": 1}}) is True
    assert compile_cel("oldSelf.orValue(self).a", ("self", "oldSelf"), absent=("oldSelf",))({"self": {"a": 5}}) == 5


def test_names_inside_strings_are_not_references():
    assert mentions("self == oldSelf", "oldSelf")
    assert not mentions("self == 'oldSelf' // oldSelf", "oldSelf")
    assert not mentions("self.oldSelf", "oldSelf")


def test_unsupported_data_fails():
    for odd in ((1,), object(), 2**64, {None: 1}, "\ud800"):
        assert isinstance(compile_cel("object == 1", NAMES)({"object": odd}), Failed)


def test_unbound_variable_fails():
    assert isinstance(compile_cel("params.a == 1", NAMES)({"object": {}}), Failed)


def test_nested_loops_hit_the_cost_limit():
    loops = "object.all(a, object.all(b, object.all(c, object.all(d, a + b + c + d >= 0))))"
    failed = compile_cel(loops, NAMES)({"object": list(range(1000))})

    assert failed == Failed("it can cost more than the API server allows: 1000000")


@pytest.mark.parametrize(
    "text",
    [
        *("(" * 40_000 + "1" + ")" * 40_000, "[" * 40_000, "object" + ".a" * 40_000, "1" * 90_000, "1" + "+1" * 5000),
        *(
            "[1].map(x, " * 60 + "1" + ")" * 60,
            "'a" * 30_000,
            "x" * 200_000,
            "object.?a" + ".optMap(x, x)" * 25,
            "\ud800",
            "\0",
            "",
        ),
    ],
    ids=lambda text: f"{text[:12]!r}*{len(text)}",
)
def test_hostile_expressions_are_compile_errors(text):
    assert isinstance(compile_cel(text, NAMES, returns="any"), CompileError)


@pytest.mark.parametrize("value", ["a" * 10, [1] * 10])
@pytest.mark.parametrize(
    "text",
    [
        "[object]" + ".map(x, x + x + x + x)" * 25 + ".size() == 1",
        "[object].map(x, string(x))[0]" + ".replace('a', 'aaaaaaaaaaaaaaaaaaa')" * 9 + " == ''",
        "[object]" + ".map(x, [x, x, x, x])" * 6 + ".size() == 1",
    ],
)
def test_values_that_grow_without_end_cost_too_much(text, value):
    compiled = compile_cel(text, NAMES)

    assert isinstance(compiled, Expression)
    assert compiled({"object": value}) is True or isinstance(compiled({"object": value}), Failed)


def test_cel_engine_is_installed():
    assert available() == ""


@given(quantities(), quantities())
def test_quantities_compare_as_their_amounts(one, other):
    (text, amount), (other_text, other_amount) = one, other
    bound = {"object": {"a": text, "b": other_text}}
    sign = (amount > other_amount) - (amount < other_amount)

    assert compile_cel("quantity(object.a).compareTo(quantity(object.b))", NAMES, returns="any")(bound) == sign
    assert compile_cel("quantity(object.a) == quantity(object.b)", NAMES)(bound) is (sign == 0)
    assert compile_cel("quantity(object.a).sub(quantity(object.b)).isLessThan(quantity('0'))", NAMES)(bound) is (
        sign < 0
    )


@given(st.text(string.digits + "+-.eEKMGinumk", max_size=12))
def test_is_quantity_agrees_with_the_quantity_parser(text):
    assert compile_cel("isQuantity(object)", NAMES)({"object": text}) is (canonicalize_quantity(text) is not None)


@given(st.lists(st.sampled_from(_WORDS + _CALLS + ["x", "y", ".map(x, x)", "(x, y,"]), max_size=14))
def test_any_expression_compiles_or_is_refused(words):
    compiled = compile_cel(" ".join(words), NAMES, returns="any")

    assert isinstance(compiled, CompileError) or compiled(BOUND) is not compiled


@given(st.text(max_size=40))
def test_any_characters_compile_or_are_refused(text):
    compiled = compile_cel(text, NAMES, returns="any")

    assert isinstance(compiled, CompileError) or compiled(BOUND) is not compiled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.l.sum() > 0", False),
        ("object.l.all(x, object.l.sum() > 0)", True),
        ("object.l.all(x, [object.l].map(y, y.isSorted()).size() > 0)", True),
        ("object.l.all(x, x.max() > 0)", True),
        ("object.l.exists(x, object.l.map(y, y).sum() > 0)", True),
        ("object.l.exists(x, object.l.map(y, int(y)).sum() > 0)", False),
        ("object.l.exists(x, object.l.map(y, y > 1 ? int(y) : 0).sum() > 0)", False),
        ("object.l.exists(x, object.l.map(y, y > 1 ? y : 0).indexOf(1) > 0)", True),
        ("[object.l].map(x, x.sum())[0] > 0", False),
        ("[object.l, object.l].map(x, x.sum())[0] > 0", True),
    ],
)
def test_conversions_of_lists_in_loops_are_found(text: str, expected: bool) -> None:
    compiled = compile_cel(text, ("object",))

    assert isinstance(compiled, Expression)
    assert converts_in_loops(compiled._tree()) is expected
