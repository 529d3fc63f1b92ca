"""What is offered at a position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum
from functools import cache

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.repo import layout
from jobgen.repo.shipped import find_shipped

MAX_ITEMS = 400
"""The items that are sent at once; of more, those that match what is typed."""


class ItemKind(Enum):
    """What an item is, with the name of the symbol that an editor shows."""

    FIELD = "Property"
    VALUE = "EnumMember"
    NAME = "Reference"
    RULE = "Constant"
    KIND = "Class"
    FUNCTION = "Function"
    VARIABLE = "Variable"
    SNIPPET = "Snippet"


class Rank(IntEnum):
    """The order of items: first what is required."""

    REQUIRED = 0
    COMMON = 1
    OTHER = 2
    DEPRECATED = 3


class Item(NamedTuple):
    """Something that can be written."""

    label: str
    kind: ItemKind
    insert: str = ""
    """The text to write, if it is not the label."""
    detail: str = ""
    """A few words: the type of a field, or where a name comes from."""
    documentation: str = ""
    rank: Rank = Rank.COMMON
    deprecated: str = ""
    """Why not to use it, and what to use instead; empty if there is nothing wrong with it."""
    is_snippet: bool = False
    """True if the text has places to fill in, `${1:name}`, as in snippets of the Language Server Protocol."""
    above: str = ""
    """A line to add above the position, such as the apiVersion of a kind."""

    @property
    def text(self) -> str:
        """The text to write."""
        return self.insert or self.label


class Offer(NamedTuple):
    """An item, and the text that it puts in the place of a part of the line."""

    item: Item
    start: int
    """The column of the first character that is replaced, from 1."""
    end: int
    text: str
    typed: str
    """What an editor compares with the replaced text to filter items."""


_MODELINE = lazy_pattern(r"\A(?:#.*\n)+")
_NAME = lazy_pattern(r"(?<=name: )[\w-]+-example\b")
_EXAMPLE_NAME = lazy_pattern(r"(?<=\$\{1:)[\w-]+-example(?=\})")
_JOB_NAME = lazy_pattern(r"[a-z][a-z0-9-]{0,51}[a-z0-9]\Z")
_IMAGE = lazy_pattern(r"(?<=image: )\S+")
_DOLLAR = lazy_pattern(r"[\\$]")
_STOP = lazy_pattern(r"(?<!\\)\$\d+")
_PLACEHOLDER = lazy_pattern(r"\$\{\d+:((?:[^\\}]|\\.)*)\}")


def list_documents(file: str, describe: Callable[[str], tuple[Rank, str]], *, is_alone: bool = True) -> Iterator[Item]:
    """Yield the documents that an empty file, or an empty document of a file, can become; by its path from the root.

    `describe` returns the rank of a framework, and why not to use it. A job that is alone has the name of its file.
    """
    if file.endswith(".json"):
        return
    if file.startswith("jobs/"):
        stem = file.rpartition("/")[2].partition(".")[0]
        for name, text in read_examples().items():
            rank, deprecated = describe(name)
            named = _EXAMPLE_NAME.sub(stem, text, count=1) if is_alone and _JOB_NAME.match(stem) else text
            item = _make_item(f"job: {name}", named, f"A new job of {name}.")
            yield item._replace(rank=rank, deprecated=deprecated)
    elif file.startswith("overlays/"):
        new = "A new overlay: namespace, cluster and defaults of an environment."
        yield _make_item("overlay", _read_snippet("overlay"), new)
        yield _make_item("overlay with a patch", _read_snippet("patched_overlay"), "An overlay that changes some jobs.")
    elif file.startswith("teams/"):
        stem = file.rpartition("/")[2].partition(".")[0]
        text = _read_snippet("team").replace("nlp", stem if _JOB_NAME.match(stem) else "nlp")
        yield _make_item("team", text, "A new team: its folders, and what it can use.")
    elif file.startswith("tests/"):
        yield _make_item("tests", _read_snippet("tests"), "Tests of what jobs are rendered as, for `jobgen test`.")
    elif file.startswith("policies/"):
        yield _make_item("policy", _read_policy(), "A rule of your own, with the binding that turns it on.")


def list_items(field: Step, format_name: str) -> Iterator[Item]:
    """Yield items of several lines for a list in one of jobgen's formats."""
    known = {
        ("overlay", "patches"): ("patch", "Changes the jobs that it matches."),
        ("settings", "exceptions"): ("exception", "Accepts findings for some time."),
    }
    for name, text in filter(None, (known.get((format_name, str(field))),)):
        yield _make_item(name, _read_snippet(name).rstrip(), text)._replace(rank=Rank.COMMON)


def _read_snippet(name: str) -> str:
    return (find_shipped("snippets") / f"{name}.txt").read_text("utf-8")


def _make_item(label: str, text: str, documentation: str) -> Item:
    return Item(label, ItemKind.SNIPPET, text, "snippet", documentation, Rank.REQUIRED, is_snippet=True)


@cache
def read_examples() -> dict[str, str]:
    """Return the example jobs of `jobgen init` as snippets, by framework."""
    home = find_shipped("starter")
    texts = {name: (home / f"jobs/{name}.yaml").read_text("utf-8") for name in layout.list_starter_frameworks()}
    named = {name: _NAME.sub(r"${1:\g<0>}", escape(_MODELINE.sub("", text)), count=1) for name, text in texts.items()}
    return {name: _IMAGE.sub(r"${2:\g<0>}", text, count=1) for name, text in named.items()}


@cache
def _read_policy() -> str:
    text = (find_shipped("starter") / "policies/team-label.yaml").read_text("utf-8")
    return re.sub(r"(?<=[nN]ame: )team-label", r"${1:\g<0>}", escape(text))


def fill_in(text: str) -> str:
    """Return the text of a snippet with its own values, for clients that do not support snippets."""
    return re.sub(r"\\([\\$}])", r"\1", _STOP.sub("", _PLACEHOLDER.sub(r"\1", text)))


def escape(text: str) -> str:
    """Return text as a snippet has it."""
    return _DOLLAR.sub(r"\\\g<0>", text)
