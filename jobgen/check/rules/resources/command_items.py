"""Items of commands that are others than those that were meant: joined, split, or with a foreign character."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Container
from jobgen.k8s.shell.commands import (
    BEGINNINGS,
    MAX_SHOWN,
    NAMES_SHELL,
    PROGRAMS,
    STARTED,
    find_script,
    shorten,
    split_words,
)
from jobgen.model.data import location_of, text_of
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence, Words
from jobgen.yamlio.read.scalars import quote
from jobgen.yamlio.write import to_inline_yaml

# A program without a path, or with one, and more words after it.
_COMMAND = lazy_pattern(r"\s*[\w./+-]+\s+\S")
_OPTION = lazy_pattern(r"--?[A-Za-z][\w.-]*(?:=.*)?\Z")
_LETTER_AND_NUMBER = lazy_pattern(r"-[A-Za-z] +[0-9]+")
_OPTION_AND_VALUE = lazy_pattern(r"^(--?[A-Za-z][\w.-]*) +([^\s-]\S*)((?: +\S+)*) *$", re.MULTILINE)
# Such an option, or an item with a space behind Python, a shell or a program that starts another.
_MAY_BE_JOINED = lazy_pattern(
    r"^--?[A-Za-z][\w.-]* +[^\s-]\S*(?: +\S+)* *$|"
    r"^(?:\S*/)?(?:python|pypy)[\d.]*\n(?:-[^\n ]+\n(?:ignore\n)?){0,4}[^\n ]+ +\S|"
    r"^(?:\S*/)?(?:ba|z|da|k|a)?sh\n(?:[-+][^\nc]*\n(?:pipefail\n)?)*(?:[-+][a-z]*c |[^-+\s#]\S* )|"
    r"^(?:nohup|tini|dumb-init|env|--)\n[\w./+-]+ +\S",
    re.MULTILINE,
)


@rule("container", ERROR, fields=("args", "command"))
def command_in_one_string(container: Container) -> Iterator[Violation]:
    """A `command` whose first item is a whole command line, such as `torchrun train.py`, or an option.

    Kubernetes does not split it. The runtime looks for a program of that name, spaces included, and the container never
    starts: `executable file not found`. A command that starts with an option, such as `[--epochs=10]`, has no program:
    a patch replaces the whole list. A variable (`A=1`) is not a program either, and a name one slip away from that of a
    common program, such as `pyhton`, is a warning.

    Nor does anything split `[python, "train.py --lr 0.1"]` or `[bash, "python train.py"]`, which look for a file of
    that name. An option and its value in one item, such as `--lr 0.1`, are a warning: the program gets one argument of
    that name, which `argparse` refuses. A letter and a number, such as `-m 1024`, are an info: programs that read their
    options with `getopt` accept them.

    Write one item for each word, or start a shell: `[sh, -c, "torchrun train.py"]`. Write options of the image's own
    program as `args`, and `--lr=0.1` for an option with a value.

    When to turn it off: an image can really contain a program with a space in its name. Then suppress the finding
    on the command; for every other string, the container fails at its start.
    """
    words = container.words
    text = words[0] if container.command else ""
    is_unusual = text not in PROGRAMS and (text[:2] in BEGINNINGS or ("=" in text and text[0] != "-"))
    is_unusual = is_unusual or words[1:2] in STARTED or (text[-3:] == ".py" and "/" not in text)
    if words[1:2] and text in _WRONG_ENDINGS:
        is_unusual = is_unusual or words[1][-3:] == _WRONG_ENDINGS[text]
    if is_unusual and not _is_joined(container) and (unusual := _describe_program(container)):
        yield unusual
        return
    if text[:1] == "-" and _OPTION.match(text) and not _is_joined(container):
        message = Sentence("`{}` is an option, but the first item of `command` must be a program", shorten(text))
        yield Violation(At(container.command, 0), Sentence("{}; write the whole command, or use `args`", message))
    elif _COMMAND.match(text) is not None and not _is_joined(container):
        yield _report_command(container, text)
    elif " " in container.search_text and _MAY_BE_JOINED.search(container.search_text):
        yield from _find_joined_items(container)


def _describe_program(container: Container) -> Violation | None:
    # Imported late: most programs are common ones.
    from jobgen.k8s.programs import describe_program

    # An image of Docker has the program, and a daemon beside it.
    has_docker = "docker" in container.image or "DOCKER_HOST" in container.variables
    found = None if has_docker and "docker" in container.words[0] else describe_program(container.words)
    if found is None:
        return None
    return Violation(container.word_place(0), found[0], severity=ERROR if found[1] else WARNING)


def _report_command(container: Container, text: str) -> Violation:
    words = split_words(text)
    message = Sentence("`{}` is not the name of a program; ", shorten(text))
    if not words or len(text) > MAX_SHOWN or any(sign in text for sign in "|&;<>$\n"):
        script = f'"{text}"' if len(text) <= MAX_SHOWN and not any(sign in text for sign in '"\n\\`') else "…"
        # The advice does not tell findings apart.
        return Violation(
            At(container.command, 0),
            Sentence("{}start a shell: `[sh, -c, {}]`", message, script),
            evidence=(shorten(text), "[sh, -c, …]"),
        )
    others = [word for word in container.words[1:] if word[:1] != "-" and _COMMAND.match(word)]
    if container.words[-1] in others and words[-1][:1] != "-":
        # Each item is a command.
        script = " && ".join(container.words)
        is_plain = len(script) <= 2 * MAX_SHOWN and not any(sign in script for sign in '"\n\\`')
        return Violation(
            At(container.command, 0),
            message + (f'write `[sh, -c, "{script}"]`' if is_plain else "start a shell: `[sh, -c, …]`"),
        )
    # A dash may be that of an item, which was indented too far.
    if "-" in words:
        return Violation(At(container.command, 0), Sentence("{}write one item for each word", message))
    return _advise_items(container, 0, words, message)._replace(evidence=(shorten(text), to_inline_yaml([*words])))


def _find_joined_items(container: Container) -> Iterator[Violation]:
    """Report items with several words that Python or a shell takes for one, and then options with their values."""
    if _is_joined(container):
        return
    # Imported late: few items have several words.
    from jobgen.k8s.joined_words import find_joined

    found = find_joined(container.words)
    if found is None:
        yield from _find_joined_options(container)
        return
    at, parts = found
    message = f"`{shorten(container.words[at])}` is one argument, with its spaces, so that the program does not start; "
    yield _advise_items(container, at, parts, message)


def _advise_items(container: Container, at: int, parts: Sequence[str], message: Words) -> Violation:
    """Return what to write instead of an item: its list with others in its place."""
    node, start = container.word_place(at), len(container.command)
    own = container.words[:start] if at < start else container.words[start:]
    place = at if at < start else at - start
    items = to_inline_yaml([*own[:place], *parts, *own[place + 1 :]])
    is_short = len(items) <= 2 * MAX_SHOWN and "\n" not in items and "`" not in items
    advice = (
        Sentence("write `{}`", items)
        if is_short
        else Sentence("write {} items: `{}`", len(parts), shorten(", ".join(parts)))
    )
    return Violation(node, Sentence("{}{}", message, advice), fix_steps=(FixStep("split", node, [*parts]),), safe=False)


def _find_joined_options(container: Container) -> Iterator[Violation]:
    """Report items such as `--lr 0.1`, but for those that a shell or another program splits."""
    words = container.words
    for index, text in enumerate(words):
        if NAMES_SHELL.search(text) or text == "-S":
            return
        found = _OPTION_AND_VALUE.fullmatch(text)
        before = words[index - 1] if index else ""
        # The option before it may take the options of another program as its value.
        if found is None or len(text) > MAX_SHOWN or (before.startswith("-") and "=" not in before):
            continue
        # Options with one dash have their value behind them.
        advice = Sentence("write two items{}", f", or `{found[1]}={found[2]}`" if found[1].startswith("--") else "")
        if found[3].strip():
            advice = Sentence("write one item for each word: `{}`", to_inline_yaml(text.split()))
        node = container.word_place(index)
        # The option is the first word of a launcher, which takes it for the script.
        is_certain = bool(container.command) and words[:index] in _LAUNCHERS
        # C programs read the number behind a letter with its space.
        least = INFO if _LETTER_AND_NUMBER.fullmatch(text) else WARNING
        message = Sentence("`{}` is one argument, with its space; {}", text, advice)
        steps = (FixStep("split", node, text.split()),)
        yield Violation(node, message, severity=ERROR if is_certain else least, fix_steps=steps, safe=False)


# What a file for another program ends with.
_WRONG_ENDINGS = {"bash": ".py", "sh": ".py", "python": ".sh", "python3": ".sh"}
_LAUNCHERS = (("torchrun",), ("accelerate", "launch"), ("deepspeed",))


def _is_joined(container: Container) -> bool:
    """Return True if KubeRay joins the command to a line for a shell: that of the first container of a Ray pod."""
    pod = container.pod
    keeps = as_text(as_mapping(pod.metadata.get("annotations")).get("ray.io/overwrite-container-cmd")) == "true"
    return pod.manifest.group == "ray.io" and pod.containers[0] is container and not keeps


# A parenthesis that is open at the end of an item, and one that is closed and not opened.
_PARENTHESIS = lazy_pattern(r"[()]")
_MOST_PARTS = 30


@rule("container", WARNING, fields=("args", "command"))
def split_argument(container: Container) -> Iterator[Violation]:
    """An argument that YAML splits at its commas, such as `[--betas=(0.9,0.999)]`, which is two items.

    In brackets, every comma ends an item, with or without a space behind it. The program gets the parts as separate
    arguments: `--betas=(0.9` and `0.999)`. It is an error if parentheses of an option show where the argument ends.
    A dash without a text behind it is an argument as well, an empty one.

    Write the argument in quotes: `"--betas=(0.9,0.999)"`.

    When to turn it off: if the parts are separate arguments in fact, write each on a line of its own with `-`,
    which makes it plain to jobgen and to readers.
    """
    text = container.search_text
    if "" in container.words:
        for place in container.command_places:
            if place.node is None:
                message = 'this item has no text, so it is an empty argument; remove it, or write `""`'
                yield Violation(place, message)
    if ("(" in text and ")" in text) or _may_be_split(container.words):
        yield from _find_split_arguments(container)


def _may_be_split(words: Sequence[str]) -> bool:
    """Return True if `--x=a` has a word behind it that is no option, as a cheap test before the others."""
    before = ""
    for word in words:
        if before[:1] == "-" and "=" in before and word[:1] != "-":
            return True
        before = word
    return False


def _find_split_arguments(container: Container) -> Iterator[Violation]:
    words = container.words
    script = find_script(container)
    at = 0
    while at < len(words):
        end = at
        if script is None or at != script.at:
            closed = _find_end_of_parentheses(words, at)
            end = closed or max(at, _find_end_of_commas(words, at))
            if closed:
                yield _report_split(container, at, end)
            elif end > at:
                # Whether there are spaces before the items is known when they have locations.
                near = tuple((container.word_place(index), "") for index in range(at - 1, end + 1))
                compare = partial(_compare_gaps, words[at : end + 1])
                yield _report_split(container, at, end)._replace(related=near, finish=compare)
        at = end + 1


def _report_split(container: Container, at: int, end: int) -> Violation:
    message, severity = _describe_split(container.words[at : end + 1])
    return Violation(container.word_place(at), message, severity=severity, evidence=(container.words[at],))


def _describe_split(words: Sequence[str]) -> tuple[str, Severity]:
    joined = ",".join(words)
    is_certain = "(" in joined and words[0].startswith("-") and "=" in words[0]
    message = f"`{shorten(joined)}` is split at its commas into {len(words)} items"
    advice = f"write `{json.dumps(joined, ensure_ascii=False)}`"
    return f"{message}; {advice}", ERROR if is_certain else WARNING


def _compare_gaps(words: Sequence[str], problem: Problem, _: bool) -> Problem | None:
    """Return a problem of items without spaces before them, in a list with spaces; None if they have some."""
    nodes = [node for node, _ in problem.related]
    end = 1
    while end < len(words) and _measure_gap(nodes, end) in (0, 1):
        end += 1
    if end == 1 or (_measure_gap(nodes, 0) or 2) <= 1:
        return None
    message, severity = _describe_split(words[:end])
    return problem._replace(sentence=message, severity=severity, related=())


def _find_end_of_parentheses(words: Sequence[str], start: int) -> int:
    """Return the item that closes the parenthesis which an item leaves open; 0 if none does."""
    if len(words[start]) < 2 or "\n" in words[start]:
        return 0
    depth = 0
    for at in range(start, min(start + _MOST_PARTS, len(words))):
        for found in _PARENTHESIS.finditer(words[at]):
            depth += 1 if found[0] == "(" else -1
        if depth <= 0:
            return at if depth == 0 and at > start and len(words[at]) > 1 else 0
        if at > start and words[at].startswith("--"):
            return 0
    return 0


def _find_end_of_commas(words: Sequence[str], start: int) -> int:
    """Return the last of the items behind `--x=a` that may be parts of its value; 0 if none."""
    end = start
    if start and words[start].startswith("-") and "=" in words[start]:
        value = words[start].partition("=")[2]
        while end + 1 < len(words) and _is_part(words[end + 1], value):
            end += 1
    return end


_PART = lazy_pattern(r"[\w+]+")
_LONG_PART = lazy_pattern(r"[\w+./][\w+./:=-]*")
_NUMBER = lazy_pattern(r"[\d.]+")


def _is_part(word: str, value: str) -> bool:
    """Return True if a word may go on with the value of an option: a bare word, or one with the same marks.

    `b=2` goes on with `a=1`, and `b.example.com` with `a.example.com`; a file goes on with one that ends like it.
    """
    if _PART.fullmatch(word):
        return True
    return _LONG_PART.fullmatch(word) is not None and _list_marks(word) == _list_marks(value)


def _list_marks(word: str) -> tuple[str, ...]:
    """Return what a word is made of: its name and number, its name and port, or its folders and last suffix."""
    if "=" in word or _NUMBER.fullmatch(word):
        return ("=",) if "=" in word else ("0",)
    host, colon, port = word.rpartition(":")
    if colon and host and port.isdigit():
        return (":",)
    return (
        word[:1] if word[:1] in "./" else "",
        word.rpartition(".")[2] if "." in word else "",
        *("/" * ("/" in word)),
    )


def _measure_gap(nodes: Sequence[Any], at: int) -> int:
    """Return how many characters are between a plain item and the next one; 0 without locations, else -1 or more."""
    one, other = location_of(nodes[at]), location_of(nodes[at + 1])
    if one is None or other is None:
        return 0
    is_beside = one.file == other.file and one.end_line == other.line
    return other.column - one.end_column if is_beside and other.column > one.end_column else -1


# Chinese and Japanese text has these marks of its own: kana, ideographs, hangul.
_EAST_ASIAN = lazy_pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# Full-width characters, spaces and invisible characters in any place; dashes at the start of a word.
_LOOK_ALIKE = lazy_pattern(
    "[，：；（）［］｛｝＝０-９Ａ-Ｚａ-ｚ＿－、【】\u00a0\u3000\u200b\ufeff]|^[‐‑‒–—―−]+(?=-?[A-Za-z])"
)


@rule("container", WARNING, fields=("args", "command", "env"))
def curly_quote(container: Container) -> Iterator[Violation]:
    """A typographic quotation mark, such as `“`, around a command, an argument or the value of a variable.

    Chat tools and word processors replace straight quotation marks when text is pasted, and input methods write
    full-width commas, colons, digits and spaces. Neither YAML nor a shell nor a program takes them for those of ASCII,
    so they become a part of the value. The same goes for a dash such as `–` at the start of an option. It is an error
    in the name of the program, which no image has.

    Write straight quotation marks, `"` or `'`, and other characters of ASCII. Chinese, Japanese and Korean text is not
    reported, nor are such marks inside of straight ones, and in the messages of a script.

    When to turn it off: prompts, captions and other natural language in arguments can contain such marks on
    purpose: suppress the finding on that item.
    """
    if container.search_text.isascii():
        return
    # Imported late: most commands are ASCII.
    from jobgen.yamlio.read.curly_quotes import STRAIGHT, find_around, find_in_script
    from jobgen.yamlio.read.look_alikes import describe_look_alike, to_ascii

    script = find_script(container)
    # A name with such a mark is an error of its own.
    for place in container.value_places:
        text = as_text(place.node)
        if text.isascii() or _EAST_ASIAN.search(text):
            continue
        mark = _LOOK_ALIKE.search(text)
        if mark and "\n" not in text and (meant := to_ascii(text)).isascii():
            has = describe_look_alike(mark[0][0])
            # A word processor makes one dash of two; programs have few long options with one.
            is_dash = mark.start() == 0 and (mark[0] == "—" or _LONG_OPTION.match(meant))
            meant = f"-{meant}" if is_dash else meant
            # No program has such a name.
            is_name = place.holder is container.command and place.key == 0
            message = Sentence("{} has {}; write {}", quote(text), has, quote(meant))
            yield Violation(place, message, severity=ERROR if is_name else WARNING)
            continue
        is_script = "\n" in text or (script is not None and place[:2] == script.place[:2])
        found = find_in_script(text) if is_script else find_around(text, is_quoted=False)
        if found:
            message = Sentence("`{}` is a typographic quotation mark and becomes part of the value", found)
            finish = None if is_script or find_around(text, is_quoted=True) else _drop_quoted
            yield Violation(place, Sentence("{}; write `{}`", message, STRAIGHT[found]), finish=finish)


def _drop_quoted(problem: Problem, _: bool) -> Problem | None:
    """Return None for a value that has straight quotation marks in its file, where the others are text."""
    return None if _is_quoted(problem.node, text_of(problem.node)) else problem


def _is_quoted(node: Any, text: str) -> bool:
    """Return True for a text of one line that is longer in its file, because it has quotation marks."""
    at = location_of(node)
    return at is not None and at.end_line == at.line and at.end_column - at.column > len(text)


_LONG_OPTION = lazy_pattern(r"-[A-Za-z]{3}")
# A file, an option, a number or a variable, and a comma.
_LEFT_COMMA = lazy_pattern(r"(?:[\w./-]*\w\.[A-Za-z]\w*|--?[A-Za-z][\w-]*|[0-9.]+|\$\(\w+\)),\Z")


def _find_left_commas(container: Container) -> Iterator[Violation]:
    for index, text in enumerate(container.words):
        if text[-1:] == "," and _LEFT_COMMA.match(text):
            message = Sentence("`{}` ends with a comma, which becomes part of the value; write `{}`", text, text[:-1])
            place = container.word_place(index)
            yield Violation(place, message, fix_steps=(FixStep("set", place, text[:-1]),), safe=False)


# One quotation mark, at the start or at the end of a word. `$'…'` and JSON have more than one.
_STRAY = lazy_pattern(r"""(?:["'][^"'\s]+|[^"'\s\\]+["'])\Z""")


@rule("container", WARNING, fields=("args", "command", "env"))
def stray_quote(container: Container) -> Iterator[Violation]:
    """A single quotation mark at the start or the end of an argument or of the value of a variable, such as `10"`.

    YAML reads a quotation mark without a partner as a part of the text, and the program gets it: `10"` is not a number.
    So it does with a comma that is left of a list in JSON, at the end of a file, an option or a number: `train.py,`.

    Write both quotation marks, or none, and no comma at the end.

    When to turn it off: an inch mark or an apostrophe in a text for people can be accepted on the item; numbers,
    paths and options never contain one.
    """
    if "," in container.search_text:
        yield from _find_left_commas(container)
    if '"' not in container.search_text and "'" not in container.search_text:
        return
    for place in container.value_places:
        text = as_text(place.node)
        if _STRAY.match(text):
            bare = text.strip("\"'")
            message = Sentence('`{}` has one quotation mark, which becomes part of the value; write `"{}"`', text, bare)
            yield Violation(place, message)
