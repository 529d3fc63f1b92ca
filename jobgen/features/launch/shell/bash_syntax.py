"""Syntax of Bash in scripts that `sh` runs, which is dash in the images of Debian and Ubuntu, and ash in Alpine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.features.launch.shell.mistakes import Mistake
from jobgen.k8s.shell.steps import list_words
from jobgen.k8s.shell.syntax import parse_all
from jobgen.k8s.shell.tree import (
    Assignment,
    Calculation,
    Command,
    For,
    Function,
    Parameter,
    Script,
    Simple,
    Substitution,
    Test,
    list_bodies,
)
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

# The `sh` of these images is Bash.
_WITH_BASH = lazy_pattern(
    r"(?i)fedora|centos|rocky|alma|rhel|redhat|\bubi\d|\bel[789]\b|amazonlinux|oraclelinux|suse|sles|bci-|archlinux"
)
# The `sh` of these images is the ash of BusyBox, which knows more than dash.
_WITH_ASH = lazy_pattern(r"(?i)alpine|busybox|(?:^|/)(?:library/)?(?:bash|docker)(?:[:@]|\Z)")
# A script that asks which shell runs it, or that starts Bash itself.
_ASKS = lazy_pattern(r"\bBASH_VERSION\b|\bexec\s+(?:\S*/env\s+)?(?:\S*/)?bash\b")
_KEYWORD = lazy_pattern(r"\bfunction\s+([\w.-]+)")
_OPTION_TEST = lazy_pattern(r"\(\s*set\s+-[a-z]*o\s+pipefail")
# Programs that only Bash has, which dash and ash look for as files.
_BUILTINS = frozenset("declare typeset shopt mapfile readarray pushd popd compgen enable caller".split())


class _Syntax(NamedTuple):
    """What only Bash understands: how messages name it, a pattern that finds it, and what `sh` says or does."""

    name: str
    pattern: str
    effect: str
    is_in_ash: bool = False


_NOT_FOUND = "`{0}: not found`"
_ARRAY = _Syntax("an array", r"\w+(?:\[[^]]*\])?\+?=\(", '`Syntax error: "(" unexpected`')
_ITEM = _Syntax("an item of an array", r"\$\{[#!]?\w+\[|\b\w+\[[^]]*\]\+?=", "`Bad substitution`")
_APPENDED = _Syntax("`+=`", r"\b\w+\+=", "the assignment is run as a program")
_TEST = _Syntax("`[[`", r"\[\[", _NOT_FOUND.format("[["), True)
_EQUALS = _Syntax("`==` in a test", r"\[ [^\]\n]*==|\btest\s[^\n]*==", "`unexpected operator`", True)
_CALCULATION = _Syntax("`((`", r"(?<!\$)\(\(", "the program in it is not found")
_FUNCTION = _Syntax("`function`", r"\bfunction\s+\w", '`Syntax error: "(" unexpected`', True)
_SOURCE = _Syntax("`source`", r"\bsource\s", _NOT_FOUND.format("source"), True)
_PIPEFAIL = _Syntax("`set -o pipefail`", r"\bpipefail\b", "`Illegal option -o pipefail`", True)
_FILE = _Syntax("`<(`", r"[<>]\(", '`Syntax error: "(" unexpected`')
_STRING = _Syntax("`<<<`", r"<<<", "`Syntax error: redirection unexpected`")
_BOTH = _Syntax("`&>`", r"&>", "the command runs in the background, and the file stays empty", True)
_PARAMETER = _Syntax("this `${…}`", r"\$\{!|\$\{\w+(?:/|\^|,|:\s*[\d$-])", "`Bad substitution`")
_REPLACED = _PARAMETER._replace(is_in_ash=True)


def find_bash_syntax(text: str, image: str, advice: str) -> Iterator[Mistake]:
    """Yield the first place where a script of `sh` has what the `sh` of its image, if that is known, does not have.

    A script that a shell refuses in any case, or that asks for its shell, has none.
    """
    if _WITH_BASH.search(image) or _ASKS.search(text):
        return
    parsed = parse_all(text)
    if parsed.failure is not None:
        return
    is_ash = _WITH_ASH.search(image) is not None
    found = {each for each in _list_syntax(parsed.script, text) if not (is_ash and each.is_in_ash)}
    places = [(line, each) for each in found if (line := _find_line(text, each))]
    if not places:
        return
    line, first = min(places)
    shell = "ash, the `sh` of Alpine" if is_ash else "dash, the `sh` of Debian and Ubuntu"
    message = f"{first.name} is syntax of Bash, and {shell}, does not have it ({first.effect})"
    yield Mistake(line, f"{message}; {advice}", is_error=False)


def _find_line(text: str, syntax: _Syntax) -> int:
    """Return the first line with a syntax that is not a comment; 0 if none has it."""
    pattern = re.compile(syntax.pattern)
    lines = enumerate(text.split("\n"), 1)
    return next((number for number, line in lines if line.lstrip()[:1] != "#" and pattern.search(line)), 0)


def _list_syntax(script: Script, text: str) -> Iterator[_Syntax]:
    for and_or in script:
        for _, pipeline in and_or.pipelines:
            for command in pipeline.commands:
                yield from _list_of_command(command, text)
                for body in list_bodies(command):
                    yield from _list_syntax(body, text)


def _list_of_command(command: Command, text: str) -> Iterator[_Syntax]:
    if isinstance(command, Test):
        yield _TEST
    elif isinstance(command, Calculation) or (isinstance(command, For) and command.expressions):
        yield _CALCULATION
    elif isinstance(command, Function):
        if command.name in _KEYWORD.findall(text):
            yield _FUNCTION._replace(pattern=rf"\bfunction\s+{re.escape(command.name)}")
    elif isinstance(command, Simple):
        yield from _list_of_program(command, text)


def _list_of_program(command: Simple, text: str) -> Iterator[_Syntax]:
    yield from _list_of_words(list_words(command), text)
    words = [each for each in command.words if not isinstance(each, Assignment)]
    for assignment in (*command.assignments, *(each for each in command.words if isinstance(each, Assignment))):
        if isinstance(assignment.value, list):
            yield _ARRAY
        elif assignment.item is not None or assignment.appends:
            yield _ITEM if assignment.item is not None else _APPENDED
    for redirection in command.redirections:
        if redirection.descriptor == "&" or redirection.operator == "<<<":
            yield _BOTH if redirection.descriptor == "&" else _STRING
    for part in (each for word in words for each in word):
        if isinstance(part, Parameter):
            yield from _list_of_parameter(part)
        elif isinstance(part, Substitution) and part.is_file:
            yield _FILE


def _list_of_words(words: tuple[str, ...], text: str) -> Iterator[_Syntax]:
    program = words[0] if words else ""
    if program == "source":
        yield _SOURCE
    elif program == "set" and "pipefail" in words and not _OPTION_TEST.search(text):
        yield _PIPEFAIL
    elif program in ("[", "test") and "==" in words:
        yield _EQUALS
    elif program in _BUILTINS:
        yield _Syntax(f"`{program}`", rf"\b{program}\b", _NOT_FOUND.format(program))


def _list_of_parameter(part: Parameter) -> Iterator[_Syntax]:
    if part.item is not None:
        yield _ITEM
    elif part.prefix == "!" or part.operator[:1] in ("^", ","):
        yield _PARAMETER
    elif part.operator in (":", "/", "//"):
        yield _REPLACED
