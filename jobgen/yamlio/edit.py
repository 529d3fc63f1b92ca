"""Edit YAML text in place: set a scalar, rename a key, remove or add an entry, change a comment.

Everything outside the edited node stays byte for byte. Every edit is verified: the new text, read again, must be the
old data with only that change; otherwise nothing is changed.
"""

from __future__ import annotations

import copy
import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from jobgen.model.data import Location, Node, TracedKey, TracedScalar, untraced, value_of
from jobgen.model.finding import TextEdit
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.suggest import find_key
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_inline_yaml

_ODD = lazy_pattern(r"\A\ufeff|[\x85\u2028\u2029]|\r(?!\n)")
_NON_SPACE = lazy_pattern(r"\S")
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_NOT_PLAIN = lazy_pattern(r"[|>&*!\"']")
_OPTION = lazy_pattern(r"--?[A-Za-z]")
_OPTION_WITH_VALUE = lazy_pattern(r"--?[A-Za-z][^\s=]*=.")

_READ_AS_TEXT = frozenset(("non-finite-number", "invalid-key", "folded-item"))
"""What is wrong with a value or a key, but leaves no doubt about the rest of the file."""


class EditRefusedError(Exception):
    """The text cannot be edited; the message gives the reason."""


class _Target(NamedTuple):
    """The entry to edit: its mapping or list, its key or index there, and the collections above."""

    holder: Any
    step: Any
    parents: tuple[tuple[Any, Any], ...] = ()
    """Outermost first, each with the key or index of the next one."""


def apply_edits(content: bytes, file: str, edits: Sequence[TextEdit]) -> bytes:
    """Apply all edits to a text; raise `EditRefusedError` if one of them cannot be applied. A byte order mark stays."""
    mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
    content = content.removeprefix(mark)
    refusal = find_refusal(content)
    if refusal:
        raise EditRefusedError(refusal)
    text = content.decode("utf-8")
    read_text = _Text(text, file) if any(edit.op == "quote" for edit in edits) else None
    resolved = [_resolve_quote(edit, read_text) if read_text and edit.op == "quote" else edit for edit in edits]
    different = [edit for at, edit in enumerate(resolved) if edit not in resolved[:at]]
    # From the end to the beginning, so that earlier locations stay valid.
    ordered = sorted(
        different, key=lambda edit: (edit.location.line, edit.location.column, edit.op == "add"), reverse=True
    )
    wanted = _read_documents(content, file)
    for edit in ordered:
        if edit.op != "comment":
            _apply_to_data(edit, wanted)
    comments = dict(_Text(text, file).find_comment(edit) for edit in ordered if edit.op == "remove")
    for edit in ordered:
        text = _Text(text, file).apply(edit, comments)
    new = text.encode("utf-8")
    if [untraced(document) for document in _read_documents(new, file)] != [untraced(document) for document in wanted]:
        raise EditRefusedError("the edit would change more than it should")
    return mark + new


def find_refusal(content: bytes) -> str:
    """Return why no edit of a text is possible; empty if edits are."""
    try:
        text = content.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return "the file is not UTF-8; save it as UTF-8 text"
    odd = _ODD.search(text)
    if odd is None:
        return ""
    shown = f"line {text.count(chr(10), 0, odd.start()) + 1} has the character `U+{ord(odd[0]):04X}`"
    return f"{shown}, which editors and readers of YAML count differently; remove it"


def list_repeated(content: bytes, file: str) -> frozenset[tuple[int, int]]:
    """Return where the keys and scalars are, as line and column, that an alias repeats: no edit changes one of them."""
    if b"*" not in content or b"&" not in content:
        return frozenset()
    places = Counter(
        each[1:3] for tree in read(content, file, traced=True).documents for each in _list_scalars(tree.data)
    )
    return frozenset(place for place, count in places.items() if count > 1)


def _resolve_quote(edit: TextEdit, text: _Text) -> TextEdit:
    """`quote` becomes `set` with the text of the scalar: `1.10` is set to the string `1.10`.

    If commas without spaces cut one text into several parts, it becomes `join` with the whole text.
    """
    begin, end = text.span(edit.location)
    if not _is_plain(written := text.text[begin:end]):
        raise EditRefusedError("the value is not a plain scalar")
    target = _find_target(edit, text.documents)
    parts = text.find_parts(target)
    if not parts:
        return edit._replace(op="set", value=written)
    start, stop = text.offset(*parts[0][1:3]), text.span(parts[-1])[1]
    return edit._replace(op="join", location=parts[0], value=text.text[start:stop], was=None)


def _is_plain(written: str) -> bool:
    return bool(written) and not _NOT_PLAIN.match(written) and "\n" not in written


def _apply_to_data(edit: TextEdit, trees: Sequence[Any]) -> None:
    """Apply an edit to the data, to compare the edited text with."""
    target = _find_target(edit, trees)
    holder = target.holder
    if edit.op == "set":
        is_scalar = not isinstance(edit.value, dict)
        new = TracedScalar(edit.value, holder[target.step].location) if is_scalar else copy.deepcopy(edit.value)
        holder[target.step] = new
    elif edit.op == "join":
        _join_parts(target, str(edit.value))
    elif edit.op == "split":
        _split_item(target, edit.value)
    elif edit.op == "remove":
        widest = _widen(target)
        del widest.holder[widest.step]
    elif isinstance(holder, list):
        raise EditRefusedError("an item of a list has no name")
    else:
        entries = list(holder.items())
        at = [key for key, _ in entries].index(target.step)
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


def _join_parts(target: _Target, whole: str) -> None:
    """Make one text of parts that commas separate: of items of a list, or of a value and the keys behind it."""
    holder, more = target.holder, whole.count(",")
    start = [*holder].index(target.step) if isinstance(holder, dict) else target.step
    behind = [*holder][start + 1 : start + 1 + more] if isinstance(holder, dict) else []
    joined = TracedScalar(whole, holder[target.step].location)
    if isinstance(holder, dict):
        holder[target.step] = joined
        for key in behind:
            del holder[key]
    else:
        holder[start : start + 1 + more] = [joined]


def _split_item(target: _Target, parts: Any) -> None:
    """Make items of an item of a list."""
    holder, at = target.holder, target.step
    if not isinstance(holder, list) or not parts:
        raise EditRefusedError("the value is not an item of a list")
    holder[at : at + 1] = [TracedScalar(part, holder[at].location) for part in parts]


def _widen(target: _Target) -> _Target:
    """The entry to remove with an entry: a mapping that would be empty is removed, too."""
    while len(target.holder) == 1 and target.parents and isinstance(target.parents[-1][0], dict):
        *rest, (holder, step) = target.parents
        target = _Target(holder, step, tuple(rest))
    return target


class _Text:
    """A text, and where its scalars, comments and brackets are."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.documents = _read_documents(text.encode("utf-8"), file)
        masked = list(text)
        for location in _list_scalars(self.documents):
            begin, end = self.span(location)
            masked[begin:end] = _NON_SPACE.sub("x", text[begin:end])
        self.masked = _COMMENT.sub(lambda found: " " * len(found[0]), "".join(masked))
        self.is_json = file.endswith(".json")

    def offset(self, line: int, column: int) -> int:
        # A block scalar at the end of a text without a final newline ends on a line that does not exist.
        return self.starts[line - 1] + column - 1 if line <= len(self.starts) else len(self.text)

    def span(self, location: Location) -> tuple[int, int]:
        return self.offset(location.line, location.column), self.offset(location.end_line, location.end_column)

    def find_comment(self, edit: TextEdit) -> tuple[str, str]:
        """The name of an entry that is removed, in lower case, and the comment after it on its line."""
        line = self.starts[edit.location.line - 1]
        text, written = self._line(self.masked, edit.location.line).rstrip(), self._line(self.text, edit.location.line)
        target = _find_target(edit._replace(was=None), self.documents)
        alone = self._find_braces(line + len(text)) is None and isinstance(target.holder[target.step], TracedScalar)
        return str(target.step).lower(), written[len(text) :].rstrip() if alone else ""

    def apply(self, edit: TextEdit, comments: Mapping[str, str]) -> str:
        """Apply an edit; an entry that moves takes its comment with it."""
        if edit.op == "comment":
            begin, end = self.span(edit.location)
            if "\n" in self.text[self.starts[edit.location.line - 1] : end]:
                raise EditRefusedError("the line of the comment is shorter than it was")
            return self._set_comment(begin, end, str(edit.value))
        target = _find_target(edit._replace(was=None), self.documents)
        if edit.op == "set":
            return self._splice(*self.span(edit.location), self._format_scalar(edit))
        if edit.op == "join":
            begin = self.offset(edit.location.line, edit.location.column)
            return self._splice(begin, begin + len(str(edit.value)), self._format(edit.value))
        if edit.op == "split":
            return self._split(edit)
        if edit.op == "rename":
            return self._splice(*self.span(edit.location), self._format(edit.value))
        if edit.op == "remove":
            return self._remove(_widen(target))
        moved = next(iter(edit.value)) if isinstance(edit.value, dict) and edit.value else edit.key
        return self._add(target, edit, comments.get(edit.key.lower()) or comments.get(moved.lower(), ""))

    def _split(self, edit: TextEdit) -> str:
        """Write an item as others: behind commas in brackets, otherwise on lines of their own."""
        begin, end = self.span(edit.location)
        start = self.text[self.starts[edit.location.line - 1] : begin]
        is_alone = start.strip() == "-"
        if "\n" in self.text[begin:end] or (not is_alone and self._find_braces(begin) is None):
            raise EditRefusedError("the item is not alone on its line")
        parts: Sequence[Any] = edit.value if isinstance(edit.value, list) else ()
        return self._splice(begin, end, (f"\n{start}" if is_alone else ", ").join(map(self._format, parts)))

    def _splice(self, begin: int, end: int, new: str) -> str:
        return self.text[:begin] + new + self.text[end:]

    def _set_comment(self, begin: int, end: int, new: str) -> str:
        """Replace a comment; without new text, remove it with the space before it, or its whole line."""
        if not self.text[begin:end].startswith("#"):
            raise EditRefusedError("the comment at that location is gone")
        if new:
            return self._splice(begin, end, new)
        line = self.text.rfind("\n", 0, begin) + 1
        if self.text[line:begin].strip():
            return self._splice(len(self.text[:begin].rstrip(" \t")), end, "")
        newline = self.text.find("\n", end)
        return self._splice(line, newline + 1 if newline >= 0 else len(self.text), "")

    def _format(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False) if self.is_json else to_inline_yaml(value)

    def _format_scalar(self, edit: TextEdit) -> str:
        begin, end = self.span(edit.location)
        old = self.text[begin:end]
        if old[:1] in ("|", ">"):
            raise EditRefusedError("the value is a block of text")
        if old[:1] == '"' and isinstance(edit.value, str):
            return json.dumps(edit.value, ensure_ascii=False)
        if old[:1] == "'" and isinstance(edit.value, str) and edit.value.isprintable():
            return "'" + edit.value.replace("'", "''") + "'"
        return self._format(edit.value)

    def _find_braces(self, at: int) -> tuple[int, int] | None:
        """The innermost brackets or braces around a position."""
        opened: list[int] = []
        for match in re.finditer(r"[\[\]{}]", self.masked):
            if match[0] in "[{":
                opened.append(match.start())
            elif opened:
                begin = opened.pop()
                if begin < at <= match.start():
                    return begin, match.start()
        return None

    def find_parts(self, target: _Target) -> list[Location]:
        """The parts of the one text that commas without spaces have cut; none if the value is a text of its own.

        `[train.py, --gpus=0,1]` was meant as `"--gpus=0,1"`, and `{GPUS: 0,1}` as `"0,1"`. Where it is unknown whether
        the commas separate items, as in `[--gpus, 0,1]`, the edit is refused.
        """
        holder, step = target.holder, target.step
        if isinstance(holder, dict):
            found = self._take_run([holder[step], *_list_keys_behind(holder, step)], 0)
            return found if len(found) > 1 else []
        run, is_compact = self._take_run(holder, step), self._is_compact(holder)
        texts = [self.text[slice(*self.span(each))] for each in run]
        # An option without its value is an item of its own, and so is what follows it.
        own = next(at for at, each in enumerate(run) if _is_at(holder[step], each))
        start = max((at for at in range(own + 1) if _OPTION.match(texts[at])), default=0)
        if _OPTION.match(texts[start]) and not _OPTION_WITH_VALUE.match(texts[start]):
            start += start < own
        stop = next((at for at in range(own + 1, len(run)) if _OPTION.match(texts[at])), len(run))
        if stop - start < 2 or (is_compact and not _OPTION_WITH_VALUE.match(texts[start])):
            # In `[train.py,--epochs,3]`, all commas are without spaces.
            return []
        if is_compact or stop < len(run) or not _OPTION_WITH_VALUE.match(texts[start]):
            raise EditRefusedError("it is unknown whether the commas without spaces separate items")
        return run[start:stop]

    def _is_compact(self, items: Sequence[Any]) -> bool:
        """Return True if no comma of a list has a space beside it."""
        spans = [self.span(each.location) for each in items if isinstance(each, TracedScalar)]
        return len(spans) == len(items) and all(self.text[end:start] == "," for (_, end), (start, _) in pairwise(spans))

    def _take_run(self, nodes: Sequence[Any], own: int) -> list[Location]:
        """The locations of the plain scalars around one of them with nothing but a comma between them."""
        first = last = own
        while first and self._is_joined(nodes[first - 1], nodes[first]):
            first -= 1
        while last + 1 < len(nodes) and self._is_joined(nodes[last], nodes[last + 1]):
            last += 1
        return [node.location for node in nodes[first : last + 1]]

    def _is_joined(self, one: Any, other: Any) -> bool:
        if not all(isinstance(each, (TracedScalar, TracedKey)) for each in (one, other)):
            return False
        (begin, end), (start, stop) = self.span(one.location), self.span(other.location)
        return self.text[end:start] == "," and all(map(_is_plain, (self.text[begin:end], self.text[start:stop])))

    def _siblings(self, target: _Target) -> tuple[TracedKey, TracedKey | None, TracedKey | None]:
        """The key, the one before it and the one after it."""
        keys = list(target.holder)
        at = keys.index(target.step)
        return keys[at], keys[at - 1] if at else None, keys[at + 1] if at + 1 < len(keys) else None

    def _remove(self, target: _Target) -> str:
        if not isinstance(target.holder, dict):
            raise EditRefusedError("only entries of mappings can be removed")
        key, before, after = self._siblings(target)
        begin = self.offset(key.location.line, key.location.column)
        flow = self._find_braces(begin)
        if flow and after:
            return self._splice(begin, self.offset(after.location.line, after.location.column), "")
        if flow:
            comma = self.masked.rfind(",", flow[0], begin) if before else flow[0] + 1
            return self._splice(comma, len(self.text[: flow[1]].rstrip()), "")
        line_start = self.starts[key.location.line - 1]
        if self.text[line_start:begin].strip():
            # The first entry of a list item is on the line of the dash: the next entry moves there.
            if after is None:
                raise EditRefusedError("the entry is the only one of its item")
            return self._splice(begin, self.offset(after.location.line, after.location.column), "")
        return self._splice(line_start, self._find_end(key, target.holder[key]), "")

    def _add(self, target: _Target, edit: TextEdit, comment: str) -> str:
        key, _, after = self._siblings(target)
        entry = f"{self._format(edit.key)}: {self._format(edit.value)}"
        begin = self.offset(key.location.line, key.location.column)
        flow = self._find_braces(begin)
        if flow and after:
            at = self.offset(after.location.line, after.location.column)
            return self._splice(at, at, f"{entry}, ")
        if flow:
            at = len(self.text[: flow[1]].rstrip())
            return self._splice(at, at, f", {entry}")
        at = self._find_end(key, target.holder[key])
        newline = "\r\n" if "\r\n" in self.text else "\n"
        missing = "" if self.text[:at].endswith("\n") else newline
        return self._splice(at, at, f"{missing}{' ' * (key.location.column - 1)}{entry}{comment}{newline}")

    def _find_end(self, key: TracedKey, value: Any) -> int:
        """The start of the line after a block entry; comments above the next entry belong to that."""
        indent = key.location.column - 1
        last = key.location.line
        for number in range(key.location.line + 1, len(self.starts) + 1):
            line = self._line(self.masked, number)
            text = line.strip()
            if not text:
                # A comment with a deeper indent belongs to the entry, and so does a blank line in a block scalar.
                comment = self._line(self.text, number)
                if comment.strip() and len(comment) - len(comment.lstrip()) > indent:
                    last = number
                continue
            depth = len(line) - len(line.lstrip())
            own = depth > indent or (
                depth == indent and (text[0] in "]}" or (isinstance(value, list) and text[0] == "-"))
            )
            if not own or text == "---":
                break
            last = number
        return self.starts[last] if last < len(self.starts) else len(self.text)

    def _line(self, text: str, number: int) -> str:
        end = self.starts[number] if number < len(self.starts) else len(text)
        return text[self.starts[number - 1] : end]


def _list_keys_behind(holder: Mapping[Any, Any], step: Any) -> Iterator[Any]:
    """Yield the keys without values that follow an entry, as `1` and `2` in `{GPUS: 0,1,2}`."""
    keys = list(holder)
    for key in keys[keys.index(step) + 1 :]:
        if value_of(holder[key]) is not None:
            return
        yield key


def _read_documents(content: bytes, file: str) -> list[Any]:
    source = read(content, file, traced=True)
    if any(each.rule not in _READ_AS_TEXT for each in source.findings):
        raise EditRefusedError("the file cannot be read")
    return [document.data for document in (*source.documents, *source.repaired)]


def _find_target(edit: TextEdit, trees: Sequence[Any]) -> _Target:
    """Find the one entry whose key or scalar an edit is about."""
    targets = [target for tree in trees for target in _find_entries(tree, edit.location)]
    if not targets:
        raise EditRefusedError("there is nothing at that location any more")
    if len(targets) > 1:
        raise EditRefusedError("the value is used in several places, by an alias")
    target = targets[0]
    is_mapping = isinstance(target.holder, dict)
    key, value = find_key(target.holder, target.step) if is_mapping else None, target.holder[target.step]
    node = key if _is_at(key, edit.location) else value
    is_other_key = edit.op == "rename" and node is not key
    if is_other_key or (edit.op in ("set", "quote", "split") and not isinstance(node, TracedScalar)):
        raise EditRefusedError("the location has something else")
    if edit.op == "remove" and edit.key and key != edit.key:
        raise EditRefusedError(f"`{edit.key}` was derived from `{key}`, which is at that location")
    # A number may have become a string on the way, or a quantity its canonical form.
    written = str(value_of(node))
    if edit.was is not None and str(edit.was) not in (written, canonicalize_quantity(written)):
        raise EditRefusedError(f"`{edit.was}` was derived from `{value_of(node)}`, which is at that location")
    return target


def _find_entries(tree: Any, location: Location, parents: tuple[tuple[Any, Any], ...] = ()) -> Iterator[_Target]:
    if isinstance(tree, (dict, list)):
        for step, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if _is_at(step, location) or _is_at(child, location):
                yield _Target(tree, step, parents)
            yield from _find_entries(child, location, (*parents, (tree, step)))


def _is_at(node: Any, location: Location) -> bool:
    return isinstance(node, (TracedKey, TracedScalar)) and node.location[1:3] == location[1:3]


def _list_scalars(tree: Node) -> Iterator[Location]:
    """Yield the locations of all keys and scalars of a tree."""
    if isinstance(tree, (dict, list)):
        for part in (part for pair in tree.items() for part in pair) if isinstance(tree, dict) else tree:
            yield from _list_scalars(part)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location
