"""Text behind the quotation mark that closes a value, as in `"python" train.py`, which YAML does not allow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read.flow_items import find_opening, split_items

REASON = "has text behind a closing quotation mark"
_STRING = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_BLOCK = lazy_pattern(rf"(\s*(?:- +)*(?:[\w./-]+: +)?)({_STRING}(?: *[^\s:#]| +[^\s#]|:\S).*)\Z")
_QUOTED = lazy_pattern(rf"({_STRING})(?=[^\s:]|\s+[^\s:#]|:\S)(.*)\Z")
_INNER = lazy_pattern(rf"""{_STRING}[^\s:].*["']\Z""")
_CLOSED = lazy_pattern(rf"({_STRING})\s*([\]}},]+)\s*\Z")
_ENTRY = lazy_pattern(r"""(?:[\w./-]+|"[^"]*"|'[^']*'): +""")
_COMMAND = lazy_pattern(r"\s*(?:- )?(?:command|args|entrypoint): *\Z")
_KEY_OF_COMMAND = lazy_pattern(r"\s*(?:- )?(?:command|args): +\Z")
_SIMPLE = lazy_pattern(r"[\w./=:@%+-]+\Z")


class Rejoined(NamedTuple):
    """A line as it was meant, and what else is to be written."""

    new: str
    also: str = ""


def rejoin_quotes(lines: Sequence[str], number: int) -> Iterator[Rejoined]:
    """Yield how a line was meant that has text behind a closing quotation mark."""
    line = lines[number]
    if '"' not in line and "'" not in line:
        return
    start = find_opening(line)
    if start >= 0:
        yield from _rejoin_item(line, start)
        return
    found = _BLOCK.match(line)
    if found is None:
        return
    head, (text, mark, comment) = found[1], found[2].partition(" #")
    if _INNER.match(text.rstrip()):
        # The first mark closes the value only because the same marks are inside of it.
        inner = text.strip()[1:-1]
        if text[0] == '"' and "'" not in inner:
            yield Rejoined(f"{head}'{inner}'{mark}{comment}")
        return
    if _KEY_OF_COMMAND.match(head):
        words = _split(text)
        if words:
            yield Rejoined(f"{head}[{', '.join(map(_write_item, words))}]{mark}{comment}")
    elif head.lstrip().startswith("- ") and ":" not in head and _is_of_command(lines, number):
        words = _split(text)
        if len(words) > 1:
            dashes = ", ".join(f"`- {_write_item(word)}`" for word in words[1:])
            yield Rejoined(f"{head}{_write_item(words[0])}", f", and {dashes} below it")
    else:
        yield _remove_brackets(head, text, f"{mark}{comment}") or _join(head, text, f"{mark}{comment}")


def _remove_brackets(head: str, text: str, end: str) -> Rejoined | None:
    """Return a line without the brackets and commas behind its text; None if something else is there."""
    closed = _CLOSED.match(text)
    if closed is None:
        return None
    also = f", or `{head.lstrip()}[{closed[1]}]`" if closed[2][0] == "]" else ""
    return Rejoined(f"{head}{closed[1]}{end}", also)


def _join(head: str, text: str, end: str) -> Rejoined:
    """Return a line with one text in quotes: without the inner ones if they end the text too early."""
    bare = text.replace('"', "") if '"' in text else text.replace("'", "")
    kept = f"'{text}'" if "'" not in text else ""
    is_word = text.rstrip()[-1:] not in "\"'" and " " not in text
    also = f", or `{kept}` to keep the marks" if kept and not is_word else ""
    return Rejoined(f'{head}"{bare.strip()}"{end}', also)


def _rejoin_item(line: str, start: int) -> Iterator[Rejoined]:
    """Yield a line with a comma behind the quoted item of a list, or with one text for the entry of a mapping."""
    for begin, end in split_items(line, start):
        entry = _ENTRY.match(line, begin)
        is_entry = entry is not None and entry.end() < end
        begin = entry.end() if entry and is_entry else begin  # noqa: PLW2901
        found = _QUOTED.match(line, begin, end)
        if found is None or not found[2].strip(" "):
            continue
        if line[start - 1] == "[" and not is_entry and found[2][0] == " ":
            # A comma may stand on the wrong side of the quotation mark.
            text = f"{found[1][:-2]}{found[1][-1]}" if found[1][-2] == "," else found[1]
            yield Rejoined(f"{line[: found.start(1)]}{text}, {found[2].strip()}{line[end:]}")
        elif found[2].lstrip()[0] not in "\"'":
            yield _join(line[:begin], line[begin:end], line[end:])


def _is_of_command(lines: Sequence[str], number: int) -> bool:
    """Return True if an item belongs to the list of a command."""
    width = len(lines[number]) - len(lines[number].lstrip(" "))
    above = (line for line in reversed(lines[:number]) if line.strip() and not line.lstrip(" ").startswith(("- ", "#")))
    parent = next((line for line in above if len(line) - len(line.lstrip(" ")) <= width), "")
    return _COMMAND.match(parent) is not None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _write_item(word: str) -> str:
    return word if _SIMPLE.match(word) and word[0] not in "@%" and not word.endswith(":") else f'"{word}"'
