"""Lines of text that are commands of a shell, and so were meant to stay lines: what `|` keeps and YAML joins.

Lines of one command are often written below one another on purpose; those of several commands never are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.model.lazy_re import lazy_pattern

# Programs and words of a shell that take no command as their arguments.
_ALONE = """\
. apt apt-get aws cat cd chmod chown conda cp curl date echo exit export find git gsutil hostname huggingface-cli ls
ln mkdir mv nvidia-smi pip pip3 printf pwd rm set sleep source tar touch trap ulimit umask unset unzip wget"""
_COMMANDS = f"""\
{_ALONE} accelerate bash deepspeed env exec for if mpirun python python3 sh torchrun while"""


def _join(words: str) -> str:
    return "|".join(word.replace(".", r"\.") for word in words.split())


_IS_ALONE = lazy_pattern(rf"(?:#|(?:{_join(_ALONE)})(?:\s|\Z)|python3? (?:\S+ )*(?:\S+\.py|-c)\b)")
_STARTS = lazy_pattern(rf"(?:{_join(_COMMANDS)}) |(?:{_join('date hostname ls nvidia-smi pwd wait')})\Z")
# What stands below a comment, and is no text: a program whose arguments follow in the next line, or the path of one.
_STARTS_BELOW = lazy_pattern(
    r"(?:accelerate launch|deepspeed|mpirun|python3?|torchrun)\Z|\.{0,2}/[\w./-]+\.(?:py|sh)(?:\s|\Z)"
)
_IS_SCRIPT = lazy_pattern(r"#!\s?/|set (?:[-+]\w+ ?)+(?:\w+)?\Z")
# What a command ends with that goes on in the next line.
_GOES_ON = ("\\", "&&", "||", "|", ";", "&", "(", "{", ",")
_QUOTES = "\"'`"
# A key or an item, which a script has none of at its left.
_ENTRY = lazy_pattern(r"""(?:[\w./-]+|"[^"]*"|'[^']*'):(?:\s|\Z)|- |[\[{]""")
_PROSE = lazy_pattern(r"[.:!?]\Z")
_TEXT = lazy_pattern(r"\s*(?:- +)*(?:([\w./-]+|\"[^\"]*\"|'[^']*'):(?: +|\Z))?(?:- *\Z)?")


def find_joined(lines: Sequence[str]) -> tuple[str, str]:
    """Return a command, and the one below it that becomes a part of it if the lines are joined; empty if none does.

    An empty line between two lines keeps them apart, as PyYAML writes a text of several lines in quotes.
    """
    stripped = [line.strip() for line in lines]
    for at in range(1, len(stripped)):
        before, line = stripped[at - 1], stripped[at]
        if not before or not line or before.endswith(_GOES_ON) or any(before.count(mark) % 2 for mark in _QUOTES):
            continue
        is_begun = (
            at == 1
            or not stripped[at - 2]
            or stripped[at - 2].endswith(_GOES_ON[1:])
            or not stripped[at - 2].endswith("\\")
        )
        starts = _STARTS.match(line) or (before[0] == "#" and _STARTS_BELOW.match(line))
        if is_begun and _IS_ALONE.match(before) and starts and not _PROSE.search(line):
            return before, line
    return "", ""


def looks_like_script(lines: Sequence[str]) -> bool:
    """Return True if the lines below a key are commands of a shell, and neither keys nor items."""
    shown = [line for line in lines if line.strip()]
    if len(shown) < 2:
        return False
    width = min(len(line) - len(line.lstrip(" ")) for line in shown)
    top = [line[width:].rstrip() for line in shown if line[width : width + 1] != " "]
    if not top or shown[0][width : width + 1] == " " or any(map(_ENTRY.match, top)):
        return False
    return _IS_SCRIPT.match(top[0]) is not None or any(map(_STARTS.match, top))


def list_lines_below(lines: Sequence[str], number: int) -> Iterator[str]:
    """Yield the lines that are indented deeper than a line, up to the first one that is not."""
    own = len(lines[number]) - len(lines[number].lstrip(" "))
    for line in lines[number + 1 :]:
        if line.strip() and len(line) - len(line.lstrip(" ")) <= own:
            return
        yield line


def is_bare(line: str) -> bool:
    """Return True if a line is a key or a dash without anything behind it."""
    return bool(line.strip()) and _TEXT.fullmatch(line) is not None
