"""Removes secrets from findings and source lines: what is reported, cached or logged holds none of their characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import overload

from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.redaction import MASK, hide_credentials, order_secrets, redact, replace_spans
from jobgen.k8s.secrets_in_text import find_secrets_in_text
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Related
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.file_secrets import (
    NO_SECRETS,
    FileSecrets,
    SecretPlace,
    decode,
    search_file,
    unescape,
)
from jobgen.repo.files import MANIFEST_SUFFIXES, File
from jobgen.yamlio.read import Source

_QUOTED = lazy_pattern(r"`([^`]*)`")
_NEAR = 50
_WORD = lazy_pattern(r"[^\s,\[\]{}\"']+")


def redact_findings(findings: Iterable[Finding], files: Iterable[File]) -> list[Finding]:
    """The findings without the secrets of these files; a fix that would write one is left out."""
    found = {file.path: search_file(file.content, file.path) for file in files}
    held = {path: each for path, each in found.items() if each is not NO_SECRETS}
    # The text of a policy or of settings can be in a message, too.
    shown = [_with_message(each, hide_credentials(each.message)) for each in findings]
    if not held:
        return shown
    secrets = frozenset[str]().union(*(each.texts for each in held.values()))
    messages = {path: each.messages for path, each in held.items() if each.messages}
    shown = [_with_message(each, _find_message(each, messages.get(each.location.file, ()))) for each in shown]
    places = {path: each.places for path, each in held.items()}
    return [_redact_finding(each, secrets, places) for each in shown]


def hide_quoted(findings: Iterable[Finding], values: frozenset[str]) -> list[Finding]:
    """The findings with a mask in place of each value between backticks that is one of these."""
    if not values:
        return list(findings)

    def hide(match: re.Match[str]) -> str:
        return f"`{MASK}`" if match[1].strip("\"'") in values else match[0]

    def change(text: str) -> str:
        return _QUOTED.sub(hide, text)

    return [
        each._replace(
            message=change(each.message),
            related=tuple(Related(note.location, change(note.message)) for note in each.related),
            evidence=None
            if each.evidence is None
            else tuple(MASK if text in values else text for text in each.evidence),
            meant="" if each.meant in values else each.meant,
            fix=None,
        )
        for each in findings
    ]


def _with_message(finding: Finding, message: str) -> Finding:
    return finding if message == finding.message else finding._replace(message=message)


def _find_message(finding: Finding, messages: Iterable[tuple[Finding, str]]) -> str:
    """The message of a finding about the text of a file, read as if its secrets were other texts."""
    # Another file may have the same text.
    same = (text for each, text in messages if each[:4] == finding[:4] and each.location[1:] == finding.location[1:])
    return next(same, finding.message)


def _redact_finding(finding: Finding, secrets: frozenset[str], places: Mapping[str, Sequence[SecretPlace]]) -> Finding:
    locations = (finding.location, *(note.location for note in finding.related))
    below = [place for at in locations for place in places.get(at.file, ()) if _is_near(place, at)]
    own = [place for place in below if any(place.has(at.line, at.column) for at in locations)]
    change = partial(_redact_text, secrets=secrets, own=own, below=below)
    edits = finding.fix.edits if finding.fix else ()
    written = [str(value) for edit in edits for value in (edit.value, edit.was)]
    pointer, place = (_redact_steps(text, secrets, own) for text in (finding.pointer, finding.place))
    if (pointer, place) != (finding.pointer, finding.place):
        finding = finding._replace(pointer=pointer, place=place)
    is_fixed = any(each.value in written for each in own) or any(change(text) != text for text in written)
    shown = (finding.message, *(note.message for note in finding.related), *(finding.evidence or ()))
    if not is_fixed and all(change(text) == text for text in shown):
        return finding
    return finding._replace(
        message=change(finding.message),
        related=tuple(Related(note.location, change(note.message)) for note in finding.related),
        evidence=None if finding.evidence is None else tuple(map(change, finding.evidence)),
        meant=change(finding.meant),
        fix=None if is_fixed else finding.fix,
    )


def _is_near(place: SecretPlace, at: Location) -> bool:
    """Return True if a finding may be about a value that has a secret: one of the next lines."""
    return at.line <= place.location.line <= at.line + _NEAR or place.has(at.line, at.column)


def _redact_text(
    text: str, *, secrets: frozenset[str], own: Sequence[SecretPlace], below: Sequence[SecretPlace]
) -> str:
    for place in own:
        text = MASK if text == place.value else _QUOTED.sub(partial(_mask_quoted, place=place), text)
    # A message may show a whole list or mapping.
    for place in below if "`[" in text or "`{" in text else ():
        text = _QUOTED.sub(partial(_mask_in_collection, place=place), text)
    return redact(text, secrets)


def _redact_steps(text: str, secrets: frozenset[str], own: Sequence[SecretPlace]) -> str:
    """A path without secrets: keys can be some."""
    for place in own:
        if text.endswith(f"/{place.value}") and place.value != place.name:
            text = text.removesuffix(place.value) + MASK
    return redact(text, secrets)


def _mask_quoted(match: re.Match[str], place: SecretPlace) -> str:
    quoted = match[1]
    if quoted == place.name:
        return match[0]
    # A message shows the beginning of a long value.
    is_start = quoted.endswith("…") and place.value.replace("\n", " ").startswith(quoted[:-1])
    return f"`{MASK}`" if is_start or place.value in (quoted, quoted.strip("{}<>")) else match[0]


def _mask_in_collection(match: re.Match[str], place: SecretPlace) -> str:
    if match[1][:1] not in ("[", "{"):
        return match[0]
    return f"`{_WORD.sub(lambda word: MASK if word[0] == place.value else word[0], match[1])}`"


def redact_lines(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a file, without its secrets."""
    return _redact(lines, search_file("\n".join(lines).encode("utf-8", "replace")))


def redact_file(file: File) -> Sequence[str]:
    """The lines of a file that can be shown: those of a manifest without its secrets, of others without any value."""
    is_manifest = file.path.lower().endswith(MANIFEST_SUFFIXES)
    if not is_manifest and b"\0" in file.content:
        # A packaged chart is no text.
        return ()
    lines = _redact(decode(file.content).split("\n"), search_file(file.content, file.path))
    if is_manifest:
        return lines
    # Any value of an env file may be a secret.
    return [f"{line.partition('=')[0]}=…" if "=" in line else line for line in lines]


def redact_diff(lines: Iterable[str], *texts: str) -> Sequence[str]:
    """The lines of a difference between texts, without the secrets of the texts."""
    shown: dict[str, str] = {}
    secrets = frozenset[str]()
    for text in texts:
        found = search_file(text.encode("utf-8", "surrogateescape"))
        if found is not NO_SECRETS:
            secrets |= found.texts
            raw = text.split("\n")
            hidden = _RedactedLines(raw, found)
            shown.update((line.rstrip("\r"), hidden[at]) for at, line in enumerate(raw) if at in found.spans)
    if not secrets and not shown:
        return list(lines)
    rest = _RedactedLines(changed := list(lines), FileSecrets(secrets))
    return [line[0] + shown[line[1:]] if line[1:] in shown else rest[at] for at, line in enumerate(changed)]


def redact_source(content: bytes, source: Source) -> tuple[Sequence[str], frozenset[str]]:
    """The lines of a file that has been read, without its secrets, and the secrets."""
    lines = decode(content).splitlines()
    found = search_file(content, source.file)
    if found is not NO_SECRETS and len(lines) != len(decode(content).removesuffix("\n").split("\n")):
        # It has other line breaks than YAML knows.
        return redact_lines(lines), found.texts
    return _redact(lines, found), found.texts


def _redact(lines: Sequence[str], found: FileSecrets) -> Sequence[str]:
    return lines if found is NO_SECRETS else _RedactedLines(lines, found)


class _RedactedLines(Sequence[str]):
    """Lines that are redacted when they are shown, because a file may have many lines and many secrets.

    They have as many stars as the secrets in them have characters, so that columns stay the same.
    """

    def __init__(self, lines: Sequence[str], found: FileSecrets) -> None:
        self._lines = lines
        self._spans = found.spans
        self._texts = order_secrets(filter(is_distinctive, found.texts))

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        line = self._lines[index]
        shown = replace_spans(line, self._spans.get(index % len(self), ()), "*")
        for secret in self._texts:
            shown = shown.replace(secret, "*" * len(secret))
        # A secret may be written with escapes, such as `\x41`.
        return hide_line(line) if "\\" in shown and self._holds_escaped(shown) else shown

    def _holds_escaped(self, line: str) -> bool:
        plain = unescape(line)
        return plain != line and (any(text in plain for text in self._texts) or bool(find_secrets_in_text(plain)))


def hide_line(line: str) -> str:
    """A line of a file of which only the indentation is shown."""
    return line[: len(line) - len(line.lstrip())] + "*" * len(line.strip())


def find_file_secrets(content: bytes, path: str = "") -> frozenset[str]:
    """The secrets of a file, also if it is not valid YAML."""
    return search_file(content, path).texts
