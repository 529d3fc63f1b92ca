"""Paths: both notations convert to steps and back for any keys; an invalid path has a reason."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.model.path import (
    InvalidPathError,
    NamedItem,
    format_dotted,
    format_pointer,
    parse_dotted,
    parse_path,
    parse_pointer,
)

KEYS = st.text("abA0 ._-/~[]=\"'\\²٣\n", max_size=6) | st.sampled_from(
    ["nvidia.com/gpu", "0", "12", "-", "[0]", 'a"]["b', "a]b", "x.y['z']", "~0", "~1", "containers", ""]
)
NAMED = st.builds(NamedItem, st.sampled_from(["name", "mountPath", "containerPort", "type"]), KEYS)
STEPS = st.lists(KEYS | st.integers(0, 99) | NAMED, max_size=5).map(tuple)
# In a pointer, a key that looks like a named item is one.
POINTER_KEYS = KEYS.filter(lambda key: not re.match(r"\[.*=", key, re.DOTALL))
POINTER_STEPS = st.lists(POINTER_KEYS | NAMED, max_size=5).map(tuple)


@laws(33)
@given(STEPS)
def test_dotted_path_round_trip(steps):
    assert parse_dotted(format_dotted(steps)) == steps
    assert [type(step) for step in parse_dotted(format_dotted(steps))] == [type(step) for step in steps]


@laws(33)
@given(POINTER_STEPS)
def test_pointer_round_trip(steps):
    assert parse_pointer(format_pointer(steps)) == steps


@laws(33)
@given(POINTER_STEPS)
def test_first_character_separates_paths_from_pointers(steps):
    assert parse_path(format_pointer(steps)) == steps
    assert parse_path(format_dotted(steps)) == steps


@laws(33)
@given(st.text("ab0.[]'\"=~/ \\", max_size=8))
def test_any_text_is_a_path_or_an_error(text):
    for read in (parse_path, parse_dotted, parse_pointer):
        reason = reason_against(text, read)

        assert reason is None or reason.startswith(f"`{text}` is not a ")


def reason_against(text, read):
    try:
        read(text)
    except InvalidPathError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("spec", ("spec",)),
        ("spec.a.0.b", ("spec", "a", 0, "b")),
        ("spec.a[0][1]", ("spec", "a", 0, 1)),
        ("spec.a['b.c'][\"d'e\"].f", ("spec", "a", "b.c", "d'e", "f")),
        ("limits['nvidia.com/gpu']", ("limits", "nvidia.com/gpu")),
        ("limits.nvidia/gpu", ("limits", "nvidia/gpu")),
        ("containers.[name=main].image", ("containers", NamedItem("name", "main"), "image")),
        ("[name=main].ports[hostPort=80]", (NamedItem("name", "main"), "ports", NamedItem("hostPort", "80"))),
        ("volumeMounts[mountPath=/a.b/c]", ("volumeMounts", NamedItem("mountPath", "/a.b/c"))),
        ('env[name="a]b"].value', ("env", NamedItem("name", "a]b"), "value")),
        ("env[name=]", ("env", NamedItem("name", ""))),
        ("['0']", ("0",)),
        ("²", ("²",)),
        ("/spec/a~1b/~0c/0/-", ("spec", "a/b", "~c", "0", "-")),
        ("/", ("",)),
        ("/a//b", ("a", "", "b")),
        ("/a/[name=b/c]/d", ("a", NamedItem("name", "b/c"), "d")),
        ("/a/[name=b~1c]/d", ("a", NamedItem("name", "b/c"), "d")),
        ("/a/[name=b]]", ("a", NamedItem("name", "b]"))),
        ('/a/[name="b"]', ("a", NamedItem("name", '"b"'))),
        ("/[name=b]c/d", ("[name=b]c", "d")),
        ("/a/[0]", ("a", "[0]")),
    ],
)  # fmt: skip
def test_path_steps(text, steps):
    assert parse_path(text) == steps


@pytest.mark.parametrize(
    ("text", "stuck"),
    [
        (".a", ".a"),
        ("a.", "."),
        ("a..b", "..b"),
        ("a[", "["),
        ("a[]", "[]"),
        ("a]", "]"),
        ("a[b]", "[b]"),
        ("a[-1]", "[-1]"),
        ("a['b]", "['b]"),
        ("a[0]b", "b"),
        ("a[=b]", "[=b]"),
        ('a["b"c]', '["b"c]'),
    ],
)
def test_invalid_path_reports_the_position(text, stuck):
    with pytest.raises(InvalidPathError, match=re.escape(f"`{text}` is not a path: cannot be parsed from `{stuck}`")):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "it must start with `/`"),
        ("/a~", "`~` must be `~0` or `~1`"),
        ("/a~2b", "`~2` must be `~0` or `~1`"),
    ],
)
def test_invalid_pointer_reports_the_reason(text, reason):
    with pytest.raises(InvalidPathError, match=re.escape(f"`{text}` is not a JSON pointer: {reason}")):
        parse_pointer(text)


def test_steps_are_written_in_short_form():
    steps = ("spec", "a.b", 0, NamedItem("name", "main"), "resources", "limits", "nvidia.com/gpu", "7")

    assert format_dotted(steps) == 'spec["a.b"][0][name=main].resources.limits["nvidia.com/gpu"]["7"]'
    assert format_pointer(steps) == "/spec/a.b/0/[name=main]/resources/limits/nvidia.com~1gpu/7"
