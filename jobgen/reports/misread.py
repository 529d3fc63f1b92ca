"""Reports what was written instead of what YAML reads: a value split at its commas, characters that look like others.

YAML takes `--gpus=0,1,2` in brackets as three items, and `２` as text. The checks report the parts; the person needs
one finding about the whole. This comes after severities and suppressions, as `consequences` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Severity, TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports.entries import RANK
from jobgen.reports.placeholders import VALUE_RULES
from jobgen.yamlio.read.comments import to_comment
from jobgen.yamlio.read.flow_items import find_opening, split_items
from jobgen.yamlio.read.look_alikes import describe_look_alike, find_look_alike, to_ascii
from jobgen.yamlio.read.scalars import quote, resolve

_SPLIT_RULES = frozenset(
    "ambiguous-scalar curly-quote deletes-nothing split-argument stray-quote unknown-field wrong-type".split()
)
_LOOK_ALIKE_RULES = (VALUE_RULES - {"yaml-syntax", "template-text", "unfilled-placeholder"}) | frozenset(
    "deletes-nothing unknown-field unknown-role unknown-resource unknown-variable".split()
)
_COMMENT_RULES = _LOOK_ALIKE_RULES | frozenset("bad-queue-name command-in-one-string unknown-queue".split())
_CONCERNED = _SPLIT_RULES | _COMMENT_RULES | {"folded-item"}
_LONGEST_LINE = 2000
_LONGEST = 120
_ENTRY = lazy_pattern(r"""([\w./-]+|"[^"]*"|'[^']*'): +""")
_NUMBER = lazy_pattern(r"[-+.\d][\w.+-]*[”\"]?")
_OPTION = lazy_pattern(r"-{1,2}[A-Za-z]")
_OPTION_WITH_VALUE = lazy_pattern(r"-{1,2}[A-Za-z][^\s=]*=.")
# The mapping that is opened, and those whose keys users choose.
_NAME = lazy_pattern(r"([\w.-]+): *$")
_FREE = frozenset("annotations env labels matchLabels nodeSelector".split())
_LISTS = frozenset("args command extends frameworks kinds names namespaces platforms".split())
_WORD = lazy_pattern(r"""[^,\[\]{}]+""")
_MARK = lazy_pattern(r"[：，；、](?=[^\s\]}])")
_CURLY = "“”„‘’"


class _Split(NamedTuple):
    """A value that YAML splits: its columns, from 0, its parts, and whether they are entries of a mapping.

    `is_option` says that an option with its value begins it, in a list with spaces: the commas separate no items.
    `is_list` says that a list is wanted, as in `{names: a, b}`.
    """

    begin: int
    end: int
    parts: tuple[tuple[int, int], ...]
    is_mapping: bool
    is_option: bool = False
    is_list: bool = False


def explain_misread(findings: Sequence[Finding], read_text: Callable[[str], str]) -> list[Finding]:
    """Return the findings with one for each text that is read in another way than it was written."""
    if not any(each.rule in _CONCERNED for each in findings):
        return list(findings)
    read_lines = cache(lambda file: read_text(file).split("\n"))
    pairs = [(each, _explain(each, read_lines)) for each in findings]
    refused = {found.location for _, found in pairs if found and found.severity is Severity.ERROR}
    texts = [found.location for _, found in pairs if found and found.location.end_line > found.location.line]
    left: dict[object, Finding] = {}
    for each, found in pairs:
        if found is None:
            if each.rule != "folded-item" or not any(_is_inside(each.location, text) for text in texts):
                left[id(each)] = each
        elif found.severity is Severity.ERROR or found.location not in refused:
            left.setdefault((found.location, found.env), found)
    return _join_folded([*left.values()], read_lines)


def _is_inside(location: Location, around: Location) -> bool:
    return location.file == around.file and around.line <= location.line <= around.end_line


def _join_folded(findings: Sequence[Finding], read_lines: Callable[[str], Sequence[str]]) -> list[Finding]:
    """Return the findings; a command that is wrong because the item below was read as its rest is that item's fault.

    So is a script whose lines YAML has joined.
    """
    folded = {(each.location.file, each.location.line): each for each in findings if each.rule == "folded-item"}
    begun = {each.location[:3]: each for each in folded.values()}
    joined: set[tuple[str, int]] = set()
    left: list[Finding] = []
    for each in findings:
        key = (each.location.file, each.location.line + 1)
        if folded and each.rule == "command-in-one-string" and key in folded:
            joined.add(key)
            each = folded[key]._replace(severity=each.severity)  # noqa: PLW2901
            if each in left:
                continue
        header = _find_header(each, folded, read_lines) if folded and each.rule == "script-syntax" else None
        if header is not None and each.severity is folded[header].severity:
            continue
        if header is not None:
            joined.add(header)
            each = folded[header]._replace(severity=min(each.severity, folded[header].severity, key=RANK.__getitem__))  # noqa: PLW2901
            if each in left:
                continue
        if each.rule == "wrong-type" and (item := begun.get(each.location[:3])):
            # The first item has no space after its dash, so the whole list is one text.
            joined.add((item.location.file, item.location.line))
            each = item._replace(severity=each.severity)  # noqa: PLW2901
            if each in left:
                continue
        left.append(each)
    return [each for each in left if not any(each is folded[key] for key in joined)]


def _find_header(
    found: Finding, folded: Mapping[tuple[str, int], Finding], read_lines: Callable[[str], Sequence[str]]
) -> tuple[str, int] | None:
    """Return the place of the finding about the lines that a script is in; None if YAML has joined none of them."""
    file, line = found.location.file, found.location.line
    start = max((number for name, number in folded if name == file and number <= line), default=0)
    if not start:
        return None
    width = folded[file, start].location.column
    below = read_lines(file)[start:line]
    is_inside = all(not each.strip() or len(each) - len(each.lstrip(" ")) >= width for each in below)
    return (file, start) if is_inside else None


def _explain(found: Finding, read_lines: Callable[[str], Sequence[str]]) -> Finding | None:
    """Return the finding about the text that a person wrote; None if it is read as it was written."""
    at = found.location
    is_known = found.rule in _SPLIT_RULES or found.rule in _LOOK_ALIKE_RULES or found.rule in _COMMENT_RULES
    if not at.line or not is_known:
        return None
    line, *below = [each.rstrip("\r") for each in read_lines(at.file)[at.line - 1 : max(at.line, at.end_line)]] or [""]
    if len(line) > _LONGEST_LINE:
        return None
    if found.severity is Severity.ERROR and any("//" in value or "/*" in value for value in found.values):
        return _report_comment(found, line)
    # A key without a value is reported where the value is missing.
    is_empty = at.end_line == at.line and at.end_column == at.column > 1
    split = _find_split(line, at.column - 1 - is_empty) if found.rule in _SPLIT_RULES else None
    if split:
        return _report_split(found, line, split)
    if found.severity is not Severity.ERROR or line.isascii() or found.rule not in _LOOK_ALIKE_RULES:
        return None
    return _report_look_alike(found, line, below)


def _report_comment(found: Finding, line: str) -> Finding | None:
    """Return the finding about a comment of another language, which is a part of the value."""
    begin = found.location.column - 1
    comment = to_comment(line)
    at = comment.find("#")
    if comment == line or at < begin or line.count(line[at : at + 2]) > 1:
        return None
    # A list that was read as the rest of the comment is no other fault.
    place = found.location._replace(column=at + 1)
    message = f"{quote(line[at:].strip())} is not a comment in YAML; write {quote(comment[at:])}"
    return found._replace(message=message, location=place, fix=None)


def _report_split(found: Finding, line: str, split: _Split) -> Finding:
    written = line[split.begin : split.end]
    text = written.strip(_CURLY)
    text = text.strip("\"'") if text.count('"') % 2 or text.count("'") % 2 else text
    meant = f"[{', '.join(text.replace(' ', '').split(','))}]" if split.is_list else _quote(text)
    curly = next((mark for mark in written if mark in _CURLY), "")
    reason = f", because `{curly}` is not a quotation mark of YAML" if curly else ""
    count = f" into {len(split.parts)} {'entries' if split.is_mapping else 'items'}"
    message = f"{quote(written)} is split at its commas{count}{reason}; write `{meant}`"
    place = _place(found.location, split.begin, split.end)
    return found._replace(message=message, location=place, fix=_fix_split(found, line, split, text))


def _fix_split(found: Finding, line: str, split: _Split, text: str) -> Fix | None:
    """Return the fix that quotes the whole text; None if the commas may separate items, or if it has stray quotes.

    It is unsafe where the parts are accepted today: the program may read them.
    """
    begin, end = split.begin, split.end
    if line[begin:end] != text or '"' in text or "\\" in text or split.is_list:
        return None
    if not (split.is_mapping or split.is_option):
        return None
    edit = TextEdit("join", _place(found.location, *split.parts[0]), text)
    return Fix((edit,), safe=found.rule != "split-argument" or ("(" in text and text.endswith(")")))


def _report_look_alike(found: Finding, line: str, below: Sequence[str]) -> Finding | None:
    at = found.location
    begin = at.column - 1
    if at.end_line == at.line and at.end_column == at.column > 1:
        begin = max(line.rfind(mark, 0, begin) for mark in ",[]{}") + 1
        begin += len(line[begin:]) - len(line[begin:].lstrip(" "))
    ends_here = at.end_line == at.line and at.end_column > at.column
    word = _WORD.match(line, begin)
    end = at.end_column - 1 if ends_here else len(line) if at.end_line > at.line else word.end() if word else begin
    written = line[begin:end].partition(" #")[0].strip(" ")
    mark = find_look_alike(written)
    meant = to_ascii(_MARK.sub(lambda each: each[0] + " ", written)).strip()
    if not mark or not meant.isascii() or len(meant) > _LONGEST or "`" in meant:
        return None
    message = f"{quote(written)} has {describe_look_alike(mark)}; write `{meant}`"
    if written == mark:
        message = f"{describe_look_alike(mark).replace('`, ', '` is ', 1)}; write `{meant}`"
    elif not line[:begin].strip() and not written[0].isalnum() and to_ascii(written[0]) == " ":
        message = f"`{meant}` is indented with {describe_look_alike(mark)}; indent it with spaces"
    elif lines := sum(map(bool, map(find_look_alike, below))):
        message += f", and correct the {f'{lines} lines' if lines > 1 else 'line'} below in the same way"
    return found._replace(message=message, fix=_fix_look_alike(found, line, end, written, meant))


def _fix_look_alike(found: Finding, line: str, end: int, written: str, meant: str) -> Fix | None:
    """Return the fix of a key or of a plain value of one line; None if it would change what the text consists of."""
    if found.location.end_line != found.location.line or any(mark in meant for mark in ",[]{}\"'`: "):
        return None
    is_key = line[end:].lstrip().startswith(":")
    value: Any = meant if is_key or written[0] in "\"'" else resolve(meant)
    return Fix((TextEdit("rename" if is_key else "set", found.location, value),), safe=True)


def _place(location: Location, begin: int, end: int) -> Location:
    return Location(location.file, location.line, begin + 1, location.line, end + 1)


def _quote(text: str) -> str:
    mark = "'" if '"' in text or "\\" in text else '"'
    return mark + (text.replace("'", "''") if mark == "'" else text) + mark


def _find_split(line: str, column: int) -> _Split | None:
    """Return the value around a column that YAML splits at commas; None if it does not."""
    opened = [at for at, mark in enumerate(line[:column]) if mark in "[{"]
    for at in reversed(opened):
        items = [*split_items(line, at + 1)]
        index = next((index for index, (begin, end) in enumerate(items) if begin <= column < end), -1)
        if index >= 0:
            name = _NAME.search(line, 0, at)
            around = name[1] if name else ""
            return _join_entries(line, items, index, around) if line[at] == "{" else _join_items(line, items, index)
    if find_opening(line) < 0 and ": " not in line and line.rstrip().endswith((",", "]")):
        # A list that was opened on a line above.
        items = [*split_items(line, 0)]
        index = next((index for index, (begin, end) in enumerate(items) if begin <= column < end), -1)
        return _join_items(line, items, index) if index >= 0 else None
    return None


def _join_entries(line: str, items: Sequence[tuple[int, int]], index: int, around: str) -> _Split | None:
    """Return the entry and the items behind it without a colon: `{A: 0,1,2}`.

    Where users choose the names, a word without a space before it is a part, too: `labels: {a: x,y}`. Where a list is
    wanted, every word is.
    """
    first = index
    while first > 0 and not _ENTRY.match(line, items[first][0]):
        first -= 1
    entry = _ENTRY.match(line, items[first][0])
    if entry is None or entry.end() >= items[first][1] or line[entry.end()] in "[{\"'":
        return None
    last = first
    is_list = entry[1] in _LISTS or around == "matrix"
    is_text = entry[1].isupper() or (around in _FREE and not _is_compact(line, items))
    if not is_list and not is_text:
        return None
    while last + 1 < len(items) and _continues(line, items, last + 1, is_list=is_list):
        last += 1
    if not first < last or index > last or (index == first and last == first):
        return None
    parts = ((entry.end(), items[first][1]), *items[first + 1 : last + 1])
    return _Split(entry.end(), items[last][1], parts, is_mapping=True, is_list=is_list)


def _is_compact(line: str, items: Sequence[tuple[int, int]]) -> bool:
    """Return True if two entries have no space between them: `{a: b,c: d}`."""
    return any(line[end:begin] == "," and _ENTRY.match(line, begin) for (_, end), (begin, _) in pairwise(items))


def _continues(line: str, items: Sequence[tuple[int, int]], index: int, *, is_list: bool) -> bool:
    """Return True if an item is a part of the value before it: a number, or a text without a space before it."""
    begin, end = items[index]
    text = line[begin:end]
    if _ENTRY.match(line, begin) or text[0] in "[{\"'" or " " in text or "=" in text:
        return False
    is_near = line[items[index - 1][1] : begin] == ","
    return _NUMBER.fullmatch(text) is not None or is_list or is_near


def _join_items(line: str, items: Sequence[tuple[int, int]], index: int) -> _Split | None:
    """Return the items around one that have no spaces between them, if they are one value: `--gpus=0,1,2`."""
    gaps = [line[end:begin] for (_, end), (begin, _) in pairwise(items)]
    texts = [line[begin:end] for begin, end in items]
    first = last = index
    depth = texts[index].count("(") - texts[index].count(")")
    while depth > 0 and last + 1 < len(items):
        last += 1
        depth += texts[last].count("(") - texts[last].count(")")
    if last > first and depth == 0:
        parts, is_option = tuple(items[first : last + 1]), _OPTION_WITH_VALUE.match(texts[first]) is not None
        return _Split(items[first][0], items[last][1], parts, is_mapping=False, is_option=is_option)
    while first > 0 and gaps[first - 1] == "," and not _starts_value(texts[first]):
        first -= 1
    last = first
    value = texts[first].partition("=")[2]
    while last + 1 < len(items) and gaps[last] == "," and _may_follow(texts[last + 1], value):
        last += 1
    if not first <= index <= last or first == last or any(text[0] in "[{\"'" for text in texts[first : last + 1]):
        return None
    # In a list without any space, each item may be meant as one.
    is_one = "=" in texts[first] or texts[first][0] in _CURLY or ", " in gaps
    is_option = ", " in gaps and _OPTION_WITH_VALUE.match(texts[first]) is not None
    parts = tuple(items[first : last + 1])
    return _Split(items[first][0], items[last][1], parts, is_mapping=False, is_option=is_option) if is_one else None


def _may_follow(text: str, value: str) -> bool:
    """Return True if an item may be the next part of the value of an option; a number is followed by numbers."""
    if _NUMBER.fullmatch(value) and value[0] != "-":
        return _NUMBER.fullmatch(text) is not None and not _OPTION.match(text)
    return not _starts_value(text) or ("=" in value and not _OPTION.match(text))


def _starts_value(text: str) -> bool:
    return _OPTION.match(text) is not None or "=" in text or text[0] in "“„‘"
