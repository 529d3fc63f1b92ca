"""Where secrets stand in the data of an object: in texts, and beside names that mean a secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

from jobgen.k8s.secrets_in_text import (
    FLAG,
    LOGIN,
    MAX_CACHED,
    MIN_TEXT,
    NEVER_SECRET,
    find_in_lines,
    find_in_short_text,
    has_token,
    is_secret_name,
)
from jobgen.model.data import Plain, Tree, text_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_ENCRYPTED_KINDS = frozenset(("ConfigMap", "Secret"))
_VALUES = frozenset(("binaryData", "data", "sops", "stringData"))
"""The fields of an encrypted object whose values only the key of SOPS can read."""


def is_encrypted(obj: Mapping[str, Tree]) -> bool:
    """Return True if SOPS encrypted an object. Objects that start pods never count: all of them is checked."""
    sops = obj.get("sops")
    return isinstance(sops, dict) and "mac" in sops and text_of(obj.get("kind")) in _ENCRYPTED_KINDS


def without_ciphertext(obj: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Return the part of an object that can be read: all of it, unless SOPS encrypted it."""
    if not is_encrypted(obj):
        return obj
    read = {key: value for key, value in obj.items() if key not in _VALUES}
    return {key: value for key, value in read.items() if not str(value).startswith("ENC[")}


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
    def node(self) -> Any:
        """The scalar, or the key."""
        return self.key if self.is_key else self.parent[self.key]


def find_secrets(tree: Plain, searched: Plain = None) -> frozenset[str]:
    """Every text that may be a secret, more than is reported; what is equal to `searched`, another tree, is skipped."""
    found: set[str] = set()
    for each in list_held(tree, searched):
        if each.name:
            found.update(lines_of(each.node))
        else:
            text = str(each.node)
            found |= find_in_short_text(text) if len(text) < MAX_CACHED else find_in_lines(text)
    found.update(list_kustomization_secrets(tree))
    return without_names(frozenset(found), [tree])


def list_held(tree: Plain, searched: Plain = None) -> list[Held]:
    """Every scalar of a tree that may be, or hold, a secret; what is equal to `searched`, another tree, is skipped."""
    held: list[Held] = []
    _collect(([tree]), 0, searched, held)
    return held


def without_names(secrets: frozenset[str], trees: Iterable[Plain]) -> frozenset[str]:
    """Return secrets without the names of Secrets, and of keys in them, that trees refer to; a token is no name."""
    names = {name for tree in trees for name in _list_names(tree)} if secrets else set[str]()
    return secrets - {name for name in names if not has_token(name)}


def _list_names(tree: Plain) -> Iterator[str]:
    if isinstance(tree, list):
        yield from (name for child in tree for name in _list_names(child))
    for key, child in tree.items() if isinstance(tree, dict) else ():
        below = list(child.values()) if isinstance(child, dict) else []
        if key in ("secretKeyRef", "secretRef"):
            named = [child.get(field) for field in ("name", "key")] if isinstance(child, dict) else []
            yield from map(str, filter(None, named))
        elif key == "secretName":
            yield str(child)
        elif key == "secrets":
            # In a job, `secrets: {hub: {env: {HF_TOKEN: token}}}` names a key for each variable.
            env = (each.get("env") for each in below if isinstance(each, dict))
            yield from (str(name) for each in env if isinstance(each, dict) for name in each.values())
        elif key == "volumes":
            yield from (str(each["secret"]) for each in below if isinstance(each, dict) and "secret" in each)
        yield from _list_names(child)


def list_kustomization_secrets(tree: Any) -> Iterator[str]:
    """The values of the literals of a kustomization's generators of Secrets, and those in its patches of Secrets."""
    if not isinstance(tree, dict) or ("secretGenerator" not in tree and "patches" not in tree):
        return
    generators, patches = (tree.get(field) for field in ("secretGenerator", "patches"))
    for generator in generators if isinstance(generators, list) else ():
        literals = generator.get("literals") if isinstance(generator, dict) else None
        for literal in literals if isinstance(literals, list) else ():
            if isinstance(literal, str):
                yield literal.partition("=")[2].strip("\"'") or literal
    for patch in patches if isinstance(patches, list) else ():
        text = patch.get("patch") if isinstance(patch, dict) else None
        if isinstance(text, str) and ("Secret" in text or "Secret" in str(patch.get("target"))):
            # Every word behind a colon or in a list.
            for value in (line.partition(":")[2] or line for line in text.split("\n")):
                yield from (word.strip("\"'[],{} ") for word in value.split() if len(word) > MIN_TEXT)


def _collect(parent: Any, key: Any, searched: Plain, held: list[Held]) -> None:
    node = parent[key]
    if type(node) is str:
        if len(node) >= MIN_TEXT:
            held.append(Held(parent, key, ""))
    elif type(node) is dict or isinstance(node, dict):
        _collect_in_mapping(node, searched if searched and isinstance(searched, dict) else {}, held)
    elif type(node) is list or isinstance(node, list):
        _collect_in_list(node, searched if searched and isinstance(searched, list) else (), held)


def _collect_in_list(items: Sequence[Plain], known: Sequence[Plain], held: list[Held]) -> None:
    before = ""
    for at, (child, other) in enumerate(zip(items, chain(known, repeat(None)), strict=False)):
        flag = FLAG.match(before) if before[:1] == "-" else None
        if flag and is_secret_name(flag[1]):
            _hold_value(items, at, flag[1], held)
        elif flag and flag[1] in ("u", "user") and LOGIN.fullmatch(str(child)):
            held.append(Held(items, at, flag[1]))
        if type(child) is dict and other is None:
            _collect_in_mapping(child, {}, held)
        elif type(child) is not str and (other is None or child != other):
            _collect(items, at, other, held)
        elif type(child) is str and child != other and len(child) >= MIN_TEXT:
            held.append(Held(items, at, ""))
        before = child if type(child) is str else ""


def _collect_in_mapping(mapping: Mapping[str, Plain], known: Mapping[str, Plain], held: list[Held]) -> None:
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
        elif len(child) >= MIN_TEXT:
            held.append(Held(mapping, key, ""))


def _hold_by_key(mapping: Mapping[str, Plain], key: str, held: list[Held]) -> None:
    if "：" in key or "＝" in key:
        held.append(Held(mapping, key, "", is_key=True))
    if is_secret_name(key) and not names_secret(mapping, key):
        _hold_value(mapping, key, key, held)


def _hold_named(mapping: Mapping[str, Plain], held: list[Held]) -> None:
    if "path" in mapping:
        _hold_patched(mapping, held)
    name = mapping.get("name")
    if isinstance(name, str) and is_secret_name(name):
        for field in sorted(VALUE_FIELDS.intersection(mapping)):
            _hold_value(mapping, field, name, held)


def _hold_object(secret: Mapping[str, Plain], held: list[Held]) -> None:
    if is_encrypted(secret) or not means_secret(str(secret["kind"])):
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
        elif child not in (None, "") and not is_public_place(place):
            name = next((step for step in reversed(place) if isinstance(step, str)), "")
            held.append(Held(node, key, name or "data"))


def is_public_place(path: Sequence[Any]) -> bool:
    """Return True for a place in a Secret whose value says what the object is."""
    return tuple(path) in _PUBLIC_PLACES


def is_private_key(path: Sequence[Any], value: Plain) -> bool:
    """Return True if the last step of a path into a Secret can be a value that was written as a key."""
    *before, key = path
    if not before:
        return key not in _ROOT_FIELDS
    if before[0] == "metadata":
        is_named = len(before) == 1 or before[1:] == ["annotations"]
        return is_named and (_is_distinctive(key) or (len(before) == 1 and value is None))
    if before[0] not in OF_SECRETS or len(before) > 1:
        return True
    is_empty = value is None and not is_secret_name(key)
    return is_empty or _is_distinctive(key) or not _DATA_KEY.fullmatch(key)


def _is_distinctive(key: str) -> bool:
    # Imported late: few lints see a Secret.
    from jobgen.k8s.distinctive import is_distinctive

    return is_distinctive(str(key))


def _hold_patched(operation: Mapping[str, Plain], held: list[Held]) -> None:
    """Hold the value of an operation of a JSON patch, whatever the key is under which it stands."""
    path = operation["path"]
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
            name = node.get("name") if is_list else key
            if isinstance(name, str) and is_secret_name(name):
                _hold_beside_reference(node, name, held)


def _hold_beside_reference(node: Any, name: str, held: list[Held]) -> None:
    for key in node if isinstance(node, dict) else range(len(node)):
        child = node[key]
        is_other = isinstance(node, dict) and key not in REFERENCE_FIELDS and key not in _SOURCES
        if is_other and (child is None or _is_distinctive(str(key))):
            held.append(Held(node, key, name, is_key=True))
        if isinstance(child, (dict, list)):
            _hold_beside_reference(child, name, held)
        elif key not in REFERENCE_FIELDS and key not in VALUE_FIELDS and child is not None:
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


def is_secret_object(mapping: Mapping[str, Tree]) -> bool:
    """Return True for a Secret, also for one whose kind is misspelled."""
    kind = text_of(mapping["kind"])
    return kind == "Secret" or "stringData" in mapping or means_secret(kind)


@lru_cache(maxsize=1024)
def means_secret(kind: str) -> bool:
    """Return True for a misspelled `Secret`; no kind of Kubernetes is that similar."""
    if kind[:1] not in ("S", "s") or not len("Secret") - 2 < len(kind) < len("Secret") + 2:
        return False
    # Imported late: few kinds begin with this letter.
    from difflib import SequenceMatcher

    return SequenceMatcher(None, kind.lower(), "secret", autojunk=False).ratio() >= _SIMILAR


def names_secret(mapping: Mapping[str, Plain], key: str) -> bool:
    """Return True for `secret: hub` beside `key: token` or `mountPath: /hub`: it has the name of a Secret."""
    return key == "secret" and any(field in mapping for field in _BESIDE_NAMES)


def _collect_beside_references(named: Mapping[str, Plain], reference: str, held: list[Held]) -> None:
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
    elif not NEVER_SECRET.fullmatch(str(node)):
        held.append(Held(parent, key, name))


def _hold_all(parent: Any, key: Any, name: str, held: list[Held]) -> None:
    node = parent[key]
    if isinstance(node, (dict, list)):
        for below in node if isinstance(node, dict) else range(len(node)):
            _hold_all(node, below, str(below) if isinstance(node, dict) else name, held)
    elif node not in (None, ""):
        held.append(Held(parent, key, name))


def lines_of(node: Plain) -> Iterator[str]:
    """All texts of a value. One may be written on several lines; each of them is a secret."""
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from lines_of(child)
        return
    lines = str(node).split("\n") if node is not None and not isinstance(node, bool) else ()
    for line in filter(None, map(str.strip, lines)):
        yield line
        if not line.isalnum() or not line.isascii():
            # The forms that it has between quotes in YAML or JSON.
            forms = (json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1], line.replace("'", "''"))
            yield from (form for form in forms if form != line)
