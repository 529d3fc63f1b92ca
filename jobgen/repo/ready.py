"""What shipped files mean, ready to use: documents of kinds and policies, compiled CEL expressions, options and help.

`tools/build_ready.py` makes the tables for a wheel; a checkout can do without, because what is not found is computed.
A table is found by a digest of the code that made it, an entry by a digest of what it was made from. So an entry that
does not fit is never used.
"""

from __future__ import annotations

import os
from binascii import a2b_base64
from functools import cache

from jobgen.model.digest import blake2b
from jobgen.model.features import list_folders, list_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
FOLDER = os.path.join(_PACKAGE, "data", "ready")
DOCUMENTS, EXPRESSIONS, ARGUMENTS, HELP = "documents", "expressions", "arguments", "help"
TABLES = (DOCUMENTS, EXPRESSIONS, ARGUMENTS, HELP)
_MAKERS = {
    DOCUMENTS: ("yamlio/read",),
    EXPRESSIONS: ("check/cel",),
    ARGUMENTS: ("cli/group.py", "cli/options.py", "cli/commands/lint.py", "cli/commands/render.py"),
    HELP: ("__init__.py", "cli/group.py", "cli/commands/__init__.py"),
}
"""The code that makes each table: modules, or all modules of a folder."""


def find_documents(content: bytes) -> list[dict[str, Any]] | None:
    """Return the documents of a shipped file by its content; None if they are not ready."""
    line = _load(DOCUMENTS).get(make_digest([content]).encode())
    return None if line is None else _parse(line)


def find_expression(parts: Iterable[bytes]) -> bytes | None:
    """Return the compiled expression that was made from these parts; None if it is not ready."""
    line = _load(EXPRESSIONS).get(make_digest(parts).encode())
    return None if line is None else a2b_base64(line)


def find_arguments() -> Mapping[str, Any]:
    """Return the tables of commands with plain options, by their names; empty if they are not ready."""
    return {name.decode(): _parse(line) for name, line in _load(ARGUMENTS).items()}


def read_help() -> str:
    """Return the version and the help of jobgen; empty if they are not ready."""
    try:
        return _read(find_file(HELP)).decode()
    except OSError:
        return ""


def make_digest(parts: Iterable[bytes]) -> str:
    """Return the key of an entry."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def find_file(table: str) -> str:
    """Return the path of the file with a table, if the code as it is now has made it."""
    return os.path.join(FOLDER, name_file(table))


def name_file(table: str) -> str:
    """Return the name of the file with a table that the code as it is now has made."""
    names = _list_commands() if table == HELP else ()
    digest = make_digest((*map(_read, _list_sources(table)), *(name.encode() for name in names)))
    return f"{table}-{digest}.txt"


def _list_commands() -> Iterator[str]:
    """The names of the modules that may be commands: help lists them, without importing them or their features."""
    for package in ("cli.commands", *(f"features.{name}.commands" for name in list_folders())):
        yield from (f"{package}.{name}" for name in list_modules(package))


def _list_sources(table: str) -> Iterator[str]:
    for maker in _MAKERS[table]:
        path = os.path.join(_PACKAGE, maker)
        if maker.endswith(".py"):
            yield path
        else:
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".py"))


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


@cache
def _load(table: str) -> Mapping[bytes, bytes]:
    """The lines of a table by their keys. They are parsed when they are asked for: most runs need few of them."""
    try:
        lines = _read(find_file(table)).splitlines()
    except OSError:
        return {}
    return dict(line.split(b" ", 1) for line in lines)


def _parse(line: bytes) -> Any:
    import json

    return json.loads(line)
