"""Secrets in text: tokens with a known format, and values after names that mean a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from jobgen.model.lazy_re import has_any, lazy_pattern

# Formats with a prefix and a known length; a prefix alone is not enough.
_TOKENS = lazy_pattern(
    r"""(?<![A-Za-z0-9_-])(?:
      hf_[A-Za-z0-9]{34,100}
    | gh[pousr]_[A-Za-z0-9]{36}
    | github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}
    | glpat-[A-Za-z0-9_-]{20}
    | sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,100}T3BlbkFJ[A-Za-z0-9_-]{20,100}
    | sk-ant-[a-z]+[0-9]+-[A-Za-z0-9_-]{80,120}
    | xox[abprs]-[0-9]{10,13}-[A-Za-z0-9-]{20,80}
    | AIza[A-Za-z0-9_-]{35}
    | npm_[A-Za-z0-9]{36}
    | nvapi-[A-Za-z0-9_-]{64}
    | dckr_pat_[A-Za-z0-9_-]{27}
    )(?![A-Za-z0-9_])""",
    re.VERBOSE,
)
_PRIVATE_KEY = lazy_pattern(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
# Secrets without a prefix, detected by the variable's name and their length.
_FORMATS_BY_NAME = {
    "WANDB_API_KEY": lazy_pattern(r"[0-9a-f]{40}"),
    "AWS_SECRET_ACCESS_KEY": lazy_pattern(r"[A-Za-z0-9/+]{40}"),
}
_SECRET_NAMES = lazy_pattern(
    r"""
      .*(?:PASSWORD|PASSWD|PASSPHRASE)      # PGPASSWORD, dbPassword
    | .*[_-]PWD                             # MYSQL_PWD; PWD itself is a folder
    | (?:.*[_-])?(?:TOKEN|SECRET)           # HF_TOKEN, CLIENT_SECRET; tlsSecret names an object
    | (?:.*[_-]|(?-i:.*[a-z0-9](?=[A-Z])))? # WANDB_API_KEY, awsAccessKey, NGROK_AUTHTOKEN, hubAccessToken
      (?:(?:API|SECRET|ACCESS|PRIVATE|AUTH|ACCOUNT|ENCRYPTION)[_-]?KEY
        |(?:API|ACCESS|AUTH|BEARER|REFRESH|SESSION)TOKEN|CLIENTSECRET)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Tokens of a tokenizer, and numbers of tokens.
_TEXT_TOKENS = lazy_pattern(
    r"(?:.*[_-])?(?:PAD|EOS|BOS|UNK|SEP|MASK|CLS|IMAGE|SPECIAL|STOP|MAX|MIN|NUM|PER)[_-]TOKEN", re.IGNORECASE
)
# Placeholders, references, paths and other values that are not secrets.
_NOT_SECRETS = lazy_pattern(
    r"""
      .*(?:\$[({A-Za-z_]|\{\{|<[^<>\n]*>|^\{.*\}$|%\().*
    | [./~].*|[a-z0-9+]+://.*|.*\.(?:json|pem|key|txt|ya?ml|crt)
    | [0-9.]*|true|false|yes|no|none|null|nil
    | [a-z]+(?:[-_.][a-z]+)+
    | .*(?:x{3}|\*{3}|\.{3}|…|your|change|replace|insert|example|placeholder|dummy|fake|redacted|todo|sample).*
    | (?:my|the|a|some|hf|wandb|api)?[-_ ]?(?:token|secret|password|key|value|string|here)s?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Every secret or its name contains one of these, in lower case: a cheap test before the patterns.
_HINTS = (
    *(
        "token",
        "secret",
        "passw",
        "passp",
        "pwd",
        "key",
        "hf_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat",
        "glpat-",
    ),
    *("sk-", "xox", "aiza", "npm_", "nvapi-", "dckr_pat"),
)
_PREFIXES = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AIza", "npm_", "nvapi-"),
    *("dckr_pat_", "-----BEGIN "),
)
# How a name that means a secret ends, in lower case; before `key` there is another word.
_AFTER_LETTERS = ("password", "passwd", "passphrase")
_NAME_ENDS = ("token", "secret", *_AFTER_LETTERS, "pwd", "key")
_SEARCHED: Mapping[str, Sequence[str]] = {"token": (), "secret": (), "pass": _AFTER_LETTERS, "pwd": (), "key": ()}
"""What is searched for, and the words that begin so."""
_BEFORE_KEY = ("api", "secret", "access", "private", "auth", "account", "encryption")
_BEFORE_OTHERS = {"token": ("api", "access", "auth", "bearer", "refresh", "session"), "secret": ("client",)}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_IN_NAME = _LETTERS | frozenset("0123456789_-")
# Patterns that ignore case read these as ASCII letters, and `lower` does not.
_FOLDED = (("İ", "i"), ("ı", "i"), ("ſ", "s"))
_ASSIGNMENT = lazy_pattern(r"(?:^|[\s;&(])(?:--)?([A-Za-z][A-Za-z0-9_-]*)=[\"']?([^\s\"';&|)]+)")
_MIN_DISTINCT = 8
_MAX_WORD = 100


def may_contain_secret(text: str) -> bool:
    """Return True if a text may contain a secret, as a cheap test before the others."""
    return has_any(text.lower(), _HINTS)


def may_state_secret(text: str) -> bool:
    """Return True if a text may contain a token, or assign a secret by `name=value`, as a cheap test before these."""
    if any(prefix in text for prefix in _PREFIXES):
        return True
    lowered = text.lower() if "=" in text else ""
    return any(f"{end}=" in lowered for end in _NAME_ENDS)


def may_hold_secret(text: str) -> bool:
    """Return True if a file may hold a secret of any sort, as a cheap test before the others."""
    if _KEY_BEGIN in text or has_any(text, _PREFIXES) or ("://" in text and "@" in text):
        return True
    if "uthorization" in text or "AUTHORIZATION" in text or "curl" in text:
        return True
    # A letter before a name may be that of an escape sequence, as in `\\nTOKEN`.
    return may_contain_secret(text) if "\\" in text else next(_find_name_ends(_fold(text)), -1) >= 0


def _fold(text: str) -> str:
    """The text in lower case; each character keeps its place."""
    for letter, folded in _FOLDED if not text.isascii() else ():
        text = text.replace(letter, folded)
    return text.lower()


def _find_name_ends(folded: str) -> Iterator[int]:
    """The positions in a text in lower case at which a name that means a secret may end, each at least once."""
    for begin, words in _SEARCHED.items():
        start = folded.find(begin)
        while start >= 0:
            word = begin if not words else next((each for each in words if folded.startswith(each, start)), "")
            end = start + len(word or begin)
            if word and folded[end : end + 1] not in _IN_NAME and _may_end_name(folded, word, end):
                yield end
            start = folded.find(begin, end)


def _may_end_name(folded: str, word: str, end: int) -> bool:
    start = end - len(word)
    if word == "key":
        before = folded[max(0, end - len("encryption_key")) : start]
        return (before[:-1] if before.endswith(("_", "-")) else before).endswith(_BEFORE_KEY)
    if word == "pwd":
        return start > 0 and folded[start - 1] in "_-"
    if word in _AFTER_LETTERS or not start or folded[start - 1] not in _LETTERS:
        return True
    if folded.endswith(_BEFORE_OTHERS[word], 0, start):
        return True
    # `_NAME` cuts a long word, and the rest of it is a name of its own.
    return start >= _MAX_WORD and _IN_NAME.issuperset(folded[start - _MAX_WORD : start])


def list_credentials(text: str) -> set[Span]:
    """Where tokens of known formats, and users and passwords in addresses, stand in any text."""
    if not ("://" in text and "@" in text) and not has_any(text, _PREFIXES):
        return set()
    return {match.span() for match in _TOKENS.finditer(text)}.union(_find_url_credentials(text))


def has_token(text: str) -> bool:
    """Return True if a text has a token with a known format."""
    return _TOKENS.search(text) is not None


def find_token(text: str) -> str:
    """Return the token with a known format in a text, or an empty string."""
    if len(text) < 24 or not has_any(text, _PREFIXES):
        return ""
    found = _TOKENS.search(text) or _PRIVATE_KEY.search(text)
    # Few different characters mean an example.
    return found[0] if found and len(set(found[0])) > _MIN_DISTINCT and "xxxx" not in found[0].lower() else ""


def is_secret_value(name: str, value: str) -> bool:
    """Return True if the value has the format of the secret that a variable of this name holds."""
    pattern = _FORMATS_BY_NAME.get(name)
    return bool(pattern and pattern.fullmatch(value)) and len(set(value)) > _MIN_DISTINCT and "EXAMPLE" not in value


def looks_like_secret(name: str, value: str) -> bool:
    """Return True if the name means a secret and the value is neither a placeholder nor a path."""
    return len(value) >= 6 and is_secret_name(name) and not _NOT_SECRETS.fullmatch(value)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return True if a name means a secret, such as `HF_TOKEN`."""
    return may_contain_secret(name) and _SECRET_NAMES.fullmatch(name) is not None and not _TEXT_TOKENS.fullmatch(name)


def find_assignments(text: str) -> list[tuple[str, str]]:
    """Return the names and values that an argument or a script sets by `name=value` or `--name=value`."""
    return _ASSIGNMENT.findall(text)


Span: TypeAlias = "tuple[int, int]"
"""The first character of a part of a text, and the one after its last."""
# `https://user:password@host` or `https://token@host`; `https://host:80/path@1` and `https://host/path@1` have none.
_URL_CREDENTIALS = lazy_pattern(
    r"[a-z][a-z0-9+.-]{0,20}://([^\s/@:\"']{0,200}:(?!\d{1,5}/)[^\s@\"']{1,500}|[^\s/@\"']{1,500})@", re.IGNORECASE
)
# `Authorization: Bearer …`, and `curl -u user:password`; `--user 1000:1000` names a user and a group.
_HEADER = lazy_pattern(
    r"uthorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:bearer|basic|token)[ \t]+([^\s\"']{4,500})", re.IGNORECASE
)
_USER = lazy_pattern(r"(?:^|[\s\"'])(?:-u|--user)[ =\"']{1,2}([^\s:\"',]{1,100}:(?!\d)[^\s\"',]{4,500})")
LOGIN = lazy_pattern(r"[^\s:/]{1,100}:(?!\d)[^\s/]{4,500}")
"""A user and a password, as `--user` takes them."""
_KEY_BEGIN, _KEY_END = "PRIVATE KEY-----", "-----END"
_LOGIN_BEFORE = lazy_pattern(r"login[ \t]+\S{1,100}[ \t]+\Z")
# What may separate a name from its value (quotes, brackets, a tag), and the value as it is written.
_WRITTEN_VALUE = lazy_pattern(
    r"[\"']?(?:[ \t]*[:=：＝][ \t]*|[ \t]+)(?:![^\s\"',\[\]{}]{0,100}[ \t]+)?[\[{\"']{0,4}([^\s\"',;&|(){}\[\]]{4,})"
)
# A value of several words in quotes, which may be those of a string in JSON.
_QUOTED_VALUE = lazy_pattern(r"(?:[ \t]*[:=：＝][ \t]*|[ \t]+)(\\?[\"'])([^\n\"'\\]{4,500})\1")
_REFERENCE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)\}?")
_WRITTEN_REFERENCE = lazy_pattern(r"(?:[ \t]*[:=：＝][ \t]*|[ \t]+)[\"']?(\$\{?[A-Za-z_]\w*\}?)")
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{2,100}")
FLAG = lazy_pattern(r"--?([A-Za-z][A-Za-z0-9_-]{0,100})\Z")
"""An option whose value is the next word."""
# Values that cannot be secrets although their names mean one: references, switches, paths to mounted files.
NEVER_SECRET = lazy_pattern(r"\$[({].*|true|false|yes|no|none|null|/.*|<.*>|\{\{.*", re.IGNORECASE | re.DOTALL)
_SETTING = (":", "=", "：", "＝")
MIN_TEXT = 8
"""Shorter texts hold no token, and no name with a value."""
_MIN_MASKED = 4
MAX_CACHED = 200
"""Shorter texts, such as values, repeat in many objects."""


def find_secrets_in_text(text: str) -> frozenset[str]:
    """Every text that may be a secret in a text, more than is reported."""
    if len(text) < MIN_TEXT:
        return frozenset()
    # Values of a repository repeat in many objects.
    return find_in_short_text(text) if len(text) < MAX_CACHED else find_in_lines(text)


def find_spans(text: str) -> set[Span]:
    """Where secrets stand in a text that is not a tree: a script, a command, a comment."""
    found = find_credentials(text)
    starts = {text.rfind("\n", 0, end) + 1 for end in _find_name_ends(_fold(text))}
    for start in starts:
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        found.update((start + first, start + last) for first, last in _find_settings(line))
    if "$" in text:
        found.update(_follow_references(text, {text[start:end] for start, end in found if "$" in text[start:end]}))
    return {(start, end) for start, end in found if not _REFERENCE.fullmatch(text, start, end)}


def find_credentials(text: str) -> set[Span]:
    """Where secrets stand in a text that have a known form, whatever the names before them."""
    found = set(_find_key_lines(text))
    # A text is searched for each prefix once. Most have none, and few of the lines of the others do.
    if prefixes := [prefix for prefix in _PREFIXES if prefix in text]:
        for start, line in _list_lines(text):
            if any(prefix in line for prefix in prefixes):
                found.update((start + match.start(), start + match.end()) for match in _TOKENS.finditer(line))
    if "://" in text and "@" in text:
        for start, line in _list_lines(text):
            if "://" in line:
                found.update((start + first, start + last) for first, last in _find_url_credentials(line))
    if "uthorization" in text or "AUTHORIZATION" in text:
        found.update(match.span(1) for match in _HEADER.finditer(text))
    if "curl" in text:
        found.update(match.span(1) for match in _USER.finditer(text))
    return found


def _list_lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def find_in_lines(text: str) -> frozenset[str]:
    """Every text that may be a secret in a text, however long."""
    return frozenset(text[start:end] for start, end in find_spans(text))


def _follow_references(text: str, values: set[str]) -> Iterator[Span]:
    """Where the values of the variables stand that a secret is taken from, as in `K=value` and `API_KEY=$K`."""
    known = dict[str, list[Span]]()
    for match in _ASSIGNMENT.finditer(text) if values else ():
        known.setdefault(match[1], []).append(match.span(2))
    while values:
        names = {name for value in values for name in _REFERENCE.findall(value)}
        spans = {span for name in names for span in known.pop(name, ())}
        for start, end in spans:
            if end - start >= _MIN_MASKED and not NEVER_SECRET.fullmatch(text, start, end):
                yield start, end
        values = {text[start:end] for start, end in spans if "$" in text[start:end]}


find_in_short_text = lru_cache(maxsize=16_384)(find_in_lines)


def may_name_secret(text: str) -> bool:
    """Return True if a text has a name that means a secret, such as `HF_TOKEN`."""
    return any(is_secret_name(name) for name in _NAME.findall(text))


def _find_url_credentials(text: str) -> Iterator[Span]:
    if "://" in text and "@" in text:
        yield from (match.span(1) for match in _URL_CREDENTIALS.finditer(text))


def _find_settings(text: str) -> Iterator[Span]:
    """Where the values after names that mean a secret stand in a line: `TOKEN: value`, `--token value`."""
    name = _NAME.search(text)
    while name:
        value = _WRITTEN_VALUE.match(text, name.end()) if is_secret_name(name[0]) else None
        if value and not _is_set(text, name.start(), text[name.end() : value.start(1)]):
            value = None
        # In `TOKEN: {secretKeyRef: …}`, a key of a map follows the name.
        is_key = value and value[1].endswith(":") and "{" in value[0]
        if value and not is_key and not NEVER_SECRET.fullmatch(value[1]):
            yield value.span(1)
        if "$" in text and is_secret_name(name[0]) and (reference := _WRITTEN_REFERENCE.match(text, name.end())):
            yield reference.span(1)
        quoted = _QUOTED_VALUE.match(text, name.end()) if value and not is_key else None
        if quoted and "$" not in quoted[2] and not NEVER_SECRET.fullmatch(quoted[2]):
            yield quoted.start(2), quoted.start(2) + len(quoted[2].rstrip())
        name = _NAME.search(text, (value or name).end())


def _is_set(text: str, start: int, between: str) -> bool:
    """Return True if a name sets what follows it; after spaces alone, `--token value` does, and `no token here` not."""
    return (
        any(sign in between for sign in _SETTING)
        or text[start - 1 : start] == "-"
        or bool(_LOGIN_BEFORE.search(text[:start]))
    )


def _find_key_lines(text: str) -> Iterator[Span]:
    """Where the lines of private keys stand. A key without an end reaches to the end of the text."""
    start = text.find(_KEY_BEGIN)
    while start >= 0:
        start += len(_KEY_BEGIN)
        end = text.find(_KEY_END, start)
        end = end if end >= 0 else len(text)
        for at, line in _list_lines(text[start:end]):
            first = start + at + len(line) - len(line.lstrip())
            if len(line.strip()) >= _MIN_MASKED:
                yield first, first + len(line.strip())
        start = text.find(_KEY_BEGIN, end)
