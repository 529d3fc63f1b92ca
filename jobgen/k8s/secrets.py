"""Detect secrets: tokens with a known format, and values of variables whose names mean a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

from jobgen.model.data import Node, Plain, Scalar, value_of
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
    r"(?:.*[_-])?(?:TOKEN|SECRET|PASSWORD|PASSWD|(?:API|SECRET|ACCESS|PRIVATE|AUTH|ACCOUNT|ENCRYPTION)[_-]?KEY)",
    re.IGNORECASE,
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
    *("token", "secret", "passw", "key", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-"),
    *("sk-", "xox", "aiza", "npm_", "nvapi-", "dckr_pat"),
)
_PREFIXES = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AIza", "npm_", "nvapi-"),
    *("dckr_pat_", "-----BEGIN "),
)
# How a name that means a secret ends, in lower case; before `key` there is another word.
_NAME_ENDS = ("token", "secret", "password", "passwd", "key")
_BEFORE_KEY = ("api", "secret", "access", "private", "auth", "account", "encryption")
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
    for word in _NAME_ENDS:
        end = folded.find(word) + len(word)
        while end >= len(word):
            if folded[end : end + 1] not in _IN_NAME and _may_end_name(folded, word, end):
                yield end
            end = folded.find(word, end) + len(word)


def _may_end_name(folded: str, word: str, end: int) -> bool:
    start = end - len(word)
    if word == "key":
        before = folded[max(0, end - len("encryption_key")) : start]
        return (before[:-1] if before.endswith(("_", "-")) else before).endswith(_BEFORE_KEY)
    if not start or folded[start - 1] not in _LETTERS:
        return True
    # `_NAME` cuts a long word, and the rest of it is a name of its own.
    return start >= _MAX_WORD and _IN_NAME.issuperset(folded[start - _MAX_WORD : start])


_ENCRYPTED_KINDS = frozenset(("ConfigMap", "Secret"))
_VALUES = frozenset(("binaryData", "data", "sops", "stringData"))
"""The fields of an encrypted object whose values only the key of SOPS can read."""


def is_encrypted(obj: Mapping[str, Node]) -> bool:
    """Return True if SOPS encrypted an object. Objects that start pods never count: all of them is checked."""
    sops = obj.get("sops")
    return isinstance(sops, dict) and "mac" in sops and value_of(obj.get("kind")) in _ENCRYPTED_KINDS


def without_ciphertext(obj: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return the part of an object that can be read: all of it, unless SOPS encrypted it."""
    if not is_encrypted(obj):
        return obj
    read = {key: value for key, value in obj.items() if key not in _VALUES}
    return {key: value for key, value in read.items() if not str(value_of(value)).startswith("ENC[")}


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
    return len(value) >= 6 and _is_secret_name(name) and not _NOT_SECRETS.fullmatch(value)


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
    return may_contain_secret(name) and _SECRET_NAMES.fullmatch(name) is not None and not _TEXT_TOKENS.fullmatch(name)


def find_assignments(text: str) -> list[tuple[str, str]]:
    """Return the names and values that an argument or a script sets by `name=value` or `--name=value`."""
    return _ASSIGNMENT.findall(text)


MASK = "…"
# `https://user:password@host` or `https://token@host`; `https://host:80/path@1` and `https://host/path@1` have none.
_URL_CREDENTIALS = lazy_pattern(
    r"[a-z][a-z0-9+.-]{0,20}://([^\s/@:\"']{0,200}:(?!\d{1,5}/)[^\s@\"']{1,500}|[^\s/@\"']{1,500})@", re.IGNORECASE
)
# `Authorization: Bearer …`, and `curl -u user:password`; `--user 1000:1000` names a user and a group.
_HEADER = lazy_pattern(
    r"uthorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:bearer|basic|token)[ \t]+([^\s\"']{4,500})", re.IGNORECASE
)
_USER = lazy_pattern(r"(?:^|[\s\"'])(?:-u|--user)[ =\"']{1,2}([^\s:\"',]{1,100}:(?!\d)[^\s\"',]{4,500})")
_LOGIN = lazy_pattern(r"[^\s:/]{1,100}:(?!\d)[^\s/]{4,500}")
_KEY_BEGIN, _KEY_END = "PRIVATE KEY-----", "-----END"
# What may separate a name from its value (quotes, brackets, a tag), and the value as it is written.
_WRITTEN_VALUE = lazy_pattern(
    r"[\"']?(?:[ \t]*[:=][ \t]*|[ \t]+)(?:![^\s\"',\[\]{}]{0,100}[ \t]+)?[\[{\"']{0,4}([^\s\"',;&|(){}\[\]]{4,})"
)
# A value of several words in quotes, which may be those of a string in JSON.
_QUOTED_VALUE = lazy_pattern(r"(?:[ \t]*[:=][ \t]*|[ \t]+)(\\?[\"'])([^\n\"'\\]{4,500})\1")
_REFERENCE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)\}?")
_WRITTEN_REFERENCE = lazy_pattern(r"(?:[ \t]*[:=][ \t]*|[ \t]+)[\"']?(\$\{?[A-Za-z_]\w*\}?)")
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{2,100}")
_FLAG = lazy_pattern(r"--?([A-Za-z][A-Za-z0-9_-]{0,100})\Z")
# Values that cannot be secrets although their names mean one: references, switches, paths to mounted files.
_NEVER_SECRET = lazy_pattern(r"\$[({].*|true|false|yes|no|none|null|/.*|<.*>|\{\{.*", re.IGNORECASE | re.DOTALL)
_MIN_MASKED = 4
_MAX_CACHED = 200
_MIN_TEXT = 8
"""Shorter texts hold no token, and no name with a value."""
_WITHOUT_TEXT = frozenset((bool, int, float, type(None)))


def find_secrets(tree: Node, searched: Node = None) -> frozenset[str]:
    """Every text that may be a secret, more than is reported; what is equal to `searched`, another tree, is skipped."""
    found: set[str] = set()
    _collect_secrets(tree, searched, found)
    if isinstance(tree, dict) and ("secretGenerator" in tree or "patches" in tree):
        found.update(_find_in_kustomization(tree))
    return without_names(frozenset(found), [tree])


def without_names(secrets: frozenset[str], trees: Iterable[Node]) -> frozenset[str]:
    """Return secrets without the names of Secrets, and of keys in them, that trees refer to; a token is no name."""
    names = {name for tree in trees for name in _list_names(tree)} if secrets else set[str]()
    return secrets - {name for name in names if not _TOKENS.search(name)}


def _list_names(tree: Node) -> Iterator[str]:
    if isinstance(tree, list):
        yield from (name for child in tree for name in _list_names(child))
    for key, child in tree.items() if isinstance(tree, dict) else ():
        below = list(child.values()) if isinstance(child, dict) else []
        if key in ("secretKeyRef", "secretRef"):
            yield from map(str, map(value_of, below))
        elif key == "secretName":
            yield str(value_of(child))
        elif key == "secrets":
            # In a job, `secrets: {hub: {env: {HF_TOKEN: token}}}` names a key for each variable.
            env = (each.get("env") for each in below if isinstance(each, dict))
            yield from (str(value_of(name)) for each in env if isinstance(each, dict) for name in each.values())
        elif key == "volumes":
            yield from (str(value_of(each["secret"])) for each in below if isinstance(each, dict) and "secret" in each)
        yield from _list_names(child)


def _find_in_kustomization(tree: Mapping[str, Any]) -> Iterator[str]:
    """The values of the literals of a kustomization's generators of Secrets, and those in its patches of Secrets."""
    generators, patches = (tree.get(field) for field in ("secretGenerator", "patches"))
    for generator in generators if isinstance(generators, list) else ():
        literals = generator.get("literals") if isinstance(generator, dict) else None
        for literal in map(value_of, literals if isinstance(literals, list) else ()):
            if isinstance(literal, str):
                yield literal.partition("=")[2].strip("\"'") or literal
    for patch in patches if isinstance(patches, list) else ():
        text = value_of(patch.get("patch")) if isinstance(patch, dict) else None
        if isinstance(text, str) and ("Secret" in text or "Secret" in str(patch.get("target"))):
            # Every word behind a colon or in a list.
            for value in (line.partition(":")[2] or line for line in text.split("\n")):
                yield from (word.strip("\"'[],{} ") for word in value.split() if len(word) > _MIN_TEXT)


def find_secrets_in_text(text: str) -> frozenset[str]:
    """The same for a text that cannot be read as YAML."""
    if len(text) < _MIN_TEXT:
        return frozenset()
    # Values of a repository repeat in many objects.
    return _find_in_short_text(text) if len(text) < _MAX_CACHED else _find_in_lines(text)


def _find_in_lines(text: str) -> frozenset[str]:
    found = set(_find_key_lines(text))
    # A text is searched for each prefix once. Most have none, and few of the lines of the others do.
    if prefixes := [prefix for prefix in _PREFIXES if prefix in text]:
        held = (line for line in text.split("\n") if any(prefix in line for prefix in prefixes))
        found.update(match[0] for line in held for match in _TOKENS.finditer(line))
    if "://" in text and "@" in text:
        held = (line for line in text.split("\n") if "://" in line)
        found.update(part for line in held for part in _find_url_credentials(line))
    if "uthorization" in text or "AUTHORIZATION" in text:
        found.update(_HEADER.findall(text))
    if "curl" in text:
        found.update(_USER.findall(text))
    starts = {text.rfind("\n", 0, end) + 1 for end in _find_name_ends(_fold(text))}
    for start in starts:
        end = text.find("\n", start)
        found.update(_find_settings(text[start : end if end >= 0 else len(text)]))
    found.update(_follow_references(text, {value for value in found if value.startswith("$")}))
    return frozenset(value for value in found if not _REFERENCE.fullmatch(value))


def _follow_references(text: str, values: set[str]) -> Iterator[str]:
    """The values of the variables that a secret is taken from, as in `K=value` and `API_KEY=$K`."""
    known = dict[str, list[str]]()
    for name, value in find_assignments(text) if values else ():
        known.setdefault(name, []).append(value)
    while values:
        names = {name for value in values for name in _REFERENCE.findall(value)}
        found = {value for name in names for value in known.pop(name, ())}
        yield from (value for value in found if len(value) >= _MIN_MASKED and not _NEVER_SECRET.fullmatch(value))
        values = {value for value in found if "$" in value}


_find_in_short_text = lru_cache(maxsize=16_384)(_find_in_lines)


def order_secrets(secrets: Iterable[str]) -> list[str]:
    """Secrets in the order in which they are masked: the longest first, since it may contain others."""
    return sorted(secrets, key=lambda secret: (-len(secret), secret))


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets."""
    for secret in order_secrets(secrets):
        text = text.replace(secret, MASK)
    return text


def redact_words(words: Sequence[str], variables: Mapping[str, str], secrets: Iterable[str] = ()) -> list[str]:
    """The words of a command without secrets: those of variables and options whose names mean one, in any form."""
    held = {line for name, value in variables.items() if _is_secret_name(name) for line in _as_secret(value)}
    # An option can follow one without a value.
    written = (value for value in find_secrets_in_text(" ".join(words)) if not value.startswith("--"))
    whole = {*secrets, *held, *written}
    shown: list[str] = []
    is_next = False
    whole.update(
        value
        for before, word in zip(("", *words), words, strict=False)
        for name, value in ((before, word), word.partition("=")[::2])
        if name.startswith("-") and _is_secret_name(name.lstrip("-")) and not value.startswith("--")
        for value in _as_secret(value)
    )
    for word in words:
        name, equals, _ = word.partition("=")
        option = name.lstrip("-").rpartition(".")[2]
        is_secret = _is_secret_name(option) and (bool(equals) or name.startswith("-"))
        if is_next and not word.startswith("--"):
            shown.append(MASK)
        else:
            shown.append(f"{name}={MASK}" if is_secret and equals else redact(word, whole))
        is_next = is_secret and not equals
    return shown


def hide_credentials(text: str) -> str:
    """The text without tokens of known formats and without users and passwords in addresses, whatever it is about."""
    has_token, has_address = any(prefix in text for prefix in _PREFIXES), "://" in text and "@" in text
    if not has_token and not has_address:
        return text
    return redact(text, (*(match[0] for match in _TOKENS.finditer(text)), *_find_url_credentials(text)))


def redact_line(line: str, secrets: Iterable[str]) -> str:
    """A line of a file with as many stars as the secrets in it have characters, so that columns stay the same."""
    for secret in order_secrets(secrets):
        line = line.replace(secret, "*" * len(secret))
    return line


def hide_line(line: str) -> str:
    """A line of a file of which only the indentation is shown."""
    return line[: len(line) - len(line.lstrip())] + "*" * len(line.strip())


def may_name_secret(text: str) -> bool:
    """Return True if a text has a name that means a secret, such as `HF_TOKEN`."""
    return any(_is_secret_name(name) for name in _NAME.findall(text))


def redact_tree(tree: Plain, secrets: frozenset[str]) -> Plain:
    """A value without secrets."""
    if isinstance(tree, dict):
        return {key: redact_tree(value, secrets) for key, value in tree.items()}
    if isinstance(tree, list):
        return [redact_tree(value, secrets) for value in tree]
    if isinstance(tree, str):
        return redact(tree, secrets)
    return MASK if not isinstance(tree, bool) and str(tree) in secrets else tree


def _collect_secrets(tree: Node, searched: Node, found: set[str]) -> None:
    if type(tree) is dict or isinstance(tree, dict):
        _collect_in_mapping(tree, searched if searched and isinstance(searched, dict) else {}, found)
    elif type(tree) is list or isinstance(tree, list):
        _collect_in_list(tree, searched if searched and isinstance(searched, list) else (), found)
    else:
        _collect_in_scalar(value_of(tree), found)


def _collect_in_scalar(value: Scalar, found: set[str]) -> None:
    if type(value) is str and len(value) >= _MIN_TEXT:
        found |= _find_in_short_text(value) if len(value) < _MAX_CACHED else _find_in_lines(value)


def _collect_in_list(items: Sequence[Node], known: Sequence[Node], found: set[str]) -> None:
    before: Node = None
    for child, other in zip(items, chain(known, repeat(None)), strict=False):
        flag = _FLAG.match(before) if isinstance(before, str) and before[:1] == "-" else None
        if flag and _is_secret_name(flag[1]):
            found.update(_as_secret(child))
        elif flag and flag[1] in ("u", "user") and _LOGIN.fullmatch(str(value_of(child))):
            found.add(str(value_of(child)))
        if other is None or child != other:
            _collect_secrets(child, other, found)
        before = child if type(child) is dict else value_of(child)


def _collect_in_mapping(mapping: Mapping[str, Node], known: Mapping[str, Node], found: set[str]) -> None:
    if "value" in mapping and "name" in mapping:
        name = value_of(mapping["name"])
        if isinstance(name, str) and _is_secret_name(name):
            found.update(_as_secret(mapping["value"]))
    if "kind" in mapping and value_of(mapping["kind"]) == "Secret":
        found.update(line for field in ("data", "stringData") for line in _lines_of(mapping.get(field)))
    for key, child in mapping.items():
        if _is_secret_name(key):
            found.update(_as_secret(child))
        other = known.get(key) if known else None
        if other is not None and child == other:
            continue
        if type(child) is str:
            if len(child) >= _MIN_TEXT:
                _collect_in_scalar(child, found)
        elif type(child) not in _WITHOUT_TEXT:
            _collect_secrets(child, other, found)


def _as_secret(node: Node) -> Iterator[str]:
    """The texts of a value whose name means a secret; a mapping is a reference, or has a `value`."""
    if isinstance(node, dict):
        yield from _as_secret(node.get("value"))
    elif isinstance(node, list):
        for child in node:
            yield from _as_secret(child)
    elif not _NEVER_SECRET.fullmatch(str(value_of(node))):
        yield from _lines_of(node)


def _lines_of(node: Node) -> Iterator[str]:
    """All texts of a value. One may be written on several lines; each of them is a secret."""
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _lines_of(child)
        return
    found = value_of(node)
    lines = str(found).split("\n") if found is not None and not isinstance(found, bool) else ()
    for line in (line.strip() for line in lines if len(line.strip()) >= _MIN_MASKED):
        yield line
        if not line.isalnum() or not line.isascii():
            # The forms that it has between quotes in YAML or JSON.
            forms = (json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1], line.replace("'", "''"))
            yield from (form for form in forms if form != line)


def _find_url_credentials(text: str) -> Iterator[str]:
    if "://" in text and "@" in text:
        yield from (match[1] for match in _URL_CREDENTIALS.finditer(text))


def _find_settings(text: str) -> Iterator[str]:
    """The values after names that mean a secret: `TOKEN: value`, `--token value`."""
    name = _NAME.search(text)
    while name:
        value = _WRITTEN_VALUE.match(text, name.end()) if _is_secret_name(name[0]) else None
        # In `TOKEN: {secretKeyRef: …}`, a key of a map follows the name.
        is_key = value and value[1].endswith(":") and "{" in value[0]
        if value and not is_key and not _NEVER_SECRET.fullmatch(value[1]):
            yield value[1]
        if "$" in text and _is_secret_name(name[0]) and (reference := _WRITTEN_REFERENCE.match(text, name.end())):
            yield reference[1]
        quoted = _QUOTED_VALUE.match(text, name.end()) if value and not is_key else None
        if quoted and "$" not in quoted[2] and not _NEVER_SECRET.fullmatch(quoted[2]):
            yield quoted[2].strip()
        name = _NAME.search(text, (value or name).end())


def _find_key_lines(text: str) -> Iterator[str]:
    """The lines of private keys. One without an end reaches to the end of the text."""
    start = text.find(_KEY_BEGIN)
    while start >= 0:
        start += len(_KEY_BEGIN)
        end = text.find(_KEY_END, start)
        end = end if end >= 0 else len(text)
        yield from (line.strip() for line in text[start:end].split("\n") if len(line.strip()) >= _MIN_MASKED)
        start = text.find(_KEY_BEGIN, end)
