"""Names of files as other programs want them."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

UNKNOWN = "<unknown>"


def relative(file: str) -> str:
    """The name without `./`, and never empty."""
    while file.startswith("./"):
        file = file[2:].lstrip("/")
    return file or UNKNOWN


@lru_cache(4096)
def uri(file: str) -> str:
    """A URI reference: relative to the root of the repository, or absolute if the name is."""
    path = quote(_bytes(relative(file)), safe="/")
    # Two slashes at the start would be read as a host.
    return f"file:///{path.lstrip('/')}" if path.startswith("/") else path


def _bytes(file: str) -> bytes:
    try:
        return file.encode("utf-8", "surrogateescape")  # as the file system has it
    except UnicodeEncodeError:
        return file.encode("utf-8", "surrogatepass")
