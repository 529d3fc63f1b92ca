"""Commands of a script that a shell understands in another way than they were meant, or that it has not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobgen.features.launch.shell.mistakes import Mistake, find_value
from jobgen.k8s.programs import describe_misspelled, describe_slurm
from jobgen.k8s.shell.commands import BEGINNINGS
from jobgen.k8s.shell.syntax import SyntaxFault, parse_all
from jobgen.k8s.shell.tree import AndOr, Assignment, Literal, Redirection, Simple, Word
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read.scalars import quote

_DECLARED = lazy_pattern(
    r"(export|readonly|declare|local)\s+([A-Za-z_]\w*)(\s+=(?=\S)|=[ \t]+(?=[\w\"'$/.])(?!\w+=)|:\s+(?=\S))"
)
_DECLARED_VALUE = lazy_pattern(r"(export|readonly|declare|local)\s+\$\{?(\w+)\}?(?==)")
_SEVERAL = lazy_pattern(r"(export)\s+\w+=[^\s,;\"']*,\s+\w+=")
_ASSIGNED = lazy_pattern(r"([A-Za-z_]\w*)=[ \t]+(\d[\w.]*|\"[^\"]*\"|'[^']*')[ \t]*(?=[\n;#]|\Z)")
_ASSIGNED_VALUE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)\}?=(?!=)")
_SET = lazy_pattern(r"set\s+([A-Za-z_]\w*)=(\S*)")
_SETENV = lazy_pattern(r"setenv\s+(\w+)\s+(\S+)")
_PIPEFAIL = lazy_pattern(r"set\s+((?:-[a-np-z]+\s+)*)pipefail\b")
_PYTHON = lazy_pattern(r"import\s+[\w.]+(?:\s+as\s+\w+|,.*)?[ \t]*(?=\n|\Z)|from\s+[\w.]+\s+import\s")
_TEST = lazy_pattern(
    r"(?m)^[ \t]*(?:(?:if|elif|while|until)[ \t]+)?"
    r"(\[ ([^\s=!]{1,99})(==|!=|=)([^\s=]{1,99}) \])(?=[ \t]*(?:;|&&|\|\||\n|\Z))"
)
_OPEN = lazy_pattern(r"\$\{(\w+)(?=[\s\"'/;]|\Z)")
_DASHES = "–—−"


def find_slips(text: str) -> Iterator[Mistake]:
    """Yield what is not meant; a script with another fault has none, because a shell does not read it so far."""
    parsed = parse_all(text)
    if parsed.failure is not None:
        if not isinstance(parsed.failure, SyntaxFault):
            yield from _find_open(text)
        if found := _PYTHON.match(text):
            yield Mistake(1, _describe_python(found[0]), is_error=False)
        return
    ends = (*parsed.starts[1:], len(text))
    for number, (and_or, start) in enumerate(zip(parsed.script, parsed.starts, strict=False)):
        end = ends[number] if number < len(ends) else len(text)
        line = text.count("\n", 0, start) + 1
        if message := _describe_words(text, start):
            yield Mistake(line, message, is_error=False)
        elif number == 0 and (found := _PYTHON.match(text, start)):
            yield Mistake(line, _describe_python(found[0]), is_error=False)
        yield from _check_commands(text, start, end, and_or)
    yield from _find_breaks(text)
    for found in _TEST.finditer(text):
        message = f"`{found[1]}` is always true, because `{found[2]}{found[3]}{found[4]}` is one word"
        operator = "=" if found[3] == "==" else found[3]
        meant = (
            f'[ "{found[2]}" {operator} {found[4]} ]' if found[2][0] == "$" else f"[ {found[2]} {operator} {found[4]} ]"
        )
        yield Mistake(text.count("\n", 0, found.start(1)) + 1, f"{message}; write `{meant}`", is_error=False)


def _find_breaks(text: str) -> Iterator[Mistake]:
    r"""Yield `\n` before a command, which a shell reads as `n`: a break of lines in a quoted text of Python or JSON."""
    for found in _BREAK.finditer(text):
        before = text[: found.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            message = f"`\\n` is not a break of lines here: the shell reads `n{found[1]}`"
            yield Mistake(before.count("\n") + 1, f"{message}; write the commands in lines behind `|`", is_error=False)
            return


_BREAK = lazy_pattern(
    r"\\n[ \t]*(accelerate|bash|cd|cp|curl|deepspeed|echo|exec|export|mkdir|mpirun|pip3?|python3?|set|source|torchrun)"
    r"(?=[ \t])"
)


def _describe_python(line: str) -> str:
    return f"`{line.strip()}` is Python, and a shell reads this script; start it with `python`"


def _describe_words(text: str, start: int) -> str:
    """Say what is wrong with the first words of a command; empty if nothing is."""
    if found := _DECLARED.match(text, start):
        meant = f"{found[1]} {found[2]}={find_value(text, start, found[2])}"
        return f"`{found[2]}` does not get the value that is written here; write `{meant}`, without spaces or `:`"
    if found := _DECLARED_VALUE.match(text, start) or _ASSIGNED_VALUE.match(text, start):
        name, program = found[found.lastindex or 1], f"{found[1]} " if found.lastindex == 2 else ""
        value = text[found.end() :].removeprefix("=").partition("\n")[0]
        value = value if len(value) < 60 and "`" not in value else "…"
        return f"`${name}` is the value of `{name}`, and not its name; write `{program}{name}={value}`"
    if found := _SEVERAL.match(text, start):
        return "the comma becomes a part of the value; write a space between the variables, and no comma"
    if found := _ASSIGNED.match(text, start):
        return f"{quote(found[2])} is run as a program, because of the space behind `=`; write `{found[1]}={found[2]}`"
    if found := _SET.match(text, start):
        return f"`set` gives `{found[1]}` no value, and the script gets a parameter; write `{found[1]}={found[2]}`"
    if found := _SETENV.match(text, start):
        return f"`setenv` is a command of csh, which this shell does not have; write `export {found[1]}={found[2]}`"
    if found := _PIPEFAIL.match(text, start):
        return f"`set` makes `pipefail` a parameter of the script; write `set {found[1]}-o pipefail`"
    if text.startswith("//", start):
        return "`//` begins no comment in a shell, which runs it as a program; write `#`"
    return ""


def _check_commands(text: str, start: int, end: int, and_or: AndOr) -> Iterator[Mistake]:
    for command in (each for _, pipeline in and_or.pipelines for each in pipeline.commands):
        if not isinstance(command, Simple):
            continue
        words = [_read(word) for word in command.words if not isinstance(word, Assignment)]
        if words[:1] and words[0] in ("cd", "srun") and (message := _describe_move(words, text)):
            yield Mistake(_count_lines(text, text.find(words[0], start, end), start), message, is_error=False)
        if words[:1] and words[0][:2] in BEGINNINGS and (message := _describe_program(words[0], text)):
            yield Mistake(_count_lines(text, text.find(words[0], start, end), start), message, is_error=False)
        if "install" in words[:4] and any("pip" in word for word in words[:3]):
            for redirection in command.redirections:
                if not redirection.descriptor:
                    yield from _check_requirement(text, start, end, redirection)
        for word in words:
            if word[:1] and word[0] in _DASHES and word.lstrip(f"{_DASHES}-")[:1].isalpha():
                bare = word.lstrip(f"{_DASHES}-")
                meant = f"-{bare}" if len(bare.partition("=")[0]) == 1 else f"--{bare}"
                message = f"`{word}` begins with a long dash, and not with `-`; write `{meant}`"
                yield Mistake(_count_lines(text, text.find(word, start, end), start), message, is_error=False)


def _describe_program(name: str, text: str) -> str:
    """Say which program a name nearly is, if the script does not define it itself."""
    message = describe_misspelled(name)
    is_defined = message and re.search(
        rf"(?:\bfunction\s+|\balias\s+){re.escape(name)}\b|\b{re.escape(name)}\s*\(", text
    )
    return "" if is_defined else message


def _describe_move(words: list[str], text: str) -> str:
    """Say what is wrong with a `cd` that has a command behind its folder, and with a program of Slurm."""
    if words[0] == "srun":
        is_there = "slurm" in text.replace("SLURM_", "")
        return "" if is_there else f"{describe_slurm('srun')}; write only the command that it starts"
    if len(words) < 3 or not all(words[:3]) or words[1][0] == "-" or not words[2][0].isalpha():
        return ""
    rest = " ".join(words[2:]) if all(words) else f"{words[2]} …"
    message = f"`cd` takes one folder (`cd: too many arguments`), and `{rest}` does not start"
    return f"{message}; write `cd {words[1]} && {rest}`"


def find_activation(text: str, words: Sequence[str]) -> Iterator[Mistake]:
    """Yield `conda activate` in a script that has not read what defines it. An interactive shell reads it."""
    found = _ACTIVATION.search(text)
    is_read = _CONDA_SETUP.search(text[: found.start()]) if found else None
    if found is None or is_read or any(_LOGIN.match(word) for word in words[1:3]):
        return
    program = f"conda run -n {found[1]} …" if found[1] else "conda run -n NAME …"
    message = "a script has no `conda activate` (`Run 'conda init' before 'conda activate'`)"
    advice = f"write `source /opt/conda/etc/profile.d/conda.sh` above it, or `{program}` instead"
    yield Mistake(
        text.count("\n", 0, found.start(1) if found[1] else found.start()) + 1, f"{message}; {advice}", is_error=False
    )


_ACTIVATION = lazy_pattern(r"(?:\A|[\n;&|])[ \t]*conda[ \t]+activate(?:[ \t]+([\w.-]+))?")
_CONDA_SETUP = lazy_pattern(
    r"conda\.sh|conda init|conda shell|shell\.\w+ hook|\beval\b|\bsource\b|(?:\A|[\n;&])\s*\. |BASH_ENV"
)
_LOGIN = lazy_pattern(r"-[a-z]*[il]|--login|--rcfile")


def _check_requirement(text: str, start: int, end: int, redirection: Redirection) -> Iterator[Mistake]:
    """Check `pip install torch>=2.0`, of which a shell takes `>=2.0` for a file."""
    target = _read(redirection.target)
    sign = f"{redirection.operator}{target}"
    at = text.find(sign, start, end)
    if redirection.operator not in (">", "<") or target[:1] not in ("=", *"0123456789") or at < 0:
        return
    package = text[:at].rsplit(maxsplit=1)[-1] if text[at - 1 : at].strip() else ""
    message = f"`{redirection.operator}` makes a file of `{target}`, and any version is installed"
    yield Mistake(_count_lines(text, at, start), f"{message}; write `'{package}{sign}'`", is_error=False)


def _count_lines(text: str, at: int, start: int) -> int:
    return text.count("\n", 0, max(at, start)) + 1


def _read(word: Word) -> str:
    """Return the text of a word that is not quoted; empty for others."""
    part = word[0] if len(word) == 1 else None
    return part.text if isinstance(part, Literal) and not part.quoted else ""


def _find_open(text: str) -> Iterator[Mistake]:
    """Yield a brace or double parenthesis that nothing closes, which a shell refuses."""
    found = next((each for each in _OPEN.finditer(text) if "}" not in text[each.end() :]), None)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        message = f"`{found[0]}` is not closed, so that the shell refuses the script; write `{found[0]}}}`"
        yield Mistake(line, message)
    elif "$((" in text and "))" not in text[(at := text.rindex("$((")) :]:
        line = text.count("\n", 0, at) + 1
        yield Mistake(line, "`$((` is not closed, so that the shell refuses the script; write `))` behind it")
