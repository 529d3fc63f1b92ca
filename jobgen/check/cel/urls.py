"""URLs in CEL, as Go's `net/url` reads those of requests: absolute, or starting with a slash."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from jobgen.check.cel.values import strings, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

TAG = "url"
_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE = lazy_pattern(r"%(?![0-9A-Fa-f]{2})")
_HOST = lazy_pattern(r"[^\s\"<>\\^`{|}%#?/\[\]:]*(?::[0-9]*)?|\[[0-9A-Fa-f:.]+(?:%25[^\]]*)?\](?::[0-9]*)?")
_IS_HOST = lazy_pattern("//(?!/)")
_PATH_SAFE = "/%!$&'()*+,;=:@-._~[]"


class Url(NamedTuple):
    """The parts of a URL that CEL can read."""

    scheme: str
    host: str
    path: str
    query: str


def url(text: object) -> bytes:
    """`url(string)`."""
    (found,) = strings(text)
    parse(found)
    return tagged(TAG, found)


def is_url(text: object) -> bool:
    """`isURL(string)`."""
    return not fault(*strings(text))


def fault(text: str) -> str:
    """Why a text is not a URL; empty if it is."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def scheme(value: object) -> str:
    """`url.getScheme()`."""
    return parse(untagged(value, TAG)).scheme


def host(value: object) -> str:
    """`url.getHost()`: with its port."""
    return parse(untagged(value, TAG)).host


def hostname(value: object) -> str:
    """`url.getHostname()`: without port and brackets."""
    found = host(value)
    if found.startswith("["):
        return found[1:].partition("]")[0]
    return found.rpartition(":")[0] if ":" in found else found


def port(value: object) -> str:
    """`url.getPort()`."""
    found = host(value)
    return found.rpartition(":")[2] if ":" in found.rpartition("]")[2] else ""


def path(value: object) -> str:
    """`url.getEscapedPath()`."""
    return parse(untagged(value, TAG)).path


def query(value: object) -> dict[str, list[str]]:
    """`url.getQuery()`."""
    found: dict[str, list[str]] = {}
    for key, item in parse_qsl(parse(untagged(value, TAG)).query, keep_blank_values=True):
        found.setdefault(key, []).append(item)
    return found


@lru_cache(maxsize=1024)
def parse(text: str) -> Url:
    """Parse a URL; raise for what Go refuses."""
    if not text or any(char < " " or char == "\x7f" for char in text):
        raise ValueError(f"`{text}` is not a URL: it is empty or has control characters in it")
    body = text.partition("#")[0]
    match = _SCHEME.match(body)
    rest = body[match.end() :] if match else body
    if (not match and not body.startswith("/")) or (match and not rest.startswith("/")):
        raise ValueError(f"`{text}` is not an absolute URL")
    rest, _, asked = rest.partition("?")
    where, path = _authority(rest) if match or _IS_HOST.match(rest) else ("", rest)
    if _ESCAPE.search(path):
        raise ValueError(f"`{text}` is not a URL: a `%` in it begins no escape")
    return Url(match[1].lower() if match else "", where, quote(path, safe=_PATH_SAFE), asked)


def _authority(rest: str) -> tuple[str, str]:
    if not rest.startswith("//"):
        return "", rest
    where, slash, path = rest[2:].partition("/")
    found = where.rpartition("@")[2]
    if not _HOST.fullmatch(found):
        raise ValueError(f"`{found}` is not the host of a URL")
    return found, slash + path
