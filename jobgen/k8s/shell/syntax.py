"""Parse shell scripts: the part of the language of `sh` and `bash` that manifests use, as a tree of commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal as Choice
from typing import NoReturn, TypeAlias

from jobgen.k8s.shell.tree import (
    AndOr,
    Arithmetic,
    Assignment,
    Calculation,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Parameter,
    Part,
    Pipeline,
    Redirection,
    Script,
    Simple,
    Substitution,
    Test,
    Word,
    wrap,
)
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

MAX_SCRIPT = 100_000
"""The length of scripts that are parsed."""
_MAX_DEPTH = 40
_BLANK = " \t"
_META = frozenset(" \t\n;&|()<>")
_RESERVED = lazy_pattern(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|coproc|function|\{|\}|!|\[\[|time)(?=[\s;&|()<>]|\Z)"
)
_FUNCTION = lazy_pattern(r"([A-Za-z_][\w.:-]*)[ \t]*\([ \t]*\)")
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_]\w*)(?:\[([^\]\s]*)\])?(\+?)=")
_REDIRECTION = lazy_pattern(r"(\d*|&|\{\w+\})(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)")
_PARAMETER = lazy_pattern(r"[A-Za-z_]\w*|\d|[@*#?$!-]")
_BRACED = lazy_pattern(r"(\d+|[A-Za-z_]\w*|[@*#?$!-])(?:\[([^\]]*)\])?")
_OPERATOR = lazy_pattern(r":[-=?+]|[-=?+]|%%|%|##|#|/[/#%]?|\^\^?|,,?|@[A-Za-z]|:")
_NAME = lazy_pattern(r"[A-Za-z_]\w*")
# `[-f`, which names no program.
_GLUED = lazy_pattern(r"\[\[?(?:-[a-zA-Z]|!)\Z")
_DECLARING = frozenset(("declare", "export", "local", "readonly"))
# Programs whose argument can be `=`.
_PRINTING = frozenset(("echo", "printf", "expr", "test", "grep", "case"))


class UnsupportedSyntax(Exception):  # noqa: N818 -- it is not an error
    """A script has syntax that is not understood, or none that a shell understands."""


class SyntaxFault(UnsupportedSyntax):
    """A script that every shell refuses."""

    def __init__(self, kind: Fault, at: int, sign: str, other: str = "") -> None:
        self.kind, self.at, self.sign, self.other = kind, at, sign, other


Fault: TypeAlias = Choice["open", "lacking", "unexpected", "empty", "end"]
"""A sign that is not closed; a word without the other one; a word or sign without a start; nothing before the other
word; nothing behind the sign."""


_ENDING = " \t\n;&|<>()'\""
"""What follows a word that is only an escaped space, or begins a string."""
_MOST_SHOWN = 200
_SCRIPT = lazy_pattern(r"[\w-]+\.py(?=\s|\Z)")
_LONGEST_LINE = 400
_BACKSLASH = "\\"
_LAUNCH = lazy_pattern(
    r"\s*(?:exec\s+)?(?:torchrun|deepspeed|mpirun|horovodrun|accelerate\s+launch|python3?)(?:\s+(?!\S*\.py\b)[^\s;&|]+)*\s*\Z"
)


def _find_argument(text: str, start: int) -> Note | None:
    """Return the argument with which a command begins; None if it begins with a program.

    It is an option, or a script in a line below its launcher that is indented deeper.
    """
    if text[start] == "-":
        is_option = text[start + 1 : start + 3].strip("-")[:1].isalpha()
        return Note("option", start, text[start : start + _MOST_SHOWN].split(maxsplit=1)[0]) if is_option else None
    found = _SCRIPT.match(text, start)
    line = text.rfind("\n", 0, start) + 1
    if not found or not text[line:start].isspace():
        return None
    above = _find_command(text, line)
    is_deeper = start - line > len(above) - len(above.lstrip())
    is_continued = is_deeper and len(above) < _LONGEST_LINE and _LAUNCH.match(above)
    return Note("script", start, found[0]) if is_continued else None


def _find_command(text: str, end: int) -> str:
    """Return the line above a position, with the continued lines before it."""
    command = ""
    while end > 0 and len(command) < _LONGEST_LINE:
        begin = text.rfind("\n", 0, end - 1) + 1
        line = text[begin : end - 1]
        if command and not line.endswith(_BACKSLASH):
            break
        command = f"{line.removesuffix(_BACKSLASH)} {command}" if command else line
        end = begin
    return command


class Note(NamedTuple):
    """What is not meant: a here-document without an end, an option as a program, a space in a wrong place."""

    kind: Choice["document", "option", "script", "space", "bracket", "equals", "declared", "comment", "joined"]
    at: int
    text: str


class Parsed(NamedTuple):
    """A script, or the part before its fault, with what is odd about it."""

    script: Script
    """The commands at the top before the fault, if it has one."""
    starts: tuple[int, ...]
    """Where these commands start."""
    notes: tuple[Note, ...] = ()
    failure: UnsupportedSyntax | None = None
    end: int = 0
    """Up to where the script was read."""
    programs: tuple[Simple, ...] = ()
    """All commands that name a program, also those before the fault, in substitutions and in functions."""


def parse_script(text: str) -> Script:
    """Return the commands of a script; raise `UnsupportedSyntax` if it is not understood."""
    parsed = parse_all(text)
    if parsed.failure is not None:
        raise parsed.failure
    return parsed.script


@lru_cache(maxsize=512)
def parse_all(text: str, *, is_template: bool = False) -> Parsed:
    """Return the commands of a script up to what is wrong with it, or not understood.

    With `is_template`, another tool may change it before a shell reads it: `${a.b}` and `<NAME>` stay as they are.
    """
    if len(text) > MAX_SCRIPT:
        return Parsed((), (), (), UnsupportedSyntax())
    parser = _Parser(text)
    parser.is_whole, parser.is_template = True, is_template
    failure: UnsupportedSyntax | None = None
    try:
        parser.read_list(())
        if parser.at < len(text):
            parser.fail("unexpected", parser.at, parser.peek(2))
        parser.note_open_documents()
    except UnsupportedSyntax as error:
        failure = error
    except RecursionError:
        failure = UnsupportedSyntax()
    return Parsed(
        tuple(parser.top), tuple(parser.starts), tuple(parser.notes), failure, parser.at, tuple(parser.programs)
    )


def _read_plain(word: Word | Assignment, place: int) -> str:
    """Return the first or last part of a word, if it is text without quotation marks."""
    part = None if isinstance(word, Assignment) or not word else word[place]
    return part.text if isinstance(part, Literal) and not part.quoted else ""


class _Parser:
    """Reads a script from a position on."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        if depth > _MAX_DEPTH:
            raise UnsupportedSyntax
        self.pending: list[tuple[Redirection, str, bool, bool, int]] = []
        self.is_whole = False
        """True if it reads a whole script, whose faults a shell reports when it reads the script."""
        self.is_template = False
        self.opened: list[tuple[int, str]] = []
        self.notes: list[Note] = []
        self.top: list[AndOr] = []
        self.starts: list[int] = []
        self.programs: list[Simple] = []

    def fail(self, kind: Fault, at: int, sign: str, other: str = "") -> NoReturn:
        """Refuse a script; what is not sure to be refused is not understood."""
        if self.is_whole:
            raise SyntaxFault(kind, at, sign, other)
        raise UnsupportedSyntax

    def refuse(self, sign: str) -> NoReturn:
        """Refuse a word or sign here: what is open before it lacks its end, or nothing is open."""
        if self.opened:
            start, opener = self.opened[-1]
            closers = _CLOSERS[opener]
            if sign not in closers or sign != closers[-1]:
                self.fail("lacking", start, opener, closers[-1])
            if len(closers) > 1:
                self.fail("lacking", start, opener, closers[0])
        self.fail("unexpected", self.at, sign)

    def note_open_documents(self) -> None:
        """Note the here-documents that start in the last line."""
        self.notes += (Note("document", at, end) for _, end, _, _, at in self.pending)

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def skip_blanks(self) -> None:
        """Go to the next word or operator of the line; comments are blank."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in _BLANK:
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#" and (not self.at or text[self.at - 1] in _META):
                end = text.find("\n", self.at)
                self.note_comment(self.at, end)
                self.at = len(text) if end < 0 else end
            else:
                return

    def note_comment(self, at: int, end: int) -> None:
        r"""Note a comment behind a `\` and a newline, if the next line goes on with the command that it ends."""
        before, begin = self.text.rfind("\n", 0, at), self.text.rfind("\n", 0, at) + 1
        if end < 0 or before < 1 or self.text[before - 1] != "\\" or self.text[begin:at].strip():
            return
        following = self.text[end + 1 :].partition("\n")[0]
        indent = len(following) - len(following.lstrip())
        if following.strip() and (following.lstrip()[0] == "-" or indent >= at - begin > 0):
            self.notes.append(Note("comment", at, self.text[at:end].rstrip()))

    def skip_lines(self) -> None:
        """Go to the next word or operator, also on later lines."""
        self.skip_blanks()
        while self.peek() == "\n":
            self.read_newline()
            self.skip_blanks()

    def read_newline(self) -> None:
        """Read a newline, and the here-documents that start behind it."""
        self.at += 1
        pending, self.pending = self.pending, []
        for redirection, end, strips, is_quoted, start in pending:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    self.notes.append(Note("document", start, end))
                    break
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if strips else line
                if line == end:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            redirection.body.append(
                (Literal(body, quoted=True),) if is_quoted else _Parser(body, self.depth + 1).read_quoted("")
            )

    def peek_reserved(self) -> str:
        found = _RESERVED.match(self.text, self.at)
        return found[0] if found else ""

    def expect(self, word: str) -> None:
        self.skip_lines()
        if self.peek_reserved() != word:
            if self.peek() == "{" or not self.opened:
                # `for NAME { … }` is one of bash.
                raise UnsupportedSyntax
            self.fail("lacking", *self.opened[-1], word)
        self.at += len(word)

    def nest(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnsupportedSyntax

    def read_list(self, ends: tuple[str, ...], *, closing: str = "") -> Script:
        """Read commands up to one of the reserved words, or a sign, that ends them."""
        self.nest()
        found: list[AndOr] = []
        while True:
            self.skip_lines()
            if self.at >= len(self.text):
                if ends or closing:
                    self.fail("open" if closing else "lacking", *self.opened[-1], ends[-1] if ends else closing)
                break
            if self.depth == 1:
                self.starts.append(self.at)
            if (closing and self.peek() == closing) or self.peek_reserved() in ends or self.peek(2) in (";;", ";&"):
                break
            and_or = AndOr(self.read_and_or(), self.read_end(closing))
            found.append(and_or)
            if self.depth == 1:
                self.top.append(and_or)
        self.depth -= 1
        return tuple(found)

    def read_end(self, closing: str) -> str:
        """Read the sign that ends a command; empty if it closes what is open."""
        self.skip_blanks()
        sign = self.peek()
        if sign in ("", closing) or self.peek(2) in (";;", ";&"):
            return ""
        if sign in (";", "&"):
            self.at += 1
        elif sign == ")":
            self.refuse(sign)
        elif sign != "\n":
            raise UnsupportedSyntax
        return sign

    def read_and_or(self) -> tuple[tuple[str, Pipeline], ...]:
        """Read the pipelines that `&&` and `||` connect."""
        pipelines = [("", self.read_pipeline())]
        while True:
            self.skip_blanks()
            operator = self.peek(2)
            if operator not in ("&&", "||"):
                return tuple(pipelines)
            self.at += 2
            self.skip_to_command(operator)
            pipelines.append((operator, self.read_pipeline()))

    def skip_to_command(self, operator: str) -> None:
        """Go to the command behind an operator."""
        start = self.at - len(operator)
        self.skip_lines()
        if not self.peek():
            self.fail("end", start, operator)

    def read_pipeline(self) -> Pipeline:
        negated = False
        while (word := self.peek_reserved()) in ("!", "time"):
            negated ^= word == "!"
            self.at += len(word)
            self.skip_blanks()
            if word == "time" and self.peek(3) in ("-p ", "-p\t"):
                self.at += 3
                self.skip_blanks()
        commands = [self.read_command()]
        while True:
            self.skip_blanks()
            if self.peek() != "|" or self.peek(2) == "||":
                return Pipeline(tuple(commands), negated)
            operator = "|&" if self.peek(2) == "|&" else "|"
            self.at += len(operator)
            self.skip_to_command(operator)
            commands.append(self.read_command())

    def read_command(self) -> Command:
        word = self.peek_reserved()
        reader = _COMPOUND.get(word)
        if reader is not None:
            self.nest()
            self.opened.append((self.at, word))
            self.at += len(word)
            command = reader(self)
            self.opened.pop()
            self.depth -= 1
            redirections = self.read_redirections()
            return Group((wrap(command),), is_subshell=False, redirections=redirections) if redirections else command
        if word in _NEVER_FIRST:
            self.refuse(word)
        # Behind `|`, `time` is a program.
        if (word and word != "time") or not self.peek():
            raise UnsupportedSyntax
        if self.peek(2) == "((":
            end = self.find_double_parenthesis(self.at + 2)
            if end >= 0:
                expression = self.read_slice(self.at + 2, end)
                self.at = end + 2
                return Calculation(expression)
            # It is not sure that it is no calculation.
            self.is_whole = False
        if self.peek() == "(":
            self.at += 1
            body = self.read_enclosed("(")
            return Group(body, is_subshell=True, redirections=self.read_redirections())
        found = _FUNCTION.match(self.text, self.at)
        if found:
            self.at = found.end()
            return self.read_function(found[1])
        return self.read_simple()

    def read_enclosed(self, opener: str) -> Script:
        """Read commands up to the parenthesis that closes the one before."""
        start = self.at - len(opener)
        self.opened.append((start, opener))
        body = self.read_list((), closing=")")
        self.opened.pop()
        if not body and opener == "(":
            self.fail("empty", start, "(", ")")
        self.at += 1
        return body

    def read_function(self, name: str) -> Function:
        self.skip_lines()
        self.nest()
        body = self.read_command()
        self.depth -= 1
        return Function(name, body)

    def read_slice(self, start: int, end: int) -> Word:
        return _Parser(self.text[start:end], self.depth + 1).read_quoted("")

    def read_redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        self.skip_blanks()
        while redirection := self.read_redirection():
            found.append(redirection)
            self.skip_blanks()
        return tuple(found)

    def read_redirection(self) -> Redirection | None:
        match = _REDIRECTION.match(self.text, self.at)
        if match is None or (self.peek(2) in ("<(", ">(") and not match[1]):
            return None
        self.at = match.end()
        self.skip_blanks()
        start = self.at
        target = self.read_word()
        if not target and not self.is_template:
            raise UnsupportedSyntax
        redirection = Redirection(match[2], target, match[1], [])
        if match[2] in ("<<", "<<-"):
            written = self.text[start : self.at]
            end = "".join(part.text for part in target if isinstance(part, Literal))
            is_quoted = any(sign in written for sign in "'\"\\")
            self.pending.append((redirection, end, match[2] == "<<-", is_quoted, match.start()))
        return redirection

    def read_simple(self) -> Simple:
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirections: list[Redirection] = []
        start = self.at
        while True:
            self.skip_blanks()
            redirection = self.read_redirection()
            if redirection:
                redirections.append(redirection)
                continue
            sign = self.peek()
            if not sign or (sign in "\n;&|)" and self.peek(2) not in ("<(", ">(")):
                break
            assignment = self.read_assignment() if not words or _declares(words[0]) else None
            if assignment is not None:
                (words or assignments).append(assignment)
                continue
            word = self.read_word()
            if not word:
                raise UnsupportedSyntax
            words.append(word)
        if not assignments and not words and not redirections:
            sign = self.peek(2) if self.peek(2) in ("&&", "||", ";;") else self.peek()
            if sign in ("&&", "||", ";", "&", "|", ")"):
                self.refuse(sign)
            raise UnsupportedSyntax
        if (self.text[start] == "-" or ".py" in self.text[start : self.at]) and (
            argument := _find_argument(self.text, start)
        ):
            self.notes.append(argument)
        elif len(words) > 1 and (
            self.text[start] == "[" or _read_plain(words[1], 0).startswith("=") or " = " in self.text[start : self.at]
        ):
            self.note_words(start, words)
        self.programs.append(Simple(tuple(assignments), tuple(words), tuple(redirections)))
        return self.programs[-1]

    def note_words(self, start: int, words: list[Word | Assignment]) -> None:
        """Note a test without its spaces, and `NAME = value`."""
        first, second, last = _read_plain(words[0], 0), _read_plain(words[1], 0), _read_plain(words[-1], -1)
        is_open = first == "[" and (last != "]" or len(words[-1]) > 1)
        # `[$A` is one word, as `[-f` is.
        is_glued = _GLUED.match(first) or (first in ("[", "[[") and len(words[0]) > 1)
        if is_open or is_glued:
            self.notes.append(Note("bracket", start, self.text[start : self.at].strip()))
        if first in _DECLARING and second[:1] != "-" and "=" in [_read_plain(word, 0) for word in words[2:]]:
            self.notes.append(Note("declared", start, f"{first} {second}"))
        is_equals = second == "=" or (first.isupper() and second[:1] == "=" and second[1:2] != "=")
        if is_equals and _NAME.fullmatch(first) and first not in _PRINTING:
            self.notes.append(Note("equals", start, first))

    def read_assignment(self) -> Assignment | None:
        match = _ASSIGNMENT.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        if self.peek() != "(":
            return Assignment(match[1], self.read_word(), bool(match[3]), match[2])
        self.at += 1
        items: list[Word] = []
        while True:
            self.skip_lines()
            if self.peek() == ")":
                self.at += 1
                return Assignment(match[1], items, bool(match[3]))
            word = self.read_word()
            if not word:
                if not self.peek():
                    self.fail("open", match.end(), "(", ")")
                raise UnsupportedSyntax
            items.append(word)

    def read_word(self) -> Word:
        """Read a word; an empty one if there is none here."""
        parts: list[Part] = []
        start, text = self.at, self.text
        while self.at < len(text):
            sign = text[self.at]
            if sign in "<>" and self.peek(2) in ("<(", ">(") and self.at == start:
                self.at += 2
                body = self.read_enclosed(f"{sign}(")
                parts.append(Substitution(body, quoted=True, is_file=True, text=text[start : self.at]))
            elif sign in _META:
                break
            elif sign == "\\":
                parts += self.read_escaped()
            elif sign == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    self.fail("open", self.at, "'", "'")
                parts.append(Literal(text[self.at + 1 : end], quoted=True))
                self.at = end + 1
            elif sign == '"':
                parts += self.read_string()
            elif sign in "$`":
                parts.append(self.read_expansion(quoted=False))
            else:
                parts.append(Literal(self.read_plain()))
        return tuple(parts)

    def read_escaped(self) -> Word:
        """Read a backslash and the sign behind it."""
        at, sign = self.at, self.text[self.at + 1 : self.at + 2]
        self.at += 2
        end = self.text.find("\n", at)
        if sign and sign in _BLANK and end >= 0 and not self.text[at + 1 : end].strip():
            self.notes.append(Note("space", at, "\\"))
        elif sign == " " and at and self.text[at - 1] in _BLANK and self.text[self.at : self.at + 1].strip(_ENDING):
            self.notes.append(Note("joined", at, self.text[at + 1 : at + _MOST_SHOWN].split()[0]))
        return (Literal(sign, quoted=True),) if sign not in ("", "\n") else ()

    def read_plain(self) -> str:
        start, text = self.at, self.text
        while self.at < len(text) and text[self.at] not in _META and text[self.at] not in "\\'\"$`":
            self.at += 1
        return text[start : self.at]

    def read_string(self) -> Word:
        start = self.at
        self.at += 1
        parts = self.read_quoted('"')
        if self.peek() != '"':
            self.fail("open", start, '"', '"')
        self.at += 1
        return parts or (Literal("", quoted=True),)

    def read_quoted(self, end: str) -> Word:
        """Read a text up to a sign as in double quotes, where only `$`, backquotes and some backslashes count."""
        parts: list[Part] = []
        chars: list[str] = []
        text = self.text

        def finish() -> None:
            if chars:
                parts.append(Literal("".join(chars), quoted=True))
                chars.clear()

        while self.at < len(text) and (not end or text[self.at] != end):
            sign = text[self.at]
            if sign == "\\" and self.at + 1 < len(text):
                after = text[self.at + 1]
                if after in '$`\\"' + end:
                    chars.append(after if end or after != '"' else '\\"')
                elif after != "\n":
                    chars.append(sign + after)
                self.at += 2
            elif sign in "$`":
                finish()
                parts.append(self.read_expansion(quoted=True))
            else:
                stop = self.at + 1
                while stop < len(text) and text[stop] not in "\\$`" and text[stop] != end:
                    stop += 1
                chars.append(text[self.at : stop])
                self.at = stop
        finish()
        return tuple(parts)

    def read_expansion(self, *, quoted: bool) -> Part:
        """Read what `$` or a backquote starts."""
        text, start = self.text, self.at
        if text[start] == "`":
            return self.read_backquotes(quoted=quoted)
        self.at += 1
        if self.peek(2) == "((":
            end = self.find_double_parenthesis(self.at + 2)
            if end >= 0:
                expression = self.read_slice(self.at + 2, end)
                self.at = end + 2
                return Arithmetic(expression, quoted, text[start : self.at])
            self.is_whole = False
        sign = self.peek()
        if sign == "[":
            return self.read_old_arithmetic(quoted=quoted)
        if sign == "(":
            self.at += 1
            self.nest()
            body = self.read_enclosed("$(")
            self.depth -= 1
            return Substitution(body, quoted, text=text[start : self.at])
        if sign == "{":
            return self.read_reference(quoted=quoted) if self.is_template else self.read_braced(quoted=quoted)
        if sign == "'" and not quoted:
            return self.read_escapes()
        if sign == '"' and not quoted:
            return Literal("")
        found = _PARAMETER.match(text, self.at)
        if found is None:
            return Literal("$", quoted)
        self.at = found.end()
        return Parameter(found[0], quoted, text=f"${found[0]}")

    def read_old_arithmetic(self, *, quoted: bool) -> Arithmetic:
        """Read `$[…]`."""
        depth, start, end = 1, self.at - 1, self.at + 1
        while end < len(self.text) and depth:
            depth += {"[": 1, "]": -1}.get(self.text[end], 0)
            end += 1
        if depth:
            raise UnsupportedSyntax
        expression = self.read_slice(self.at + 1, end - 1)
        self.at = end
        return Arithmetic(expression, quoted, self.text[start:end])

    def read_escapes(self) -> Literal:
        """Read `$'…'`."""
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise UnsupportedSyntax
        written = self.text[self.at + 1 : end]
        self.at = end + 1
        for escape, sign in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'")):
            written = written.replace(escape, sign)
        if "\\" in written and not self.is_template:
            raise UnsupportedSyntax
        return Literal(written, quoted=True)

    def read_backquotes(self, *, quoted: bool) -> Substitution:
        start, end = self.at, self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            self.fail("open", self.at, "`", "`")
        inner = self.text[self.at + 1 : end]
        for escape in ("\\`", "\\$", "\\\\"):
            inner = inner.replace(escape, escape[1])
        self.at = end + 1
        parser = _Parser(inner, self.depth + 1)
        body = parser.read_list(())
        if parser.at < len(inner):
            raise UnsupportedSyntax
        return Substitution(body, quoted, text=self.text[start : end + 1])

    def read_reference(self, *, quoted: bool) -> Part:
        """Read `${…}`, also one of another tool."""
        at, depth = self.at, self.depth
        try:
            return self.read_braced(quoted=quoted)
        except UnsupportedSyntax:
            end = self.text.find("}", at) + 1
            if not end:
                raise
        self.at, self.depth = end, depth
        return Literal(self.text[at - 1 : end], quoted)

    def read_braced(self, *, quoted: bool) -> Parameter:
        """Read `${…}`."""
        start = self.at - 1
        self.at += 1
        self.nest()
        prefix = ""
        if self.peek() in ("#", "!") and self.peek(2)[1:] not in ("", "}", ":", "-", "+", "=", "?", "#", "%", "/"):
            prefix = self.peek()
            self.at += 1
        found = _BRACED.match(self.text, self.at)
        if found is None:
            raise UnsupportedSyntax
        self.at = found.end()
        index = None if found[2] is None else _Parser(found[2], self.depth).read_quoted("")
        operator = ""
        argument: Word = ()
        if self.peek() != "}":
            sign = _OPERATOR.match(self.text, self.at)
            if sign is None:
                raise UnsupportedSyntax
            self.at = sign.end()
            # Patterns are patterns also in double quotes.
            operator = sign[0]
            argument = self.read_argument(quoted=quoted and operator[0] not in "%#/^,")
        if self.peek() != "}":
            if not self.peek() and operator not in (":", "/", "//"):
                self.fail("open", start, "${", "}")
            raise UnsupportedSyntax
        self.at += 1
        self.depth -= 1
        return Parameter(found[1], quoted, operator, argument, index, prefix, self.text[start : self.at])

    def read_argument(self, *, quoted: bool) -> Word:
        """Read what stands behind the operator of `${…}`."""
        parts: list[Part] = []
        text = self.text
        while self.at < len(text) and text[self.at] != "}":
            sign = text[self.at]
            if sign == "\\":
                parts.append(Literal(text[self.at + 1 : self.at + 2], quoted=True))
                self.at += 2
            elif sign == '"':
                parts += self.read_string()
            elif sign == "'" and not quoted:
                end = text.find("'", self.at + 1)
                if end < 0:
                    self.fail("open", self.at, "'", "'")
                parts.append(Literal(text[self.at + 1 : end], quoted=True))
                self.at = end + 1
            elif sign in "$`":
                parts.append(self.read_expansion(quoted=quoted))
            else:
                stop = self.at + 1
                while stop < len(text) and text[stop] not in "}\\\"'$`":
                    stop += 1
                parts.append(Literal(text[self.at : stop], quoted))
                self.at = stop
        return tuple(parts)

    def find_double_parenthesis(self, at: int) -> int:
        """Return where the `))` stands that closes a `((`; -1 if other parentheses close it."""
        depth = 0
        while at < len(self.text):
            sign = self.text[at]
            if sign == "(":
                depth += 1
            elif sign == ")":
                if depth == 0:
                    return at if self.text.startswith("))", at) else -1
                depth -= 1
            elif sign in "'\"`":
                return -1
            at += 1
        return -1

    def read_if(self) -> If:
        branches: list[tuple[Script | None, Script]] = []
        condition: Script | None = self.read_list(("then",))
        while True:
            if condition is not None:
                self.expect("then")
            body = self.read_list(("elif", "else", "fi"))
            branches.append((condition, body))
            word = self.peek_reserved()
            if not body and word:
                self.fail("empty", self.at, "else" if condition is None else "then", word)
            self.at += len(word)
            if word == "fi":
                return If(tuple(branches))
            if condition is None:
                raise UnsupportedSyntax
            condition = self.read_list(("then",)) if word == "elif" else None

    def read_loop(self, *, until: bool) -> Loop:
        condition = self.read_list(("do",))
        return Loop(condition, self.read_body(), until)

    def read_body(self) -> Script:
        self.expect("do")
        body = self.read_list(("done",))
        if not body and self.peek_reserved() == "done":
            self.fail("empty", self.at, "do", "done")
        self.expect("done")
        return body

    def read_for(self) -> For:
        self.skip_blanks()
        if self.peek(2) == "((":
            end = self.find_double_parenthesis(self.at + 2)
            pieces = self.text[self.at + 2 : end].split(";") if end >= 0 else []
            if len(pieces) != 3:
                raise UnsupportedSyntax
            self.at = end + 2
            self.skip_lines()
            if self.peek() == ";":
                self.at += 1
            expressions = tuple(_Parser(piece, self.depth + 1).read_quoted("") for piece in pieces)
            return For("", None, self.read_body(), expressions)
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise UnsupportedSyntax
        self.at = found.end()
        self.skip_lines()
        words: list[Word] | None = None
        if self.text.startswith("in", self.at) and self.text[self.at + 2 : self.at + 3] in (*_META, ""):
            self.at += 2
            words = []
            self.skip_blanks()
            while word := self.read_word():
                words.append(word)
                self.skip_blanks()
        self.skip_blanks()
        if self.peek() == ";":
            self.at += 1
        return For(found[0], None if words is None else tuple(words), self.read_body())

    def read_case(self) -> Case:
        self.skip_blanks()
        subject = self.read_word()
        self.skip_lines()
        if not subject or not self.text.startswith("in", self.at):
            raise UnsupportedSyntax
        self.at += 2
        branches: list[tuple[tuple[Word, ...], Script, str]] = []
        while True:
            self.skip_lines()
            if self.peek_reserved() == "esac":
                self.at += 4
                return Case(subject, tuple(branches))
            if self.peek() == "(":
                self.at += 1
            patterns: list[Word] = []
            while True:
                self.skip_blanks()
                patterns.append(self.read_word())
                self.skip_blanks()
                sign = self.peek()
                self.at += 1
                if sign == ")" and all(patterns):
                    break
                if sign in ("", "\n", ";"):
                    self.fail("lacking", *self.opened[-1], "esac")
                if sign != "|":
                    raise UnsupportedSyntax
            body = self.read_list(("esac",))
            end = self.peek(2) if self.peek() == ";" else ""
            if end == ";&" or self.peek(3) == ";;&":
                raise UnsupportedSyntax
            self.at += len(end)
            branches.append((tuple(patterns), body, end))

    def read_group(self) -> Group:
        body = self.read_list(("}",))
        if not body and self.peek_reserved() == "}":
            self.fail("empty", self.at, "{", "}")
        self.expect("}")
        return Group(body, is_subshell=False)

    def read_named_function(self) -> Function:
        self.skip_blanks()
        found = _FUNCTION.match(self.text, self.at)
        if found:
            self.at = found.end()
            return self.read_function(found[1])
        start = self.at
        self.read_plain()
        return self.read_function(self.text[start : self.at])

    def read_test(self) -> Test:
        tokens: list[Word | str] = []
        while True:
            self.skip_lines()
            if not self.peek():
                raise UnsupportedSyntax
            if self.peek(2) == "]]":
                self.at += 2
                return Test(tuple(tokens))
            if self.peek(2) in ("&&", "||"):
                tokens.append(self.peek(2))
                self.at += 2
            elif self.peek() in ("(", ")", "<", ">"):
                tokens.append(self.peek())
                self.at += 1
            else:
                is_pattern = bool(tokens) and tokens[-1] == (Literal("=~"),)
                word = self.read_regular_expression() if is_pattern else self.read_word()
                if not word:
                    start, _ = self.opened[-1]
                    self.notes.append(Note("bracket", start, self.text[start : self.at].strip()))
                    raise UnsupportedSyntax
                tokens.append(word)

    def read_regular_expression(self) -> Word:
        """Read a pattern, which is not understood."""
        start = self.at
        while self.at < len(self.text) and not self.text[self.at].isspace():
            self.at += 1
        return (Literal(self.text[start : self.at]),)


def _declares(word: Word | Assignment) -> bool:
    """Return True if a command takes assignments as its words."""
    return word in (
        (Literal("export"),),
        (Literal("local"),),
        (Literal("declare"),),
        (Literal("typeset"),),
        (Literal("readonly"),),
    )


# Words that start no command, and what ends a command, after the word that must stand in it.
_NEVER_FIRST = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))
_LOOP = ("do", "done")
_CLOSERS: dict[str, tuple[str, ...]] = {
    "if": ("then", "fi"),
    **dict.fromkeys(("while", "until", "for"), _LOOP),
    "case": ("esac",),
    "{": ("}",),
    "function": ("}",),
    "[[": ("]]",),
    **dict.fromkeys(("(", "$(", "<(", ">("), (")",)),
}
_COMPOUND: dict[str, Callable[[_Parser], Command]] = {
    "if": _Parser.read_if,
    "while": lambda parser: parser.read_loop(until=False),
    "until": lambda parser: parser.read_loop(until=True),
    "for": _Parser.read_for,
    "case": _Parser.read_case,
    "{": _Parser.read_group,
    "function": _Parser.read_named_function,
    "[[": _Parser.read_test,
}
