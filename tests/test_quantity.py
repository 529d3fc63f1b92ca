"""Quantities are printed as by Kubernetes: kubectl prints the same, many at a time."""

from __future__ import annotations

import json
import re

import kubectl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.model.quantity import canonicalize_quantity, decode_milli, to_int64, to_milli

POD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
EXPONENTS = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 40).map(str)).map("".join)
DIGITS = st.text("0123456789", min_size=1, max_size=24) | st.sampled_from(["0", "1", "1000", "1024", "1048576", "1023"])
NUMBERS = DIGITS | st.tuples(DIGITS, DIGITS | st.just("")).map(".".join) | DIGITS.map(".{}".format)
ANY = st.tuples(st.sampled_from(["", "", "+", "-"]), NUMBERS, st.sampled_from(SUFFIXES) | EXPONENTS).map("".join)
# From 1000E on, kubectl loses the suffix: see below.
QUANTITIES = ANY.filter(lambda quantity: not canonicalize_quantity(quantity).endswith("000E"))
WORDS = """
    1K 1mi 1ki 1KI 1GI 1gi 1B 1Gb 1e 1E+ 1e- 1e1.5 1.2.3 1_000 0x10 1mE3 1Ei3 k3 1k-3 1m1 abc 1/2 ½ 10% ١
    --1 +-1 1- 1+ NaN inf
""".split()


def printed_by_kubectl(quantities):
    """Each quantity as a limit of one pod, read back."""
    limits = ",".join(f"example.com/q{number}={quantity}" for number, quantity in enumerate(quantities))
    done = kubectl.run(["set", "resources", "--local", "-f", "-", f"--limits={limits}", "-o", "json"], stdin=POD)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)["spec"]["containers"][0]["resources"]["limits"]
    return [found[f"example.com/q{number}"] for number in range(len(quantities))]


def with_more_zeros(quantity):
    """The same amount with three more digits behind the point: a spelling that kubectl does not keep."""
    sign, number, suffix = re.fullmatch(r"([-+]?)([0-9.]+)(.*)", quantity).groups()
    return f"{sign}{number}{'' if '.' in number else '.'}000{suffix}"


@laws(8)
@given(st.lists(QUANTITIES, min_size=40, max_size=60))
def test_quantities_are_printed_as_by_kubectl(quantities):
    ours = [canonicalize_quantity(quantity) for quantity in quantities]

    assert ours == printed_by_kubectl([with_more_zeros(quantity) for quantity in quantities])


@laws(5)
@given(st.lists(QUANTITIES, min_size=40, max_size=60))
def test_quantities_printed_by_kubectl_are_equal(quantities):
    assert [canonicalize_quantity(text) for text in printed_by_kubectl(quantities)] == list(
        map(canonicalize_quantity, quantities)
    )


@laws(50)
@given(ANY)
def test_canonical_quantity_is_unchanged(quantity):
    assert canonicalize_quantity(canonicalize_quantity(quantity)) == canonicalize_quantity(quantity)


def refused_by_kubectl(quantities, folder):
    """The quantities that kubectl does not read, each as a limit of a pod in a file of its own."""
    for number, quantity in enumerate(quantities):
        limits = json.dumps({"example.com/q": quantity})
        pod = POD.replace(b"image: i", f"image: i, resources: {{limits: {limits}}}".encode())
        (folder / f"{number}.yaml").write_bytes(pod)
    done = kubectl.run(["set", "env", "--local", "-f", str(folder), "A=b", "-o", "json"])
    found = re.findall(r'unable to decode "\S*/(\d+)\.yaml": .*quantit', done.stderr.decode())
    return [quantities[number] for number in sorted(map(int, found))]


def test_quantities_refused_by_kubectl_are_refused(tmp_path):
    assert refused_by_kubectl(["1", *WORDS, "1Ki"], tmp_path) == WORDS
    assert [word for word in WORDS if canonicalize_quantity(word) is not None] == []


# kubectl reads them as nought, but the pattern in every CRD's schema asks for a digit.
@pytest.mark.parametrize("word", ["", ".", "-", "+.", "Gi", ".m", "-e3", " 1", "1 ", "1\n"])
def test_quantity_has_digits_and_no_space(word):
    assert canonicalize_quantity(word) is None


def test_notations_of_one_amount_have_one_canonical_form():
    spellings = ["1000m", "1", "1.0", "+1", "01", "1000000u", "1.", ".001k"]

    assert {canonicalize_quantity(spelling) for spelling in spellings} == {"1"}


def test_amounts_at_notation_limits_are_printed_as_by_kubectl():
    edges = [
        "0.9765625Ki",
        "1000Ki",
        "1023Ki",
        "1024Ki",
        "0.5Ki",
        "1.0001Ki",
        "1024Ei",
        "7.99999Ei",
        "8Ei",
        "-8Ei",
        "999n",
    ]
    edges += [
        "0.999999999",
        "0.9999999991",
        "999999999n",
        "1000000000n",
        "1e-9",
        "1e-10",
        "9223372036854775808",
        "999E",
    ]

    assert list(map(canonicalize_quantity, edges)) == printed_by_kubectl([with_more_zeros(edge) for edge in edges])


def test_amounts_too_large_for_a_suffix_are_kept():
    assert (canonicalize_quantity("1000E"), canonicalize_quantity("1000000000000000000000")) == ("1000E", "1000E")
    assert printed_by_kubectl(["1000E"]) == ["1"]


def test_huge_exponents_are_fast():
    spellings = ["1e1000000000", "15e-1000000000", "0e1000000000", "12e99999999999999999999", "9" * 10_000]

    assert list(map(canonicalize_quantity, spellings)) == ["10e999999999", "1e-9", "0", None, None]


@laws(50)
@given(ANY)
def test_the_canonical_text_has_the_same_value(quantity):
    assert to_milli(canonicalize_quantity(quantity)) == to_milli(quantity)


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [("1", 1000), (2, 2000), ("1m", 1), ("1n", 1), ("-1n", -1), ("1.5Ki", 1_536_000), ("1e3", 1_000_000), ("8Ei", 0)],
)
def test_thousandths_are_rounded_away_from_zero_and_capped(quantity, milli):
    assert to_milli(quantity) == (milli or (2**63 - 1) * 1000)


def test_the_thousandths_of_any_exponent_are_computed_at_once():
    assert [to_milli(text) > 10**1000 for text in ("1e1000000000", "1e5000")] == [True, True]
    assert to_milli("1e-1000000000") == 1


@pytest.mark.parametrize("value", [None, True, float("inf"), float("nan"), "x", [], {}])
def test_other_values_have_no_thousandths(value):
    assert to_milli(value) is None


def test_spaces_around_a_quantity_do_not_count():
    assert [to_milli(text) for text in (" 1", "1m ", "\xa01\u3000", "1\n", "\t1")] == [1000, 1, 1000, None, None]


def test_null_is_zero_in_kinds_of_kubernetes_itself():
    assert [decode_milli(value) for value in (None, 0.5, "1", True, "x")] == [0, 500, 1000, None, None]


@pytest.mark.parametrize(
    ("quantity", "power", "value"),
    [
        ("1500m", 0, 2),
        ("-1500m", 0, -2),
        ("1500m", -3, 1500),
        (0.5, -3, 500),
        ("1e30", 0, 0),
        ("1E", -3, 0),
        ("9223372036854775807", 0, 2**63 - 1),
        ("99999999999999999999", 0, 99999999999999999999 % 2**64),
        ("x", 0, None),
        (None, 0, 0),
    ],
)
def test_integers_of_go(quantity, power, value):
    assert to_int64(quantity, power) == value
