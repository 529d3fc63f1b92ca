"""Placeholders: text that stands for a value which a person or a tool fills in later.

`find_placeholders` is the only definition. A caller decides by the style who fills a placeholder in: `dollar` and
`handlebars` are usually the work of a tool, the others that of a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple

Style = Literal["angle", "braces", "dollar", "handlebars", "word"]


class Placeholder(NamedTuple):
    """A placeholder in a text, and how it is written."""

    token: str
    style: Style


# Part of every placeholder, in lower case: most texts have none of them, and need no pattern.
_SIGNS = ("<", "{", "$", "your", "xxx", "replace", "change", "...", "todo", "fixme", "tbd", "placeholder", "__")
_SIGNS_FOR_PEOPLE = tuple(sign for sign in _SIGNS if sign not in "{$")
# Each group is a style. `$(NAME)` is none: Kubernetes expands it. Lengths are limited: hostile text takes linear time.
_PLACEHOLDER = lazy_pattern(
    r"""
      (?P<handlebars> \$?\{\{ (?: [^}]{0,200} \}\} )? )
    | (?P<dollar> \$\{ (?: [^}]{0,1000} \} )? | \$[A-Z_][A-Z0-9_]* \Z
        | \A \$(?! (?: ref | schema | id | defs | patch ) \Z ) [a-z_]+ \Z
        | \A (?i: replaced [-_] by [-_] \w [\w-]{0,60} ) \Z )
    | (?P<angle> (?<! \? ) (?<! \?P ) < (?: [A-Za-z*] | \ your\b ) [^<>`@]{0,200} > )
    | (?P<braces> (?<! [\w{$\])}] ) \{ [A-Za-z] [\w.-]{0,200} \} (?! \} ) )
    | (?P<word>
        \A \.\.\. \Z
      | \A (?: TODO | FIXME | TBD ) \Z
      | \A [Yy]our (?: \ \w{1,30} ){1,4} \Z
      | (?<! [A-Za-z0-9] ) (?:
            (?i: your ) [-_] \w [\w-]{0,200}
          | (?i: your (?: account | bucket | company | domain | image | name | org | project | registry | repo | user )
                (?: name )? )
          | (?i: (?: replace | change ) [-_]? (?: me | this ) )
          | [xX]{3,}
          | PLACEHOLDER (?: [-_] \w+ )? | \w+ [-_] PLACEHOLDER
          | __ [A-Z] [A-Z0-9_]{0,100}? __
        ) (?! [A-Za-z0-9] )
      )
    """,
    re.VERBOSE,
)
# What programs write for a value that is missing.
_PROGRAM_OUTPUT = frozenset("<none> <nil> <unset> <unknown> <empty> <default> <null> <root> <all> <any>".split())


def find_placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders in a text, in their order."""
    if not has_any(text.lower(), _SIGNS):
        return
    for match in _PLACEHOLDER.finditer(text):
        style = match.lastgroup
        if match[0].lower() not in _PROGRAM_OUTPUT:
            yield Placeholder(match[0], style)  # type: ignore[arg-type]  # the groups are the styles


def may_be_unfilled(text: str) -> bool:
    """Return True if a text may have placeholders that a person fills in; most objects need no closer look."""
    return has_any(text.lower(), _SIGNS_FOR_PEOPLE)


def has_placeholder(text: str) -> bool:
    """Return True if a part of the text is still to be filled in."""
    return next(find_placeholders(text), None) is not None


def is_command_line(field: str, text: object) -> bool:
    """Return True for a program with arguments in place of a list of them: its variables are those of a shell."""
    is_text = field in ("command", "args") and isinstance(text, str) and " " in text.strip()
    return is_text and not any(found.style == "handlebars" for found in find_placeholders(str(text)))
