r"""Transcripts: one text file holds a test case, from the repository it starts with to the output it expects.

    # A comment. The keys below may be left out; `remove` may be repeated.
    repository: two-teams, two-teams-rendered
    remove: jobs/vision/resnet.yaml
    directory: jobs/nlp
    -- jobs/nlp/gpt.yaml --
    apiVersion: jobgen.dev/v1
    $ jobgen render -o rendered
    == stdout ==
    ...
    == exit code ==
    0
    == rendered/dev/ml-dev/pytorchjob-gpt.yaml ==
    ...
    == removed ==
    rendered/dev/ml-dev/tfjob-resnet.yaml

The repository is built from folders of tests/repositories, laid over each other in order. `remove` then deletes files
or folders, and `-- path --` sections add or replace files. Commands run in `directory`, below the repository's root.

Each `$ jobgen` line is one command. The `== name ==` sections that follow it are its expected output; a section that
is missing is expected to be empty. Files that the command creates or changes are sections named by their path. The
transcript of a library function has expected sections but no command. `pytest --accept` rewrites the expected sections
and nothing else.

A section is exact, so it ends where the next marker begins. `-- path (escaped) --` marks one that plain text cannot
show, because it is not UTF-8, has invisible characters, has no final newline, or has a line that looks like a marker:
`\xNN` is a byte, `\r` a carriage return, `\\` a backslash, and a backslash at the end of a line joins it with the next.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen import __version__

REPOSITORIES = Path(__file__).parent / "repositories"
EXIT_CODE, REMOVED = "exit code", "removed"

_MARKER = re.compile(r"(--|==) (\S(?:.*\S)?) \1")
_COMMAND = re.compile(r"\$ jobgen(?: .*)?")
_ESCAPED = " (escaped)"
_ESCAPE = re.compile(rb"\\(\\|r|x[0-9a-f]{2}|\n)")
_KEYS = ("repository", "remove", "directory")

Sections = dict[str, bytes]


class Step(NamedTuple):
    """A command with its expected output; the command of a library function is empty."""

    command: str
    expected: Sections

    @property
    def arguments(self) -> list[str]:
        """The arguments behind `jobgen`."""
        return shlex.split(self.command)[1:]


class Transcript(NamedTuple):
    """A test case. `head` is the text before the first command or expected section."""

    path: Path
    head: str
    keys: dict[str, list[str]]
    given: Sections
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def expected(self) -> Sections:
        """The expected sections of a transcript with one step."""
        [step] = self.steps
        return step.expected

    def files(self) -> Sections:
        """The repository: its files by their paths."""
        found: Sections = {}
        for base in _words(self.keys.get("repository", [])):
            found |= files_below(REPOSITORIES / base)
        for name in self.keys.get("remove", []):
            gone = [path for path in found if path == name or path.startswith(f"{name}/")]
            assert gone, f"{self.path}: there is no `{name}` to remove"
            found = {path: content for path, content in found.items() if path not in gone}
        return {path: unmask(content) for path, content in (found | self.given).items()}

    def write_repository(self, root: Path) -> Path:
        """Write the repository below `root`; return the directory that commands run in."""
        write_files(root, self.files())
        directory = root / self.keys.get("directory", ["."])[0]
        assert directory.is_dir(), f"{self.path}: there is no directory `{directory}`"
        return directory

    def accept(self, outputs: Sequence[Mapping[str, bytes]]) -> Transcript:
        """Replace the expected sections of each step in the file; everything else stays byte-identical."""
        steps = tuple(Step(step.command, dict(output)) for step, output in zip(self.steps, outputs, strict=True))
        text = format_transcript(self.head, steps)
        if text.encode() != self.path.read_bytes():
            self.path.write_bytes(text.encode())
        return self._replace(steps=steps)


def find_transcripts(folder: str) -> list[Path]:
    """The transcripts of a folder below tests/; test cases are named by them."""
    return sorted((Path(__file__).parent / folder).glob("*.txt"))


def read_transcript(path: Path) -> Transcript:
    """Read one transcript file."""
    text = path.read_bytes().decode()
    keys: dict[str, list[str]] = {}
    given: Sections = {}
    steps: list[Step] = []
    head: list[str] = []
    for marker, name, content in _sections(text, path):
        if marker in ("", "--") and not steps:
            head.append(f"{name}\n" if marker == "--" else "")
            head.append(content)
        if marker == "":
            keys = _parse_keys(content, path)
        elif marker == "$":
            assert not content, f"{path}: text behind `{name}` belongs into a section"
            steps.append(Step(name.removeprefix("$ "), {}))
        else:
            if marker == "==" and not steps:
                steps.append(Step("", {}))
            sections = given if marker == "--" else steps[-1].expected
            assert marker == "==" or not steps, f"{path}: `{name}` comes after a command"
            title = name[3:-3]
            assert title.removesuffix(_ESCAPED) not in sections, f"{path}: `{name}` is there twice"
            data = content.encode()
            sections[title.removesuffix(_ESCAPED)] = _unescape(data) if title.endswith(_ESCAPED) else data
    return Transcript(path, "".join(head), keys, given, tuple(steps) or (Step("", {}),))


def _sections(text: str, path: Path) -> Iterator[tuple[str, str, str]]:
    """The sections of a text: kind of marker, its line, and the text up to the next marker."""
    assert text.endswith("\n"), f"{path}: the last line has no end"
    marker, name, lines = "", "", []
    for line in text.split("\n")[:-1]:
        if found := _marker_of(line):
            yield marker, name, "".join(lines)
            marker, name, lines = found, line, []
        else:
            lines.append(f"{line}\n")
    yield marker, name, "".join(lines)


def _marker_of(line: str) -> str:
    if found := _MARKER.fullmatch(line):
        return found[1]
    return "$" if _COMMAND.fullmatch(line) else ""


def _parse_keys(text: str, path: Path) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition(": ")
            assert key in _KEYS, f"{path}: `{key}` is none of {', '.join(_KEYS)}"
            keys.setdefault(key, []).append(value)
    return keys


def _words(values: Iterable[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",")]


def format_transcript(head: str, steps: Iterable[Step]) -> str:
    """The text of a transcript."""
    parts = [head]
    for step in steps:
        parts += [f"$ {step.command}\n"] if step.command else []
        parts += [format_section("==", name, content) for name, content in step.expected.items()]
    return "".join(parts)


def format_section(marker: str, name: str, content: bytes) -> str:
    """A section with its marker, escaped if plain text cannot show it."""
    text = content.decode("utf-8", "surrogateescape")
    if _is_plain(text):
        return f"{marker} {name} {marker}\n{text}"
    return f"{marker} {name}{_ESCAPED} {marker}\n{_escape(text)}"


def _is_plain(text: str) -> bool:
    lines = text.split("\n")
    return lines.pop() == "" and all(line.replace("\t", " ").isprintable() and not _marker_of(line) for line in lines)


def _escape(text: str) -> str:
    *lines, last = text.split("\n")
    return "".join(f"{_escape_line(line)}\n" for line in lines) + (f"{_escape_line(last)}\\\n" if last else "")


def _escape_line(line: str) -> str:
    escaped = "".join(map(_escape_character, line))
    return f"\\x{ord(line[0]):02x}{escaped[1:]}" if _marker_of(escaped) else escaped


def _escape_character(character: str) -> str:
    if character in "\\\r":
        return {"\\": "\\\\", "\r": "\\r"}[character]
    if character == "\t" or character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _unescape(data: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), data)


def _unescaped(escape: bytes) -> bytes:
    simple = {b"\\": b"\\", b"r": b"\r", b"\n": b""}
    return simple[escape] if escape in simple else bytes.fromhex(escape[1:].decode())


def files_below(folder: Path) -> Sections:
    """The files of a folder by their paths, without Git's own."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def copy_repository(name: str, root: Path) -> Path:
    """Copy one of the shared repositories."""
    return Path(shutil.copytree(REPOSITORIES / name, root, dirs_exist_ok=True))


_NUMBER_OF_RULES = re.compile(rb"checked by [0-9]{3} rules")
_VERSION = re.compile(rb'("tool": "|jobgen, version )' + re.escape(__version__.encode()))


def output_sections(code: int, stdout: bytes, stderr: bytes) -> Sections:
    """The expected sections of a command, without the files that it wrote.

    Every new rule changes how many there are, so `N` stands for their number, and `VERSION` for that of jobgen.
    """
    stdout, stderr = (mask(_NUMBER_OF_RULES.sub(rb"checked by N rules", text)) for text in (stdout, stderr))
    sections = {"stdout": stdout, "stderr": stderr, EXIT_CODE: f"{code}\n".encode()}
    return {name: content for name, content in sections.items() if content}


def mask(content: bytes) -> bytes:
    """Return an output or a file in which `VERSION` stands for the version of jobgen where one is told."""
    return _VERSION.sub(rb"\1VERSION", content)


def unmask(content: bytes) -> bytes:
    """Return a file of a repository with the version of jobgen, as if this version had written it."""
    return content.replace(b'"tool": "VERSION"', b'"tool": "' + __version__.encode() + b'"')


def changed_files(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Sections:
    """The sections for files that were created, changed or removed."""
    changed = {path: mask(content) for path, content in sorted(after.items()) if before.get(path) != content}
    removed = "".join(f"{path}\n" for path in sorted(before.keys() - after.keys()))
    return {**changed, REMOVED: removed.encode()} if removed else changed
