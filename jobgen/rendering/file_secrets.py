"""Where the secrets of a file stand, decided once for everything that shows its lines or quotes its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.redaction import MASK
from jobgen.k8s.secrets import (
    Held,
    find_secrets,
    is_encrypted,
    list_held,
    list_kustomization_secrets,
    means_secret,
    without_names,
)
from jobgen.k8s.secrets_in_text import Span, find_secrets_in_text, find_spans, may_hold_secret
from jobgen.model.data import Location, Node, TracedKey, TracedScalar, untraced, value_of
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read import Source, read, read_shared

_ESCAPE = lazy_pattern(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_MISSPELLED = lazy_pattern(r"kind[\"']?:[ ]?[\"']?[Ss](?!ervice\b)[A-Za-z]{4,6}\b")
"""A kind that may be a misspelled `Secret`."""
_SPLIT = lazy_pattern(r"[\s{}\[\]\"',:=&*|#`!]+")
_COMMENT = lazy_pattern(r"(?:^|\s)#")
_TAG = lazy_pattern(r"(?<!\S)!!(?:binary|bool|float|int|null|str|timestamp)(?!\S)")
_SYNTAX = frozenset(" \t\r\"':,[]{}#&*!|>%@`-?\\")
"""What means something in YAML: a text that is hidden keeps it, so that it has the same syntax errors."""
_STAND_INS = "ꙮꙭꙫ"
_HIDDEN_VALUE = "this value cannot be read; correct it (it is not shown, because it can be a secret)"
_HIDDEN = "this line is not YAML; correct it (its text is not shown, because it can be a secret)"


class SecretPlace(NamedTuple):
    """Where a secret stands that other words can hold, too: it is masked there, and not searched for elsewhere."""

    name: str
    value: str
    location: Location
    start: tuple[int, int]
    """The line and column of its name, if that is the key before it; a finding may point there."""

    def has(self, line: int, column: int) -> bool:
        """Return True if a character of the file is in the secret, or in its name."""
        end = max((self.location.end_line, self.location.end_column), self.location[1:3])
        return self.start <= (line, column) <= end


class FileSecrets(NamedTuple):
    """The secrets of a file: their texts, and where they stand."""

    texts: frozenset[str] = frozenset()
    places: tuple[SecretPlace, ...] = ()
    spans: Mapping[int, frozenset[Span]] = {}
    """The parts of lines, by their indexes."""
    messages: tuple[tuple[Finding, str], ...] = ()
    """What findings about the text of the file say without secrets, if that differs."""


NO_SECRETS = FileSecrets()
# By digest: findings and the lines below them are redacted at different times.
_searched: dict[bytes, FileSecrets] = {}
_MAX_SEARCHED = 50_000


def search_file(content: bytes, path: str = "") -> FileSecrets:
    """Return the secrets of a file, also if it is not valid YAML."""
    digest = blake2b(content, digest_size=16).digest()
    found = _searched.get(digest)
    if found is None:
        text = decode(content)
        found = search_source(content, read_shared(content, path)) if _may_hold_secret(text) else NO_SECRETS
        if len(_searched) >= _MAX_SEARCHED:
            _searched.clear()
        _searched[digest] = found
    return found


def decode(content: bytes) -> str:
    """Return the text of a file, whatever its encoding is."""
    return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")


def _may_hold_secret(text: str) -> bool:
    is_named = may_hold_secret(text) or "secretGenerator" in text or "stringData" in text
    # Most pods name the secrets of their images.
    is_object = "Secret" in text and "Secret" in text.replace("imagePullSecrets", "")
    return is_named or is_object or bool(_MISSPELLED.search(text)) or ("\\" in text and bool(_ESCAPE.search(text)))


def unescape(line: str) -> str:
    """Return a line with the characters that escape sequences in it mean."""
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16) % 0x110000), line)


def read_masked(content: bytes, file: str, *, traced: bool = False) -> Source:
    """Read a file whose findings are printed as they are."""
    source = read(content, file, traced=traced)
    return source._replace(findings=mask_findings(content, source))


def mask_findings(content: bytes, source: Source) -> tuple[Finding, ...]:
    """Return the findings about the text of a file as commands print them: without its secrets."""
    if not source.findings or not _may_hold_secret(decode(content)):
        return source.findings
    messages = {(found.rule, found.location): text for found, text in search_source(content, source).messages}
    return tuple(
        found._replace(message=messages.get((found.rule, found.location), found.message)) for found in source.findings
    )


def search_source(content: bytes, source: Source) -> FileSecrets:
    """Return the secrets of a file that has been read, with or without locations."""
    text = decode(content)
    lines = text.removeprefix("\ufeff").split("\n")
    broken = _list_broken(lines, source)
    data = [document.data for document in (*source.documents, *source.repaired)]
    texts = frozenset[str]().union(*map(find_secrets, data))
    spans = _search_broken(lines, broken) if broken else {}
    parts = _search_secrets(lines, source) if "---" in text or any("kind" in root for root in data) else {}
    for root in data:
        for value in list_kustomization_secrets(root):
            for at, found in _search_text(lines, value).items():
                parts.setdefault(at, set()).update(found)
    for at, found in parts.items():
        spans.setdefault(at, set()).update(found)
    _add_comments(lines, spans)
    texts |= without_names(frozenset(lines[at][start:end] for at, each in spans.items() for start, end in each), data)
    # A message may have a part of a line.
    words = (_SPLIT.split(lines[at][start:end]) for at, each in parts.items() for start, end in each)
    texts |= without_names(frozenset(word for found in words for word in found if is_distinctive(word)), data)
    texts = texts.union(*map(_list_encoded, texts))
    if not texts and not spans:
        return NO_SECRETS
    places = tuple(_find_places(_read_traced(content, source), lines, spans)) if data else ()
    places += tuple(_find_line_places(lines, parts, source.file))
    messages = tuple(_list_messages(source, lines, spans)) if source.findings else ()
    if text.startswith("\ufeff"):
        spans[0] = {(start + 1, end + 1) for start, end in spans.get(0, ())}
    return FileSecrets(texts, places, {at: frozenset(each) for at, each in spans.items()}, messages)


def _search_secrets(lines: Sequence[str], source: Source) -> dict[int, set[Span]]:
    """Where values stand in the lines of Secrets, and in those below that can be the rest of one."""
    roots = [(each.location.line, each.data) for each in (*source.documents, *source.repaired)]
    spans: dict[int, set[Span]] = {}
    is_inside = False
    for start, end in _list_chunks(lines):
        own = [root for line, root in roots if start < line <= end]
        chunk = lines[start:end]
        is_secret = any(_is_secret(root) for root in own) or (not own and any("Secret" in line for line in chunk))
        if not is_secret and not is_inside:
            continue
        # Imported late: few files have Secrets.
        from jobgen.k8s.broken_text import continues_document, find_lines, list_texts, list_values_of_secret

        if is_inside and continues_document(chunk):
            found = list_texts(chunk)
        elif own and is_secret:
            found = list_values_of_secret(chunk)
        else:
            is_inside = is_secret and bool(find_lines(chunk))
            continue
        is_inside = True
        for at, (first, last) in found:
            if first < last:
                spans.setdefault(start + at, set()).add((first, last))
    return spans


def _search_text(lines: Sequence[str], text: str) -> dict[int, set[Span]]:
    """Where a value of a kustomization stands in its lines."""
    found = ((at, line.find(text)) for at, line in enumerate(lines)) if text else ()
    return {at: {(start, start + len(text))} for at, start in found if start >= 0}


def _is_secret(root: Mapping[str, Any]) -> bool:
    return "kind" in root and not is_encrypted(root) and means_secret(str(value_of(root["kind"])))


def _find_line_places(lines: Sequence[str], spans: dict[int, set[Span]], file: str) -> Iterator[SecretPlace]:
    for at, found in spans.items():
        for start, end in found:
            place = Location(file, at + 1, start + 1, at + 1, end + 1)
            for word in {lines[at][start:end], *_SPLIT.split(lines[at][start:end])}:
                if word:
                    yield SecretPlace("", word, place, (at + 1, 1))


def _search_broken(lines: Sequence[str], chunks: Iterable[tuple[int, int]]) -> dict[int, set[Span]]:
    # Imported late: most files are valid YAML.
    from jobgen.k8s.broken_text import find_lines

    spans: dict[int, set[Span]] = {}
    for start, end in chunks:
        for index, found in find_lines(lines[start:end]).items():
            spans.setdefault(start + index, set()).update(found)
    return spans


def _read_traced(content: bytes, source: Source) -> Source:
    roots = [document.data for document in (*source.documents, *source.repaired)]
    is_traced = any(hasattr(key, "location") for root in roots for key in root)
    return source if is_traced else read(content, source.file, traced=True)


def _list_broken(lines: Sequence[str], source: Source) -> list[tuple[int, int]]:
    """Return the lines of the documents that were not read without an error."""
    if source.documents and not source.findings:
        return []
    return [chunk for chunk in _list_chunks(lines) if not _is_read(chunk, lines, source)]


def _list_chunks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    starts = [index for index, line in enumerate(lines) if line[:3] == "---"]
    return pairwise((0, *starts, len(lines)))


def _is_read(chunk: tuple[int, int], lines: Sequence[str], source: Source) -> bool:
    """Return True if the lines of a document were read without an error."""
    start, end = chunk
    errors = (found.location.line for found in source.findings if found.severity is Severity.ERROR)
    if any(start < line <= end for line in errors):
        return False
    is_empty = all(not line.strip() or line.startswith(("---", "#")) for line in lines[start:end])
    return is_empty or any(start < document.location.line <= end for document in source.documents)


def _add_comments(lines: Sequence[str], spans: dict[int, set[Span]]) -> None:
    for index, line in enumerate(lines):
        comment = _COMMENT.search(line) if "#" in line else None
        for start, end in find_spans(line[comment.end() :]) if comment else ():
            first, last = comment.end() + start, comment.end() + end  # type: ignore[union-attr]
            # Words of a sentence, as in `token: see below`, are none.
            if not line[first:last].isalpha() or is_distinctive(line[first:last]):
                spans.setdefault(index, set()).add((first, last))


def _list_encoded(secret: str) -> Iterator[str]:
    """The secret in base64, and what it is if it is base64."""
    if is_distinctive(secret):
        # Imported late: most runs have no secret.
        from base64 import b64decode, b64encode
        from binascii import Error

        yield b64encode(secret.encode()).decode().rstrip("=")
        try:
            decoded = b64decode(secret, validate=True).decode()
        except (Error, ValueError):
            return
        yield from (line.strip() for line in decoded.split("\n") if is_distinctive(line.strip()))


def _find_places(source: Source, lines: Sequence[str], spans: dict[int, set[Span]]) -> Iterator[SecretPlace]:
    """Add the spans of the secrets in the trees of a file, and yield the places of those that can be guessed."""
    seen: set[Location] = set()
    for document in (*source.documents, *source.repaired):
        for each in list_traced_held(document.data):
            node = each.node
            if each.is_key:
                yield from _find_key_place(each, lines, spans)
            elif isinstance(node, TracedScalar) and (each.name or node.location not in seen):
                seen.add(node.location)
                yield from _find_place(each, node, lines, spans)


def list_traced_held(tree: Mapping[str, Node]) -> Iterator[Held]:
    """Yield what `list_held` finds in a tree with locations."""
    # Imported late: few files have secrets.
    from jobgen.model.place import Places

    plain = untraced(tree)
    places = Places(plain)
    for each in list_held(plain):
        if (path := places.find(each.parent)) is not None:
            yield each._replace(parent=path.follow(tree))


def _find_key_place(held: Held, lines: Sequence[str], spans: dict[int, set[Span]]) -> Iterator[SecretPlace]:
    key = next(key for key in held.parent if key == held.key)
    if type(key) is TracedKey and (held.name or find_secrets_in_text(key)):
        yield SecretPlace(held.name, str(key), key.location, key.location[1:3])
        for at, span in _cover(key.location, lines):
            spans.setdefault(at, set()).add(span)


def _find_place(
    held: Held, node: TracedScalar, lines: Sequence[str], spans: dict[int, set[Span]]
) -> Iterator[SecretPlace]:
    covered = list(_cover(node.location, lines))
    text = str(node.value)
    if held.name:
        keys = (key for key in held.parent if type(key) is TracedKey and key in (held.key, "name"))
        starts = [key.location[1:3] for key in keys] if isinstance(held.parent, dict) else []
        yield SecretPlace(held.name, text, node.location, min((*starts, node.location[1:3])))
    elif wanted := find_secrets_in_text(text):
        parts = [(at, start, lines[at][start:end]) for at, (start, end) in covered]
        own = [(at, (start + first, start + last)) for at, start, part in parts for first, last in find_spans(part)]
        if wanted <= {lines[at][start:end] for at, (start, end) in own}:
            covered = own
    else:
        return
    for at, span in covered:
        spans.setdefault(at, set()).add(span)


def _cover(place: Location, lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Yield the parts of lines that a scalar takes, without its quotes."""
    last = min(max(place.end_line, place.line), len(lines))
    for number in range(place.line, last + 1):
        line = lines[number - 1]
        start = place.column - 1 if number == place.line else len(line) - len(line.lstrip())
        end = place.end_column - 1 if number == place.end_line else len(line.rstrip())
        text = line[start:end].rstrip()
        if number == place.line and text[:1] in ("|", ">") and last > place.line:
            continue
        first = start + (number == place.line and text[:1] in ("'", '"'))
        end = start + len(text) - (number == last and len(text) > 1 and text[-1:] in ("'", '"') and first > start)
        if number == last > place.line and text[-1:] in ("'", '"'):
            end = start + len(text) - 1
        if first < end:
            yield number - 1, (first, end)


def _list_messages(source: Source, lines: Sequence[str], spans: dict[int, set[Span]]) -> Iterator[tuple[Finding, str]]:
    """Yield findings about the text of a file that differ if its secrets are other texts of the same shape."""
    stand_in = next((letter for letter in _STAND_INS if not any(letter in line for line in lines)), "")
    hidden = [_stand_in(line, spans.get(at, set()), stand_in) for at, line in enumerate(lines)]
    found = {
        (each.rule, each.location): each.message for each in read("\n".join(hidden).encode(), source.file).findings
    }
    for each in source.findings:
        message = found.get((each.rule, each.location), "") if stand_in else ""
        if message != each.message:
            yield (
                each,
                _mask(message, stand_in) if message else _HIDDEN if each.rule == "yaml-syntax" else _HIDDEN_VALUE,
            )


def _stand_in(line: str, spans: set[Span], letter: str) -> str:
    tags = [match.span() for match in _TAG.finditer(line)] if "!!" in line else []
    hidden = line
    for start, end in spans:
        shown = "".join(sign if sign in _SYNTAX else letter for sign in line[start:end])
        hidden = hidden[:start] + shown + hidden[end:]
    for start, end in tags:
        hidden = hidden[:start] + line[start:end] + hidden[end:]
    return hidden


def _mask(message: str, letter: str) -> str:
    return re.sub(f"{letter}(?:[^`\\s]*{letter})?", MASK, message)
