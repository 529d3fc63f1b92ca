"""Literals of patches in mutating policies, such as `Object{spec: Object.spec{suspend: true}}`.

The engine knows no such types. So `JSONPatch{op: 'add'}` is checked as `jobgen_new_JSONPatch([jobgen_set_op('add')])`.
"""

from __future__ import annotations

import re

from jobgen.check.cel.values import blank_strings
from jobgen.model.lazy_re import lazy_pattern

_NEW, _SET, _MAYBE = "jobgen_new_", "jobgen_set_", "jobgen_maybe_"
_TOKEN = lazy_pattern(r"(?<![\w.])(JSONPatch|Object(?:\s*\.\s*[A-Za-z_]\w*)*)\s*\{|[()\[\]{},]", re.ASCII)
_FIELD = lazy_pattern(r"\s*+(\??)\s*+([A-Za-z_]\w*+)\s*+:", re.ASCII)
_PATCH_FIELDS = {"op": "string", "path": "string", "from": "string", "value": "dyn"}


def replace_literals(text: str) -> str:
    """The text with a function call in the place of each literal."""
    blank = blank_strings(text)
    pieces: list[str] = []
    opened: list[str] = []
    last = 0

    def add(until: int, piece: str, after: int) -> int:
        pieces.extend((text[last:until], piece))
        return after

    for token in _TOKEN.finditer(blank):
        if token.start() < last:
            continue
        if token[1]:
            name = re.sub(r"\s", "", token[1])
            opened.append(name)
            last = add(token.start(), f"{_NEW}{name.replace('.', '_')}([", token.end())
        elif token[0] in "([{":
            opened.append("")
            continue
        elif token[0] == ",":
            if not (opened and opened[-1]):
                continue
            last = add(token.start(), "),", token.end())
        else:
            if opened and opened.pop():
                has_field = bool(text[last : token.start()].strip()) or not pieces[-1].endswith(("([", "),"))
                last = add(token.start(), ")])" if has_field else "])", token.end())
            continue
        field = _FIELD.match(blank, last)
        if field and opened[-1]:
            owner = f"{_SET}patch_" if opened[-1] == "JSONPatch" else _MAYBE if field[1] else _SET
            last = add(field.start(), f"{owner}{field[2]}(", field.end())
    return "".join(pieces) + text[last:]


def list_patch_functions(text: str) -> tuple[tuple[str, str], ...]:
    """The functions in a text without literals, with their signatures."""
    found = [(f"{_SET}patch_{name}", f"({kind}) dyn") for name, kind in _PATCH_FIELDS.items()]
    for name in sorted(set(re.findall(rf"(?:{_SET}(?!patch_)|{_MAYBE})\w+", text))):
        found.append((name, "(dyn) dyn"))
    for name in sorted(set(re.findall(rf"{_NEW}\w+", text))):
        kind = name.removeprefix(_NEW).replace("_", ".")
        found.append((name, f"(list<dyn>) {kind}"))
    return (*found, ("jsonpatch.escapeKey", "(string) string"))
