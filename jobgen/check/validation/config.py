"""Validate ConfigMaps and Secrets: their keys, their size, and what the type of a Secret requires."""

from __future__ import annotations

import base64
import binascii
import json
from math import isinf

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Validation,
    find_entry,
)
from jobgen.check.admission.names import CONFIG_KEY, is_config_key
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.meant import may_mean
from jobgen.model.place import At, Derived
from jobgen.model.sentence import Sentence

_MAX_BYTES = 1024 * 1024
_DOCKER_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    **{name: (key,) for name, key in _DOCKER_KEYS.items()},
}
_REQUIRED = frozenset(key for keys in _REQUIRED_KEYS.values() for key in keys)
# What the files are called whose content these keys hold.
_USUAL_NAMES = {
    ".dockerconfigjson": ("config.json", "docker-config.json"),
    "tls.crt": ("cert.pem", "server.crt", "fullchain.pem"),
    "tls.key": ("key.pem", "server.key", "privkey.pem"),
    "ssh-privatekey": ("id_rsa", "id_ed25519", "id_ecdsa"),
}
_TOKEN_TYPE, _ACCOUNT_KEY = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"


def _validate_keys(data: Fields, kind: str, run: Validation) -> None:
    for key in data:
        if not is_config_key(key):
            run.report(
                "invalid-config-key",
                Sentence("`{}` is not a valid key of a {}; {}", key, kind, CONFIG_KEY),
                (data, key),
            )


def _validate_size(texts: Fields, binary: Fields, kind: str, entry: Entry, run: Validation) -> None:
    """Validate the size of all values together: that of strings in UTF-8, and of what strings in base64 contain."""
    size = sum(len(as_text(value).encode(errors="replace")) for value in texts.values())
    for value in binary.values():
        text = as_text(value)
        # Four characters are three bytes; line breaks count nothing.
        length = (len(text) - text.count("\n") - text.count("\r")) // 4 * 3 - text[-2:].count("=")
        size += len(value) if isinstance(value, list) else length
    if size > _MAX_BYTES:
        message = Sentence(
            "the values have `{}` bytes; the limit is {}, so split the {} or mount a volume", size, _MAX_BYTES, kind
        )
        run.report("out-of-range", message, entry)


def _check_config_map(obj: Fields, entry: Entry, run: Validation) -> None:
    data, binary = as_mapping(obj.get("data")), as_mapping(obj.get("binaryData"))
    _validate_keys(data, "ConfigMap", run)
    _validate_keys(binary, "ConfigMap", run)
    for key in data:
        if key in binary:
            run.report(
                "duplicate-item",
                Sentence("`{}` is a key of `data` and of `binaryData`; remove one of them", key),
                (data, key),
            )
    field = next((key for key in obj if key in ("data", "binaryData")), "data")
    _validate_size(data, binary, "ConfigMap", (obj, field), run)


def _find_misnamed(wanted: str, values: Fields) -> str:
    """Return the key that holds what a required key is to hold, under the name that a file or another type has."""
    usual = [key for key in values if key in _USUAL_NAMES.get(wanted, ())]
    similar = [key for key in values if key not in _REQUIRED and may_mean(key, wanted)]
    found = usual or similar
    return found[0] if len(found) == 1 else ""


def _check_secret(obj: Fields, entry: Entry, run: Validation) -> None:
    """Check a Secret with the keys that its type requires; the API server writes `stringData` over `data` first."""
    data, texts = as_mapping(obj.get("data")), as_mapping(obj.get("stringData"))
    _validate_keys(data, "Secret", run)
    _validate_keys(Derived({key: value for key, value in texts.items() if key not in data}, texts), "Secret", run)
    binary = {key: value for key, value in data.items() if key not in texts}
    _validate_size(texts, binary, "Secret", find_entry(obj, "data" if data else "stringData", (obj, None)), run)
    name, values = as_text(obj.get("type")), {**data, **texts}
    field = next(((obj, key) for key in obj if key in ("data", "stringData")), At(obj, "type"))
    missing = [f"`{key}`" for key in _REQUIRED_KEYS.get(name, ()) if key not in values]
    if name == "kubernetes.io/basic-auth" and not values.keys() & {"username", "password"}:
        missing.append("`username` or `password`")
    for keys in missing:
        message = Sentence("a Secret of type `{}` requires the key {}", name, keys)
        meant = _find_misnamed(keys.strip("`"), values)
        advice = Sentence("rename `{}`", meant) if meant else Sentence("add it")
        place = (texts if meant in texts else data, meant) if meant else field
        run.report("missing-field", Sentence("{}; {}", message, advice), place)
    if name == _TOKEN_TYPE and not as_text(get_path(run.metadata.get("annotations"), _ACCOUNT_KEY)):
        message = Sentence("a Secret of type `{}` requires the annotation `{}`; set it", name, _ACCOUNT_KEY)
        run.report("missing-field", message, as_mapping(run.metadata.get("annotations")) or run.metadata or obj)
    for key in _REQUIRED_KEYS.get(name, ()):
        content = _read_value(key, data, texts) if key in values else None
        if key == "ssh-privatekey" and content == b"":
            run.report(
                "missing-field",
                Sentence("`{}` is empty; set it to a private key", key),
                At(texts if key in texts else data, key),
            )
        # The message does not contain the credentials.
        if key in _DOCKER_KEYS.values() and content is not None and not _is_json_mapping(content):
            run.invalid(
                Sentence("`{}` is not a JSON object; write one with `auths`", key),
                At(texts if key in texts else data, key),
            )


def _read_value(key: str, data: Fields, texts: Fields) -> bytes | None:
    """Return the bytes of a key; None if they are not base64 or a list of bytes, which the schema reports."""
    if key in texts:
        return as_text(texts[key]).encode(errors="replace")
    found = data[key]
    try:
        if isinstance(found, list):
            return bytes(item or 0 for item in found)
        if not (found is None or isinstance(found, str)):
            return None
        text = (found or "").replace("\n", "").replace("\r", "")
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None


def _is_json_mapping(content: bytes) -> bool:
    """Return True if Go reads a text as a JSON object; null is an empty one."""
    text = content.decode(errors="replace")
    try:
        found = json.loads(text, parse_int=_parse_number, parse_float=_parse_number, parse_constant=_refuse)
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


KINDS = {"ConfigMap": Kind(_check_config_map), "Secret": Kind(_check_secret)}
