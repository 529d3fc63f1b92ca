"""What a report says about the share of a run that it is about, and the results from which shares are merged."""

from __future__ import annotations

import json
from typing import Any

from jobgen.model.named_tuple import NamedTuple
from jobgen.model.shard import InvalidShardError, Shard, parse_shard

SHARD_PROPERTY = "jobgen.shard"
"""The name of the property in JUnit."""

_MAX_BYTES = 256 * 1024 * 1024
"""The size of results when they are unpacked: those of about 100,000 files."""

MAX_VALUES = 20_000_000
"""The number of values in all reports together. A short report may have many, and each takes 50 bytes or more."""


class BrokenPartError(ValueError):
    """A report does not have the results of a shard; the message gives the reason."""


class ShardPart(NamedTuple):
    """The share of a run."""

    shard: Shard
    fail_on: str
    """The severity that fails the run."""
    results: str
    """What the run found, packed."""
    show_suppressed: bool = False

    def to_plain(self) -> dict[str, object]:
        """Return the JSON of a report."""
        return {
            "index": self.shard.number,
            "count": self.shard.total,
            "failOn": self.fail_on,
            "showSuppressed": self.show_suppressed,
            "results": self.results,
        }


def parse_part(plain: object) -> ShardPart:
    """Return the share that a report names, or raise a BrokenPartError."""
    if not isinstance(plain, dict):
        raise BrokenPartError("it is not the report of a shard; run `jobgen lint` or `jobgen test` with `--shard`")
    results, fail_on, shows = plain.get("results"), plain.get("failOn"), plain.get("showSuppressed")
    if not (isinstance(results, str) and fail_on in ("error", "warning", "info") and isinstance(shows, bool)):
        raise BrokenPartError("its results are missing")
    try:
        return ShardPart(parse_shard(f"{plain.get('index')}/{plain.get('count')}"), fail_on, results, shows)
    except InvalidShardError as error:
        raise BrokenPartError(str(error)) from error


def pack(data: object) -> str:
    """Return JSON data as a short text of plain characters."""
    # Imported here: only shards need them.
    import base64
    import zlib

    return base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()


def parse_json(text: bytes, most: int = MAX_VALUES) -> Any:
    """Return JSON data, or raise a BrokenPartError if the text is anything else, or has more values than this."""
    if count_values(text) > most:
        raise BrokenPartError(f"the reports have more than {MAX_VALUES:,} values; lint fewer files at once")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenPartError("it is neither JSON nor XML, or it is not complete") from error


def count_values(text: bytes) -> int:
    """Return how many values a JSON text can have at most."""
    return text.count(b",") + text.count(b"[") + text.count(b"{") + 1


def unpack(text: str, most: int = MAX_VALUES) -> tuple[Any, int]:
    """Return the data that `pack` packed, and how many values it can have, or raise a BrokenPartError."""
    import base64
    import zlib

    try:
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        if unpacking.unconsumed_tail:
            raise BrokenPartError(f"its results are larger than {_MAX_BYTES >> 20} MiB; use more shards")
    except (ValueError, zlib.error) as error:
        if isinstance(error, BrokenPartError):
            raise
        raise BrokenPartError("its results cannot be read") from error
    return parse_json(plain, most), count_values(plain)
