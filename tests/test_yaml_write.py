"""Writing YAML: every reader reads back the same object, and the same object is always the same bytes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import kubectl
import yaml
import yamltexts
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from sampling import laws

from jobgen.yamlio.commented import Comments, format_document
from jobgen.yamlio.read import read
from jobgen.yamlio.read.scalars import normalize_number
from jobgen.yamlio.write import to_json, to_yaml

FOLDER = Path(__file__).parent / "emit"

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LONG = st.text("\u2028\ufeff\x01", min_size=150, max_size=200)
NASTY = st.text(
    "ab01yn .:-_+/~#'\"!&*%@`?|>[]{},=<\\\t\n\r\x00\x07\x1b\x7f\x85\xa0\u2028\u2029\ufeff\uffff😀", max_size=10
)
WORDS = st.sampled_from(
    [*yamltexts.WORDS, *yamltexts.TAGS, *yamltexts.FRAGMENTS, "---", "...", "- ", "? ", ": ", "#", ""]
)
LINES = st.lists(st.sampled_from([*yamltexts.LINES, "---", "...", "\ta", "a:", "- "]), max_size=5).map("\n".join)
STRINGS = st.one_of(
    WORDS, yamltexts.PLAIN, NASTY, UNICODE, LINES, LINES.map("{}\n".format), LINES.map("\n{}\n\n".format)
)
SCALARS = st.one_of(
    STRINGS,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
OBJECTS = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(STRINGS | LONG, values, max_size=3),
    max_leaves=6,
)


def whole_as_integers(data):
    """The data as JSON and YAML 1.1 hand it on: a float without a fraction is an integer."""
    if isinstance(data, dict):
        return {key: whole_as_integers(value) for key, value in data.items()}
    if isinstance(data, list):
        return [whole_as_integers(value) for value in data]
    return normalize_number(data)


def spelt(data):
    return json.dumps(data, sort_keys=True)


@laws(12)
@given(st.lists(OBJECTS, min_size=10, max_size=20))
def test_written_yaml_is_read_back_by_kubectl(objects):
    head = {"apiVersion": "v1", "kind": "Case", "metadata": {"name": "case"}}
    wrapped = [head | {"x": value} for value in objects]
    readings = kubectl.read([to_yaml(value).encode() for value in wrapped])

    assert [spelt(reading.objects) for reading in readings] == [spelt([whole_as_integers(one)]) for one in wrapped]


@laws(83)
@given(OBJECTS)
def test_written_yaml_is_read_back_as_yaml_1_1(value):
    text = to_yaml({"x": value})
    [document] = read(text.encode(), "case.yaml").documents

    assert spelt(yaml.load(text, yaml.CSafeLoader)) == spelt({"x": value})
    assert spelt(document.data) == spelt(whole_as_integers({"x": value}))


@laws(33)
@given(OBJECTS)
def test_written_yaml_is_read_back_as_yaml_1_2(value):
    assert spelt(YAML(typ="safe", pure=True).load(to_yaml({"x": value}))) == spelt({"x": value})


@laws(20)
@given(OBJECTS, st.randoms(use_true_random=False))
def test_key_order_in_memory_does_not_matter(value, random):
    assert to_yaml(shuffled(value, random)) == to_yaml(value)
    assert to_json(shuffled(value, random)) == to_json(value)


def shuffled(value, random):
    if isinstance(value, dict):
        return {key: shuffled(value[key], random) for key in random.sample(sorted(value), len(value))}
    if isinstance(value, list):
        return [shuffled(item, random) for item in value]
    return value


@laws(20)
@given(OBJECTS)
def test_written_yaml_has_no_trailing_space_and_one_final_newline(value):
    for text in (to_yaml({"x": value}), to_json({"x": value})):
        assert not any(line.endswith((" ", "\t", "\r")) for line in text.split("\n"))
        assert text.endswith("\n")


@laws(20)
@given(OBJECTS)
def test_written_json_is_the_same_object(value):
    assert spelt(json.loads(to_json(value))) == spelt(value)


@laws(16)
@given(st.lists(OBJECTS.map(lambda value: {"x": value}), max_size=3))
def test_written_stream_is_read_back(objects):
    text = "---\n".join(map(to_yaml, objects))
    documents = read(text.encode(), "case.yaml").documents

    assert spelt([document.data for document in documents]) == spelt(whole_as_integers(objects))


def test_writer_keeps_no_state():
    before = to_yaml({"x": "memory\nof lines"})
    to_yaml({"memory\nof lines": 1})

    assert to_yaml({"x": "memory\nof lines"}) == before


def test_key_order_and_list_indentation():
    written = to_yaml(json.loads((FOLDER / "job.json").read_text("utf-8")))

    assert written == (FOLDER / "job.yaml").read_text("utf-8")


def test_long_keys_are_written_as_complex_keys():
    key = "\u2028" * 200
    value = {"x": [{key: {"a": "b"}}, {"a": 1, key: ["b", {"c": "d\ne"}]}, {key: "d\ne\n"}], key: {}}
    text = to_yaml(value)

    assert text.count('? "\\u2028') == 4
    assert yaml.safe_load(text) == YAML(typ="safe", pure=True).load(text) == value
    assert read(text.encode(), "case.yaml").documents[0].data == value
    [reading] = kubectl.read([f"{kubectl.HEADER}{text}".encode()])
    assert reading.objects[0][key] == {}
    assert reading.objects[0]["x"] == value["x"]


def test_root_that_is_not_a_mapping_is_written():
    assert [to_yaml(value) for value in ([1, [2]], {}, [], "a\nb", None)] == [
        "- 1\n- - 2\n",
        "{}\n",
        "[]\n",
        "|-\n  a\n  b\n",
        "null\n",
    ]


def test_floats_are_written_as_floats():
    numbers = [1.0, -0.5, 1e16, 1.5e16, 1e100, 5e-324, math.pi]

    assert [to_yaml(number) for number in numbers] == [
        "1.0\n",
        "-0.5\n",
        "1.0e+16\n",
        "1.5e+16\n",
        "1.0e+100\n",
        "5.0e-324\n",
        "3.141592653589793\n",
    ]


def list_paths(value, path=()):
    yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from list_paths(child, (*path, key))


@laws(60)
@given(OBJECTS, st.data())
def test_yaml_with_comments_is_read_back_and_has_all_comments(value, data):
    document = {"first": 1, "x": value, "last": "yes"}
    chosen = data.draw(
        st.lists(st.sampled_from([path for path in list_paths(document) if path]), max_size=4, unique=True)
    )
    made = {
        path: Comments(
            (f"# above {number}", "#"), f"# at end {number}", (f"#after {number}",) if path == ("x",) and value else ()
        )
        for number, path in enumerate(chosen)
    }
    text = format_document(document, made)
    [document_read] = read(text.encode(), "case.yaml").documents
    lines = [line.strip() for line in text.split("\n")]

    assert spelt(document_read.data) == spelt(whole_as_integers(document))
    assert spelt(yaml.load(text, yaml.CSafeLoader)) == spelt(document)
    assert spelt(YAML(typ="safe", pure=True).load(text)) == spelt(document)
    assert [number for number in range(len(chosen)) if f"# above {number}" not in lines] == []
    assert [number for number in range(len(chosen)) if text.count(f"# at end {number}") != 1] == []
