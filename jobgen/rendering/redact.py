"""Removes secrets from findings and source lines: what is reported, cached or logged holds none of their characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

from jobgen.k8s.secrets import (
    find_secrets,
    find_secrets_in_text,
    hide_credentials,
    hide_line,
    may_hold_secret,
    may_name_secret,
    redact,
    redact_line,
    without_names,
)
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Related, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import MANIFEST_SUFFIXES, File
from jobgen.yamlio.read import Source, read_shared

_ESCAPE = lazy_pattern(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_NEAR = 2
"""In a file that is not valid YAML, a value may be this many lines below its name."""


def redact_findings(findings: Iterable[Finding], files: Iterable[File]) -> list[Finding]:
    """The findings without the secrets of these files; a fix that would write one is left out."""
    found = {file.path: _search(file.content, file.path) for file in files}
    secrets = frozenset[str]().union(*(each.secrets for each in found.values()))
    hidden = {path for path, each in found.items() if each.hides_values}
    shown = [
        _hide_line(each) if each.location.file in hidden and each.rule == "yaml-syntax" else each for each in findings
    ]
    # The text of a policy or of settings can be in a message, too.
    texts = [hide_credentials(each.message) for each in shown]
    shown = [
        each if text == each.message else each._replace(message=text) for each, text in zip(shown, texts, strict=True)
    ]
    return [_redact_finding(finding, secrets) for finding in shown] if secrets else shown


def _hide_line(finding: Finding) -> Finding:
    """Return a syntax error without the text of its line: in a file that is not YAML, any text can be a secret."""
    message = "this line is not YAML; correct it (its text is not shown, because the file names a secret)"
    return finding._replace(message=message)


def redact_lines(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a file, without its secrets."""
    return _redact(lines, _search("\n".join(lines).encode("utf-8", "replace")))


def redact_file(file: File) -> Sequence[str]:
    """The lines of a file that can be shown: those of a manifest without its secrets, of others without any value."""
    lines = redact_lines(file.content.decode("utf-8", "replace").split("\n"))
    if file.path.lower().endswith(MANIFEST_SUFFIXES):
        return lines
    # Any value of an env file may be a secret.
    return [f"{line.partition('=')[0]}=…" if "=" in line else line for line in lines]


def redact_diff(lines: Iterable[str], *texts: str) -> Sequence[str]:
    """The lines of a difference between texts, without the secrets of the texts."""
    found = [_search(text.encode("utf-8", "surrogateescape")) for text in texts]
    secrets = frozenset[str]().union(*(each.secrets for each in found))
    return _redact(list(lines), _FileSecrets(secrets, any(each.hides_values for each in found)))


def redact_source(content: bytes, source: Source) -> tuple[Sequence[str], frozenset[str]]:
    """The lines of a file that has been read, without its secrets, and the secrets."""
    text = content.decode("utf-8", "replace")
    found = _search_source(text, source) if _may_hold_secret(text) else _NO_SECRETS
    return _redact(text.splitlines(), found), found.secrets


def _redact(lines: Sequence[str], found: _FileSecrets) -> Sequence[str]:
    return lines if found == _NO_SECRETS else _RedactedLines(lines, found.secrets, hides_values=found.hides_values)


class _RedactedLines(Sequence[str]):
    """Lines that are redacted when they are shown, because a file may have many lines and many secrets.

    With `hides_values`, the file is not valid YAML, so that the value of a name may be anywhere near it: such lines are
    hidden.
    """

    def __init__(self, lines: Sequence[str], secrets: frozenset[str], *, hides_values: bool) -> None:
        self._lines = lines
        self._secrets = secrets
        self._hides_values = hides_values
        self._hides_all = hides_values and any("kind: Secret" in line for line in lines)

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
        near = "\n".join(self._lines[max(0, index - _NEAR) : index + 1])
        if self._hides_all or (self._hides_values and may_name_secret(near)):
            return hide_line(line)
        shown = redact_line(line, self._secrets)
        # A secret may be written with escapes, such as `\x41`.
        return hide_line(line) if "\\" in shown and self._holds_escaped(shown) else shown

    def _holds_escaped(self, line: str) -> bool:
        plain = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16) % 0x110000), line)
        return plain != line and (any(secret in plain for secret in self._secrets) or bool(find_secrets_in_text(plain)))


def find_file_secrets(content: bytes, path: str = "") -> frozenset[str]:
    """The secrets of a file, also if it is not valid YAML."""
    return _search(content, path).secrets


class _FileSecrets(NamedTuple):
    """The secrets of a file, and whether lines near a name that means a secret are hidden, because it is not YAML."""

    secrets: frozenset[str] = frozenset()
    hides_values: bool = False


_NO_SECRETS = _FileSecrets()
# By digest: findings and the lines below them are redacted at different times.
_searched: dict[bytes, _FileSecrets] = {}
_MAX_SEARCHED = 50_000


def _search(content: bytes, path: str = "") -> _FileSecrets:
    digest = blake2b(content, digest_size=16).digest()
    found = _searched.get(digest)
    if found is None:
        text = content.decode("utf-8", "replace")
        found = _search_source(text, read_shared(content, path)) if _may_hold_secret(text) else _NO_SECRETS
        if len(_searched) >= _MAX_SEARCHED:
            _searched.clear()
        _searched[digest] = found
    return found


def _may_hold_secret(text: str) -> bool:
    is_named = may_hold_secret(text) or "secretGenerator" in text or "kind: Secret" in text
    return is_named or ("\\" in text and bool(_ESCAPE.search(text)))


def _search_source(text: str, source: Source) -> _FileSecrets:
    data = [document.data for document in (*source.documents, *source.repaired)]
    secrets = without_names(find_secrets_in_text(text).union(*map(find_secrets, data)), data)
    # In a file that cannot be read, it is not known what is a name and what a value.
    is_broken = any(finding.severity is Severity.ERROR for finding in source.findings)
    return _FileSecrets(secrets, is_broken and (bool(secrets) or may_name_secret(text)))


def _redact_finding(finding: Finding, secrets: frozenset[str]) -> Finding:
    shown = (finding.message, *(note.message for note in finding.related), *(finding.evidence or ()))
    edits = finding.fix.edits if finding.fix else ()
    is_shown = any(secret in text for text in shown for secret in secrets)
    is_fixed = any(secret in f"{edit.value} {edit.was}" for edit in edits for secret in secrets)
    if not is_shown and not is_fixed:
        return finding
    return finding._replace(
        message=redact(finding.message, secrets),
        related=tuple(Related(note.location, redact(note.message, secrets)) for note in finding.related),
        evidence=None if finding.evidence is None else tuple(redact(value, secrets) for value in finding.evidence),
        fix=None if is_fixed else finding.fix,
    )
