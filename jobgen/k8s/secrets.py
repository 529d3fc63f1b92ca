"""Detect secrets: tokens with a known format, and values of variables whose names mean a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, TypeAlias

from jobgen.model.data import Node, TracedScalar, value_of
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple

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


def list_credentials(text: str) -> set[Span]:
    """Where tokens of known formats, and users and passwords in addresses, stand in any text."""
    has_token, has_address = any(prefix in text for prefix in _PREFIXES), "://" in text and "@" in text
    if not has_token and not has_address:
        return set()
    return {match.span() for match in _TOKENS.finditer(text)}.union(_find_url_credentials(text))


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
_LOGIN = lazy_pattern(r"[^\s:/]{1,100}:(?!\d)[^\s/]{4,500}")
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
_FLAG = lazy_pattern(r"--?([A-Za-z][A-Za-z0-9_-]{0,100})\Z")
# Values that cannot be secrets although their names mean one: references, switches, paths to mounted files.
NEVER_SECRET = lazy_pattern(r"\$[({].*|true|false|yes|no|none|null|/.*|<.*>|\{\{.*", re.IGNORECASE | re.DOTALL)
_SETTING = (":", "=", "：", "＝")
_MIN_TEXT = 8
"""Shorter texts hold no token, and no name with a value."""
_MIN_MASKED = 4
_MAX_CACHED = 200
_WITHOUT_TEXT = frozenset((bool, int, float, type(None)))


class Held(NamedTuple):
    """A scalar in a tree that is a secret, or whose text may hold some."""

    parent: Any
    key: Any
    name: str
    """The name that means a secret; empty if the text has to be searched."""
    is_key: bool = False
    """True if the key is what is secret, and not its value."""

    @property
    def node(self) -> Node:
        """The scalar, or the key."""
        node: Node = self.key if self.is_key else self.parent[self.key]
        return node


def find_secrets(tree: Node, searched: Node = None) -> frozenset[str]:
    """Every text that may be a secret, more than is reported; what is equal to `searched`, another tree, is skipped."""
    found: set[str] = set()
    for each in list_held(tree, searched):
        if each.name:
            found.update(lines_of(each.node))
        else:
            text = each.node
            text = text if type(text) is str else value_of(text)
            found |= _find_in_short_text(text) if len(text) < _MAX_CACHED else _find_in_lines(text)
    found.update(list_kustomization_secrets(tree))
    return without_names(frozenset(found), [tree])


def list_held(tree: Node, searched: Node = None) -> list[Held]:
    """Every scalar of a tree that may be, or hold, a secret; what is equal to `searched`, another tree, is skipped."""
    held: list[Held] = []
    _collect(([tree]), 0, searched, held)
    return held


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
            named = [child.get(field) for field in ("name", "key")] if isinstance(child, dict) else []
            yield from map(str, map(value_of, filter(None, named)))
        elif key == "secretName":
            yield str(value_of(child))
        elif key == "secrets":
            # In a job, `secrets: {hub: {env: {HF_TOKEN: token}}}` names a key for each variable.
            env = (each.get("env") for each in below if isinstance(each, dict))
            yield from (str(value_of(name)) for each in env if isinstance(each, dict) for name in each.values())
        elif key == "volumes":
            yield from (str(value_of(each["secret"])) for each in below if isinstance(each, dict) and "secret" in each)
        yield from _list_names(child)


def list_kustomization_secrets(tree: Any) -> Iterator[str]:
    """The values of the literals of a kustomization's generators of Secrets, and those in its patches of Secrets."""
    if not isinstance(tree, dict) or ("secretGenerator" not in tree and "patches" not in tree):
        return
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


def _find_in_lines(text: str) -> frozenset[str]:
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


_find_in_short_text = lru_cache(maxsize=16_384)(_find_in_lines)


def may_name_secret(text: str) -> bool:
    """Return True if a text has a name that means a secret, such as `HF_TOKEN`."""
    return any(is_secret_name(name) for name in _NAME.findall(text))


def _collect(parent: Any, key: Any, searched: Node, held: list[Held]) -> None:
    node = parent[key]
    text = node.value if type(node) is TracedScalar else node
    if type(text) is str:
        if len(text) >= _MIN_TEXT:
            held.append(Held(parent, key, ""))
    elif type(node) is dict or isinstance(node, dict):
        _collect_in_mapping(node, searched if searched and isinstance(searched, dict) else {}, held)
    elif type(node) is list or isinstance(node, list):
        _collect_in_list(node, searched if searched and isinstance(searched, list) else (), held)


def _collect_in_list(items: Sequence[Node], known: Sequence[Node], held: list[Held]) -> None:
    before = ""
    for at, (child, other) in enumerate(zip(items, chain(known, repeat(None)), strict=False)):
        flag = _FLAG.match(before) if before[:1] == "-" else None
        if flag and is_secret_name(flag[1]):
            _hold_value(items, at, flag[1], held)
        elif flag and flag[1] in ("u", "user") and _LOGIN.fullmatch(str(value_of(child))):
            held.append(Held(items, at, flag[1]))
        if type(child) is dict and other is None:
            _collect_in_mapping(child, {}, held)
        elif type(child) is not str and (other is None or child != other):
            _collect(items, at, other, held)
        elif type(child) is str and child != other and len(child) >= _MIN_TEXT:
            held.append(Held(items, at, ""))
        text = child.value if type(child) is TracedScalar else child
        before = text if type(text) is str else ""


def _collect_in_mapping(mapping: Mapping[str, Node], known: Mapping[str, Node], held: list[Held]) -> None:
    if ("name" in mapping or "path" in mapping) and not VALUE_FIELDS.isdisjoint(mapping):
        _hold_named(mapping, held)
    if "kind" in mapping and is_secret_object(mapping):
        _hold_object(mapping, held)
    if "env" in mapping:
        _hold_variables(mapping["env"], held)
    for key, child in mapping.items():
        if is_secret_name(key) or "：" in key or "＝" in key:
            _hold_by_key(mapping, key, held)
        other = known.get(key) if known else None
        if type(child) in _WITHOUT_TEXT or (other is not None and child == other):
            continue
        if key in REFERENCES and isinstance(child, dict):
            _collect_beside_references(child, REFERENCES[key], held)
        elif type(child) is not str:
            _collect(mapping, key, other, held)
        elif len(child) >= _MIN_TEXT:
            held.append(Held(mapping, key, ""))


def _hold_by_key(mapping: Mapping[str, Node], key: str, held: list[Held]) -> None:
    if "：" in key or "＝" in key:
        held.append(Held(mapping, key, "", is_key=True))
    if is_secret_name(key) and not names_secret(mapping, key):
        _hold_value(mapping, key, key, held)


def _hold_named(mapping: Mapping[str, Node], held: list[Held]) -> None:
    if "path" in mapping:
        _hold_patched(mapping, held)
    name = value_of(mapping["name"]) if "name" in mapping else None
    if isinstance(name, str) and is_secret_name(name):
        for field in sorted(VALUE_FIELDS.intersection(mapping)):
            _hold_value(mapping, field, name, held)


def _hold_object(secret: Mapping[str, Node], held: list[Held]) -> None:
    if is_encrypted(secret) or not means_secret(str(value_of(secret["kind"]))):
        for field in filter(secret.__contains__, OF_SECRETS):
            _hold_all(secret, field, field, held)
    else:
        _hold_private(secret, (), held)


def _hold_private(node: Any, path: tuple[Any, ...], held: list[Held]) -> None:
    """Hold every scalar of a Secret but those that say what it is, and keys that can be values in a wrong place."""
    is_mapping = isinstance(node, dict)
    for key in node if is_mapping else range(len(node)):
        place, child = (*path, key), node[key]
        if is_mapping and is_private_key(place, child):
            held.append(Held(node, key, path[-1] if path and isinstance(path[-1], str) else "kind", is_key=True))
        if isinstance(child, (dict, list)):
            _hold_private(child, place, held)
        elif value_of(child) not in (None, "") and not is_public_place(place):
            name = next((step for step in reversed(place) if isinstance(step, str)), "")
            held.append(Held(node, key, name or "data"))


def is_public_place(path: Sequence[Any]) -> bool:
    """Return True for a place in a Secret whose value says what the object is."""
    return tuple(path) in _PUBLIC_PLACES


def is_private_key(path: Sequence[Any], value: Node) -> bool:
    """Return True if the last step of a path into a Secret can be a value that was written as a key."""
    *before, key = path
    if not before:
        return key not in _ROOT_FIELDS
    if before[0] == "metadata":
        is_named = len(before) == 1 or before[1:] == ["annotations"]
        return is_named and (_is_distinctive(key) or (len(before) == 1 and value_of(value) is None))
    if before[0] not in OF_SECRETS or len(before) > 1:
        return True
    is_empty = value_of(value) is None and not is_secret_name(key)
    return is_empty or _is_distinctive(key) or not _DATA_KEY.fullmatch(key)


def _is_distinctive(key: str) -> bool:
    # Imported late: few lints see a Secret.
    from jobgen.k8s.distinctive import is_distinctive

    return is_distinctive(str(key))


def _hold_patched(operation: Mapping[str, Node], held: list[Held]) -> None:
    """Hold the value of an operation of a JSON patch, whatever the key is under which it stands."""
    path = value_of(operation["path"])
    steps = path.split("/")[1:] if isinstance(path, str) and path[:1] == "/" else []
    name = next((step for step in reversed(steps) if is_secret_name(step)), "")
    name = name or (steps[0] if steps and steps[0] in OF_SECRETS and steps[0] != "data" else "")
    for field in sorted(VALUE_FIELDS.intersection(operation)) if name else ():
        _hold_value(operation, field, name, held)


def _hold_variables(env: Any, held: list[Held]) -> None:
    """Hold what is beside, or in place of, the references of variables whose names mean a secret."""
    is_list = isinstance(env, list)
    named = zip(repeat(""), env) if is_list else env.items() if isinstance(env, dict) else ()
    for key, node in named:
        if isinstance(node, dict):
            name = value_of(node.get("name")) if is_list else key
            if isinstance(name, str) and is_secret_name(name):
                _hold_beside_reference(node, name, held)


def _hold_beside_reference(node: Any, name: str, held: list[Held]) -> None:
    for key in node if isinstance(node, dict) else range(len(node)):
        child = node[key]
        is_other = isinstance(node, dict) and key not in REFERENCE_FIELDS and key not in _SOURCES
        if is_other and (value_of(child) is None or _is_distinctive(str(key))):
            held.append(Held(node, key, name, is_key=True))
        if isinstance(child, (dict, list)):
            _hold_beside_reference(child, name, held)
        elif key not in REFERENCE_FIELDS and key not in VALUE_FIELDS and value_of(child) is not None:
            _hold_value(node, key, name, held)


# Fields of jobs in which a name of a Secret, or of a key in it, follows a name that means a secret.
REFERENCES = {"secrets": "env", "volumes": "secret"}
OF_SECRETS = ("data", "stringData", "stringdata", "string_data", "StringData")
_PUBLIC_PLACES = frozenset(
    (("apiVersion",), ("kind",), ("type",), ("immutable",), ("metadata", "name"), ("metadata", "namespace"))
)
_ROOT_FIELDS = frozenset(("apiVersion", "kind", "metadata", "type", "immutable", "sops", "spec", "status", *OF_SECRETS))
_DATA_KEY = lazy_pattern(r"[-._A-Za-z0-9]+")
REFERENCE_FIELDS = frozenset(
    ("name", "key", "optional", "fieldPath", "apiVersion", "resource", "containerName", "divisor", "path", "volumeName")
)
"""The fields of references to values of variables."""
_SOURCES = frozenset("valueFrom configMapKeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef".split())
"""Keys whose values are references; an empty one is no value in a wrong place."""
VALUE_FIELDS = frozenset(("value", "Value", "values", "val", "valu", "vale", "vlaue", "vaule", "valeu"))
"""The field that holds a value beside its name, and how it is misspelled."""
_SIMILAR = 0.8
_BESIDE_NAMES = ("key", "mountPath", "items", "optional", "subPath")


def is_secret_object(mapping: Mapping[str, Node]) -> bool:
    """Return True for a Secret, also for one whose kind is misspelled."""
    kind = value_of(mapping["kind"])
    return kind == "Secret" or "stringData" in mapping or (isinstance(kind, str) and means_secret(kind))


@lru_cache(maxsize=1024)
def means_secret(kind: str) -> bool:
    """Return True for a misspelled `Secret`; no kind of Kubernetes is that similar."""
    if kind[:1] not in ("S", "s") or not len("Secret") - 2 < len(kind) < len("Secret") + 2:
        return False
    # Imported late: few kinds begin with this letter.
    from difflib import SequenceMatcher

    return SequenceMatcher(None, kind.lower(), "secret", autojunk=False).ratio() >= _SIMILAR


def names_secret(mapping: Mapping[str, Node], key: str) -> bool:
    """Return True for `secret: hub` beside `key: token` or `mountPath: /hub`: it has the name of a Secret."""
    return key == "secret" and any(field in mapping for field in _BESIDE_NAMES)


def _collect_beside_references(named: Mapping[str, Node], reference: str, held: list[Held]) -> None:
    for key, child in named.items():
        if isinstance(child, dict):
            for field in child:
                if field != reference:
                    _collect(child, field, None, held)
        else:
            _collect(named, key, None, held)


def _hold_value(parent: Any, key: Any, name: str, held: list[Held]) -> None:
    """Hold the texts of a value whose name means a secret; a mapping is a reference, or has a `value`."""
    node = parent[key]
    if isinstance(node, dict):
        for field in sorted(VALUE_FIELDS.intersection(node)):
            _hold_value(node, field, name, held)
    elif isinstance(node, list):
        for at in range(len(node)):
            _hold_value(node, at, name, held)
    elif not NEVER_SECRET.fullmatch(str(value_of(node))):
        held.append(Held(parent, key, name))


def _hold_all(parent: Any, key: Any, name: str, held: list[Held]) -> None:
    node = parent[key]
    if isinstance(node, (dict, list)):
        for below in node if isinstance(node, dict) else range(len(node)):
            _hold_all(node, below, str(below) if isinstance(node, dict) else name, held)
    elif value_of(node) not in (None, ""):
        held.append(Held(parent, key, name))


def lines_of(node: Node) -> Iterator[str]:
    """All texts of a value. One may be written on several lines; each of them is a secret."""
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from lines_of(child)
        return
    found = value_of(node)
    lines = str(found).split("\n") if found is not None and not isinstance(found, bool) else ()
    for line in filter(None, map(str.strip, lines)):
        yield line
        if not line.isalnum() or not line.isascii():
            # The forms that it has between quotes in YAML or JSON.
            forms = (json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1], line.replace("'", "''"))
            yield from (form for form in forms if form != line)


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
