"""What is at a position of a document: the path to it, and the key or value there, also in half-typed text."""

from pathlib import Path

import pytest
from growth import takes_the_square_of_time

from jobgen.features.editor.cursor import Part, find_cursor, read_half_typed
from jobgen.model.data import untraced
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent


def place(marked):
    """Remove the mark `¦` from a text; return the text and the line and column of the mark."""
    before, _, after = marked.partition("¦")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


KEY, VALUE, COMMENT = Part.KEY, Part.VALUE, Part.COMMENT
COMPLETE = {
    "spec:\n  fram¦ework: x\n": (("spec", "framework"), KEY, "framework", "fram"),
    "spec:\n  framework: py¦torch\n": (("spec", "framework"), VALUE, "pytorch", "py"),
    "spec:\n  framework: pytorch¦\n": (("spec", "framework"), VALUE, "pytorch", "pytorch"),
    "spec:\n  framework: ¦\n": (("spec", "framework"), VALUE, "", ""),
    "spec:\n  framework:¦\n": (("spec", "framework"), VALUE, "", ""),
    "spec:\r\n  framework: py¦torch\r\n": (("spec", "framework"), VALUE, "pytorch", "py"),
    "spec:\n  fra¦\n": (("spec", "fra"), KEY, "fra", "fra"),
    "spec:\n  image: x\n  ¦\n  env: {}\n": (("spec", ""), KEY, "", ""),
    "spec:\n  image: x\n¦": (("",), KEY, "", ""),
    "spec:\n  image: x\n\n¦    \n  env: {}\n": (("",), KEY, "", ""),
    "a: {b: 1, ¦}\n": (("a", ""), KEY, "", ""),
    "a: {b: ¦1}\n": (("a", "b"), VALUE, "1", ""),
    "a: [x, ¦]\n": (("a", 1), VALUE, "", ""),
    "a: [x, y¦]\n": (("a", 1), VALUE, "y", "y"),
    "a:\n- ¦\n": (("a", 0), VALUE, "", ""),
    "a:\n  - name: x\n    ¦\n": (("a", 0, ""), KEY, "", ""),
    "a:\n  - na¦\n": (("a", 0), VALUE, "na", "na"),
    "a:\n- - - b¦: c\n": (("a", 0, 0, 0, "b"), KEY, "b", "b"),
    "'a b': ¦x\n": (("a b",), VALUE, "x", ""),
    "'a¦ b': x\n": (("a b",), KEY, "a b", "'a"),
    'a: "é😀¦x"\n': (("a",), VALUE, "é😀x", '"é😀'),
    "a:\tb¦\n": (("a",), VALUE, "b", "b"),
    "a: 0¦755\n": (("a",), VALUE, "0755", "0"),
    "a: y¦es\n": (("a",), VALUE, "yes", "y"),
    "x: &a {k¦: v}\ny: *a\n": (("x", "k"), KEY, "k", "k"),
    "x: &a {k: v}\ny: *¦a\n": (("y",), VALUE, "*a", "*"),
    "x: &a {k: v}\ny: [*¦a, b]\n": (("y", 0), VALUE, "*a", "*"),
    "a:\n  b:\n   ¦\n  c: d": (("a", "b", ""), KEY, "", ""),
    "run: |\n  one\n  t¦wo\nend: 1\n": (("run",), VALUE, "one\ntwo\n", ""),
    "run: |\n  one\ne¦nd: 1\n": (("end",), KEY, "end", "e"),
    "# jobgen: ig¦nore\na: 1\n": ((), COMMENT, "# jobgen: ignore", "# jobgen: ig"),
    "a: '#b ¦c'\n": (("a",), VALUE, "#b c", "'#b "),
    '{"a": {"b": ¦}}': (("a", "b"), VALUE, "", ""),
    '{"a": {"b": 1}}\n{"c": [2, ¦3]}': (("c", 1), VALUE, "3", ""),
}
HALF_TYPED = {
    "¦": (("",), KEY, "", ""),
    "ap¦": (("ap",), KEY, "ap", "ap"),
    "# nothing¦": ((), COMMENT, "# nothing", "# nothing"),
    "spec:\n  fra¦\n  image: x\n": (("spec", "fra"), KEY, "fra", "fra"),
    "spec:\n  image: x\n  en¦": (("spec", "en"), KEY, "en", "en"),
    "spec:\n  image: x\n  roles:\n    wo¦rker\n  env: [": (("spec", "roles", "worker"), KEY, "worker", "wo"),
    "a: {b: 1, c¦": (("a", "c"), KEY, "c", "c"),
    "a: {b: {c: d¦, e": (("a", "b", "c"), VALUE, "d", "d"),
    "a: {b: {c: d}, e: ¦\nf: g\n": (("a", "e"), VALUE, "", ""),
    "a: {b: 1\nf: ¦g\n": (("f",), VALUE, "g", ""),
    "a:\n  - name: x\n    va¦\n": (("a", 0, "va"), KEY, "va", "va"),
    "a:\n  - b: {c: ¦\n  - d": (("a", 0, "b", "c"), VALUE, "", ""),
    "l:\n  - {na¦me: x, y\n  - z": (("l", 0, "name"), KEY, "name", "na"),
    "a:\n- x\n- ¦\nb: [": (("a", 1), VALUE, "", ""),
    "a:\n- x\nb¦: [": (("b",), KEY, "b", "b"),
    'a: "open\nb: c¦\n': (("b",), VALUE, "c", "c"),
    "\ta¦: b\n": (("a",), KEY, "a", "a"),
    "run: |\n  one: [\n  t¦wo: {\nend: [\n": (("run",), VALUE, "  one: [\n  two: {", ""),
    "a: 1 # fo¦o\nb: [\n": ((), COMMENT, "# foo", "# fo"),
    "{{ a¦ }}: b\n": ((), VALUE, "", ""),
    '{"a": {"b": 1, "¦': (("a", ""), KEY, "", '"'),
    '{"a": {"b": "x¦}}': (("a", "b"), VALUE, "x}}", '"x'),
    "a: &x !t v¦\nb: }": (("a",), VALUE, "v", "&x !t v"),
}


@pytest.mark.parametrize("marked", [*COMPLETE, *HALF_TYPED], ids=repr)
def test_cursor(marked):
    text, line, column = place(marked)
    cursor = find_cursor(text, line, column)

    expected = (COMPLETE | HALF_TYPED)[marked]
    assert (cursor.path, cursor.part, cursor.text, cursor.prefix) == expected
    assert cursor.is_complete == (marked in COMPLETE)


@pytest.mark.parametrize("broken", ["", "\nx: ["])
def test_documents_are_numbered_as_jobs_are(broken):
    text = f"a: 1{broken}\n---\n# none\n---\nb:\n  c: 2\n---\nd: 3\n"
    found = [
        find_cursor(text, line, 1) for line, content in enumerate(text.split("\n"), 1) if content[:1] in ("b", "d")
    ]

    assert [cursor.document for cursor in found] == ([0, 1] if broken else [1, 2])
    assert [cursor.tree for cursor in found] == [{"b": {"c": found[0].tree["b"]["c"]}}, {"d": found[1].tree["d"]}]


def test_location_is_the_range_of_the_text():
    text, line, column = place("a:\n  - 'b c': [x, é¦é]\n")
    cursor = find_cursor(text, line, column, "f.yaml")

    assert tuple(cursor.location) == ("f.yaml", 2, 16, 2, 18)


def sample_texts():
    folders = ("jobs", "overlays", "jobgen/data/starter", "jobgen/data/examples", "tests/repositories", "tests/crd")
    found = (path.read_text() for name in folders for path in sorted((ROOT / name).rglob("*.yaml")))
    return [text for text in found if len(text) < 3000]


def keep_keys(tree):
    if isinstance(tree, dict):
        return {key: keep_keys(value) for key, value in tree.items()}
    return [keep_keys(value) for value in tree] if isinstance(tree, list) else None


def test_half_typed_reader_finds_the_keys_of_complete_documents():
    compared = 0
    for text in sample_texts():
        source = read(text.encode(), "f.yaml")
        if len(source.documents) == 1 and not source.findings and "\n---" not in text and "\non:" not in text:
            assert keep_keys(read_half_typed(text)) == keep_keys(untraced(source.documents[0].data)), text
            compared += 1
    assert compared > 50


def test_every_position_of_every_text_has_a_cursor():
    for text in (*sample_texts()[::120], *(marked.replace("¦", "") for marked in HALF_TYPED)):
        for end in {len(text), len(text) * 2 // 3, len(text) // 3}:
            lines = text[:end].split("\n")
            for line, content in enumerate(lines, 1):
                for column in range(1, len(content) + 2, 1 if len(text) < 200 else 7):
                    cursor = find_cursor(text[:end], line, column)
                    at = cursor.location
                    assert (at.line, at.column) <= (line, column) <= (at.end_line, at.end_column)


def test_positions_outside_of_the_text_have_a_cursor():
    assert find_cursor("a: b\n", 99, 99).path == ("",)
    assert find_cursor("a: b\n", 0, 0).path == ("a",)
    assert find_cursor("a: \ud800\n", 1, 4).path == ("a",)


@pytest.mark.parametrize(
    ("part", "count"), [("{", 5_000), ("- ", 5_000), ("a: [", 2_500), ("'", 12_500), (" ", 25_000), ("a", 25_000)]
)
def test_a_long_text_is_read_in_linear_time(part, count):
    def prepare(size):
        return lambda: find_cursor(part * size, 1, len(part) * size // 2)

    assert not takes_the_square_of_time(prepare, count)
