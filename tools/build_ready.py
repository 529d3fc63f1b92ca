"""Build what a run needs of the shipped files, ready to use: the tables that `jobgen/repo/ready.py` describes.

    python tools/build_ready.py

writes them to jobgen/data/ready/ of a checkout, where tests and benchmarks find them; nothing needs them. Hatch runs
the hook at the end when it builds a wheel.
"""

from __future__ import annotations

import json
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME = Path(__file__).parent.parent
sys.path.insert(0, str(HOME))

from jobgen.check import defects  # noqa: E402
from jobgen.check.cel import check_expression, describe_expression  # noqa: E402 -- the package of this folder
from jobgen.check.defects import list_shipped  # noqa: E402
from jobgen.check.policy.expressions import NAMES  # noqa: E402
from jobgen.pipeline.policies import load_policies  # noqa: E402
from jobgen.repo import layout, ready  # noqa: E402
from jobgen.yamlio.read import read  # noqa: E402


def build() -> dict[str, str]:
    """Return the text of each file, by its name."""
    tables = {ready.DOCUMENTS: dict(_list_documents()), ready.EXPRESSIONS: dict(_list_expressions())}
    return {ready.name_file(name): _format(entries) for name, entries in tables.items()}


def _format(entries: dict[str, Any]) -> str:
    """One line for each entry, in the order of the keys, so that the same entries are the same bytes."""
    lines = (f"{json.dumps(key)}: {json.dumps(entries[key], ensure_ascii=False)}" for key in sorted(entries))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _list_documents() -> Iterator[tuple[str, list[Any]]]:
    """The documents of the kinds, of the policies that are always on, and of the known defects."""
    with TemporaryDirectory() as elsewhere:
        files = [*layout.read_kinds(Path(elsewhere)), *layout.read_shipped_policies(Path(elsewhere))]
    files += layout.read_shipped_defects()
    for file in files:
        found = read(file.content, file.path)
        yield ready.make_digest([file.content]), [document.data for document in found.documents]


def _list_expressions() -> Iterator[tuple[str, str]]:
    """The compiled expressions of shipped policies and defects, by the digest of what they are made from."""
    with TemporaryDirectory() as elsewhere:
        policies = load_policies(Path(elsewhere)).policies
    texts = {(each.text, each.returns) for policy, _ in policies.policies for each in policy.expressions}
    own = {(each.condition, "bool") for each in list_shipped()} | {(each.value, "string") for each in list_shipped()}
    listed = [*((NAMES, each) for each in sorted(texts)), *((defects.NAMES, each) for each in sorted(own) if each[0])]
    for names, (text, returns) in listed:
        checked = check_expression(text, names, returns)
        if isinstance(checked, bytes):
            yield ready.make_digest(describe_expression(text, names, returns)), b64encode(checked).decode()


def write(folder: Path) -> None:
    """Write the tables, and remove those of other code."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in build().items():
        (folder / name).write_text(text, "utf-8")


class ReadyHook(BuildHookInterface[Any]):
    """Adds the tables to a wheel. An editable installation is the checkout, and does without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the tables in a temporary folder, which is removed when the wheel is done."""
        if version != "editable":
            self._folder = TemporaryDirectory()
            write(Path(self._folder.name, "ready"))
            build_data["force_include"][f"{self._folder.name}/ready"] = "jobgen/data/ready"


if __name__ == "__main__":
    write(ready.FOLDER)
