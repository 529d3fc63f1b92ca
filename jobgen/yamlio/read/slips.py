"""Find the line that a syntax error comes from, and how it was probably meant.

YAML readers notice many slips only lines later: a line without its colon continues the text above, and a line that is
indented too little ends the mapping that it belongs to. So each line near the error is changed as if one slip of the
keyboard had not happened. The change that lets the reader get furthest, and leaves the least that looks odd, is the
likely cause. Lines are neither added nor removed, so all other locations stay the same. The lines below an item of a
list may move with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, takewhile, zip_longest

from jobgen.model.budget import RUN
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read import events as libyaml
from jobgen.yamlio.read.closed_quotes import REASON, rejoin_quotes
from jobgen.yamlio.read.comments import is_foreign_comment, to_comment
from jobgen.yamlio.read.flow_items import find_opening, quote_items
from jobgen.yamlio.read.look_alikes import count_look_alikes, describe_look_alike, find_look_alike, to_ascii
from jobgen.yamlio.read.scalars import quote
from jobgen.yamlio.read.script_lines import is_bare, list_lines_below, looks_like_script

_NEAR = 12
"""How many lines before an error are changed."""
_LONGEST = 400
"""A longer line is not changed: there are too many places for a slip."""
_LEAST_LIKELY = 6
"""How many lines nearer another change is preferred to one that removes a character."""
_LESS_LIKELY = 3
"""How many lines nearer another change is preferred to one that moves several lines."""
_CERTAIN = -1
"""The rank of a change that is not compared with others."""
_MOST = 5
"""How many slips of one document are reported."""
_MOST_SHOWN = 40
"""How many characters of a line a message shows."""
_MOST_LINES = 100
"""How many lines with the same slip are changed at once."""
_MOST_OF_TEXT = 400
"""How many lines of a block text are looked at."""
_STEPS_OF_LINE = 12
"""What a line that is not parsed counts, in characters."""
_BUDGET = 3_000_000
"""How many characters are parsed to find the slips of one document."""

_SPELLINGS = (
    (re.compile(r"(\s*(?:- )?[A-Za-z_][\w./-]*) *\Z"), r"\1:", "has no colon"),
    (re.compile(r"(\s*(?:- )?[A-Za-z_][\w./-]*) *= *([^\s=].*)\Z"), r"\1: \2", "has `=` instead of a colon"),
    (re.compile(r"(\s*(?:- )?[A-Za-z_][\w./-]*)\s+([^\s=].*)\Z"), r"\1: \2", "has no colon"),
    (re.compile(r"(\s*(?:- )?[A-Za-z_][\w./-]*):([^\s:/].*)\Z"), r"\1: \2", "has no space after its colon"),
    (re.compile(r"(\s*)-([^\s-].*)\Z"), r"\1- \2", "has no space after its dash"),
    (
        re.compile(r"(\s*[\w.-]+: )\(?([\w./-]+: [^,:{}\[\]()]+(?:, ?[\w./-]+: [^,:{}\[\]()]+)+)\)?\Z"),
        r"\1{\2}",
        "has no braces around its entries",
    ),
    (
        re.compile(r"(.*[\[,] ?)([^\[\],\"'#]+ #[^\s\],\"'#]+)(\].*|, .*\])\Z"),
        r'\1"\2"\3',
        "has a ` #`, which begins a comment",
    ),
    (
        re.compile(r"(\s*[\w.-]+: (?:\[[^\[\]\"'#]*\]|\{[^{}\"'#]*\})) +[\w.-]+: [^,\[\]{}]+\Z"),
        r"\1",
        "has another entry behind its bracket, which needs a line of its own",
    ),
    (
        re.compile(r"(\s*(?:- |[\w.-]+: )[|>][+-]?) +[^\s#].*\Z"),
        r"\1",
        "has text behind its mark, which belongs on the next line",
    ),
    (re.compile(r"(\s*)- - (.*)\Z"), r"\1- \2", "has two dashes"),
    (re.compile(r"(\s*)-  +(\S.*)\Z"), r"\1- \2", "has too many spaces after its dash"),
)
_SEPARATOR = re.compile(r"(?:--|[–—―]+|[–—]-|-[–—])\s*\Z")
"""What is written for `---`."""
_MISSING_COMMA = re.compile(r"(?<=[^,{\s:]) (?=[\w./-]+: )")
_MISSING_COMMA_OF_ITEMS = re.compile(r"(?<=[^\s,\[:{][\"']) (?=[\"'][^\s,\]])")
_KEY = re.compile(r"\s*(?:- )?(?:[\w./-]+: )?(?=\S)")
_BLOCK_KEY = re.compile(r"( *)([\w./-]+): [|>][+-]?\s*\Z")
_WHOLE_METADATA = re.compile(r"metadata: +\{[^{}#]*(?:\{[^{}#]*\}[^{}#]*)*\}\s*(?:#.*)?\Z")
_BLOCK_START = re.compile(r" *(?:- )*(?:[\w./-]+: +)?[|>][+-]?\s*\Z")
_ENTRY = re.compile(r" *(?:- |[\w./-]+:(?: |\Z))")
_WIDE_DASH = re.compile(r"( *)-  +([\w./-]+:.*)\Z")
_END_OF_QUOTE = re.compile(r"[,\]}]| #|\Z")
_APOSTROPHE = re.compile(r"""(\s*(?:- )?(?:[\w./-]+: )?)'([^'"\\]+'[^'"\\]+)'\Z""")
_BEHIND_QUOTE = re.compile(
    r"""(\s*(?:- )?(?:[\w./-]+: )?)(["'])([^"'\\]*)\2"""
    r"""([^\s"'#:\]}][^"'#\\]*|\s+[^\s"'#:\]}][^"'#\\]*?)(\s#.*)?\Z"""
)
_APOSTROPHE_IN_ITEM = re.compile(r"""(?<=[\[{,:\s])'([^'",\[\]{}\\]*\w'\w[^'",\[\]{}\\]*)'(?=\s*[,\]}])""")
_INSIDE_WORD = re.compile(r"(?<=\w)'(?=\w)")
_SPECIAL = frozenset("}]\"'&*%@`,:{[|>!?")
_CLOSING = {"[": "]", "{": "}"}
_OPENING = {"]": "[", "}": "{"}
_TAGGED = lazy_pattern(r"""\bimage: +["']?([^\s,{}"']+)["']?: +(\w[\w.-]*)(?=\s*(?:[,}]|#|\Z))""")
_ROOT_KEYS = frozenset("apiVersion kind metadata spec data stringData type items status rules subjects roleRef".split())
_ODD_KEY = re.compile(r"[\s:{}\[\],\"']")
_LONE_TEXT = re.compile(r"[A-Za-z_][\w./-]*(?:(?: +|:)[^\s:][^:]*)?\Z")
"""Text below its key, which is likely to be a field without its colon."""
_ODD_TEXT = re.compile(r"(?:\A|\s)[\w./-]+: |\w:\Z|[\"{}\[\]]")
_EXPRESSION = re.compile(r"\$\{\{[^{}]*\}\}")
"""A variable of a matrix, which is no odd text."""
_HALF_EXPRESSION = re.compile(r"(\$\{\{ *matrix\.[\w-]+ *)\}(?!\})")
_COMMAND = re.compile(r"\s*(?:- )?(?:command|args): \[")
"""A list that is no text, whatever is in it."""
_OPEN_ITEM = re.compile(r"(?<=[\[ ,])(--?[\w.-]+=)([\[{])([^\[\]{}\"']*?)(?=, ?--?\w|\]\s*\Z)")
_RUNS = tuple(each for each in _SPELLINGS if each[2] in ("has no space after its dash", "has no space after its colon"))
"""What is wrong with several lines one below another if it is with one, because the author does not know better."""
_LOOK_ALIKE_MARK = re.compile(r"[，；、：](?=[^\s\]}])")


class Slip(NamedTuple):
    """A line that is likely to be wrong, counted from 0, and what was meant."""

    line: int
    old: str
    new: str
    reason: str
    below: int = 0
    """How many lines below move with it."""
    more: tuple[str, ...] = ()
    """The lines below that have the same slip, as they were meant."""
    part: tuple[str, str] = ("", "")
    """The part of a long line that is wrong, and what was meant by it."""
    also: str = ""
    """What else is to be written."""
    parent: str = ""
    """The key that is missing above the line."""

    def apply_to(self, lines: Sequence[str]) -> list[str]:
        """Return the lines as they were meant."""
        if self.more:
            return [*lines[: self.line], self.new, *self.more, *lines[self.line + 1 + len(self.more) :]]
        end = self.line + 1 + self.below
        shift = _measure_indent(self.new) - _measure_indent(self.old)
        moved = (" " * shift + line if line else line for line in lines[self.line + 1 : end])
        moved = moved if shift > 0 else (line[-shift:] for line in lines[self.line + 1 : end])
        return [*lines[: self.line], self.new, *moved, *lines[end:]]

    @property
    def message(self) -> str:
        """What is wrong with the line, and what to write instead."""
        old, new = self.old.strip(), self.new.strip()
        if self.parent:
            more = " and the lines below it belong" if self.below else " belongs"
            return f"{quote(old)}{more} in `{self.parent}`, which is missing; write `{self.parent}:` above it"
        if old == new:
            lines = "line" if self.below == 1 else f"{self.below} lines"
            more = f", and move the {lines} below with it" if self.below else ""
            return f"{quote(old)} {self.reason}; {self._describe_indentation()}{more}"
        if not old:
            return f"{self.reason}; write `{new}` here"
        also = f", and correct the {len(self.more)} lines below in the same way" if len(self.more) > 1 else ""
        also = also or self.also or ", and correct the line below in the same way" * len(self.more)
        if self.part[0]:
            old, new = self.part
        # A long line is shortened, so that its end would not be seen.
        is_extended = new.startswith(old) and len(new) > _MOST_SHOWN
        shown = f"`{new.removeprefix(old)}` at its end" if is_extended else quote(new)
        differ = (place for place, (one, other) in enumerate(zip_longest(old, new)) if one != other)
        first = next(differ, 0)
        if first > _MOST_SHOWN // 2 and max(len(old), len(new)) > _MOST_SHOWN and not is_extended:
            start = first - _MOST_SHOWN // 2
            old, shown = f"…{old[start:]}", quote(f"…{new[start:]}")
        return f"{quote(old)} {self.reason}; write {shown}{also}"

    def _describe_indentation(self) -> str:
        """How to indent the line; in a text that is indented itself, only the difference is right."""
        own, width = _measure_indent(self.old), _measure_indent(self.new)
        if not own or "\t" in self.old[: len(self.old) - len(self.old.lstrip())]:
            return f"indent it by {width} space{'s' * (width != 1)}" if width else "remove what is before it"
        less = own - width
        return (
            f"indent it by {abs(less)} {'' if less > 0 else 'more '}space{'s' * (abs(less) != 1)}{' less' * (less > 0)}"
        )

    @property
    def column(self) -> int:
        """The column, from 0, at which the line differs from what was meant; its first one if the end is missing."""
        start = len(self.old) - len(self.old.lstrip(" \t"))
        pairs = enumerate(zip(self.old.rstrip(), self.new, strict=False))
        changed = next((column for column, (old, new) in pairs if old != new), start)
        return start if self.old.strip() == self.new.strip() else max(start, changed)


class _Repair(NamedTuple):
    """A changed line, how good it is (the less, the better), and the text with it."""

    score: tuple[int, int, float]
    slip: Slip
    text: str
    fault: libyaml.Fault | None


def find_slips(text: str, fault: libyaml.Fault) -> tuple[list[Slip], str]:
    """Return the likely slips in a text with a syntax error, and the text without them; empty if it is not YAML then.

    Without a likely slip for the first error, the list is empty, too.
    """
    slips: list[Slip] = []
    search = _Search(_find_step(text.split("\n")), _BUDGET)
    found: libyaml.Fault | None = fault
    while found and len(slips) < _MOST:
        repair = search.find_repair(text, found)
        if repair is None:
            return slips, ""
        _add(slips, repair.slip)
        text, found = repair.text, repair.fault
    return slips, "" if found else text


def _add(slips: list[Slip], slip: Slip) -> None:
    """Add a slip; a line that is changed again has one slip."""
    for index, earlier in enumerate(slips):
        if earlier.line == slip.line:
            slips[index] = slip._replace(old=earlier.old, below=max(earlier.below, slip.below))
            return
    slips.append(slip)


_UNCLOSED_ITEM = lazy_pattern(r"(=\[[^\[\]\"']{1,200}?)(, -)")
"""A list in an item that lacks its end, before an item with an option: `--ms=[30,60, --lr=2`."""


class _Search:
    """Tries changes of lines until its budget is spent."""

    def __init__(self, step: int, budget: int) -> None:
        self.step = step
        self.budget = budget

    def find_repair(self, text: str, fault: libyaml.Fault) -> _Repair | None:
        """Return the best change of one line; None if none leads beyond the error."""
        lines = text.split("\n")
        best: _Repair | None = None
        near, size = _select_near(lines, text, fault)
        for rank, slip in _list_changes(lines, fault):
            self.budget -= size
            if self.budget < 0 or not RUN.allows_advice(size):
                break
            changed = slip.apply_to(near)
            whole = "\n".join(changed)
            next_fault = libyaml.find_fault(whole)
            if next_fault and next_fault.line <= fault.line:
                continue
            reached = next_fault.line if next_fault else len(lines)
            odd = _count_odd_lines(changed, self.step) + (0 if next_fault else _count_odd_values(whole))
            # Other changes of such a line can be read, too, and mean something else.
            repair = _Repair((-reached, odd - 2 * (rank == _CERTAIN), rank), slip, whole, next_fault)
            if best is None or repair.score < best.score:
                best = repair
        return best and best._replace(text="\n".join(best.slip.apply_to(lines)))


def _select_near(lines: list[str], text: str, fault: libyaml.Fault) -> tuple[list[str], int]:
    """Return the lines that decide whether a change helps, with empty ones for the others, and how long they are.

    What is beside the error and well before it has been read, and is read in the same way after each change.
    """
    first = max(0, min(fault.start, fault.line) - 2 * _NEAR)
    if first < _MOST_LINES:
        return lines, len(text)
    kept = [""] * first + lines[first:]
    width, is_item = _measure_indent(lines[first]) + 1, False
    for number in range(first - 1, -1, -1):
        line = lines[number]
        own = _measure_indent(line)
        if line.strip() and (own < width or (own == width and is_item and not line.lstrip().startswith("-"))):
            kept[number] = line
            width, is_item = own, line.lstrip().startswith("- ")
    near = "\n".join(kept)
    size = len(near) + _STEPS_OF_LINE * len(lines)
    return (kept, size) if libyaml.find_fault(near) == fault else (lines, len(text))


def _list_changes(lines: Sequence[str], fault: libyaml.Fault) -> Iterator[tuple[float, Slip]]:
    """Yield changes of the lines near an error, each with a number that is less for likelier ones."""
    last, start = (min(number, len(lines) - 1) for number in (fault.line, fault.start))
    numbers = [number for number in range(last, max(-1, last - _NEAR), -1) if lines[number]]
    # A quote that is not closed ends where the next one begins.
    far = (number for number in range(start, last - _NEAR + 1) if _has_odd_quotes(lines[number]))
    for distance, number in enumerate(dict.fromkeys((*numbers, start, *far, *_list_parents(lines, last)))):
        line = lines[number]
        if not line or len(line) > _LONGEST or line.lstrip().startswith("#"):
            continue
        yield from ((distance, slip) for slip in _list_certain(lines, number))
        yield from ((_CERTAIN, slip) for slip in _close_gap(lines, number))
        likely = [*_align(lines, number), *_change_line(line), *_close_flow(lines, start, number)]
        below = _count_deeper(lines, number) if line.lstrip().startswith("- ") else 0
        for rank, (new, reason) in enumerate(likely, 1):
            slip = Slip(number, line, new, reason)
            yield distance + rank / 4, slip
            if below and new.lstrip() == line.lstrip(" "):
                yield distance + rank / 4 + _LESS_LIKELY, slip._replace(below=below)
        quoted, found = quote_items(line)
        if found:
            yield distance + _LESS_LIKELY / 2, _quote(number, line, quoted, found, "needs quotes")
        for at, character in enumerate(line):
            new = line[:at] + line[at + 1 :]
            # If one of two quotes is removed, the text continues on the next lines.
            if character in _SPECIAL and (_has_odd_quotes(line) or not _has_odd_quotes(new)):
                yield distance + _LEAST_LIKELY, Slip(number, line, new, f"has an extra `{character}`")


def _list_certain(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield changes of a line that are not written for another reason."""
    line = lines[number]
    if _SEPARATOR.match(line):
        yield Slip(number, line, "---", "does not separate documents")
    yield from _list_foreign(lines, number)
    if found := find_look_alike(line):
        indent = line[: len(line) - len(line.lstrip())]
        reason = f"has {describe_look_alike(found)}"
        if not indent.isascii() and to_ascii(line) == to_ascii(indent) + line.lstrip():
            reason = f"is indented with {describe_look_alike(found)}"
        yield Slip(number, line, _write_ascii(line), reason)
        run = takewhile(find_look_alike, lines[number + 1 : number + _MOST_LINES])
        more = tuple(map(_write_ascii, takewhile(partial(_is_indented, _measure_indent(line)), run)))
        if more:
            yield Slip(number, line, _write_ascii(line), reason, more=more)
    yield from _indent_text(lines, number)
    yield from _find_lost_spec(lines, number)
    yield from _indent_end(lines, number)
    for pattern, form, reason in _RUNS:
        width = _measure_indent(line)
        above = lines[number - 1] if number else ""
        if pattern.match(line) and not (pattern.match(above) and _measure_indent(above) == width):
            run = takewhile(pattern.match, lines[number + 1 : number + _MOST_LINES])
            run = takewhile(partial(_is_indented, width), run)
            more = tuple(pattern.sub(form, each) for each in run)
            if more:
                yield Slip(number, line, pattern.sub(form, line), reason, more=more)
    yield from _quote_brackets(number, line)


def _quote_brackets(number: int, line: str) -> Iterator[Slip]:
    """Yield a line with quotes around the items that have brackets, each of which may lack its last one."""
    is_inside = find_opening(line) < 0 and line.rstrip().endswith((",", "]", "}")) and ": " not in line
    start = _measure_indent(line) if is_inside else -1
    quoted, items = quote_items(line, brackets_only=True, start=start)
    if items:
        if line.count("[") > line.count("]"):
            closed = _UNCLOSED_ITEM.sub(r"\1]\2", line, count=1)
            whole, found = quote_items(closed, brackets_only=True, start=start)
            if closed != line and found:
                yield Slip(number, line, whole, "has no `]` at the end of an item, which needs quotes")
            yield Slip(number, line, quoted.rstrip() + "]", "needs quotes in an item, and a `]` at its end")
        yield _quote(number, line, quoted, items, "needs quotes because of its brackets")


def _list_foreign(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield changes of a line that would be right in another language: that of images, of a shell, of C."""
    line = lines[number]
    if "'" in line and (item := _APOSTROPHE_IN_ITEM.search(line)):
        new = f'{line[: item.start()]}"{item[1]}"{line[item.end() :]}'
        yield Slip(number, line, new, "has a `'` inside single quotes")
    for rejoined in rejoin_quotes(lines, number):
        yield Slip(number, line, rejoined.new, REASON, also=rejoined.also)
    if is_bare(line) and looks_like_script([*list_lines_below(lines, number)]):
        yield Slip(number, line, f"{line.rstrip()} |", "has the lines of a script below it, and no `|`")
    if tagged := _TAGGED.search(line):
        new = f"{line[: tagged.end(1)]}:{line[tagged.start(2) :]}"
        old = line[tagged.start(1) : tagged.end()]
        part = (old, f"{tagged[1]}:{line[tagged.start(2) : tagged.end()]}")
        yield Slip(number, line, new, "has a space before its tag", part=part)
    if (comment := to_comment(line)) != line:
        run = takewhile(is_foreign_comment, lines[number + 1 : number + _MOST_LINES])
        more = tuple(map(to_comment, run)) if is_foreign_comment(line) else ()
        yield Slip(number, line, comment, "has a comment that YAML does not know", more=more)


def _list_parents(lines: Sequence[str], number: int) -> Iterator[int]:
    """Yield the lines above a line that are indented less, the innermost first."""
    width = _measure_indent(lines[number]) if number < len(lines) else 0
    for at in range(number - 1, -1, -1):
        if width and lines[at].strip() and _measure_indent(lines[at]) < width:
            width = _measure_indent(lines[at])
            yield at


def _indent_text(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield the lines of a block text indented below its key, if they begin at the depth of the key."""
    key = _BLOCK_KEY.match(lines[number - 1]) if number else None
    if key is None or _measure_indent(lines[number]) != len(key[1]) or _ENTRY.match(lines[number]):
        return
    run = takewhile(lambda line: _measure_indent(line) == len(key[1]) and not _ENTRY.match(line), lines[number + 1 :])
    below = sum(1 for _ in zip(run, range(_MOST_LINES), strict=False))
    yield Slip(number, lines[number], f"  {lines[number]}", f"is text of `{key[2]}`, and not indented below it", below)


def _find_lost_spec(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield the lines of `spec` without the line `spec:` above them, which a complete `metadata` precedes."""
    above = next((each for each in reversed(lines[:number]) if each.strip()), "")
    width = _measure_indent(lines[number])
    if width and _WHOLE_METADATA.match(above) and not any(line.startswith("spec:") for line in lines):
        run = takewhile(lambda line: not line.strip() or _measure_indent(line) >= width, lines[number + 1 :])
        new = lines[number][width:]
        yield Slip(number, lines[number], new, "belongs in `spec`", sum(1 for _ in run), parent="spec")


def _indent_end(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield lines in the middle or at the end of a block text as deep as the text, as those of a file in a script."""
    found = _find_text(lines, number)
    if found is None or _ENTRY.match(lines[number]):
        return
    start, width = found
    own = _measure_indent(lines[start])
    resumed = last = start
    is_resumed = False
    for at in range(start + 1, min(len(lines), start + _MOST_OF_TEXT)):
        line = lines[at]
        depth = _measure_indent(line)
        is_key = _ENTRY.match(line) and (depth > 0 or line.partition(":")[0] in _ROOT_KEYS)
        if line.strip() and (depth < own or line == "---" or (is_key and depth < width)):
            break
        # The text may continue below these lines, and they may have deep lines themselves.
        is_resumed = is_resumed or (bool(line.strip()) and depth >= width)
        last = at if line.strip() and depth < width else last
        resumed = resumed if is_resumed else last
    for end in dict.fromkeys((resumed, last)):
        new = " " * (width - own) + lines[start]
        reason = "is indented less than the text that it belongs to"
        yield Slip(start, lines[start], new, reason, end - start)


def _find_text(lines: Sequence[str], number: int) -> tuple[int, int] | None:
    """Return the first line that is not as deep as the block text before a line, and how deep that is."""
    width = _measure_indent(lines[number])
    start = number
    deepest = 0
    for at in range(number - 1, max(-1, number - _MOST_OF_TEXT), -1):
        line = lines[at]
        depth = _measure_indent(line)
        if not line.strip():
            continue
        if _BLOCK_START.match(line):
            is_text = width < deepest and all(
                _measure_indent(each) >= deepest for each in lines[at + 1 : start] if each.strip()
            )
            return (start, deepest) if is_text else None
        if depth <= width:
            if deepest:
                return None
            start = at
        else:
            deepest = depth
    return None


def _close_gap(lines: Sequence[str], number: int) -> Iterator[Slip]:
    """Yield items without the spaces after their dashes if what is below them stands as if there were one."""
    run = list(takewhile(_WIDE_DASH.match, lines[number : number + _MOST_LINES]))
    ends = (line for line in lines[number + len(run) : number + len(run) + 1] if _ENTRY.match(line))
    beside = _measure_indent(next(ends, ""))
    if run and beside == _measure_indent(run[-1]) + 2:
        new, *more = (_WIDE_DASH.sub(r"\1- \2", line) for line in run)
        yield Slip(number, run[0], new, "has too many spaces after its dash", more=tuple(more))


def _write_ascii(line: str) -> str:
    new = to_ascii(_LOOK_ALIKE_MARK.sub(lambda mark: mark[0] + " ", line)).rstrip()
    return new.replace(";", ",") if "；" in line and find_opening(new) >= 0 else new


def _quote(number: int, line: str, new: str, found: list[tuple[str, str]], reason: str) -> Slip:
    others = [f"`{meant}`" for _, meant in found[1:]]
    return Slip(number, line, new, reason, part=found[0], also=f", and {', '.join(others)}" if others else "")


def _has_odd_quotes(line: str) -> bool:
    # An apostrophe inside a word is none.
    single = line.count("'") - len(_INSIDE_WORD.findall(line)) if "'" in line else 0
    return line.count('"') % 2 + single % 2 > 0


def _close_flow(lines: Sequence[str], start: int, number: int) -> Iterator[tuple[str, str]]:
    """Yield a line with the closing brackets of a list or mapping that began lines before."""
    if start < number:
        for before, reason in _balance_brackets(" ".join(lines[start : number + 1])):
            closing = before[len(before.rstrip("]}")) :]
            if reason.endswith("closed") and not lines[number].endswith(closing):
                yield lines[number].rstrip() + closing, "does not close the bracket that was opened above"


def _align(lines: Sequence[str], number: int) -> Iterator[tuple[str, str]]:
    """Yield a line with the indentation of lines around it, or as an item of the list around it."""
    line = lines[number]
    text = line.lstrip(" \t")
    own = len(line) - len(text)
    if not text or text != text.lstrip():
        return
    above = [each for each in reversed(lines[max(0, number - 20) : number]) if each.strip()]
    around = above + [each for each in lines[number + 1 : number + 3] if each.strip()]
    widths = {_measure_indent(each) for each in around} | {_measure_indent(above[0]) + 2 if above else 0}
    if text.startswith("- "):
        # The fields below are aligned with the one behind the dash.
        widths |= {_measure_indent(each) - 2 for each in lines[number + 1 : number + 2] if each.startswith("  ")}
    has_tab = "\t" in line[:own]
    reason = (
        "is indented with a tab, which YAML does not allow" if has_tab else "is not aligned with the lines around it"
    )
    beside = _measure_indent(above[0]) if above else 0
    if has_tab and above and not text.startswith("-"):
        # How wide a tab is says nothing.
        beside += 2 * above[0].lstrip().startswith("- ") + 2 * above[0].endswith(":")
        own = beside
    for width in sorted(widths | {beside}, key=lambda each: (abs(each - own), each != beside)):
        if width != own or has_tab:
            yield " " * width + text, reason
    is_item = text.startswith("-") and not text.startswith("--")
    is_parent = _measure_indent(next((each for each in lines[number + 1 :] if each.strip()), "")) == own + 2
    if not is_item and (is_parent or any(each.startswith(f"{' ' * own}- ") for each in around)):
        yield f"{' ' * own}- {text}", "has no dash among the items of a list"


def _change_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield a line without one of the usual slips, and what the slip is."""
    if not line.strip():
        yield from ((line + bracket, f"a `{bracket}` is missing") for bracket in "[]{}")
        return
    for pattern, form, reason in _SPELLINGS:
        if found := pattern.match(line):
            yield found.expand(form), reason
    if find_opening(line) >= 0 and "; " in line:
        yield line.replace("; ", ", "), "has `;` between two entries"
    yield from _complete_items(line)
    for gap in _MISSING_COMMA.finditer(line) if "{" in line else ():
        yield f"{line[: gap.start()]}, {line[gap.end() :]}", "has no comma between two entries"
    for gap in _MISSING_COMMA_OF_ITEMS.finditer(line) if "[" in line else ():
        yield f"{line[: gap.start()]}, {line[gap.end() :]}", "has no comma between two items"
    yield from _close_quotes(line)
    yield from _balance_brackets(line)
    key = _KEY.match(line)
    value, mark, comment = line[key.end() :].partition(" #") if key else ("", "", "")
    if quote_items(line)[1] or _COMMAND.match(line):
        return
    if key and key[0].strip() and value[0] not in "\"'|>" and not {'"', "\\"} & set(value):
        yield f'{key[0]}"{value.rstrip()}"{mark}{comment}', "has a value that needs quotes"
    elif key and key[0].strip() and value[0] not in "\"'|>[{" and "'" not in line and not _has_odd_quotes(line):
        yield f"{key[0]}'{value.rstrip()}'{mark}{comment}", "has a value that needs quotes"


def _complete_items(line: str) -> Iterator[tuple[str, str]]:
    if (completed := _HALF_EXPRESSION.sub(r"\1}}", line)) != line:
        yield quote_items(completed)[0], "has a variable whose `}}` lacks a bracket"
    if (item := _OPEN_ITEM.search(line)) and _COMMAND.match(line):
        quoted = f'"{item[1]}{item[2]}{item[3]}{_CLOSING[item[2]]}"'
        yield line[: item.start()] + quoted + line[item.end() :], f"has a `{item[2]}` that is not closed in an item"


def _close_quotes(line: str) -> Iterator[tuple[str, str]]:
    if behind := _BEHIND_QUOTE.match(line):
        head, mark, text, rest, comment = behind.groups("")
        yield f"{head}{mark}{text}{rest.rstrip()}{mark}{comment}", REASON
    if apostrophe := _APOSTROPHE.match(line):
        yield f'{apostrophe[1]}"{apostrophe[2]}"', "has a `'` inside single quotes"
    for mark in "\"'":
        start = line.find(mark) + 1
        ends = [*_END_OF_QUOTE.finditer(line, start)] if line.count(mark) % 2 else []
        # A comma without a space behind it is probably a part of the text.
        for end in sorted(ends, key=lambda found: line[found.start() :][:1] == "," and line[found.end()] != " "):
            yield line[: end.start()] + mark + line[end.start() :], f"has a `{mark}` that is not closed"


def _balance_brackets(line: str) -> Iterator[tuple[str, str]]:
    opened: list[str] = []
    stray, mark, last = "", "", 0
    for at, character in enumerate(line):
        if mark:
            mark = "" if character == mark else mark
        elif character in "\"'" and line[at - 1 : at] in ("", " ", "[", "{", ","):
            mark = character
        elif character in _CLOSING:
            opened.append(character)
        elif opened and character == _CLOSING[opened[-1]]:
            opened.pop()
        elif character in _OPENING:
            stray, last = stray or character, at
    key = _KEY.match(line)
    if opened and not mark:
        closing = "".join(_CLOSING[each] for each in reversed(opened))
        yield line.rstrip() + closing, f"has a `{opened[-1]}` that is not closed"
    if stray and _OPENING[stray] in line[:last]:
        yield line[:last] + line[last + 1 :], f"has an extra `{stray}`"
    elif stray and key:
        yield key[0] + _OPENING[stray] + line[key.end() :], f"has a `{stray}` that is not opened"


def _count_deeper(lines: Sequence[str], number: int) -> int:
    """Return how many lines below a line are indented deeper, and so belong to it."""
    own = _measure_indent(lines[number])
    last = number
    for index in range(number + 1, len(lines)):
        if lines[index].strip():
            if _measure_indent(lines[index]) <= own:
                break
            last = index
    return last - number


def _is_indented(width: int, line: str) -> bool:
    return _measure_indent(line) == width


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _find_step(lines: Sequence[str]) -> int:
    """Return by how many spaces lines are usually indented below their parents."""
    widths = [_measure_indent(line) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    steps = Counter(after - before for before, after in pairwise(widths) if after > before)
    return steps.most_common(1)[0][0] if steps else 2


def _count_odd_lines(lines: Sequence[str], step: int) -> int:
    """Count what looks like a slip in the layout of lines."""
    odd = 0
    open_widths = [0]
    before = ""
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            odd += bool(line) and not text
            continue
        width = _measure_indent(line)
        odd += _has_odd_quotes(line) + text.startswith("- - ") + count_look_alikes(text) + (to_comment(line) != line)
        odd += step in (2, 4) and width % step > 0
        if width > open_widths[-1]:
            is_item = before.startswith("- ")
            odd += width - open_widths[-1] != step and not (is_item and width - open_widths[-1] in (2, 2 + step))
            odd += not is_item and not before.endswith((":", "|", ">", ",", "[", "{", "-"))
            odd += 2 * (before.endswith(":") and _LONE_TEXT.match(text) is not None)
            # As if there were one space after the dash.
            odd += 2 * (before.startswith("-  ") and width - open_widths[-1] == 2)
            open_widths.append(width)
        while open_widths[-1] > width:
            open_widths.pop()
        odd += open_widths[-1] != width
        before = text.partition(" #")[0].rstrip()
    return odd


def _count_odd_values(text: str) -> int:
    """Count keys and values of a readable document that look as if they were meant as something else."""
    odd = 0
    # For each open collection: True if a key comes next, False if a value does; None in a list.
    open_collections: list[bool | None] = []
    for event in libyaml.list_events(text):
        if isinstance(event, libyaml.CollectionEndEvent):
            open_collections.pop()
            continue
        is_key = open_collections[-1] if open_collections else None
        if isinstance(event, libyaml.ScalarEvent):
            if is_key:
                odd += len(open_collections) == 1 and event.value not in _ROOT_KEYS
                odd += _ODD_KEY.search(event.value) is not None
            elif event.implicit[0]:
                is_continued = libyaml.spans_lines(event)
                value = _EXPRESSION.sub("x", event.value)
                odd += 2 * (not value or is_continued or _ODD_TEXT.search(value) is not None)
                # Items that are read as the rest of a text.
                odd += 2 * value.count(" - ") if is_continued else 0
        if (
            isinstance(event, (libyaml.ScalarEvent, libyaml.AliasEvent, libyaml.CollectionStartEvent))
            and is_key is not None
        ):
            open_collections[-1] = not is_key
        if isinstance(event, libyaml.CollectionStartEvent):
            open_collections.append(True if isinstance(event, libyaml.MappingStartEvent) else None)
    return odd
