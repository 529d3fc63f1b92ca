"""Compare what jobgen has written by hand with the libraries that could do it, for docs/dependencies.md.

    python benchmarks/libraries.py [FOLDER]

The data are the YAML files of a folder, or else varied manifests that are generated. Ratios are of CPU time in one run.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from deepdiff import DeepDiff
from jsonschema import Draft202012Validator
from repository import write_varied
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.schema.shipped import read_shipped_bundle
from jobgen.k8s.compare import compare_objects
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

FILES = 300
AMBIGUOUS = (
    "yes no on off y n Yes NO True null ~ 012 0o17 0x1f 0b1 1_000 1e3 1.5e3 .5 +1 1:30 2026-11-17 = << .inf .nan"
).split()
"""Texts that some reader of YAML takes for another type."""


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the least CPU time of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def print_ratio(what: str, ours: Callable[[], object], library: str, theirs: Callable[[], object]) -> None:
    mine, other = cpu_seconds(ours), cpu_seconds(theirs)
    print(f"{what}: jobgen {mine * 1000:.0f} ms, {library} {other * 1000:.0f} ms: {other / mine:.1f} times as long")


def compare_readers(texts: list[str]) -> None:
    def load() -> list[Any]:
        return [list(yaml.load_all(text, Loader=yaml.CSafeLoader)) for text in texts]

    def compose() -> list[Any]:
        return [list(yaml.compose_all(text, Loader=yaml.CSafeLoader)) for text in texts]

    def round_trip() -> list[Any]:
        return [list(YAML().load_all(text)) for text in texts]

    print_ratio("read values", lambda: read_all(texts, traced=False), "PyYAML with libyaml", load)
    print_ratio("read lines", lambda: read_all(texts, traced=True), "PyYAML with libyaml, without values", compose)
    print_ratio("read lines", lambda: read_all(texts, traced=True), "ruamel.yaml", round_trip)


def read_all(texts: list[str], *, traced: bool) -> list[Any]:
    return [list(read(text.encode(), "file.yaml", traced=traced).documents) for text in texts]


def rewrite(text: str) -> str:
    """Load and write a file as a tool does that edits one value."""
    writer = YAML()
    writer.preserve_quotes = True
    writer.width = 4096
    stream = io.StringIO()
    writer.dump_all(list(writer.load_all(text)), stream)
    return stream.getvalue()


def count_rewritten(texts: list[str]) -> None:
    changed = sum(rewrite(text) != text for text in texts)
    print(f"load and write without an edit: ruamel.yaml changes {changed} of {len(texts)} files, jobgen's edits none")


def compare_writers(texts: list[str]) -> None:
    objects = [obj for text in texts for obj in yaml.load_all(text, Loader=yaml.CSafeLoader) if obj]
    print_ratio(
        "write",
        lambda: [to_yaml(obj) for obj in objects],
        "PyYAML with libyaml",
        lambda: [yaml.dump(obj, Dumper=yaml.CSafeDumper) for obj in objects],
    )
    plain = [text for text in AMBIGUOUS if yaml.dump(text, Dumper=yaml.CSafeDumper).startswith(text)]
    print(f"of {len(AMBIGUOUS)} ambiguous texts PyYAML writes {len(plain)} without quotes: {' '.join(plain)}")
    unquoted = [text for text in AMBIGUOUS if not to_yaml({"a": text}).startswith('a: "')]
    print(f"of the same jobgen writes {len(unquoted)} without quotes: {' '.join(unquoted)}")


def compare_schemas(texts: list[str]) -> None:
    schema = json.loads(read_shipped_bundle("kubeflow.org/v1", "PyTorchJob", Cluster()))
    sources = [read(text.encode(), "file.yaml", traced=True) for text in texts]
    nodes = [each.data for source in sources for each in source.documents if isinstance(each.data, dict)]
    plain = [obj for text in texts for obj in yaml.load_all(text, Loader=yaml.CSafeLoader) if isinstance(obj, dict)]
    check, validator = compile_structural(schema), Draft202012Validator(schema)
    print_ratio(
        "check against a schema",
        lambda: [check(node) for node in nodes],
        "jsonschema",
        lambda: [list(validator.iter_errors(obj)) for obj in plain],
    )


def pairs(objects: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Each object beside a copy in which one value has changed."""
    for obj in objects:
        changed = json.loads(json.dumps(obj))
        changed.setdefault("metadata", {})["name"] = "changed"
        yield obj, changed


def compare_comparisons(texts: list[str]) -> None:
    objects = [obj for text in texts for obj in yaml.load_all(text, Loader=yaml.CSafeLoader) if isinstance(obj, dict)]
    both = list(pairs(json.loads(json.dumps(objects, default=str))))
    print_ratio(
        "compare objects",
        lambda: [list(compare_objects(old, new)) for old, new in both],
        "DeepDiff",
        lambda: [DeepDiff(old, new) for old, new in both],
    )


def readable(folder: Path) -> Iterator[str]:
    """Yield the files that all three readers accept."""
    for path in sorted(folder.rglob("*.yaml"))[:FILES]:
        text = path.read_text(encoding="utf-8")
        try:
            list(YAML().load_all(text))
            list(yaml.load_all(text, Loader=yaml.CSafeLoader))
        except (YAMLError, yaml.YAMLError):
            continue
        yield text


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        if len(sys.argv) == 1:
            write_varied(folder, FILES)
        texts = list(readable(folder))
    print(f"{len(texts)} files, {sum(text.count(chr(10)) for text in texts)} lines")
    for measure in (compare_readers, count_rewritten, compare_writers, compare_schemas, compare_comparisons):
        measure(texts)


if __name__ == "__main__":
    main()
