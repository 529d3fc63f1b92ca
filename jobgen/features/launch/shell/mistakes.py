"""What is wrong with the text of a shell script: what every shell refuses, and what is certainly not meant.

A shell reads a script command by command, so what stands behind an `exit` or `exec` is never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.k8s.shell.syntax import Note, Parsed, SyntaxFault, parse_all
from jobgen.k8s.shell.tree import (
    AndOr,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Script,
    Simple,
)
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read.scalars import quote

_QUOTES = frozenset("'\"`")
_OTHER_SYNTAX = ("extglob", "{{", "}(", "\r")
"""Signs of a syntax that is not understood: patterns that an option allows, templates, other ends of lines."""

_VALUE = lazy_pattern(r"""(?:"[^"]*"|'[^']*'|\$\([^()]*\)|[^\s;&|"'()])+""")
_MAX_SHOWN = 60

# A script that ends where a command fails.
_EXITS = lazy_pattern(r"set[ \t]+(?:-o[ \t]+errexit|-[a-z]*e)")


_HARMLESS = frozenset(("echo", "exit", "false", "function", "printf", "return", "true", ":"))
"""What is written behind a command that ends the script, for the case that it does not."""
# A line behind the command of an `exec`.
_ELSE_IF = lazy_pattern(r"\b(?:else[ \t]+if|elseif|elsif)\b")
_GOES_ON = lazy_pattern(r"\bexec\s(?:[^\n]*\\\n)*[^\n]*(?:\n\s*|; *)\S")
_WAITS = lazy_pattern(r"\b(?:wait|trap|fg|disown)\b")


class Mistake(NamedTuple):
    """What is wrong with a line of a script."""

    line: int
    message: str
    is_error: bool = True
    fault: str = ""
    """What is wrong without advice, if the advice is another one for a script whose lines YAML joins."""


def find_mistakes(text: str, *, is_whole: bool = False) -> Iterator[Mistake]:
    """Yield what is wrong with a script: what follows of a fault is not yielded.

    `is_whole` says that the container ends where the script does.
    """
    if any(sign in text for sign in _OTHER_SYNTAX):
        return
    parsed = parse_all(text)
    fault = parsed.failure
    documents = [note for note in parsed.notes if note.kind == "document"]
    if fault is not None and not isinstance(fault, SyntaxFault):
        if parsed.notes and parsed.notes[-1].text.startswith("[["):
            yield _describe_bracket(text, parsed.notes[-1])
        return
    for note in documents:
        yield _describe_document(text, note)
    if fault is not None and not documents and not _ends_before(parsed, text, fault.at):
        is_certain = not any(map(_may_end, parsed.script))
        yield Mistake(_find_line(text, fault), _describe(text, fault), is_certain)
    if fault is None and not documents:
        yield from _check_lines(text, parsed)
        if (is_whole and "&" in text) or _GOES_ON.search(text):
            yield from _check_end(text, parsed, is_whole=is_whole)


def _count_lines(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _describe(text: str, fault: SyntaxFault) -> str:
    sign, other = fault.sign, fault.other
    if fault.kind == "open":
        name = "a backquote" if sign == "`" else f"the quotation mark `{sign}`" if sign in _QUOTES else f"`{sign}`"
        advice = "write the other one" if sign in _QUOTES else f"write the `{other}`"
        return f"{name} is not closed, so that the shell refuses the script; {advice}"
    if fault.kind == "lacking":
        if other in ("then", "do") and f" {other}" in text[fault.at :].partition("\n")[0]:
            message = (
                f"`{other}` is an argument here, because no `;` is before it, so that the shell refuses the script"
            )
            return f"{message}; write `; {other}`"
        advice = f"write `{other}`"
        if (sign, other) == ("if", "fi") and (found := _ELSE_IF.search(text, fault.at)):
            begins = ", which begins another `if`" if found[0].startswith("else") and not found[0][4].isalpha() else ""
            advice = f"write `elif` instead of `{found[0]}`{begins}"
        return f"`{sign}` has no `{other}`, so that the shell refuses the script; {advice}"
    if fault.kind == "empty":
        pair = f"`{sign}` and `{other}`"
        return f"nothing stands between {pair}, so that the shell refuses the script; write a command, or `:`"
    if fault.kind == "end":
        return f"no command follows `{sign}`, so that the shell refuses the script; write one, or remove `{sign}`"
    return f"`{sign}` ends nothing here, so that the shell refuses the script; remove it"


def _find_line(text: str, fault: SyntaxFault) -> int:
    """Return the line of a fault. The quotation mark that has no other is one of a line with an odd number of them."""
    if fault.kind == "open" and fault.sign in _QUOTES:
        lines = text.split("\n")
        number = _count_lines(text, fault.at)
        for at in range(number, 0, -1):
            if lines[at - 1].count(fault.sign) % 2:
                return at
    return _count_lines(text, fault.at)


def _describe_document(text: str, note: Note) -> Mistake:
    line = _count_lines(text, note.at)
    lines = enumerate(text.split("\n")[line:], line + 1)
    close = next((number for number, each in lines if each.strip() == note.text), 0)
    message = f"no line is `{note.text}` alone, so that the here-document has the rest of the script"
    if close:
        return Mistake(close, f"{message}; remove the spaces around this `{note.text}`", is_error=False)
    return Mistake(line, f"{message}; write `{note.text}` at the start of the line behind it", is_error=False)


_ARGUMENTS = ("option", "script")
_BREAKING = ("comment", "space", *_ARGUMENTS)
_JOINED = lazy_pattern(r"(&&|\|\|?)\s*\\ +\Z")


def _check_lines(text: str, parsed: Parsed) -> Iterator[Mistake]:
    """Yield lines that end a command too early."""
    lines = text.split("\n")
    is_error = has_broken_command(parsed) and _find_last(parsed) >= parsed.starts[-1]
    last = -1
    for note in parsed.notes:
        line = _count_lines(text, note.at)
        # What follows in the next lines is a consequence.
        is_first, last = line > last + 1, line
        if note.kind == "comment" and is_first:
            last = _find_end_of_comments(lines, line)
            is_last = _count_lines(text, parsed.starts[-1]) == last + 1
            yield Mistake(line, _describe_comment(lines, last, note.text), is_error or is_last)
        elif note.kind == "joined" and is_first:
            fault = f"the space behind `\\` is a part of the next word, which is ` {note.text}`"
            is_parsed = _read_name(parsed.script[0]) in _PARSING
            yield Mistake(line, f"{fault}; remove the `\\`", is_parsed, fault)
        elif note.kind == "space" and is_first:
            message = "a space behind the `\\` ends the command here; remove the space"
            if joined := _JOINED.search(lines[line - 1]):
                # What is left of a line that was changed often begins with arguments.
                message = (
                    f"behind `{joined[1]}`, `\\` and a space are a command that does not exist; remove the space, and"
                )
                message += " check that the next line begins with a command"
            yield Mistake(line, message, is_error and not any(each.kind == "script" for each in parsed.notes))
        elif note.kind in _ARGUMENTS and is_first and line > 1 and lines[line - 2].strip():
            yield _describe_ended(lines, line, note.text, is_error)
            return
        elif note.kind == "bracket":
            yield _describe_bracket(text, note)
        elif note.kind == "declared":
            program, name = note.text.split()
            message = f"`=` is not the name of a variable, and `{name}` gets no value"
            meant = f"{program} {name}={find_value(text, note.at, name)}"
            message = f"{message}; write `{meant}` without the spaces around `=`"
            yield Mistake(line, message, _ends_script(parsed, text, note.at))
        elif note.kind == "equals":
            message = f"`{note.text}` is run as a program, because `=` has a space before it"
            meant = f"{note.text}={find_value(text, note.at, note.text)}"
            message = f"{message}; write `{meant}` without the spaces around `=`"
            yield Mistake(line, message, _ends_script(parsed, text, note.at))


_PARSING = frozenset(("accelerate", "deepspeed", "python", "python3", "torchrun"))
"""Programs that take an option with a space before it for their script."""


def _find_end_of_comments(lines: Sequence[str], line: int) -> int:
    """Return the last of the lines with comments that begin with a line."""
    return next((at for at in range(line, len(lines)) if not lines[at].lstrip().startswith("#")), len(lines))


def _describe_comment(lines: Sequence[str], last: int, comment: str) -> str:
    following = quote(lines[last].split()[0]) if last < len(lines) and lines[last].strip() else "the next line"
    shown = quote(comment.removesuffix("\\").rstrip())
    message = f"the comment {shown} ends the command, and {following} behind it is run as a program"
    return f"{message}; remove the comment, or move it above the command"


_ARGUMENT = lazy_pattern(r"\s*(?:-|[\w./-]+\.py\b)")
_COMPOUND = lazy_pattern(r"(?:\b(?:then|do|else|in)|[{(;&|])\s*\Z")


def _describe_ended(lines: Sequence[str], line: int, option: str, is_error: bool) -> Mistake:
    """Describe a command that lines without a backslash end, of which this line has an option.

    Lines above that begin with an argument, and are indented as deep as the option, belong to the command too.
    """
    depth = _measure_indent(lines[line - 1])
    first = line - 1
    while first > 1 and _measure_indent(lines[first - 1]) >= depth > 0 and _ARGUMENT.match(lines[first - 1]):
        if lines[first - 2].rstrip().endswith("\\"):
            break
        first -= 1
    if first < line - 1 and (_COMPOUND.search(lines[first - 1]) or not lines[first - 1].strip()):
        first = line - 1
    last = line
    while last < len(lines) and lines[last].strip() and _is_rest(lines[last], depth):
        last += 1
    open_lines = [number for number in range(first, last) if not lines[number - 1].rstrip().endswith("\\")]
    signs = {lines[number - 1].rstrip()[-1:] for number in open_lines}
    instead = f" instead of `{signs.pop()}`" if len(signs) == 1 and signs <= {"^", "/"} else ""
    *others, final = map(str, open_lines)
    where = f"lines {', '.join(others)} and {final}" if others else f"line {final}"
    if len(others) > 2 and open_lines[-1] - open_lines[0] == len(others):
        where = f"lines {open_lines[0]} to {final}"
    advice = f"write `\\`{instead} at the end of {where}"
    if first == line - 1:
        message = f"`{option}` is run as a program, because the line before it ends the command"
        return Mistake(line, f"{message}; {advice}", is_error)
    program = lines[first].split()[0]
    return Mistake(first, f"the command ends, and `{program}` of the next line is run as a program; {advice}", is_error)


def _is_rest(line: str, depth: int) -> bool:
    """Return True if a line goes on with the arguments of a command whose options have a depth."""
    return _measure_indent(line) >= depth and line.lstrip().startswith("-")


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def find_value(text: str, at: int, name: str) -> str:
    """Return what stands behind the name of a variable and `=`, as it is written; `…` if it is long or not plain."""
    line = text[at:].partition("\n")[0].partition(name)[2].lstrip()
    found = _VALUE.match(line.lstrip(":").removeprefix("=").lstrip())
    return found[0] if found and "`" not in found[0] and len(found[0]) <= _MAX_SHOWN else "…"


def _describe_bracket(text: str, note: Note) -> Mistake:
    """Say what a test lacks: a space behind its bracket, or the other bracket with a space before it."""
    found = note.text
    sign = "[[" if found.startswith("[[") else "["
    close = "]" * len(sign)
    inner = found[len(sign) :].rstrip("]").strip() if "\n" not in found else ""
    meant = f"`{sign} {inner} {close}`" if inner and "`" not in inner else f"`{sign}` and a space"
    word = found.split()[0]
    behind = text[note.at + len(found) :].partition("\n")[0].strip()
    message = f"`{sign}` has no `{close}` as its last word, so that the test always fails"
    if word != sign:
        message = f"`{word}` is run as a program, so that the test always fails; write {meant}"
    elif found.endswith("]"):
        message += f"; write a space before `{close}`"
    elif behind[:2] in ("&&", "||") and "[" not in behind.partition("]")[0] and "]" in behind:
        message = f"`{behind[:2]}` ends the test before its `]`, so that it always fails; write `[[ … ]]`"
    else:
        message += f"; write {meant}"
    return Mistake(_count_lines(text, note.at), message, is_error=False)


def _check_end(text: str, parsed: Parsed, *, is_whole: bool) -> Iterator[Mistake]:
    """Yield what ends a script before the commands behind it, or before what it started."""
    for number, and_or in enumerate(parsed.script[:-1]):
        if _read_name(and_or) == "exec" and _ends(and_or):
            rest = zip(parsed.script[number + 1 :], parsed.starts[number + 1 :], strict=False)
            lost = next((at for other, at in rest if _read_name(other) not in _HARMLESS), -1)
            if lost >= 0:
                command = quote(text[lost:].partition("\n")[0].strip())
                message = f"`exec` ends the script here, so that {command} never runs; remove `exec`"
                yield Mistake(_count_lines(text, parsed.starts[number]), message, is_error=False)
            return
    number = next((at for at in range(len(parsed.script) - 1, -1, -1) if not _is_quick(parsed.script[at])), -1)
    if number >= 0 and is_whole and _stays_behind(parsed.script[number]) and not _WAITS.search(text):
        is_last = number == len(parsed.script) - 1
        message = "the script ends here, and with it the container and what runs in the background"
        if not is_last:
            message = "nothing waits for this command, which ends with the script and the container"
        line = _count_lines(text, parsed.starts[number])
        yield Mistake(line, f"{message}; remove `&`, or write `wait` below it", is_error=False)


def _is_quick(and_or: AndOr) -> bool:
    """Return True for a command that ends at once, such as `echo`, or an assignment."""
    command = and_or.pipelines[0][1].commands[0]
    is_assignment = isinstance(command, Simple) and not command.words
    is_alone = len(and_or.pipelines) == 1 and not and_or.is_background
    return is_alone and (is_assignment or _read_name(and_or) in _HARMLESS)


def _stays_behind(and_or: AndOr) -> bool:
    """Return True if the last command that a script starts runs in the background."""
    command = and_or.pipelines[-1][1].commands[-1]
    body = command.body if isinstance(command, (For, Loop)) else ()
    return and_or.is_background or (bool(body) and _stays_behind(body[-1]))


def _read_name(and_or: AndOr) -> str:
    """Return the name of the first program of a command; `function` for the definition of one, and empty for others."""
    command = and_or.pipelines[0][1].commands[0]
    if isinstance(command, Function):
        return "function"
    first = command.words[0] if isinstance(command, Simple) and command.words else ()
    return first[0].text if len(first) == 1 and isinstance(first[0], Literal) else ""


def _ends_script(parsed: Parsed, text: str, at: int) -> bool:
    """Return True if a script certainly fails where a command at the top, which is alone, fails."""
    number = next((place for place, start in enumerate(parsed.starts) if start == at), None)
    if number is None or number >= len(parsed.script):
        return False
    before = parsed.script[:number]
    and_or = parsed.script[number]
    is_alone = len(and_or.pipelines) == 1 and not and_or.is_background and not and_or.pipelines[0][1].negated
    is_alone = is_alone and len(and_or.pipelines[0][1].commands) == 1
    stops = any(_EXITS.match(text, start) for start in parsed.starts[:number]) or number + 1 == len(parsed.script)
    return is_alone and stops and not any(_ends(each) or _may_end(each) for each in before)


def _find_last(parsed: Parsed) -> int:
    return max(note.at for note in parsed.notes if note.kind in _BREAKING)


def has_broken_command(parsed: Parsed) -> bool:
    """Return True if a script starts an argument as a program, or ends a command too early by a comment."""
    return any(note.kind in ("comment", *_ARGUMENTS) for note in parsed.notes)


def _ends_before(parsed: Parsed, text: str, at: int) -> bool:
    """Return True if a command in a line before a position ends the script."""
    start = parsed.starts[len(parsed.script)] if len(parsed.starts) > len(parsed.script) else at
    return any(
        _ends(each) and "\n" in text[begin:start] for each, begin in zip(parsed.script, parsed.starts, strict=False)
    )


def _ends(and_or: AndOr) -> bool:
    """Return True if a command certainly ends the script."""
    _, pipeline = and_or.pipelines[0]
    is_single = len(and_or.pipelines) == 1 and len(pipeline.commands) == 1 and not and_or.is_background
    return is_single and _is_end(pipeline.commands[0])


def _is_end(command: Command) -> bool:
    if not isinstance(command, Simple) or not command.words:
        return False
    first = command.words[0]
    name = first[0].text if len(first) == 1 and isinstance(first[0], Literal) else ""
    return name == "exit" or (name == "exec" and len(command.words) > 1)


def _succeeds(command: Command) -> bool:
    """Return True if a command that ends the script may end it without an error."""
    last = command.words[-1] if isinstance(command, Simple) else ()
    is_failure = len(last) == 1 and isinstance(last[0], Literal) and last[0].text.strip("0").isdecimal()
    return _is_end(command) and not is_failure


def _may_end(and_or: AndOr) -> bool:
    """Return True if a condition decides whether a command ends the script."""
    return any(_has_end(command) for _, pipeline in and_or.pipelines for command in pipeline.commands)


def _has_end(command: Command) -> bool:
    bodies: list[Script] = []
    if isinstance(command, If):
        bodies = [body for _, body in command.branches]
    elif isinstance(command, Case):
        bodies = [body for _, body, _ in command.branches]
    elif isinstance(command, (For, Loop, Group)):
        bodies = [command.body]
    inner = (
        each for body in bodies for and_or in body for _, pipeline in and_or.pipelines for each in pipeline.commands
    )
    return any(_succeeds(each) or _has_end(each) for each in inner)
