"""The ConfigMaps and Secrets that a kustomization generates, and the hash that kustomize adds to their names."""

from __future__ import annotations

import base64
import json
import posixpath
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from jobgen.k8s.nodes import as_mapping
from jobgen.kustomize.field_specs import Origin
from jobgen.kustomize.kustomization import Kustomization, text_of
from jobgen.kustomize.resource import Resource
from jobgen.kustomize.transformers import origin_of
from jobgen.model.budget import Work, charge
from jobgen.model.data import Location, Node, TracedScalar, location_of, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import find_key

_LINE_LENGTH = 70
_KEY = lazy_pattern(r"[-._a-zA-Z0-9]{1,253}\Z")
_HASH_LETTERS = str.maketrans("013ae", "ghkmt")
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

Reader = Callable[[Node, str], tuple[str, bytes] | None]
"""Reads the file that a node of a generator names: its path from the linted folder and its content; None if not."""


class _Pair(NamedTuple):
    """An entry of a generated object: its key, its content, and where they are written."""

    key: str
    content: bytes
    written: Node
    location: Location | None = None
    """Where the content is, if that is another file."""


def generate(
    kustomization: Kustomization, field: str, item: Any, read: Reader, problems: list[Problem]
) -> Resource | None:
    """Generate the object of an entry of `configMapGenerator` or `secretGenerator`; None if kustomize refuses it."""
    name = item.get("name")
    origin = origin_of(kustomization, field, name)
    if not text_of(name):
        _refuse(problems, Sentence("an entry of `{}` has no name; add `name`", field), item)
        return None
    kind = "Secret" if field == "secretGenerator" else "ConfigMap"
    node: dict[str, Any] = {
        origin.key("apiVersion"): origin.scalar("v1"),
        origin.key("kind"): origin.scalar(kind),
        origin.key("metadata"): {origin.key("name"): origin.scalar(text_of(name))},
    }
    if text_of(item.get("namespace")):
        node["metadata"][origin.key("namespace")] = _set_by(origin, item["namespace"])
    if kind == "Secret":
        node[origin.key("type")] = _set_by(origin, item.get("type")) if "type" in item else origin.scalar("Opaque")
    _add_data(node, _read_pairs(item, kind, read, problems), origin, kind, problems)
    own, defaults = as_mapping(item.get("options")), as_mapping(kustomization.fields.get("generatorOptions"))
    for group in ("labels", "annotations"):
        pairs = {**as_mapping(defaults.get(group)), **as_mapping(own.get(group))}
        for key, value in sorted(pairs.items()):
            located = Origin(location_of(key) or origin.location, origin.layer)
            node["metadata"].setdefault(origin.key(group), {})[located.key(key)] = _set_by(origin, value)
    options = {**own, **{option: given for option, given in defaults.items() if value_of(given) is True}}
    if value_of(options.get("immutable")) is True:
        node[origin.key("immutable")] = _set_by(origin, options["immutable"])
    resource = Resource(node, kustomization.path, 0, origin.location)
    resource.behavior = text_of(item.get("behavior"))
    resource.needs_hash = value_of(options.get("disableNameSuffixHash")) is not True
    return resource


def absorb(resource: Resource, old: Resource) -> None:
    """Merge a generated object into the one that it replaces, as its `behavior` says."""
    metadata, before = resource.node["metadata"], old.metadata
    for group in ("labels", "annotations"):
        joined = {**as_mapping(before.get(group)), **as_mapping(metadata.get(group))}
        if joined:
            metadata[find_key(before, group) or group] = joined
    for field in ("name", "namespace"):
        metadata.pop(field, None)
        metadata |= {key: value for key, value in before.items() if key == field}
    if resource.behavior == "merge":
        for field in ("data", "binaryData"):
            joined = {**as_mapping(old.node.get(field)), **as_mapping(resource.node.get(field))}
            if joined:
                resource.node[find_key(old.node, field) or field] = dict(sorted(joined.items()))
    resource.needs_hash = resource.needs_hash and old.needs_hash
    resource.previous, resource.prefixes, resource.suffixes = old.previous, old.prefixes, old.suffixes


def add_hash(resource: Resource) -> None:
    """Add the hash that kustomize computes of a ConfigMap or Secret to its name."""
    name = resource.node["metadata"]["name"]
    resource.store_id()
    node = resource.node
    # kustomize means to hash the name as well, but looks for it in the wrong place.
    content: dict[str, Any] = {"kind": resource.kind, "name": "", "data": untraced(node.get("data", ""))}
    if resource.kind == "Secret":
        content["type"] = text_of(node.get("type"))
    extra = "stringData" if resource.kind == "Secret" else "binaryData"
    if isinstance(node.get(extra), dict):
        content[extra] = untraced(node[extra])
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for char, escape in _SAFE.items():
        text = text.replace(char, escape)
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10].translate(_HASH_LETTERS)
    node["metadata"]["name"] = with_value(name, f"{resource.name}-{digest}")


def _read_pairs(item: Any, kind: str, read: Reader, problems: list[Problem]) -> list[_Pair]:
    """Return the entries of a generator: those of env files first, then literals, then files."""
    pairs: list[_Pair] = []
    for source in (*item.get("envs", ()), *([item["env"]] if text_of(item.get("env")) else ())):
        found = read(source, text_of(source))
        lines = found[1].removeprefix(b"\xef\xbb\xbf").split(b"\n") if found else []
        for number, raw in enumerate(lines, 1):
            line = raw.removesuffix(b"\r").lstrip()
            if found and line and not line.startswith(b"#"):
                name, _, content = line.partition(b"=")
                pairs.append(_Pair(name.decode("utf-8", "replace"), content, source, Location(found[0], number)))
    for literal in item.get("literals", ()):
        key, equals, value = text_of(literal).partition("=")
        if not key or not equals:
            shown = text_of(literal) if kind != "Secret" else "…"
            _refuse(problems, Sentence("`{}` is not a literal; write `key=value`", shown), literal)
            continue
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        pairs.append(_Pair(key, (value[1:-1] if quoted else value).encode("utf-8", "surrogatepass"), literal))
    for source in item.get("files", ()):
        text = text_of(source)
        key, equals, path = text.partition("=")
        if text.count("=") > 1 or (equals and not (key and path)):
            _refuse(problems, Sentence("`{}` is not a file of a generator; write `key=path` or `path`", text), source)
            continue
        path = path if equals else text
        found = read(source, path)
        if found:
            pairs.append(_Pair(key if equals else posixpath.basename(text), found[1], source, Location(found[0])))
    return pairs


def _add_data(node: dict[str, Any], pairs: list[_Pair], origin: Origin, kind: str, problems: list[Problem]) -> None:
    """Add the entries, sorted; a ConfigMap has those that are not UTF-8 as binary data."""
    data: dict[str, dict[str, Any]] = {"data": {}} if kind == "Secret" else {}
    seen: set[str] = set()
    charge(Work.BUILD, len(pairs))
    for pair in sorted(pairs, key=lambda each: each.key):
        if not _KEY.match(pair.key) or pair.key in seen:
            fault = (
                "occurs twice; use another key" if pair.key in seen else "is not a key; use letters, digits and `-_.`"
            )
            # A line of a secret that does not fit is taken for a key.
            _refuse(problems, Sentence("`{}` {}", pair.key if kind != "Secret" else "…", fault), pair.written)
            continue
        seen.add(pair.key)
        value, field = encode(pair.content), "data"
        if kind != "Secret":
            try:
                value = pair.content.decode("utf-8")
            except UnicodeDecodeError:
                field = "binaryData"
        located = Origin(pair.location or location_of(pair.written) or origin.location, origin.layer)
        data.setdefault(field, {})[located.key(pair.key)] = located.scalar(value)
    for field, entries in data.items():
        node[origin.key(field)] = entries


def encode(content: bytes) -> str:
    """Return bytes as base64 in lines, as kustomize writes it."""
    text = base64.b64encode(content).decode("ascii")
    if len(text) < _LINE_LENGTH:
        return text
    return "".join(f"{text[at : at + _LINE_LENGTH]}\n" for at in range(0, len(text), _LINE_LENGTH))


def _set_by(origin: Origin, node: Node) -> TracedScalar:
    """Return a value of the kustomization, in the layer of the generator."""
    return TracedScalar(value_of(node), location_of(node) or origin.location, origin.layer)


def _refuse(problems: list[Problem], message: Words, node: Node) -> None:
    problems.append(Problem("invalid-kustomization", message, node, category="gitops"))
