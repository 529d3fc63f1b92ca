"""The reader and writer of transcripts: contents survive byte for byte, and --accept changes expectations only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import Step, changed_files, format_section, format_transcript, output_sections, read_transcript

HEAD = "# Why this case exists.\nrepository: one-job\nremove: jobgen.yaml\ndirectory: jobs\n-- jobs/a.yaml --\na: 1\n"
COMMAND = "$ jobgen render -e 'a b'\n"
OUTPUT = "== stdout ==\nold\n== exit code ==\n0\n"

# Line ends, escapes and markers matter most.
PIECES = st.sampled_from(["\n", "\r\n", "\\", "\\x41", "-- a --", "== b ==", "$ jobgen", "a", "\t", "\ufeff", "\u2028"])
CONTENTS = st.lists(PIECES).map("".join).map(str.encode) | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "case.txt").write_text(HEAD + COMMAND + OUTPUT)
    return tmp_path / "case.txt"


def test_transcript_parts(path: Path, tmp_path: Path) -> None:
    transcript = read_transcript(path)
    directory = transcript.write_repository(tmp_path / "repo")
    [step] = transcript.steps

    assert transcript.name == "case"
    assert directory == tmp_path / "repo/jobs"
    assert sorted(transcript.files()) == ["jobs/a.yaml", "jobs/bert.yaml"]
    assert (tmp_path / "repo/jobs/a.yaml").read_bytes() == b"a: 1\n"
    assert step.arguments == ["render", "-e", "a b"]
    assert transcript.expected == {"stdout": b"old\n", "exit code": b"0\n"}


def test_accept_replaces_expected_sections_only(path: Path) -> None:
    accepted = read_transcript(path).accept([{"stderr": b"new\n", "exit code": b"1\n"}])

    assert path.read_text() == f"{HEAD}{COMMAND}== stderr ==\nnew\n== exit code ==\n1\n"
    assert accepted == read_transcript(path)


def test_accept_of_the_same_output_writes_nothing(path: Path) -> None:
    path.chmod(0o444)
    before = path.stat().st_mtime_ns
    read_transcript(path).accept([read_transcript(path).expected])

    assert path.stat().st_mtime_ns == before
    assert path.read_text() == HEAD + COMMAND + OUTPUT


@given(st.lists(CONTENTS, min_size=1, max_size=3), st.lists(CONTENTS, max_size=3))
def test_contents_survive_writing_and_reading(tmp_path_factory, given_contents, expected_contents) -> None:
    path = tmp_path_factory.mktemp("case") / "case.txt"
    files = {f"{number}.yaml": content for number, content in enumerate(given_contents)}
    expected = {f"{number} out": content for number, content in enumerate(expected_contents)}
    head = "".join(format_section("--", name, content) for name, content in files.items())
    text = format_transcript(head, [Step("jobgen lint", expected), Step("jobgen", {})])
    path.write_bytes(text.encode())
    transcript = read_transcript(path)

    assert transcript.given == files
    assert transcript.steps == (Step("jobgen lint", expected), Step("jobgen", {}))
    assert format_transcript(transcript.head, transcript.steps) == text


@pytest.mark.parametrize(
    ("content", "section"),
    [
        (b"", "-- a --\n"),
        (b"a\tb\n\n", "-- a --\na\tb\n\n"),
        (b"C:\\x41\n", "-- a --\nC:\\x41\n"),
        (b"a", "-- a (escaped) --\na\\\n"),
        (b"a\r\nb\\\r\n", "-- a (escaped) --\na\\r\nb\\\\\\r\n"),
        (b"\xff\x00\n", "-- a (escaped) --\n\\xff\\x00\n"),
        (b"-- b --\n", "-- a (escaped) --\n\\x2d- b --\n"),
    ],
)
def test_sections_are_escaped_where_plain_text_is_ambiguous(content: bytes, section: str) -> None:
    assert format_section("--", "a", content) == section


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repo: one-job\n", "`repo` is none of repository, remove, directory"),
        ("-- a --\n-- a --\n", "`-- a --` is there twice"),
        ("$ jobgen\n-- a --\n", "`-- a --` comes after a command"),
        ("$ jobgen\nstdout\n", "belongs into a section"),
        ("$ jobgen", "the last line has no end"),
    ],
)
def test_malformed_transcripts_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "case.txt").write_text(text)

    with pytest.raises(AssertionError, match=message):
        read_transcript(tmp_path / "case.txt")


def test_removing_a_file_that_the_repository_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.txt").write_text("repository: one-job\nremove: jobs/gone.yaml\n$ jobgen\n")

    with pytest.raises(AssertionError, match=r"there is no `jobs/gone.yaml` to remove"):
        read_transcript(tmp_path / "case.txt").files()


def test_output_and_file_sections() -> None:
    before = {"same": b"1", "changed": b"1", "gone": b"1"}
    after = {"same": b"1", "changed": b"2", "added": b""}

    assert output_sections(2, b"", b"wrong\n") == {"stderr": b"wrong\n", "exit code": b"2\n"}
    assert changed_files(before, after) == {"added": b"", "changed": b"2", "removed": b"gone\n"}
    assert changed_files(before, before) == {}
