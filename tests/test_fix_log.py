"""What `--fix` says about its changes is what differs between the bytes before and after."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws
from transcripts import find_transcripts, read_transcript

from jobgen.api.fix import FixedFile, describe_changes

CHANGE = re.compile(
    r"a.yaml:(?P<line>\d+): (?:`(?P<old>.+)` -> `(?P<new>.+)`|(?P<how>added|removed) `(?P<part>.+?)…?`|changed)"
)
LINES = """
resources:|  gpu: 4|  gpus: 4|  cpu: 8|env: {A: b}|env: {A: b, C: d}|args: [a, b]|args: [a]|replicas: 4|replicas: 2|
spec: {gpu: 4}|spec: {env: {A: b}, gpu: 4}|- a|- b|  - a|""".replace("\n", "").split("|")


def replace_each(line: str, old: str, new: str) -> set[str]:
    """Return what a line becomes if one of the places of a text becomes another, without white space and commas."""
    places = [place for place in range(len(line)) if line.startswith(old, place)]
    return {re.sub(r"[\s,]", "", line[:place] + new + line[place + len(old) :]) for place in places}


def check_changes(old: str, new: str) -> list[str]:
    """Return the log of two texts; each of its lines is true of them."""
    found = describe_changes([FixedFile("a.yaml", old.encode(), new.encode())])
    before, after = old.splitlines(), new.splitlines()
    for text in found:
        change = CHANGE.fullmatch(text)
        assert change, text
        line, made = int(change["line"]) - 1, {re.sub(r"[\s,]", "", each) for each in after}
        if change["old"]:
            assert replace_each(before[line], change["old"], change["new"]) & made, text
        elif change["how"] == "removed":
            assert change["part"] in before[line], text
        elif change["how"] == "added":
            assert any(change["part"] in each for each in after), text
    return found


@laws(300)
@given(st.lists(st.sampled_from(LINES), max_size=8), st.lists(st.sampled_from(LINES), max_size=8))
def test_each_logged_text_is_in_the_file(old, new):
    one, other = "\n".join(old), "\n".join(new)
    assert bool(check_changes(one, other)) == (one.splitlines() != other.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # Lines that have nothing in common did not become each other.
        (
            "a:\n  gpu: 4\n",
            "a:\nenv: {NCCL_DEBUG: INFO}\n",
            ["2: removed `gpu: 4`", "2: added `env: {NCCL_DEBUG: INFO}`"],
        ),
        ("a: {gpu: 4, cpu: 8}\n", "a: {env: {A: b}, gpu: 4, cpu: 8}\n", ["1: added `env: {A: b}`"]),
        ("a: {cpu: 8, gpu: 4}\n", "a: {cpu: 8, env: {A: b}, gpu: 4}\n", ["1: added `env: {A: b}`"]),
        ("a: {gpu: 4, cpu: 8}\n", "a: {cpu: 8}\n", ["1: removed `gpu: 4`"]),
        ("gpus: 4\nx: 1\n", "env: {A: b}\ngpu: 4\nx: 1\n", ["1: added `env: {A: b}`", "1: `gpus` -> `gpu`"]),
        ("image: a:1\n", "image: a:2\n", ["1: `a:1` -> `a:2`"]),
        ("  - a\n", "- a\n", ["1: changed"]),
    ],
)
def test_the_log_of_edits_that_are_near_each_other(old, new, told):
    assert check_changes(old, new) == [f"a.yaml:{each}" for each in told]


TRANSCRIPTS = [read_transcript(path) for path in find_transcripts("fix")]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_the_log_of_real_fixes(transcript):
    before = transcript.files()
    for name in transcript.expected.keys() & before.keys():
        old, new = before[name].decode(), transcript.expected[name].decode()
        assert bool(check_changes(old, new)) == (old.splitlines() != new.splitlines())
