"""Removes secrets from findings and source lines: what is reported, cached or logged holds none of their characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from jobgen.k8s.secrets import find_secrets, find_secrets_in_text, may_contain_secret, redact, redact_line
from jobgen.model.finding import Finding, Related
from jobgen.yamlio.read import read


def redact_findings(findings: Iterable[Finding], contents: Iterable[bytes]) -> list[Finding]:
    """The findings without the secrets of these files; a fix that would write one is left out."""
    secrets = frozenset(secret for content in contents for secret in find_file_secrets(content))
    return [_redact_finding(finding, secrets) for finding in findings] if secrets else list(findings)


def redact_lines(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a file, without its secrets."""
    secrets = find_file_secrets("\n".join(lines).encode("utf-8", "replace"))
    return [redact_line(line, secrets) for line in lines] if secrets else lines


@lru_cache(maxsize=64)
def find_file_secrets(content: bytes) -> frozenset[str]:
    """The secrets of a file, also if it is not valid YAML."""
    text = content.decode("utf-8", "replace")
    if not may_contain_secret(text) and "PRIVATE KEY" not in text and not ("://" in text and "@" in text):
        return frozenset()
    documents = read(content, "").documents
    return find_secrets_in_text(text).union(*(find_secrets(document.data) for document in documents))


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
