"""Changes of a text: each touches its node alone, and what cannot be done so is not done."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobgen.model.data import Edit, Key, Leaf, Mark, plain
from jobgen.yamlio.edit import RefusedError, edited
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
            return Mark("a.yaml", number, found.start() + 1, number, found.end() + 1)
    raise AssertionError(word)


def change(*edits, text=TEXT):
    return edited(text.encode(), "a.yaml", edits).decode()


def swapped(old, new, text=TEXT):
    assert text.count(old) == 1
    return text.replace(old, new)


def placed(edit, text=TEXT):
    """The edit with the whole span of its node."""
    documents = [document.data for document in read(text.encode(), "a.yaml", marked=True).documents]
    marks = [mark for document in documents for mark in spans(document)]
    return edit._replace(mark=next(mark for mark in marks if mark[1:3] == edit.mark[1:3]))


def spans(tree):
    if isinstance(tree, dict):
        return [mark for key, value in tree.items() for mark in (*spans(key), *spans(value))]
    if isinstance(tree, list):
        return [mark for value in tree for mark in spans(value)]
    return [tree.mark] if isinstance(tree, (Key, Leaf)) else []


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (Edit("set", at("a   #"), "b"), "name: a ", "name: b "),
        (Edit("set", at("nlp"), "a, b"), "nlp", '"a, b"'),
        (Edit("set", at("dev"), 5), "dev", "5"),
        (Edit("set", at('"x"'), "yes"), '"x"', '"yes"'),
        (Edit("set", at("'it"), "that's"), "'it''s'", "'that''s'"),
        (Edit("set", at('"1"'), 7), '"1"', "7"),
        (Edit("rename", at("third"), "fourth"), "third", "fourth"),
        (Edit("rename", at("team"), "on"), "team", '"on"'),
        (Edit("remove", at("team")), "{team: nlp,  env: dev}", "{env: dev}"),
        (Edit("remove", at("env")), "{team: nlp,  env: dev}", "{team: nlp}"),
        (Edit("remove", at("third")), "    third: 3\n", ""),
        (Edit("remove", at("second")), "    second: |\n      text # no comment\n      more\n", ""),
        (Edit("remove", at("first")), "- first: 1\n    second", "- second"),
        (Edit("remove", at("quoted")), "  quoted: 'it''s'\n", ""),
        (Edit("remove", at("last")), "  last: [1, 2]\n", ""),
        # The last entry takes with it what held it, and leaves the comment above.
        (Edit("remove", at("only")), '  annotations:\n    only: "1"\n', ""),
        (Edit("remove", at("braces")), "  braces: {\n    a: 1,   # one\n    b: {c: 2}\n  }\n", ""),
        (Edit("add", at("team"), "x", "new"), "env: dev", "new: x, env: dev"),
        (Edit("add", at("env"), {"a": [1]}, "new"), "env: dev", "env: dev, new: {a: [1]}"),
        (Edit("add", at("name"), 1, "new"), "# a name\n", "# a name\n  new: 1\n"),
        (Edit("add", at("first"), "y", "new"), "- first: 1\n", '- first: 1\n    new: "y"\n'),
        (Edit("add", at("second"), 2, "new"), "      more\n", "      more\n    new: 2\n"),
        (Edit("add", at("annotations:"), 2, "new"), 'only: "1"\n', 'only: "1"\n  new: 2\n'),
        (Edit("add", at("last"), 2, "new"), "[1, 2]\n", "[1, 2]\n  new: 2\n"),
    ],
    ids=str,
)
def test_a_change_touches_its_node_alone(edit, old, new):
    assert change(placed(edit)) == swapped(old, new)


def test_several_changes_are_made_at_once():
    edits = [
        placed(Edit("set", at("nlp"), "cv")),
        placed(Edit("remove", at("third"))),
        placed(Edit("add", at("name"), 1, "number")),
    ]
    text = swapped("nlp", "cv", swapped("    third: 3\n", "", swapped("# a name\n", "# a name\n  number: 1\n")))

    assert change(*edits) == text


@pytest.mark.parametrize(
    "edit",
    [
        Edit("rename", at("env"), "team"),
        Edit("add", at("team"), 1, "env"),
        Edit("remove", at("one")),
        Edit("set", Mark("a.yaml", 1, 1, 1, 2), 1),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_not_done(edit):
    with pytest.raises(RefusedError):
        change(edit)


def test_a_block_of_text_is_not_set():
    edit = placed(Edit("set", Mark("a.yaml", 14, 13, 14, 14), "x"))
    with pytest.raises(RefusedError, match="a block of text"):
        change(edit)


def test_line_ends_are_kept():
    text = TEXT.replace("\n", "\r\n")
    edit = placed(Edit("add", at("name"), 1, "new"), text)

    assert change(edit, text=text) == text.replace("# a name\r\n", "# a name\r\n  new: 1\r\n")


@pytest.mark.parametrize("text", ["\ufeffa: 1\n", "a: 1\rb: 2\n", "a: 'x\u2028y'\n"])
def test_a_text_that_readers_count_differently_is_left_alone(text):
    with pytest.raises(RefusedError):
        change(Edit("set", Mark("a.yaml", 1, 4, 1, 5), 2), text=text)


def test_json_stays_json():
    text = '{"a": {"b": 1, "c": "x"}}\n'
    content = edited(text.encode(), "a.json", [Edit("add", Mark("a.json", 1, 8, 1, 11), ["y"], "d")])

    assert content.decode() == '{"a": {"b": 1, "d": ["y"], "c": "x"}}\n'


names = st.sampled_from(["a", "b", "c", "nvidia.com/gpu", "on"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab: #'\"\n-", max_size=6),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(names, children, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, values, min_size=1, max_size=4), st.data())
def test_any_change_of_any_text_is_that_change_or_none(data, draw):
    text = to_yaml(data)
    tree = read(text.encode(), "a.yaml", marked=True).documents[0].data
    mark = draw.draw(st.sampled_from(spans(tree)))
    edit = Edit(draw.draw(st.sampled_from(["set", "rename", "remove", "add"])), mark, "new", "new")
    try:
        new = change(edit, text=text)
    except RefusedError:
        return
    # `edited` has compared what it reads now with what it should; the lines that do not matter are the same.
    assert read(new.encode(), "a.yaml").findings == ()
    assert plain(read(new.encode(), "a.yaml").documents[0].data) != data or edit.op == "rename"


@pytest.mark.parametrize("word", ["1.10", "yes", "0o7", "1_000", "2026-01-31", "~"])
def test_a_word_is_put_in_quotes_as_it_is_written(word):
    text = f"a: {word}   # so\nb: {{c: {word}, d: 1}}\n"
    edits = [Edit("quote", mark) for mark in spans(read(text.encode(), "a.yaml", marked=True).documents[0].data)]
    quoted = [edit for edit in edits if text.splitlines()[edit.mark.line - 1][edit.mark.column - 1 :].startswith(word)]

    assert change(*quoted, text=text) == text.replace(word, f'"{word}"')


@pytest.mark.parametrize("text", ["a: 'x'\n", "a: !!int 5\n", "a: &x 5\n", "a: |\n  x\n", "a: x\n  y\n"])
def test_what_is_not_a_plain_word_is_not_quoted(text):
    tree = read(text.encode(), "a.yaml", marked=True).documents[0].data
    try:
        assert change(Edit("quote", tree["a"].mark), text=text) == text.replace("5", '"5"')
    except RefusedError:
        return


@pytest.mark.parametrize(
    "edit",
    [
        Edit("set", at("nlp"), "cv", was="nlq"),
        Edit("rename", at("team"), "group", was="teem"),
        Edit("remove", at("nlp"), key="group"),
        Edit("set", at("team"), "group"),
        Edit("rename", at("nlp"), "group"),
    ],
    ids=str,
)
def test_another_thing_than_was_meant_is_not_changed(edit):
    with pytest.raises(RefusedError):
        change(placed(edit))


@pytest.mark.parametrize("text", ["a: &x {b: 1}\nc: *x\n", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n"])
@pytest.mark.parametrize("op", ["set", "rename", "remove", "add"])
def test_what_an_alias_uses_elsewhere_is_not_changed(text, op):
    tree = read(text.encode(), "a.yaml", marked=True).documents[0].data
    node = tree["a"]["b"] if op == "set" else next(iter(tree["a"]))
    with pytest.raises(RefusedError, match="by an alias"):
        change(Edit(op, node.mark, "new", "new" if op == "add" else ""), text=text)


def test_a_comment_follows_what_is_moved():
    edits = [placed(Edit("remove", at("third"))), placed(Edit("add", at("name"), 3, "third"))]
    text = TEXT.replace("third: 3\n", "third: 3  # of them\n")
    wanted = swapped("    third: 3  # of them\n", "", text)

    assert change(*edits, text=text) == swapped("# a name\n", "# a name\n  third: 3  # of them\n", wanted)
