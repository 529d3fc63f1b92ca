"""Mask secrets: where they stand, and in other texts only if these can hold them for no other reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.nodes import find_nodes
from jobgen.k8s.secrets import (
    OF_SECRETS,
    REFERENCE_FIELDS,
    REFERENCES,
    VALUE_FIELDS,
    Held,
    is_private_key,
    is_public_place,
    is_secret_object,
    lines_of,
    list_held,
    names_secret,
)
from jobgen.k8s.secrets_in_text import NEVER_SECRET, Span, find_spans, is_secret_name, list_credentials
from jobgen.model.data import Plain, text_of, untraced
from jobgen.model.path import NamedItem, Step

MASK = "…"
_BEFORE_VALUE = (
    r"((?<!\w)([A-Za-z][A-Za-z0-9_-]{2,100})[\"']?(?:=|: ?|＝|： ?)[\"']?|--?([A-Za-z][A-Za-z0-9_-]{2,100}) [\"']?)"
)


def order_secrets(secrets: Iterable[str]) -> list[str]:
    """Secrets in the order in which they are masked: the longest first, since it may contain others."""
    return sorted(secrets, key=lambda secret: (-len(secret), secret))


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without secrets; one that can be guessed is only masked where its name stands before it."""
    for secret in order_secrets(secrets):
        if secret in text:
            text = text.replace(secret, MASK) if is_distinctive(secret) else _redact_setting(text, secret)
    return text


def _redact_setting(text: str, secret: str) -> str:
    def mask(match: re.Match[str]) -> str:
        return f"{match[1]}{MASK}" if is_secret_name(match[2] or match[3]) else match[0]

    return re.sub(rf"{_BEFORE_VALUE}{re.escape(secret)}(?!\w)", mask, text)


def redact_words(words: Sequence[str], variables: Mapping[str, str], secrets: Iterable[str] = ()) -> list[str]:
    """The words of a command without secrets: those of variables and options whose names mean one, in any form."""
    named = [value for name, value in variables.items() if is_secret_name(name)]
    named += [
        value
        for before, word in zip(("", *words), words, strict=False)
        for name, value in ((before, word), word.partition("=")[::2])
        if name.startswith("-") and is_secret_name(name.lstrip("-")) and not value.startswith("--")
    ]
    whole = {*secrets, *(line for value in named if not NEVER_SECRET.fullmatch(value) for line in lines_of(value))}
    text = " ".join(words)
    # An option can follow one without a value.
    spans = {(start, end) for start, end in find_spans(text) if not text.startswith("--", start)}
    whole.update(text[start:end] for start, end in spans)
    shown: list[str] = []
    at, is_next = 0, False
    for word in words:
        name, equals, _ = word.partition("=")
        option = name.lstrip("-").rpartition(".")[2]
        is_secret = is_secret_name(option) and (bool(equals) or name.startswith("-"))
        if is_next and not word.startswith("--"):
            shown.append(MASK)
        elif is_secret and equals:
            shown.append(f"{name}={MASK}")
        else:
            own = {(max(start - at, 0), min(end - at, len(word))) for start, end in spans}
            shown.append(redact(replace_spans(word, {span for span in own if span[0] < span[1]}), whole))
        at += len(word) + 1
        is_next = is_secret and not equals
    return shown


def hide_credentials(text: str) -> str:
    """The text without tokens of known formats and without users and passwords in addresses, whatever it is about."""
    spans = list_credentials(text)
    return replace_spans(text, spans) if spans else text


def replace_spans(text: str, spans: Iterable[Span], mask: str = MASK) -> str:
    """The text with a mask in place of each part; with one of a single `*`, each character is masked."""
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end > at:
            parts += (text[at : max(start, at)], "*" * (end - max(start, at)) if mask == "*" else mask)
            at = end
    return "".join((*parts, text[at:]))


def redact_tree(tree: Plain, secrets: frozenset[str]) -> Plain:
    """A value without secrets: those in it, and others that can only be there because they were written there."""
    copied: list[Any] = [_copy(tree)]
    keys: list[Held] = []
    for each in list_held(copied[0]) if isinstance(tree, (dict, list)) else ():
        if each.is_key:
            keys.append(each)
            continue
        parent, key, name = each[:3]
        value = parent[key]
        if name:
            parent[key] = MASK if not isinstance(value, bool) and value is not None else value
        elif isinstance(value, str):
            parent[key] = replace_spans(value, find_spans(value))
    for each in keys:
        _mask_key(each)
    redacted: Plain = _redact_texts(copied[0], frozenset(filter(is_distinctive, secrets)))
    return redacted


def _mask_key(held: Held) -> None:
    """Replace a key in its mapping; the order of the keys stays."""
    items = list(held.parent.items())
    held.parent.clear()
    for key, value in items:
        shown = key
        if key == held.key:
            shown = MASK if held.name else replace_spans(key, find_spans(key))
            while shown in held.parent:
                shown += MASK
        held.parent[shown] = value


def _copy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return [_copy(value) for value in tree] if isinstance(tree, list) else tree


def _redact_texts(tree: Any, secrets: frozenset[str]) -> Any:
    if isinstance(tree, dict):
        return {redact(key, secrets): _redact_texts(value, secrets) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_redact_texts(value, secrets) for value in tree]
    if isinstance(tree, str):
        return redact(tree, secrets)
    return MASK if not isinstance(tree, bool) and str(tree) in secrets else tree


def redact_at(value: Plain, obj: Any, path: Sequence[Step], secrets: frozenset[str]) -> Plain:
    """The value at a path of an object, or of a job, without secrets."""
    if isinstance(value, (dict, list)) or value is None or isinstance(value, bool):
        return redact_tree(value, secrets)
    return MASK if is_secret_at(obj, path) and not NEVER_SECRET.fullmatch(str(value)) else redact_tree(value, secrets)


def is_secret_at(obj: Any, path: Sequence[Step]) -> bool:
    """Return True if the scalar at a path of an object, or of a job, is a secret."""
    if not path:
        return False
    if isinstance(obj, dict) and "kind" in obj and is_secret_object(obj):
        return path[0] in OF_SECRETS or (text_of(obj["kind"]) != "ConfigMap" and not is_public_place(path))
    *before, last = path
    holder = next(find_nodes(obj, before), None)
    if _is_beside_reference(path):
        return True
    if last in VALUE_FIELDS:
        item = before[-1] if before else ""
        named = holder.get("name") if isinstance(holder, dict) else None
        name = item.value if isinstance(item, NamedItem) else text_of(named) if named is not None else item
        return isinstance(name, str) and is_secret_name(name)
    if any(step in REFERENCES for step in before):
        return False
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    return is_secret_name(name) and not (isinstance(holder, dict) and names_secret(holder, name))


def _is_beside_reference(path: Sequence[Step]) -> bool:
    """Return True for a place below a variable whose name means a secret that is no field of a reference."""
    for before, step in pairwise(path[:-1]):
        name = step.value if isinstance(step, NamedItem) else step
        if before == "env" and isinstance(name, str) and is_secret_name(name):
            return path[-1] not in REFERENCE_FIELDS
    return False


def redact_path(obj: Any, path: Sequence[Step], secrets: Iterable[str]) -> tuple[Step, ...]:
    """The path to a field of an object without keys that can be secrets."""
    is_secret = isinstance(obj, dict) and "kind" in obj and is_secret_object(obj)
    distinctive = frozenset(filter(is_distinctive, secrets))
    shown: list[Step] = []
    for at, step in enumerate(path, 1):
        if not isinstance(step, str):
            shown.append(step)
        elif is_secret and is_private_key(path[:at], untraced(next(find_nodes(obj, path[:at]), None))):
            shown.append(MASK)
        else:
            shown.append(redact(replace_spans(step, find_spans(step)), distinctive))
    return tuple(shown)
