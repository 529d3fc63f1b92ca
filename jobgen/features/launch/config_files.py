"""Read the configuration files of training scripts: YAML, JSON and TOML in ConfigMaps of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.launch.values import Program
from jobgen.yamlio.read import read_shared


def read_config(program: Program, path: str | None) -> Mapping[str, Any] | None:
    """Return the content of a file at a path in the container; None if it is not known, or is no mapping."""
    text = program.files(path) if path else None
    if text is None or path is None:
        return None
    if path.endswith(".toml"):
        # Imported late: most files are YAML or JSON.
        import tomllib

        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError):
            return None
    return parse_config(text, path)


def parse_config(text: str, path: str) -> Mapping[str, Any] | None:
    """Return the mapping that a text in YAML or JSON is; None if it is none."""
    source = read_shared(text.encode(errors="surrogatepass"), path)
    return source.documents[0].data if len(source.documents) == 1 and not source.findings else None


def get_value(config: Mapping[str, Any] | None, path: str) -> Any:
    """Return the value at a path with dots; None if there is none."""
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


_MAX_NUMBER = 10**15


def as_number(value: Any) -> int | None:
    """Return an integer or boolean as a number; None for everything else, and for numbers out of range."""
    return int(value) if isinstance(value, int) and abs(value) < _MAX_NUMBER else None
