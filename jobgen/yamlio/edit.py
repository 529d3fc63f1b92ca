"""Changes of a YAML text that touch nothing else: a scalar set, a key renamed, an entry taken out or put in.

What is outside the touched node stays byte for byte. A change proves itself: the new text, read again, is the old data
with just that change, or nothing is changed at all.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence

from jobgen.model.data import Data, Location, TracedKey, TracedScalar, untraced
from jobgen.model.finding import TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.write import to_inline_yaml
from jobgen.yamlio.written import EditRefusedError, Place, documents, place_of, scalars

__all__ = ["EditRefusedError", "apply_edits"]

_WORDS = lazy_pattern(r"\S")
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_NOT_PLAIN = lazy_pattern(r"[|>&*!\"']")


def apply_edits(content: bytes, file: str, edits: Sequence[TextEdit]) -> bytes:
    """The text with all changes made; `RefusedError` if one of them cannot be."""
    text = _decoded(content)
    # From the end to the beginning, so that places above stay what they are.
    ordered = sorted(
        _once(edits), key=lambda edit: (edit.location.line, edit.location.column, edit.op == "add"), reverse=True
    )
    ordered = [_quoted(edit, _Page(text, file)) if edit.op == "quote" else edit for edit in ordered]
    wanted = documents(content, file)
    for edit in ordered:
        if edit.op != "comment":
            _change(edit, wanted)
    carried = dict(_Page(text, file).remarks(edit) for edit in ordered if edit.op == "remove")
    for edit in ordered:
        text = _Page(text, file).change(edit, carried)
    new = text.encode("utf-8")
    if [untraced(document) for document in documents(new, file)] != [untraced(document) for document in wanted]:
        raise EditRefusedError("the change would touch more than it should")
    return new


def _once(edits: Sequence[TextEdit]) -> list[TextEdit]:
    return [edit for place, edit in enumerate(edits) if edit not in edits[:place]]


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise EditRefusedError("the file is not UTF-8") from None
    if text.startswith("\ufeff") or re.search("[\x85\u2028\u2029]|\r(?!\n)", text):
        raise EditRefusedError("the file has characters that readers count differently")
    return text


def _quoted(edit: TextEdit, page: _Page) -> TextEdit:
    """A scalar is put in quotes as it is written: `1.10` is set to the text `1.10`."""
    begin, end = page.span(edit.location)
    written = page.text[begin:end]
    if not written or _NOT_PLAIN.match(written) or "\n" in written:
        raise EditRefusedError("the value is not a plain word")
    return edit._replace(op="set", value=written)


def _change(edit: TextEdit, trees: Sequence[Data]) -> None:
    """Make the change in the data, as the text shall read afterwards."""
    place = place_of(edit, trees)
    holder = place.holder
    if edit.op == "set":
        holder[place.step] = TracedScalar(edit.value, holder[place.step].location)
    elif edit.op == "remove":
        _take_out(place)
    elif isinstance(holder, list):
        raise EditRefusedError("an item of a list has no name")
    else:
        entries = list(holder.items())
        at = [key for key, _ in entries].index(place.step)
        if edit.op == "rename":
            key = TracedKey.at(str(edit.value), entries[at][0].location)
            entries[at] = (key, entries[at][1])
        elif edit.key in holder:
            raise EditRefusedError(f"`{edit.key}` is there already")
        else:
            entries.insert(at + 1, (edit.key, copy.deepcopy(edit.value)))
        if len(dict(entries)) != len(entries):
            raise EditRefusedError(f"`{edit.value}` is there already")
        holder.clear()
        holder.update(entries)


def _take_out(place: Place) -> None:
    """Take an entry out, and with the last one what held it."""
    holder, step, above = place
    while True:
        del holder[step]
        if holder or not above or isinstance(above[-1][0], list):
            return
        *rest, (holder, step) = above
        above = tuple(rest)


class _Page:
    """A text, and where its scalars, comments and brackets are."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.documents = documents(text.encode("utf-8"), file)
        masked = list(text)
        for location in scalars(self.documents):
            begin, end = self.span(location)
            masked[begin:end] = _WORDS.sub("x", text[begin:end])
        self.masked = _COMMENT.sub(lambda found: " " * len(found[0]), "".join(masked))
        self.is_json = file.endswith(".json")

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column - 1

    def span(self, location: Location) -> tuple[int, int]:
        return self.offset(location.line, location.column), self.offset(location.end_line, location.end_column)

    def remarks(self, edit: TextEdit) -> tuple[str, str]:
        """The name of an entry that is taken out, in small letters, and the comment behind it on its line."""
        line = self.starts[edit.location.line - 1]
        said, written = self._line(self.masked, edit.location.line).rstrip(), self._line(self.text, edit.location.line)
        place = place_of(edit._replace(was=None), self.documents)
        alone = self._flow(line + len(said)) is None and isinstance(place.holder[place.step], TracedScalar)
        return str(place.step).lower(), written[len(said) :].rstrip() if alone else ""

    def change(self, edit: TextEdit, carried: Mapping[str, str]) -> str:
        if edit.op == "comment":
            return self._commented(*self.span(edit.location), str(edit.value))
        place = place_of(edit._replace(was=None), self.documents)
        if edit.op == "set":
            return self._spliced(*self.span(edit.location), self._scalar(edit))
        if edit.op == "rename":
            return self._spliced(*self.span(edit.location), self._written(edit.value))
        if edit.op == "remove":
            while len(place.holder) == 1 and place.above and isinstance(place.above[-1][0], dict):
                # An empty mapping would be left behind: it goes too.
                *rest, (holder, step) = place.above
                place = Place(holder, step, tuple(rest))
            return self._without(place)
        moved = next(iter(edit.value)) if isinstance(edit.value, dict) and edit.value else edit.key
        # Who moves an entry means what is said of it, too.
        return self._with(place, edit, carried.get(edit.key.lower()) or carried.get(moved.lower(), ""))

    def _spliced(self, begin: int, end: int, new: str) -> str:
        return self.text[:begin] + new + self.text[end:]

    def _commented(self, begin: int, end: int, new: str) -> str:
        """Another comment in the place of one; without any, the space before it goes too, or its whole line."""
        if not self.text[begin:end].startswith("#"):
            raise EditRefusedError("there is no comment at that place any more")
        if new:
            return self._spliced(begin, end, new)
        line = self.text.rfind("\n", 0, begin) + 1
        if self.text[line:begin].strip():
            return self._spliced(len(self.text[:begin].rstrip(" \t")), end, "")
        newline = self.text.find("\n", end)
        return self._spliced(line, newline + 1 if newline >= 0 else len(self.text), "")

    def _written(self, value: Data) -> str:
        return json.dumps(value, ensure_ascii=False) if self.is_json else to_inline_yaml(value)

    def _scalar(self, edit: TextEdit) -> str:
        begin, end = self.span(edit.location)
        old = self.text[begin:end]
        if old[:1] in ("|", ">"):
            raise EditRefusedError("the value is a block of text")
        if old[:1] == '"' and isinstance(edit.value, str):
            return json.dumps(edit.value, ensure_ascii=False)
        if old[:1] == "'" and isinstance(edit.value, str) and edit.value.isprintable():
            return "'" + edit.value.replace("'", "''") + "'"
        return self._written(edit.value)

    def _flow(self, at: int) -> tuple[int, int] | None:
        """The innermost braces around a place."""
        opened: list[int] = []
        for match in re.finditer(r"[\[\]{}]", self.masked):
            if match[0] in "[{":
                opened.append(match.start())
            elif opened:
                begin = opened.pop()
                if begin < at <= match.start():
                    return begin, match.start()
        return None

    def _siblings(self, place: Place) -> tuple[TracedKey, TracedKey | None, TracedKey | None]:
        """The key itself, the one before it and the one behind it."""
        keys = list(place.holder)
        at = keys.index(place.step)
        return keys[at], keys[at - 1] if at else None, keys[at + 1] if at + 1 < len(keys) else None

    def _without(self, place: Place) -> str:
        if not isinstance(place.holder, dict):
            raise EditRefusedError("only entries of mappings can be taken out")
        key, before, behind = self._siblings(place)
        begin = self.offset(key.location.line, key.location.column)
        flow = self._flow(begin)
        if flow and behind:
            return self._spliced(begin, self.offset(behind.location.line, behind.location.column), "")
        if flow:
            comma = self.masked.rfind(",", flow[0], begin) if before else flow[0] + 1
            return self._spliced(comma, len(self.text[: flow[1]].rstrip()), "")
        line_start = self.starts[key.location.line - 1]
        if self.text[line_start:begin].strip():
            # The first of a list item shares its line with the dash: the next one moves up to it.
            if behind is None:
                raise EditRefusedError("the entry is all that its item has")
            return self._spliced(begin, self.offset(behind.location.line, behind.location.column), "")
        return self._spliced(line_start, self._end_of(key, place.holder[key]), "")

    def _with(self, place: Place, edit: TextEdit, remark: str) -> str:
        key, _, behind = self._siblings(place)
        entry = f"{self._written(edit.key)}: {self._written(edit.value)}"
        begin = self.offset(key.location.line, key.location.column)
        flow = self._flow(begin)
        if flow and behind:
            at = self.offset(behind.location.line, behind.location.column)
            return self._spliced(at, at, f"{entry}, ")
        if flow:
            at = len(self.text[: flow[1]].rstrip())
            return self._spliced(at, at, f", {entry}")
        at = self._end_of(key, place.holder[key])
        newline = "\r\n" if "\r\n" in self.text else "\n"
        missing = "" if self.text[:at].endswith("\n") else newline
        return self._spliced(at, at, f"{missing}{' ' * (key.location.column - 1)}{entry}{remark}{newline}")

    def _end_of(self, key: TracedKey, value: Data) -> int:
        """The beginning of the line behind a block entry; comments above what follows belong to what follows."""
        indent = key.location.column - 1
        last = key.location.line
        for number in range(key.location.line + 1, len(self.starts) + 1):
            line = self._line(self.masked, number)
            said = line.strip()
            if not said:
                # A comment that is indented deeper belongs to the entry, and so does a blank line in a block of text.
                comment = self._line(self.text, number)
                if comment.strip() and len(comment) - len(comment.lstrip()) > indent:
                    last = number
                continue
            depth = len(line) - len(line.lstrip())
            own = depth > indent or (
                depth == indent and (said[0] in "]}" or (isinstance(value, list) and said[0] == "-"))
            )
            if not own or said == "---":
                break
            last = number
        return self.starts[last] if last < len(self.starts) else len(self.text)

    def _line(self, text: str, number: int) -> str:
        end = self.starts[number] if number < len(self.starts) else len(text)
        return text[self.starts[number - 1] : end]
