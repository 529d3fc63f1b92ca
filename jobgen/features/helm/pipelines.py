"""The uses of charts by the fields of pipelines and tools: GitHub, Azure, skaffold, helmfile and Tilt."""

from __future__ import annotations

import ast
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.helm.charts import METADATA, Chart
from jobgen.features.helm.commands import Folders, make_folders
from jobgen.features.helm.uses import Use, Values, name_release
from jobgen.kustomize.resource import read_inline
from jobgen.model.data import Location, Node, TracedScalar, location_of, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import File
from jobgen.yamlio.read import read

_TOOL = lazy_pattern(r"(?:\A|/)(?:skaffold|helmfile)[\w.-]*\.ya?ml\Z")
_CHART = lazy_pattern(r"(?:helm)?chart(?:path|dir|directory|folder)?\Z")
_FILES = lazy_pattern(r"(?:helm)?(?:values?|overrides?)(?:files?|paths?)?\Z")
_SET = lazy_pattern(r"(?:set|override)(?:values?|string|templates?|files?|s)?\Z|setvaluetemplates\Z|secrets\Z")
_SEPARATORS = lazy_pattern(r"[-_]")
_WORDS = lazy_pattern(r"[\s,]+")
_OPEN = lazy_pattern(r"\$\{\{|\$\(|\$\{|\{\{")
_TILT = lazy_pattern(r"(?<![\w.])helm\(")
_MAX_CALL = 2_000
_MAX_USES = 200


def list_pipeline_uses(tree: FileTree, above: str) -> Iterator[Use]:
    """Yield the uses of charts whose folders and values stand in fields."""
    paths = [path for path in tree.list_all_texts() if path.endswith((".yaml", ".yml", "Tiltfile"))]
    paths += [path for path in tree.list_with(b"hart", (".yaml", ".yml")) if _TOOL.search(path)]
    charts: dict[str, Chart] = {}
    count = 0
    for path in dict.fromkeys(paths):
        content = tree.read(path).content
        if b"hart" not in content and not path.endswith("Tiltfile"):
            continue
        reader = _Reader(tree, make_folders(tree, above, path), path, charts)
        for use in reader.list_calls() if path.endswith("Tiltfile") else reader.list_fields():
            count += 1
            if count <= _MAX_USES:
                yield use


class _Reader:
    def __init__(self, tree: FileTree, folders: Folders, path: str, charts: dict[str, Chart]) -> None:
        self.tree = tree
        self.folders = folders
        self.path = path
        self.charts = charts

    def find_chart(self, text: str) -> Chart | None:
        folder = self.folders.find(text.rstrip("/")) if text and not _OPEN.search(text) else None
        if folder is None or not self.tree.exists(posixpath.join(folder, METADATA)):
            return None
        folder = "" if folder == "." else folder
        return self.charts.setdefault(folder, Chart(self.tree.source, folder))

    # Fields

    def list_fields(self) -> Iterator[Use]:
        """Yield the uses in a file of YAML."""
        pending: list[Any] = [
            document.data for document in read(self.tree.read(self.path).content, self.path, traced=True).documents
        ]
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                use = self.read_fields(node)
                yield from [use] if use else []
                pending += node.values()
            elif isinstance(node, list):
                pending += node

    def read_fields(self, fields: Mapping[str, Any]) -> Use | None:
        """Return the use that the fields of a mapping say; None if they name no chart, or a file that is not there."""
        named = {_SEPARATORS.sub("", str(key)).lower(): value for key, value in fields.items()}
        node = next((named[key] for key in named if _CHART.match(key)), None)
        chart = self.find_chart(str(value_of(node))) if isinstance(node, TracedScalar) else None
        if chart is None:
            return None
        values: list[Values] = []
        # Which of two kinds of values goes first is not known.
        is_open = sum(_FILES.match(key) is not None for key in named) > 1
        for key, given in named.items():
            if _FILES.match(key):
                found = self.read_values(given)
                if found is None:
                    return None
                values += found
            elif _SET.match(key):
                is_open = True
        release = next((named[key] for key in ("name", "release", "releasename") if key in named), None)
        namespace = named.get("namespace")
        return self.make(chart, values, _write(release), _write(namespace), location_of(node), is_definite=not is_open)

    def read_values(self, node: Node) -> list[Values] | None:
        """Return the values of a field: files, or values in place; None if a file is not there or not known."""
        if isinstance(node, list):
            several = [self.read_values(each) for each in node]
            return None if None in several else [one for each in several if each for one in each]
        if isinstance(node, dict):
            place = location_of(node)
            return [Values(File(place.file, json.dumps(untraced(node), default=str).encode()), node)] if place else []
        text = _write(node)
        if not text or _OPEN.search(text):
            return None if text else []
        if text.startswith("[") or ":" in text:
            return self.read_text(node)
        return self.read_files([word for word in _WORDS.split(text) if word])

    def read_files(self, paths: Sequence[str]) -> list[Values] | None:
        """Return files of values; None if one of them is not there."""
        found = [self.folders.find(path) for path in paths]
        files = [self.tree.read(path) for path in found if path is not None]
        return (
            [Values(each) for each in files] if None not in found and not any(each.finding for each in files) else None
        )

    def read_text(self, node: Node) -> list[Values] | None:
        """Return the files, or the values, that a text of YAML says."""
        lines = self.tree.read_lines(self.path)
        documents: Sequence[Any] = read_inline(node, lines, "")[0] if isinstance(node, TracedScalar) else []
        found = documents[0] if len(documents) == 1 else None
        return self.read_values(found) if isinstance(found, (dict, list)) else None

    # Calls

    def list_calls(self) -> Iterator[Use]:
        """Yield the calls of `helm` in a Tiltfile whose arguments are written out."""
        text = self.tree.read(self.path).content.decode("utf-8", "replace")
        for match in _TILT.finditer(text):
            call = _read_call(text[match.start() : match.start() + _MAX_CALL])
            use = self.read_call(call, Location(self.path, text.count("\n", 0, match.start()) + 1)) if call else None
            yield from [use] if use else []

    def read_call(self, call: ast.Call, place: Location) -> Use | None:
        try:
            arguments = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            chart = self.find_chart(str(ast.literal_eval(call.args[0]))) if call.args else None
        except (ValueError, IndexError, TypeError, RecursionError):
            return None
        names = arguments.get("values") or []
        values = self.read_files([names] if isinstance(names, str) else list(map(str, names)))
        if chart is None or values is None:
            return None
        known = (str(arguments.get("name") or ""), str(arguments.get("namespace") or ""))
        return self.make(chart, values, *known, place, is_definite=not arguments.get("set"))

    def make(
        self,
        chart: Chart,
        values: Sequence[Values],
        release: str,
        namespace: str,
        place: Location | None,
        *,
        is_definite: bool,
    ) -> Use:
        namespace = "" if _OPEN.search(namespace) else namespace
        by = place._replace(end_line=0, end_column=0) if place else Location(self.path)
        return Use(chart, name_release(chart, release), namespace, tuple(values), by=by, is_definite=is_definite)


def _write(node: Node) -> str:
    value = value_of(node)
    return value if isinstance(value, str) else ""


def _read_call(text: str) -> ast.Call | None:
    """Return the call that a text begins with; None if it is not written out in it."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter == ")":
            try:
                found = ast.parse(text[: at + 1], mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
            return found if isinstance(found, ast.Call) else None
    return None
