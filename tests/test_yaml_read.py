"""Reading YAML: the same data and the same refusals as the real kubectl, with correct locations."""

from __future__ import annotations

import json
import re

import kubectl
import pytest
import yamltexts
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from transcripts import find_transcripts, read_transcript

from jobgen.model.budget import RUN
from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar, untraced
from jobgen.model.limits import MAX_BYTES
from jobgen.yamlio.read import read
from jobgen.yamlio.read.exact import compose
from jobgen.yamlio.read.fast import read_lines
from jobgen.yamlio.read.locations import UnexpectedTextError, add_locations

TRANSCRIPTS = [read_transcript(path) for path in find_transcripts("yaml-read")]
FILES = dict(next(iter(transcript.given.items())) for transcript in TRANSCRIPTS)

# Rules that refuse what Kubernetes reads, but reads as something else than the file seems to mean.
STRICTER = {"duplicate-key", "folded-item", "unknown-tag", "ignored-document", "invalid-encoding", "nesting-too-deep"}
UNREAD = {"invalid-encoding", "nesting-too-deep"}


def assert_read_as_kubectl_reads(contents):
    for content, theirs in zip(contents, kubectl.read(contents), strict=True):
        ours = read(content, "case.yaml")
        documents = [document.data for document in ours.documents]
        rules = {finding.rule for finding in ours.findings}
        if theirs.refused:
            assert rules or any("kind" not in document for document in documents), content
            continue

        assert rules <= STRICTER, (content, ours.findings)
        if "unknown-tag" in rules and len(documents) < len(theirs.objects):
            continue
        # Of keys that differ for YAML and not for JSON, Go keeps one at random.
        if not rules & {"duplicate-key", *UNREAD}:
            assert spelt(documents) == spelt(theirs.objects), content


def spelt(data):
    """Text that differs for 1, 1.0 and true."""
    return json.dumps(data, sort_keys=True)


@laws(8)
@given(st.lists(yamltexts.scalars(), min_size=60, max_size=100))
def test_values_are_read_as_by_kubectl(scalars):
    assert_read_as_kubectl_reads([f"{kubectl.HEADER}x: {scalar}\n".encode() for scalar in scalars])


@laws(6)
@given(st.lists(yamltexts.scalars(), min_size=60, max_size=100))
def test_keys_are_read_as_by_kubectl(scalars):
    assert_read_as_kubectl_reads([f"{kubectl.HEADER}x:\n  {scalar}: v\n".encode() for scalar in scalars])


def test_special_words_are_read_as_by_kubectl():
    words = [*yamltexts.WORDS, *(repr(2.0**power) for power in range(-149, 129))]
    texts = [f"a: {word}\nb: [{word}]\nc: '{word}'\n" for word in words] + [f"d: {{{word}: 1}}\n" for word in words]

    assert_read_as_kubectl_reads([f"{kubectl.HEADER}{text}".encode() for text in texts])


def test_long_numbers_are_read_as_by_kubectl():
    digits = ["1" * 50, "0" * 100 + "7", "9" * 5000, "-" + "1" * 309, "1" * 310, "0x" + "0" * 99 + "F", "0b" + "1" * 65]
    yaml = [f"{kubectl.HEADER}x: {number}\ny: {{{number}: 1}}\n" for number in digits]
    head = '{"apiVersion": "v1", "kind": "Case", "metadata": {"name": "case"}'

    assert_read_as_kubectl_reads([text.encode() for text in yaml])
    assert_read_as_kubectl_reads([f'{head}, "x": {number}}}'.encode() for number in digits])


def test_key_length_limit_is_that_of_kubectl():
    keys = ["k" * length for length in range(1019, 1028)]
    texts = [
        text.format(key) for key in keys for text in ("{}: v\n", 'x: {{"{}": v}}\n', "x: [{}: v]\n", "? {}\n: v\n")
    ]

    assert_read_as_kubectl_reads([f"{kubectl.HEADER}{text}".encode() for text in texts])


@laws(12)
@given(st.lists(yamltexts.TEXTS, min_size=10, max_size=25))
def test_documents_are_read_as_by_kubectl(texts):
    assert_read_as_kubectl_reads([f"{kubectl.HEADER}{text}".encode() for text in texts])


SEPARATORS = [
    "---\n",
    "--- # c\n",
    "---\n---\n",
    "---#c\n",
    "---\t\n",
    "--- x\n",
    "----\n",
    "---\r\n",
    "...\n",
    "# c\n---\n",
]
FIRST = ["", "", "", "---\n", "---#c\n", "# c\n", "\n", "\ufeff", "---\n---\n", "...\n", "%YAML 1.1\n", " \n"]
TAILS = ["", "", "x: 1\n", "x: |\n  a", "x: a", "x: [\n", "x: 1\n...\n", "# c\n"]


@laws(6)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(FIRST),
            st.lists(st.tuples(st.sampled_from(TAILS), st.sampled_from(SEPARATORS)), max_size=4),
            st.sampled_from(TAILS),
        ),
        min_size=40,
        max_size=60,
    )
)
def test_files_are_split_as_by_kubectl(files):
    contents = [
        first + "".join(f"{kubectl.HEADER}{tail}\n{separator}" for tail, separator in parts) + kubectl.HEADER + last
        for first, parts, last in files
    ]

    assert_read_as_kubectl_reads([content.encode() for content in contents])


JSON_VALUES = r"""
    1 -0 1.0 1e3 0.1 1E400 -1e-400 1e20 1e21 12345678901234567890 9223372036854775808 true false null "a" "é" "\u00e9"
    "\ud83d\ude00" "\ud83d" "\ude00x" "\ud83d\u0041" "\/" "\u0000" "\x41" [] {} [1,{"a":[]}] {"a":1,"a":2} 01 1. .5 +1
    NaN tru 'a' [1,] {"a":1,} {"a"} [1 yes ~
""".split()
BEHIND_JSON = [
    "",
    " ",
    "\n",
    "\n\n",
    "\n---\n",
    "---\n",
    " ---\n",
    "\n# c\n---\n",
    "\r\n",
    "\xa0",
    ",",
    "null",
    "\n[1]",
    "\n- a",
]


@laws(8)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(JSON_VALUES), st.sampled_from(BEHIND_JSON)), min_size=1, max_size=3),
        min_size=30,
        max_size=60,
    )
)
def test_json_streams_are_read_as_by_kubectl(streams):
    head = '{"apiVersion": "v1", "kind": "Case", "metadata": {"name": "case"}, "x": '
    contents = ["".join(f"{head}{value}}}{behind}" for value, behind in stream).encode() for stream in streams]

    assert_read_as_kubectl_reads(contents)


@laws(266)
@given(yamltexts.edited(yamltexts.REAL))
def test_fast_reader_agrees_with_exact_reader_on_edited_manifests(text):
    assert_sure_is_right(text)


@laws(200)
@given(yamltexts.heaps() | yamltexts.edited(yamltexts.heaps()))
def test_fast_reader_agrees_with_exact_reader_on_fragments(text):
    assert_sure_is_right(text)


@laws(26)
@given(yamltexts.documents())
def test_fast_reader_agrees_with_exact_reader_on_documents(text):
    assert_sure_is_right(text)


def assert_sure_is_right(text):
    sure, data = read_lines(text)
    if sure:
        exact, findings, _ = compose(text, "case.yaml", 1, traced=False)

        assert (findings, spelt(data)) == ([], spelt(exact))
    # The text of a document ends in a newline.
    text = text if text.endswith("\n") else f"{text}\n"
    sure, data = read_lines(text)
    located = locate(data, text) if sure and isinstance(data, dict) else None
    if located is not None:
        assert list(list_nodes(located)) == list(list_nodes(compose(text, "case.yaml", 1, traced=True)[0]))


def locate(data, text):
    """The data with locations; None where the exact reader takes over."""
    try:
        return add_locations(data, text, "case.yaml", 1)
    except UnexpectedTextError:
        return None


def test_most_manifests_get_locations_without_the_exact_reader():
    read = [(read_lines(text)[1], text) for text in yamltexts.REAL_DOCUMENTS if read_lines(text)[0]]
    mappings = [(data, text) for data, text in read if data]

    assert sum(locate(*each) is not None for each in mappings) > 0.8 * len(mappings)


def test_header_of_a_block_scalar_is_not_its_text():
    for text in ("a: |-\n  |-\n", "a: >-\n  >-\n"):
        assert_sure_is_right(text)


def list_nodes(tree):
    """Everything that a reader knows about each node."""
    if isinstance(tree, TracedScalar):
        yield spelt(tree.value), tree.location, tree.written
    elif isinstance(tree, TracedList):
        yield "list", tree.location, tuple(tree.item_locations)
        for item in tree:
            yield from list_nodes(item)
    else:
        yield "mapping", tree.location if isinstance(tree, TracedMapping) else None
        for key, value in tree.items():
            yield str(key), key.location, key.written
            yield from list_nodes(value)


def test_fast_reader_reads_most_manifests_of_this_repository():
    sure = [text for text in yamltexts.REAL_DOCUMENTS if read_lines(text)[0]]

    assert len(sure) > 0.7 * len(yamltexts.REAL_DOCUMENTS)


@laws(50)
@given(yamltexts.documents() | yamltexts.edited(yamltexts.REAL))
def test_traced_read_equals_plain_read_with_locations(text):
    found = []
    for traced in (False, True):
        RUN.reset()  # advice about slips ends with the budget of a run
        found.append(read(text.encode(), "case.yaml", traced=traced))
    bare, traced = found

    assert spelt([untraced(document.data) for document in traced.documents]) == spelt([d.data for d in bare.documents])
    assert traced.findings == bare.findings
    assert [document.location for document in traced.documents] == [document.location for document in bare.documents]
    for document in traced.documents:
        assert_places(document.data, text.replace("\r\n", "\n").removeprefix("\ufeff"))


def assert_places(data, text):
    """Every scalar and key, cut out of the text at its place and read alone, is what it was."""
    if isinstance(data, dict):
        for key, value in data.items():
            written = cut(text, key.location)
            if not written.startswith("*"):
                alone = read_each(f"\n {written}: v", f"{{{written}: v}}", f"{{{written}}}")

                assert [str(key)] in map(list, alone), written
            assert_places(value, text)
    elif isinstance(data, TracedList):
        for item in data:
            assert_places(item, text)
    else:
        written = cut(text, data.location)
        # The depth that a block scalar states is counted from its parent, which is not there when it is cut out; and a
        # text that ends in one of the other line breaks of YAML 1.1 is given a newline before it is read.
        if not re.search(r"[|>][-+]?[1-9]|[\x85\u2028\u2029]\Z", written):
            alone = read_each(written, f"[{written}]")

            assert {spelt(data.value), spelt([data.value])} & set(map(spelt, alone)), written


def read_each(*values):
    """The values, each read on its own: some are valid only in brackets, and some only outside."""
    sources = [read(f"x: {value}".encode(), "case.yaml") for value in values]
    return [document.data["x"] for source in sources for document in source.documents if list(document.data) == ["x"]]


def cut(text, location):
    lines = text.split("\n")[location.line - 1 : location.end_line]
    lines[-1] = lines[-1][: location.end_column - 1]
    lines[0] = lines[0][location.column - 1 :]
    return "\n".join(lines)


def test_locations_in_json():
    first, second = read(b'{"kind": "A",\n "a": ["b", 1]} {"b":\n"c"}', "case.json", traced=True).documents

    assert [str(document.location) for document in (first, second)] == ["case.json:1:1", "case.json:2:17"]
    assert [key.location[1:] for key in (*first.data, *second.data)] == [(1, 2, 1, 8), (2, 2, 2, 5), (2, 18, 2, 21)]
    assert [first.data["a"].location[1:], first.data["a"][1].location[1:]] == [(2, 7, 2, 8), (2, 13, 2, 14)]
    assert second.data["b"].location[1:] == (3, 1, 3, 4)


def test_locations_in_yaml_after_json():
    first, second = read(b'{"a": 1}\n\n---\n# c\nb: [{"c": d}]\n', "case.json", traced=True).documents

    assert [str(document.location) for document in (first, second)] == ["case.json:1:1", "case.json:5:1"]
    assert first.data["a"].location[1:] == (1, 7, 1, 8)
    assert second.data["b"][0]["c"].location[1:] == (5, 11, 5, 12)


def test_locations_in_yaml_on_the_line_of_json():
    first, second = read(b'{"a": 1} {b: c,\n d: e}\n', "case.json", traced=True).documents

    assert [str(document.location) for document in (first, second)] == ["case.json:1:1", "case.json:1:10"]
    assert [leaf.location[1:] for leaf in second.data.values()] == [(1, 14, 1, 15), (2, 5, 2, 6)]


def test_scalars_keys_and_lists_have_locations():
    data = read(b"# c\na: [b]\n", "case.yaml", traced=True).documents[0].data

    [key] = data
    assert (type(key), type(data["a"]), type(data["a"][0])) == (TracedKey, TracedList, TracedScalar)
    assert [key.location, data["a"].location, data["a"][0].location] == [
        Location("case.yaml", 2, 1, 2, 2),
        Location("case.yaml", 2, 4, 2, 5),
        Location("case.yaml", 2, 5, 2, 6),
    ]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_read_transcript(transcript, accept):
    [(name, content)] = transcript.given.items()
    findings = read(content, name).findings
    found = "".join(f"{finding.location.line}:{finding.location.column} {finding.rule}\n" for finding in findings)
    output = {"findings": found.encode()} if found else {}
    if accept:
        transcript = transcript.accept([output])

    assert output == transcript.expected


def test_kubectl_reads_and_refuses_the_same_files():
    assert_read_as_kubectl_reads(list(FILES.values()))


def test_documents_before_and_after_a_broken_one_are_read():
    content = FILES["broken-document-between-good-ones.yaml"]

    assert [document.data["x"] for document in read(content, "case.yaml").documents] == [1, 3]


def test_merge_key_overrides_keys_above_it_only():
    content = b"base: &base {a: 1, b: 2}\nover:\n  a: 3\n  <<: *base\n  b: 4\n"

    assert read(content, "case.yaml").documents[0].data["over"] == {"a": 1, "b": 4}


@pytest.mark.parametrize("nodes", [120, 300, 1000])
def test_alias_limit_is_that_of_kubectl(nodes):
    def content(aliases):
        return f"{kubectl.HEADER}a: &a [{'x, ' * nodes}]\nb: [{'*a, ' * aliases}]\n".encode()

    def is_read(aliases):
        return bool(read(content(aliases), "case.yaml").documents)

    few, many = 1, 100_000 // nodes * 10
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if is_read(middle) else (few, middle)

    assert [reading.refused for reading in kubectl.read([content(few), content(many)])] == [False, True]


@laws(66)
@given(st.binary(max_size=60) | st.text('{}[]",:\\u0d8e+-. \n', max_size=30).map(str.encode))
def test_any_bytes_are_documents_findings_or_blank(content):
    for traced in (False, True):
        source = read(content, "case.yaml", traced=traced)

        assert (
            source.documents
            or source.findings
            or not re.sub(r"#.*|---|\.\.\.|null|~", "", content.decode("utf-8-sig")).strip()
        )


def test_file_above_the_size_limit_is_not_read():
    content = b"a: 1\n" + b"#" * MAX_BYTES
    source = read(content, "case.yaml")

    assert source.documents == ()
    assert [(finding.rule, finding.message) for finding in source.findings] == [
        ("file-too-large", "`8388613` bytes are too many for a manifest; the limit is 8388608")
    ]
    assert len(read(content[5:], "case.yaml").findings) == 0


def test_excessive_depth_and_size_are_findings():
    deep = ["[" * 1_000_000, "a: [" * 100_000, "- " * 200_000, '{"a":' * 100_000]
    hostile = [*deep, "{}" * 50_000, f"[{'a:, ' * 100_000}]", "a: [" + '"\\\'", ' * 2000 + "]"]
    sources = [read(text.encode(), "case.yaml") for text in hostile]

    assert [source.findings[0].rule if source.findings else "" for source in sources] == [
        *["nesting-too-deep"] * len(deep),
        "",
        "yaml-syntax",
        "yaml-syntax",
    ]


NOTHING_TO_QUOTE = re.compile("a tab indents|a (?:list|mapping) cannot be|this is a list|not YAML: |behind the end")


@laws(26)
@given(yamltexts.TEXTS)
def test_messages_of_generated_texts_are_plain_sentences(text):
    for finding in read(text.encode(), "case.yaml").findings:
        assert_plain_sentence(finding.message)


@pytest.mark.parametrize("name", FILES)
def test_messages_of_transcripts_are_plain_sentences(name):
    for finding in read(FILES[name], name).findings:
        assert_plain_sentence(finding.message)


def assert_plain_sentence(message):
    assert re.search("`.+`", message) or NOTHING_TO_QUOTE.search(message), message
    assert message.isprintable(), message
    assert not message.endswith("."), message
    assert not re.search(r"Error\(|Exception|Traceback|<[a-z.]+ object|line \d+, column", message), message
