"""What Ray refuses in a runtime environment: the types of its fields, and fields that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import Origins
from jobgen.model.place import At
from jobgen.model.suggest import find_closest
from jobgen.yamlio.read.scalars import to_text

Fault = tuple[Plain, str, bool]
"""The node at fault, the message, and whether Ray certainly refuses it."""


class _Type(NamedTuple):
    """What a field must be: a test, its name in messages, and an example."""

    accepts: Callable[[Any], bool]
    name: str
    example: str


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_packages(value: Any) -> bool:
    return isinstance(value, (str, dict)) or _is_texts(value)


_TYPES = {
    "conda": _Type(lambda value: isinstance(value, (str, dict)), "text or a mapping", "conda: train"),
    "env_vars": _Type(lambda value: isinstance(value, dict), "a mapping", 'env_vars: {EPOCHS: "3"}'),
    "excludes": _Type(_is_texts, "a list of texts", "excludes: [data/]"),
    "pip": _Type(_is_packages, "a list of texts, a path or a mapping", "pip: [torchmetrics]"),
    "py_modules": _Type(lambda value: isinstance(value, list), "a list", "py_modules: [s3://bucket/module.zip]"),
    "uv": _Type(_is_packages, "a list of texts, a path or a mapping", "uv: [torchmetrics]"),
    "working_dir": _Type(lambda value: isinstance(value, str), "text", "working_dir: s3://bucket/code.zip"),
}
_OTHERS = ("config", "container", "image_uri", "java_jars", "nsight", "py_executable", "worker_process_setup_hook")
_INSTALLERS = ("pip", "uv", "conda")


def _names_packages(text: str) -> bool:
    """Return True if a text is plainly no path: without a folder, and without the ending of a file."""
    return bool(text.strip()) and "/" not in text and not text.endswith((".txt", ".in", ".lock", ".toml"))


def find_faults(data: Mapping[str, Plain], origins: Origins) -> Iterator[Fault]:
    """Yield what is wrong with a runtime environment, with its places. A null is as good as no field."""
    for key, node in data.items():
        wanted, value = _TYPES.get(key), node
        if wanted is not None and value is not None and not wanted.accepts(value):
            message = f"Ray refuses `{key}` in a runtime environment if it is not {wanted.name}"
            yield At(data, key), f"{message}; write one such as `{wanted.example}`", True
        elif key in ("pip", "uv") and isinstance(value, str) and _names_packages(value):
            message = f"Ray reads the text of `{key}` as the path of a file with requirements"
            yield (
                At(data, key),
                f"{message}; write a list: `{key}: [{', '.join(value.replace(',', ' ').split())}]`",
                False,
            )
        elif wanted is None and key not in _OTHERS and (close := find_closest(key, [*_TYPES, *_OTHERS], 0.8)):
            yield At(data, key), f"`{key}` is not a field of a runtime environment; did you mean `{close}`?", False
    variables = data.get("env_vars")
    for name, node in variables.items() if isinstance(variables, dict) else ():
        if not isinstance(node, str):
            place = At(variables, name)
            is_shown = node is not None and not isinstance(node, (dict, list))
            text = (getattr(origins.follow(place), "written", "") or to_text(node)) if is_shown else ""
            shown = f"`{name}: {text}`" if text else f"`{name}`"
            message = (
                f"Ray refuses {shown} in `env_vars`, because the value is not text (`must be of type Dict[str, str]`)"
            )
            yield place, f'{message}; write `{name}: "{text or "…"}"`', True
    chosen = [name for name in _INSTALLERS if data.get(name)]
    if len(chosen) > 1:
        message = f"Ray refuses `{chosen[0]}` and `{chosen[1]}` in one runtime environment"
        yield At(data, chosen[1]), f"{message}; remove one of them", True
