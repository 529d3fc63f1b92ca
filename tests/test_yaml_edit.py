"""Edits of a text: each changes its node only, or is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.model.data import Location, TracedKey, TracedScalar, untraced
from jobgen.model.finding import TextEdit
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

TEXT = """\
# about the job
apiVersion: v1   # here
metadata:
  name: a   # a name
  labels: {team: nlp,  env: dev}

  # above annotations
  annotations:
    only: "1"
# about the spec
spec:
  list:
  - first: 1
    second: |
      text # no comment
      more
    third: 3
  -   one: 1
  braces: {
    a: 1,   # one
    b: {c: 2}
  }
  quoted: 'it''s'
  double: "x"
  last: [1, 2]
"""


def at(word, text=TEXT):
    """The place of a key or of a scalar, by its text."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(rf"(?<![\\w'\"]){word}", line)
        if found:
            return Location("a.yaml", number, found.start() + 1, number, found.end() + 1)
    raise AssertionError(word)


def change(*edits, text=TEXT):
    return apply_edits(text.encode(), "a.yaml", edits).decode()


def swapped(old, new, text=TEXT):
    assert text.count(old) == 1
    return text.replace(old, new)


def placed(edit, text=TEXT):
    """The edit with the whole span of its node."""
    documents = [document.data for document in read(text.encode(), "a.yaml", traced=True).documents]
    locations = [location for document in documents for location in spans(document)]
    return edit._replace(location=next(location for location in locations if location[1:3] == edit.location[1:3]))


def spans(tree):
    if isinstance(tree, dict):
        return [location for key, value in tree.items() for location in (*spans(key), *spans(value))]
    if isinstance(tree, list):
        return [location for value in tree for location in spans(value)]
    return [tree.location] if isinstance(tree, (TracedKey, TracedScalar)) else []


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (TextEdit("set", at("a   #"), "b"), "name: a ", "name: b "),
        (TextEdit("set", at("nlp"), "a, b"), "nlp", '"a, b"'),
        (TextEdit("set", at("dev"), 5), "dev", "5"),
        (TextEdit("set", at('"x"'), "yes"), '"x"', '"yes"'),
        (TextEdit("set", at("'it"), "that's"), "'it''s'", "'that''s'"),
        (TextEdit("set", at('"1"'), 7), '"1"', "7"),
        (TextEdit("rename", at("third"), "fourth"), "third", "fourth"),
        (TextEdit("rename", at("team"), "on"), "team", '"on"'),
        (TextEdit("remove", at("team")), "{team: nlp,  env: dev}", "{env: dev}"),
        (TextEdit("remove", at("env")), "{team: nlp,  env: dev}", "{team: nlp}"),
        (TextEdit("remove", at("third")), "    third: 3\n", ""),
        (TextEdit("remove", at("second")), "    second: |\n      text # no comment\n      more\n", ""),
        (TextEdit("remove", at("first")), "- first: 1\n    second", "- second"),
        (TextEdit("remove", at("quoted")), "  quoted: 'it''s'\n", ""),
        (TextEdit("remove", at("last")), "  last: [1, 2]\n", ""),
        # The last entry takes with it what held it, and leaves the comment above.
        (TextEdit("remove", at("only")), '  annotations:\n    only: "1"\n', ""),
        (TextEdit("remove", at("braces")), "  braces: {\n    a: 1,   # one\n    b: {c: 2}\n  }\n", ""),
        (TextEdit("add", at("team"), "x", "new"), "env: dev", "new: x, env: dev"),
        (TextEdit("add", at("env"), {"a": [1]}, "new"), "env: dev", "env: dev, new: {a: [1]}"),
        (TextEdit("add", at("name"), 1, "new"), "# a name\n", "# a name\n  new: 1\n"),
        (TextEdit("add", at("first"), "y", "new"), "- first: 1\n", '- first: 1\n    new: "y"\n'),
        (TextEdit("add", at("second"), 2, "new"), "      more\n", "      more\n    new: 2\n"),
        (TextEdit("add", at("annotations:"), 2, "new"), 'only: "1"\n', 'only: "1"\n  new: 2\n'),
        (TextEdit("add", at("last"), 2, "new"), "[1, 2]\n", "[1, 2]\n  new: 2\n"),
    ],
    ids=str,
)
def test_edit_changes_its_node_only(edit, old, new):
    assert change(placed(edit)) == swapped(old, new)


def test_several_edits_at_once():
    edits = [
        placed(TextEdit("set", at("nlp"), "cv")),
        placed(TextEdit("remove", at("third"))),
        placed(TextEdit("add", at("name"), 1, "number")),
    ]
    text = swapped("nlp", "cv", swapped("    third: 3\n", "", swapped("# a name\n", "# a name\n  number: 1\n")))

    assert change(*edits) == text


@pytest.mark.parametrize(
    "edit",
    [
        TextEdit("rename", at("env"), "team"),
        TextEdit("add", at("team"), 1, "env"),
        TextEdit("remove", at("one")),
        TextEdit("set", Location("a.yaml", 1, 1, 1, 2), 1),
    ],
    ids=str,
)
def test_impossible_edits_are_refused(edit):
    with pytest.raises(EditRefusedError):
        change(edit)


def test_edit_of_a_block_scalar_is_refused():
    edit = placed(TextEdit("set", Location("a.yaml", 14, 13, 14, 14), "x"))
    with pytest.raises(EditRefusedError, match="a block of text"):
        change(edit)


def test_line_ends_are_kept():
    text = TEXT.replace("\n", "\r\n")
    edit = placed(TextEdit("add", at("name"), 1, "new"), text)

    assert change(edit, text=text) == text.replace("# a name\r\n", "# a name\r\n  new: 1\r\n")


def test_byte_order_mark_is_kept():
    edit = TextEdit("set", Location("a.yaml", 1, 4, 1, 5), 2)

    assert change(edit, text="\ufeffa: 1\n") == "\ufeffa: 2\n"


@pytest.mark.parametrize("text", ["\ufeff\ufeffa: 1\n", "a: 1\rb: 2\n", "a: 'x\u2028y'\n"])
def test_edit_of_text_with_unusual_line_breaks_is_refused(text):
    with pytest.raises(EditRefusedError):
        change(TextEdit("set", Location("a.yaml", 1, 4, 1, 5), 2), text=text)


def test_json_stays_json():
    text = '{"a": {"b": 1, "c": "x"}}\n'
    content = apply_edits(text.encode(), "a.json", [TextEdit("add", Location("a.json", 1, 8, 1, 11), ["y"], "d")])

    assert content.decode() == '{"a": {"b": 1, "d": ["y"], "c": "x"}}\n'


names = st.sampled_from(["a", "b", "c", "nvidia.com/gpu", "on"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab: #'\"\n-", max_size=6),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(names, children, max_size=3),
    max_leaves=12,
)


@laws(25)
@given(st.dictionaries(names, values, min_size=1, max_size=4), st.data())
def test_any_edit_of_any_text_is_exact_or_refused(data, draw):
    text = to_yaml(data)
    tree = read(text.encode(), "a.yaml", traced=True).documents[0].data
    location = draw.draw(st.sampled_from(spans(tree)))
    edit = TextEdit(draw.draw(st.sampled_from(["set", "rename", "remove", "add"])), location, "new", "new")
    try:
        new = change(edit, text=text)
    except EditRefusedError:
        return
    # `edited` has compared what it reads now with what it should; the lines that do not matter are the same.
    assert read(new.encode(), "a.yaml").findings == ()
    assert untraced(read(new.encode(), "a.yaml").documents[0].data) != data or edit.op == "rename"


@pytest.mark.parametrize("word", ["1.10", "yes", "0o7", "1_000", "2026-01-31", "~"])
def test_quoting_edit_keeps_the_text(word):
    text = f"a: {word}   # so\nb: {{c: {word}, d: 1}}\n"
    edits = [
        TextEdit("quote", location) for location in spans(read(text.encode(), "a.yaml", traced=True).documents[0].data)
    ]
    quoted = [
        edit for edit in edits if text.splitlines()[edit.location.line - 1][edit.location.column - 1 :].startswith(word)
    ]

    assert change(*quoted, text=text) == text.replace(word, f'"{word}"')


@pytest.mark.parametrize("text", ["a: 'x'\n", "a: !!int 5\n", "a: &x 5\n", "a: |\n  x\n", "a: x\n  y\n"])
def test_quoting_edit_of_other_values_is_refused(text):
    tree = read(text.encode(), "a.yaml", traced=True).documents[0].data
    try:
        assert change(TextEdit("quote", tree["a"].location), text=text) == text.replace("5", '"5"')
    except EditRefusedError:
        return


@pytest.mark.parametrize(
    "edit",
    [
        TextEdit("set", at("nlp"), "cv", was="nlq"),
        TextEdit("rename", at("team"), "group", was="teem"),
        TextEdit("remove", at("nlp"), key="group"),
        TextEdit("set", at("team"), "group"),
        TextEdit("rename", at("nlp"), "group"),
    ],
    ids=str,
)
def test_edit_of_an_unexpected_node_is_refused(edit):
    with pytest.raises(EditRefusedError):
        change(placed(edit))


@pytest.mark.parametrize("text", ["a: &x {b: 1}\nc: *x\n", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n"])
@pytest.mark.parametrize("op", ["set", "rename", "remove", "add"])
def test_edit_of_an_aliased_node_is_refused(text, op):
    tree = read(text.encode(), "a.yaml", traced=True).documents[0].data
    node = tree["a"]["b"] if op == "set" else next(iter(tree["a"]))
    with pytest.raises(EditRefusedError, match="by an alias"):
        change(TextEdit(op, node.location, "new", "new" if op == "add" else ""), text=text)


def test_comments_follow_moved_nodes():
    edits = [placed(TextEdit("remove", at("third"))), placed(TextEdit("add", at("name"), 3, "third"))]
    text = TEXT.replace("third: 3\n", "third: 3  # of them\n")
    wanted = swapped("    third: 3  # of them\n", "", text)

    assert change(*edits, text=text) == swapped("# a name\n", "# a name\n  third: 3  # of them\n", wanted)
