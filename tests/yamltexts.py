"""YAML texts for property tests: scalars, whole documents, fragments, edits of real files."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from hypothesis import strategies as st
from transcripts import find_transcripts, read_transcript

ROOT = Path(__file__).parent.parent
REAL_FILES = [
    *(
        path.read_bytes()
        for folder in ("jobs", "overlays", "tests/seeds")
        for path in sorted((ROOT / folder).rglob("*.yaml"))
    ),
    *(content for path in find_transcripts("render") for content in read_transcript(path).given.values()),
    *(read_transcript(path).expected.get("manifests", b"") for path in find_transcripts("render")),
]
REAL_DOCUMENTS = [
    document for content in REAL_FILES for document in re.split("^---.*\n", content.decode(), flags=re.MULTILINE)
]

WORDS = """
    y Y yes Yes YES yEs n N no No NO on On ON oN off Off OFF true True TRUE tRue false False FALSE null Null NULL nUll ~
    .inf .Inf .INF +.inf -.inf -.INF .iNF .nan .NaN .NAN +.nan inf nan Infinity = << <
    0 -0 +0 -0.0 00 08 09 0o7 0O7 0o8 010 -010 +010 0x 0x1F 0X1f -0x1F 0b 0b11 0B1 0b12 -0b11 +0b1 0b-1 0b+1 -0b-1
    1_000 1__0 _1 1_ 0x_1 0_7 0b_1 +_1 -_1 .5 .5e3 ._5 .5_5 .5e1_0 -.5 +.5 1. 1._5 1.e3 1e3 1E3 1e+3 1e-3 1e 1e_3 0e0
    1e400 -1e400 1e-400 .5e999 1.7976931348623157e308 4.9e-324 3.4028235e38 3.4028236e38 1e39 16777217 16777217.5
    9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 +9223372036854775808
    18446744073709551615 18446744073709551616 0xFFFFFFFFFFFFFFFF 0x10000000000000000 0777777777777777777777777
    1e5 1e6 1e20 1e21 123456.5 1234567.5 0.0001 0.00001 123456789012345678901234567890 0x1p3 1,000 1.2.3 v1.8 1.10
    1:30 190:20:30 2001-12-14 2001-1-1 2001-02-29 2001-12-14t21:59:43.10-05:00 2001-12-14T1:2:3Z 4Gi 500m 100% 5d3f9e1
""".split()
NUMBERS = st.tuples(
    st.sampled_from(["", "", "-", "+"]),
    st.sampled_from(["", "", "", "0", "0x", "0b", "0o", "0X", "0B", "."]),
    st.text("0123456789" * 3 + "01abcdefABCDEF_", min_size=1, max_size=22),
    st.sampled_from(["", "", ".", "e", "E+", "e-", "_"]),
    st.text("0123456789", max_size=4),
).map("".join)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
SINGLE_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
DATES = st.from_regex(r"[0-9]{4}-[0-3]?[0-9]-[0-3]?[0-9]([Tt ]+[0-2]?[0-9]:[0-6]?[0-9]:[0-9]{1,2}([.,][0-9]+)?Z?)?\Z")
NASTY = st.text("abyn01.:-_+/~#'\"!&*%@`?|>[]{}, =<\\\té\x85\xa0\u2028\ufeff😀", min_size=1, max_size=6)
PLAIN = st.one_of(st.sampled_from(WORDS), NUMBERS, FLOATS, SINGLE_FLOATS, DATES, NASTY)
BASE64 = st.binary(max_size=8).map(base64.b64encode).map(bytes.decode)
TAGS = """
    !!str !!int !!float !!bool !!null !!binary !!timestamp !!merge !!seq !!map !!foo ! !foo !<tag:yaml.org,2002:int>
""".split()


@st.composite
def scalars(draw):
    """A scalar as it may be written: often plain, sometimes quoted or tagged."""
    tag = draw(st.sampled_from([""] * 2 * len(TAGS) + [f"{tag} " for tag in TAGS]))
    text = draw({"!!binary ": BASE64, "!!timestamp ": DATES}.get(tag, PLAIN) | PLAIN)
    return tag + draw(st.sampled_from(["{}"] * 6 + ['"{}"', "'{}'"])).format(text)


@st.composite
def documents(draw):
    """Nested maps and lists in all the styles YAML has; most are well-formed."""
    text = mapping(draw, 0, 3, [])
    return text.replace("\n", "\r\n") if draw(st.integers(0, 9)) == 0 else text


KEYS = ["a{}", "b{}", "c{}", "a.b/c-{}", "d e{}", "'q{}'", '"q{}"', "é{}", "?", "<<", "<<"]


def mapping(draw, indent, depth, anchors):
    text = ""
    for number in range(draw(st.integers(1, 3))):
        text += draw(st.sampled_from(["", "", "", "", "# c\n", "\n", f"{' ' * indent}# c\n", "    \n"]))
        key = draw(st.sampled_from(KEYS))
        value = merged if key == "<<" else node
        key = draw(scalars()) if key == "?" else key.format(number)
        text += f"{' ' * indent}{key}:{value(draw, indent, depth, anchors)}"
    return text


def sequence(draw, indent, depth, anchors):
    text = ""
    for _ in range(draw(st.integers(1, 3))):
        if depth > 0 and draw(st.booleans()):
            gap = draw(st.sampled_from([" ", " ", "   "]))
            text += f"{' ' * indent}-{gap}{mapping(draw, indent + 1 + len(gap), depth - 1, anchors).lstrip(' ')}"
        else:
            text += f"{' ' * indent}-{node(draw, indent, depth - 1, anchors)}"
    return text


def merged(draw, indent, depth, anchors):
    """A value of `<<:`, most often a valid one."""
    one = st.sampled_from([f"*{name}" for name in anchors] + ["{a0: merged, m: 1}"])
    several = st.lists(one, max_size=2).map(lambda sources: f"[{', '.join(sources)}]")
    return f" {draw(one | several)}\n"


def node(draw, indent, depth, anchors):
    """A value after a colon or a dash: on the same line, on the next ones, or both."""
    style = draw(st.sampled_from(NODES if depth > 0 else NODES[2:]))
    if draw(st.integers(0, 5)):
        return style(draw, indent, depth, anchors)
    name = draw(st.sampled_from(["n", "m", "o"]))
    text = style(draw, indent, depth, anchors)
    anchors.append(name)
    return f" &{name}{text}"


def comment(draw):
    return draw(st.sampled_from(["", "", "", "", " # c", "  ", "\t# c", " #c'"]))


def inner_mapping(draw, indent, depth, anchors):
    return f"{comment(draw)}\n{mapping(draw, indent + draw(st.integers(1, 4)), depth - 1, anchors)}"


def inner_sequence(draw, indent, depth, anchors):
    return f"{comment(draw)}\n{sequence(draw, indent + draw(st.integers(0, 3)), depth - 1, anchors)}"


def inline(draw, indent, depth, anchors):
    return f" {draw(scalars())}{comment(draw)}\n"


def alias(draw, indent, depth, anchors):
    return f" *{draw(st.sampled_from(anchors))}\n" if anchors else "\n"


def flow(draw, indent, depth, anchors):
    leaves = scalars() | st.sampled_from([f"*{name}" for name in anchors] + ["a", "a b", "a:b", "", "b: c", "\n x"])
    trees = st.recursive(leaves, lambda items: flow_list(items) | flow_map(items), max_leaves=4)
    return f" {draw(flow_list(trees) | flow_map(trees))}{comment(draw)}\n"


def flow_list(items):
    return st.builds(lambda texts, gap: enclose("[", texts, gap, "]"), st.lists(items, max_size=3), GAPS)


def flow_map(items):
    return st.builds(
        lambda texts, gap: enclose("{", [f"k{number}: {text}" for number, text in enumerate(texts)], gap, "}"),
        st.lists(items, max_size=3),
        GAPS,
    )


# What stands before each item and after the last one.
GAPS = st.sampled_from(["", " ", " ", "  ", "\n      ", "\n      ", "\n", "\n\n      ", " # c\n      "])


def enclose(start, texts, gap, end):
    return start + gap + f",{gap}".join(texts) + ("," if texts and len(gap) == 7 else "") + gap + end


LINES = ["a", "a b", "", "  a", "a ", "- a", "a: b", "# c", "a #c", "é", "   "]


def block_scalar(draw, indent, depth, anchors):
    header = draw(st.sampled_from(["|", "|-", "|+", ">", ">-", ">+", "|2", ">1-", "| # c"]))
    inner = " " * (indent + draw(st.integers(1, 3)))
    lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=5))
    return f" {header}\n" + "".join(f"{inner}{line}\n" if line.strip() else f"{line}\n" for line in lines)


def folded_scalar(draw, indent, depth, anchors):
    quote = draw(st.sampled_from(["", "'", '"']))
    inner = "\n" + " " * (indent + draw(st.integers(1, 3)))
    lines = draw(st.lists(st.sampled_from([*LINES, "it''s", "\\", "\\n", "\\'"]), min_size=1, max_size=4))
    return f" {quote}a{inner}{inner.join(lines)}{quote}\n"


NODES = [inner_mapping, inner_sequence, inline, inline, inline, flow, block_scalar, folded_scalar, alias]

FRAGMENTS = (Path(__file__).parent / "yaml-fragments.txt").read_text("utf-8").split("\n")


@st.composite
def heaps(draw):
    """Fragments of YAML at odd depths: most are not well-formed, and every reader must refuse them."""
    lines = draw(st.lists(st.tuples(st.sampled_from([0, 0, 0, 2, 2, 4, 1]), st.sampled_from(FRAGMENTS)), max_size=6))
    return "".join(f"{' ' * indent}{fragment}\n" for indent, fragment in lines)


CHARACTERS = st.sampled_from([*"ab01 :-?,[]{}#&*!|>'\"%@`\\/.<=~\t\n\r\x07\x7f\x85\xa0\u2028\ufeffé", "\n  ", "  "])


@st.composite
def edited(draw, texts):
    """A text with a few characters or lines put in, taken out or replaced."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 4)):
            case 0 | 1:
                text = text[:at] + draw(CHARACTERS) + text[at:]
            case 2:
                text = text[:at] + text[at + draw(st.integers(1, 3)) :]
            case 3:
                text = text[:at] + draw(CHARACTERS) + text[at + 1 :]
            case _:
                at = text.rfind("\n", 0, at) + 1
                text = f"{text[:at]}{' ' * draw(st.integers(0, 8))}{draw(st.sampled_from(FRAGMENTS))}\n{text[at:]}"
    return text


REAL = st.sampled_from(REAL_DOCUMENTS)
TEXTS = st.one_of(documents(), documents(), heaps(), edited(documents()), edited(heaps()), edited(REAL))
