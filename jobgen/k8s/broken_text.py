"""Find secrets in a text that is not YAML, by its lines: no reader says what is a name there, and what a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.secrets_in_text import NEVER_SECRET, Span, find_credentials, is_secret_name
from jobgen.model.lazy_re import lazy_pattern

_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{2,100}")
_SEPARATOR = lazy_pattern(
    r"[\"']?[ \t]{0,100}([:=：＝,]?)[ \t]{0,100}(?:![^\s\"',\[\]{}]{0,100}[ \t]+)?(?:&\w{1,100}[ \t]+)?"
)
_KEY_START = lazy_pattern(r"[ \t]*(?:[-?][ \t]+)*[\"']?\Z")
_HEADER = lazy_pattern(r"[|>][0-9+-]{0,2}[ \t]*(?:#.*)?\Z")
_REFERENCE = lazy_pattern(r"valueFrom|[a-zA-Z]Ref\b|\bsecret[ \t]*[:：]|\bkey[ \t]*[:：]|[$]patch")
_NAMED_SECRET = lazy_pattern(r"\b(?:key|mountPath|items|optional|volumes|subPath|defaultMode)\b")
_END_IN_FLOW = lazy_pattern(r",[ \t]*[\"']?[\w./-]+[\"']?[ \t]*[:：](?=\s)|[}\]]")
_COMMENT = lazy_pattern(r"[ \t]#")
_VALUE = lazy_pattern(r"(?<![\w-])[\"']?value\b")
_NAME_FIELD = lazy_pattern(r"(?<![\w-])[\"']?name[\"']?[ \t]*[:：]?[ \t]*[\"']?\Z")
_IS_SECRET = lazy_pattern(r"(?<![\w-])kind[\"']?[ \t]{0,20}[:：]?[ \t]{0,20}[\"']?Secret\b")
_KIND = lazy_pattern(r"kind[\"']?[ \t]*[:：][ \t]*[\"']?([A-Za-z]+)")
_ALIKE, _MAX_KIND = 4, 8
"""How many letters of `Secret` the kind has if it may be a misspelled one."""
_DATA_IN_LINE = lazy_pattern(r"(?<!\w)(?:data|stringData)\b")
_DATA = lazy_pattern(r"(?:data|stringData)\b")
_ROOT_KEY = lazy_pattern(r"(?:apiVersion|kind|metadata|type|immutable|---|\.\.\.|#|<<<<<<<|=======|>>>>>>>|\|{7})")
_KEY = lazy_pattern(r"[ \t]*[\w./-]+[\"']?[ \t]*[:：]")
_SECRETS = lazy_pattern(r"[ \t]*[\"']?secrets\b")
_FAR = 20
"""How many lines may be between a field and what is deep in it."""
_LOOKED_AT = 500
"""How much of a long line is looked at to see what follows a name."""
_SHOWN = 60
_NEAR = 2
"""How many lines are between a name and its value."""


def find_lines(lines: Sequence[str]) -> dict[int, set[Span]]:
    """Where secrets stand in the lines of a document with syntax errors, by their indexes."""
    found: dict[int, set[Span]] = {}
    if _looks_like_secret(lines):
        _add(found, list_values_of_secret(lines))
    _add(found, _list_named(lines))
    _add(found, _list_credentials(lines))
    return found


def _add(found: dict[int, set[Span]], places: Iterator[tuple[int, Span]]) -> None:
    for index, (start, end) in places:
        if start < end:
            found.setdefault(index, set()).add((start, end))


def _list_credentials(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    text, at, index = "\n".join(lines), 0, 0
    for start, end in sorted(find_credentials(text)):
        while index + 1 < len(lines) and at + len(lines[index]) < start:
            at += len(lines[index]) + 1
            index += 1
        yield index, (start - at, min(end - at, len(lines[index])))


def _looks_like_secret(lines: Sequence[str]) -> bool:
    text = "\n".join(lines)
    if _IS_SECRET.search(text) or "stringData" in text:
        return True
    # The line of the kind may be the one that is broken.
    kinds = [kind[1] for line in lines if (kind := _KIND.match(line))]
    is_other = (
        any(len(kind) > _MAX_KIND or len(set(kind) & set("Secret")) < _ALIKE for kind in kinds) or "jobgen.dev/" in text
    )
    return not is_other and any(_DATA.match(line) for line in lines)


def continues_document(lines: Sequence[str]) -> bool:
    """Return True if lines after `---` can be the rest of a text: no kind of an object is among them."""
    return any(line.strip("- \t\r") for line in lines) and not any(map(_KIND.match, lines))


def list_texts(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """All text of lines."""
    for index, line in enumerate(lines):
        if line.strip("- \t\r"):
            yield index, _trim(line, 4 if line.startswith("--- ") else 0, len(line))


def list_values_of_secret(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """All text of a Secret but its keys, and what says which object it is."""
    is_public, has_kind, block, level = True, False, -1, -1
    for index, line in enumerate(lines):
        width = _measure_indent(line)
        if not line.strip():
            continue
        if not width:
            is_public, block, level = bool(_ROOT_KEY.match(line)), -1, -1
        if is_public:
            if data := _find_data(line):
                yield index, (data, len(line))
            elif has_kind and (comment := _COMMENT.search(f" {line}")):
                yield index, _trim(line, comment.end() - 1, len(line))
            has_kind = has_kind or bool(_KIND.match(line))
            continue
        key = _KEY.match(line) if block < 0 or width <= block else None
        if key and width:
            level = width if level < 0 else min(level, width)
            name = key[0].strip(" \t\"':：")
            # A key that is deeper than others, or looks like no name, can be a value.
            key = None if width > level or is_distinctive(name) else key
        start = key.end() if key else 0 if width or not _DATA.match(line) else len(line)
        if key:
            block = width if _HEADER.match(line[start:].strip()) else -1
        yield index, _trim(line, start, len(line))


def _find_data(line: str) -> int:
    """Return where the values of a Secret in one line begin."""
    return found.end() if (found := _DATA_IN_LINE.search(line)) and found.start() else 0


def _list_named(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """The values after names that mean a secret, in the same line or below it."""
    may_name_keys = any("secrets" in line for line in lines)
    covered, near = -1, -1
    for index, line in enumerate(lines):
        end = 0
        # A block of text below a name is hidden as a whole, and so is a value that has such names.
        for name in _NAME.finditer(line) if index > covered else ():
            if name.start() < end or not is_secret_name(name[0]):
                continue
            if _NAME_FIELD.search(line[max(0, name.start() - _SHOWN) : name.start()]):
                yield from _list_near_values(lines, index) if near < index else ()
                near = index
            elif _sets_value(line, name.start(), name.end()):
                if _names_secret(lines, index, name[0]) or (may_name_keys and _names_key(lines, index)):
                    continue
                for at, span in _list_value(lines, index, name.end()):
                    covered, end = (max(covered, at), end) if at > index else (covered, span[1])
                    yield at, span


def _sets_value(line: str, start: int, end: int) -> bool:
    separator = _SEPARATOR.match(line, end)
    assert separator is not None
    is_option = line[start - 1 : start] == "-"
    is_key = start < _LOOKED_AT and bool(_KEY_START.match(line[:start]))
    if separator[1] == ",":
        return is_option
    return bool(separator[1]) or is_option or (is_key and separator.end() > end)


def _names_secret(lines: Sequence[str], index: int, name: str) -> bool:
    """Return True if the name of a Secret follows, and not a secret."""
    near = lines[max(0, index - _NEAR) : index + 1 + _NEAR] if name == "secret" else ()
    return any(_NAMED_SECRET.search(line[:_LOOKED_AT]) for line in near)


def _names_key(lines: Sequence[str], index: int) -> bool:
    """Return True if a line is in `secrets: {hub: {env: {HF_TOKEN: token}}}`, which may have several lines."""
    width = _measure_indent(lines[index]) + 1
    for at in range(index, max(-1, index - _FAR), -1):
        if lines[at].strip() and _measure_indent(lines[at]) < width:
            width = _measure_indent(lines[at])
            if _SECRETS.match(lines[at]):
                return True
    return False


def _list_near_values(lines: Sequence[str], index: int) -> Iterator[tuple[int, Span]]:
    """The values of fields `value` near a line with a name."""
    for near in range(max(0, index - _NEAR), min(len(lines), index + 1 + _NEAR)):
        end = 0
        for value in _VALUE.finditer(lines[near]):
            for at, span in _list_value(lines, near, value.end()) if value.start() >= end else ():
                end = span[1] if at == near else end
                yield at, span


def _list_value(lines: Sequence[str], index: int, after: int) -> Iterator[tuple[int, Span]]:
    """The value of a name that ends somewhere in a line: what follows it, or the lines below."""
    line = lines[index]
    separator = _SEPARATOR.match(line, after)
    start = separator.end() if separator else after
    rest = line[start : start + _LOOKED_AT].strip()
    if rest and not _HEADER.match(rest) and not rest.startswith("#"):
        if not _is_reference(rest):
            yield index, _trim(line, start, _find_end(line, start))
        return
    # The value is below its name.
    width = _measure_indent(line)
    below = list(_list_below(lines, index, width))
    if not below or not _REFERENCE.search(lines[below[0]]):
        yield from ((at, _trim(lines[at], 0, len(lines[at]))) for at in below)


def _is_reference(rest: str) -> bool:
    if rest[0] in "{[":
        return bool(_REFERENCE.search(rest)) or rest in ("{", "[", "{}", "[]")
    word = rest.strip("\"'").rstrip("},] \t\"'")
    return not word or bool(NEVER_SECRET.fullmatch(word)) or bool(_REFERENCE.match(rest))


def _list_below(lines: Sequence[str], index: int, width: int) -> Iterator[int]:
    for at in range(index + 1, len(lines)):
        if lines[at].strip():
            if _measure_indent(lines[at]) <= width:
                return
            yield at


def _find_end(line: str, start: int) -> int:
    """Return where a value ends that begins somewhere in a line."""
    quote = line[start]
    if (
        quote in "\"'"
        and (closing := line.find(quote, start + 1)) >= 0
        and line[closing + 1 : closing + 2] in ("", *" ,}]")
    ):
        return closing + 1
    end = _END_IN_FLOW.search(line, start + 1) if "{" in line or "[" in line else None
    comment = _COMMENT.search(line, start)
    return min(end.start() if end else len(line), comment.start() if comment else len(line))


def _trim(line: str, start: int, end: int) -> Span:
    """Return a part of a line without the spaces, dashes and quotes around it."""
    part = line[start:end]
    text = part.strip(" \t\"'\r")
    text = text[2:].lstrip() if text.startswith("- ") else text
    first = start + part.index(text)
    return first, first + len(text)


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
