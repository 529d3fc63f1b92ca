"""The process that `json_schema` starts: it writes one line of JSON for each object."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

_FLAGS = re.compile(r"^\^(\(\?[ims]+\))")
_FIRST_FLAGS = re.compile(r"\(\?([ims]+)\)")
# An escape, a class of characters, or the end of the text.
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\$", re.DOTALL)


def main(folder: Path) -> None:
    """Check the files of `objects` whose numbers standard input lists, each against the schema of its kind.

    With each number is whether the schema is one of jobgen: it is valid then.
    """
    _limit_memory()
    schemas: dict[Path, Validator | str] = {}
    for number, is_shipped in json.load(sys.stdin):
        obj = json.loads((folder / "objects" / f"{number}.json").read_bytes())
        group, _, version = obj["apiVersion"].rpartition("/")
        path = folder / "schemas" / (group or "core") / f"{obj['kind'].lower()}_{version}.json"
        if path not in schemas:
            schemas[path] = _open_schema(path, is_valid=is_shipped)
        sys.stdout.write(json.dumps([number, *_check(schemas[path], obj)]) + "\n")


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        limit = 2_000 * 2**20
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def _open_schema(path: Path, *, is_valid: bool) -> Validator | str:
    """Return the validator of a schema, or why there is none."""
    schema = json.loads(path.read_bytes())
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        if not is_valid:
            # Patterns are those of Go.
            kind.check_schema(schema, format_checker=FormatChecker(()))
    except (SchemaError, re.error, RecursionError) as error:
        return f"its schema is not valid: {getattr(error, 'message', error)}"
    # With a registry, nothing is fetched from the network.
    return extend(kind, {"pattern": _check_pattern})(schema, registry=Registry())


def _check(validator: Validator | str, obj: Any) -> tuple[str, str, list[str | int]]:
    """Return the status, the message and the path of the field at fault."""
    if isinstance(validator, str):
        return "failed", validator, []
    try:
        error = best_match(validator.iter_errors(obj))
    except re.error as fault:
        return (
            "failed",
            f"the pattern `{fault.pattern!s}` of its schema is not a pattern that Python can read: {fault}",
            [],
        )
    except Unresolvable as fault:
        return "failed", f"its schema has a reference to something that does not exist: {fault}", []
    except (RecursionError, MemoryError) as fault:
        return "failed", f"its schema needs too much memory: {type(fault).__name__}", []
    if error is None:
        return "valid", "", []
    path = list(error.absolute_path)
    pointer = "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "invalid", f"/{pointer}: {error.message}", path


def _check_pattern(
    validator: Validator, pattern: str, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Check a pattern as Go reads it: the API server is written in Go."""
    if validator.is_type(instance, "string") and not _compile(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _compile(pattern: str) -> re.Pattern[str]:
    """Return a pattern of Go as one of Python: flags come first, `$` is the end of the text, digits are ASCII."""
    moved = _FLAGS.sub(r"\1^", pattern)
    flags = _FIRST_FLAGS.match(moved)
    ends = {"\\z": r"\Z", "$": "$" if flags and "m" in flags[1] else r"\Z"}
    return re.compile(_PARTS.sub(lambda part: ends.get(part[0], part[0]), moved), re.ASCII)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
