"""Files and folders of charts that helm does not read, because they do not have the names that it looks for."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator

from jobgen.features.helm.charts import METADATA, Chart
from jobgen.features.helm.refusals import UNJUDGED
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.meant import find_meant
from jobgen.recognize.tree import FileTree
from jobgen.repo.files import MANIFEST_SUFFIXES

_FOLDER = "templates"
_FIELDS = (b"\napiVersion:", b"\nname:", b"\nversion:")


def find_misnamed_metadata(tree: FileTree, own: Collection[str]) -> Iterator[Finding]:
    """Yield the linted files that would be the metadata of a chart, beside its templates, with another name."""
    for path in sorted(own):
        folder, _, name = path.rpartition("/")
        if name == METADATA or posixpath.splitext(name.lower())[0] != "chart" or not path.endswith(MANIFEST_SUFFIXES):
            continue
        text = b"\n" + tree.read(path).content
        is_chart = tree.source.is_folder(posixpath.join(folder, _FOLDER)) and all(field in text for field in _FIELDS)
        if is_chart and not tree.exists(posixpath.join(folder, METADATA)):
            message = f"helm reads `{METADATA}` and no `{name}`, so the chart in this folder was not checked; rename it"
            yield _report(message, path)


def find_misnamed_templates(charts: Iterable[Chart], paths: Collection[str]) -> Iterator[Finding]:
    """Yield the folders that would be those of the templates of a chart, with another name."""
    for chart in charts:
        if chart.missing or chart.tree.is_folder(chart.join(_FOLDER)):
            continue
        below = chart.join("")
        for path in sorted(each for each in paths if each.startswith(below) and each.endswith(MANIFEST_SUFFIXES)):
            name, _, rest = path.removeprefix(below).partition("/")
            if rest and find_meant(name, [_FOLDER]) and b"{{" in chart.tree.read(path).content:
                message = f"helm reads `{_FOLDER}/` and no `{name}/`, so it renders nothing of this; rename the folder"
                yield _report(message, path)
                break


def _report(message: str, path: str) -> Finding:
    return Finding(UNJUDGED, "meta", Severity.WARNING, message, Location(path))
