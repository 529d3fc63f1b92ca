"""Validate Secrets: their keys, their size, and what their type requires."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isinf

from jobgen.check.admission.fields import Validation, find_key, join_names
from jobgen.check.validation.core._data import (
    count_base64_bytes,
    count_bytes,
    decode_base64,
    validate_keys,
    validate_size,
)
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node

_DOCKER_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    **{name: (key,) for name, key in _DOCKER_KEYS.items()},
}
_ALTERNATIVE_KEYS = {"kubernetes.io/basic-auth": ("username", "password")}
_TOKEN_TYPE, _ACCOUNT_KEY = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate a Secret; the API server writes `stringData` over `data` first."""
    data, texts = as_mapping(obj.get("data")), as_mapping(obj.get("stringData"))
    validate_keys(data, "Secret", run)
    validate_keys({key: value for key, value in texts.items() if key not in data}, "Secret", run)
    size = sum(count_base64_bytes(value) for key, value in data.items() if key not in texts)
    field = find_key(obj, "data" if data else "stringData", obj)
    validate_size(size + sum(map(count_bytes, texts.values())), "Secret", field, run)
    _validate_type(obj, data, texts, run)


def _validate_type(
    obj: Mapping[str, Node], data: Mapping[str, Node], texts: Mapping[str, Node], run: Validation
) -> None:
    """Validate the keys that the type of the Secret requires."""
    name = as_text(obj.get("type"))
    keys = data.keys() | texts.keys()
    field = next((key for key in obj if key in ("data", "stringData")), obj.get("type"))
    for key in _REQUIRED_KEYS.get(name, ()):
        if key not in keys:
            _report_missing_key(name, f"`{key}`", field, run)
        elif key == "ssh-privatekey" and _read_value(key, data, texts) == b"":
            run.report("missing-field", f"`{key}` is empty; set it to a private key", _find_value(key, data, texts))
    alternatives = _ALTERNATIVE_KEYS.get(name, ())
    if alternatives and not keys & set(alternatives):
        _report_missing_key(name, join_names(list(alternatives), "or"), field, run)
    if name == _TOKEN_TYPE and not as_text(get_path(run.metadata.get("annotations"), _ACCOUNT_KEY)):
        message = f"a Secret of type `{name}` requires the annotation `{_ACCOUNT_KEY}`; set it"
        run.report("missing-field", message, run.metadata.get("annotations") or run.metadata or obj)
    docker_key = _DOCKER_KEYS.get(name)
    if docker_key in keys:
        _validate_docker_config(docker_key, data, texts, run)


def _find_value(key: str, data: Mapping[str, Node], texts: Mapping[str, Node]) -> Node:
    return texts[key] if key in texts else data[key]


def _read_value(key: str, data: Mapping[str, Node], texts: Mapping[str, Node]) -> bytes | None:
    return as_text(texts[key]).encode(errors="replace") if key in texts else decode_base64(data[key])


def _report_missing_key(name: str, keys: str, field: Node, run: Validation) -> None:
    run.report("missing-field", f"a Secret of type `{name}` requires the key {keys}; add it", field)


def _validate_docker_config(key: str, data: Mapping[str, Node], texts: Mapping[str, Node], run: Validation) -> None:
    """Validate that the credentials of registries are JSON; the message does not contain them."""
    content = _read_value(key, data, texts)
    if content is not None and not _is_json_mapping(content):
        message = f"`{key}` is not a JSON object; write one with `auths`"
        run.report("invalid-value", message, _find_value(key, data, texts))


def _is_json_mapping(content: bytes) -> bool:
    """Return whether Go reads a text as a JSON object; null is an empty one."""
    try:
        found = json.loads(
            content.decode(errors="replace"), parse_int=_parse_number, parse_float=_parse_number, parse_constant=_refuse
        )
    except ValueError:
        return False
    except RecursionError:
        # Go reads ten thousand levels.
        return True
    return found is None or isinstance(found, dict)


def _parse_number(text: str) -> float:
    number = float(text)
    return _refuse(text) if isinf(number) else number


def _refuse(text: str) -> float:
    raise ValueError(text)
