"""A chart in a private folder, as helm gets it: nothing in it leads elsewhere, and nothing must be downloaded."""

from __future__ import annotations

import json
import posixpath
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from jobgen.features.helm.charts import METADATA, SCHEMA, VALUES, Chart, read_name
from jobgen.features.helm.run_helm import CHART, Helm, Rendered, Stop, run_helm
from jobgen.features.helm.subcharts import merge_all
from jobgen.features.helm.uses import Part, Use, Values
from jobgen.features.helm.value_schema import is_local

_VALUES = "values"
_EVERYWHERE = ("apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1/APIService")
"""APIs of every cluster that helm does not know without one."""


def merge_files(values: Sequence[Values]) -> bytes:
    """Return files of values as one, the later over the earlier."""
    return json.dumps(merge_all(values), default=str).encode()


@contextmanager
def open_workspace(use: Use, texts: Mapping[str, str]) -> Iterator[Path]:
    """Write the chart of a use and its values to a folder that is removed afterwards.

    `texts` are those of files that differ from the files of the chart, or are not in it.
    """
    with tempfile.TemporaryDirectory(prefix="jobgen-helm-") as name:
        workspace = Path(name)
        folders: set[str] = set()
        files = {**use.chart.files, **{path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}}
        for path, content in files.items():
            # helm would read and fetch what a schema refers to.
            if posixpath.basename(path) == SCHEMA and not is_local(content):
                continue
            target = f"{CHART}/{path}"
            folder = posixpath.dirname(target)
            if folder not in folders:
                (workspace / folder).mkdir(parents=True, exist_ok=True)
                folders.add(folder)
            (workspace / target).write_bytes(content)
        if use.chart.missing:
            (workspace / CHART / METADATA).write_text(_leave_out_missing(use.chart), "utf-8")
            (workspace / CHART / "requirements.yaml").unlink(missing_ok=True)
        if use.base:
            (workspace / CHART / VALUES).write_bytes(merge_files(use.base))
        (workspace / _VALUES).mkdir()
        for number, values in enumerate(use.values):
            (workspace / _VALUES / f"{number}.yaml").write_bytes(values.file.content)
        for number, file in enumerate(use.inputs):
            (workspace / _VALUES / str(number)).write_bytes(file.content)
        yield workspace


def _leave_out_missing(chart: Chart) -> str:
    """Return the metadata of a chart without the charts that are not there."""
    lacking = {each.name for each in chart.missing}
    listed = chart.metadata.get("dependencies") or []
    kept = [each for each in listed if not (isinstance(each, dict) and read_name(each) in lacking)]
    return json.dumps({**chart.metadata, "dependencies": kept}, default=str)


def render(use: Use, helm: Helm, texts: Mapping[str, str] | None = None, *options: str) -> Rendered:
    """Render a use of a chart with helm."""
    with open_workspace(use, texts or {}) as workspace:
        return run_helm(helm, workspace, [*list_arguments(use), *options])


MarkedRender = tuple[Rendered, Mapping[str, Sequence[str]]]
"""What helm printed of a chart, and its templates with marks, by the path that helm prints."""


def render_with_marks(use: Use, helm: Helm) -> MarkedRender:
    """Render a use of a chart with helm, and return its templates with marks as well, by the path that helm prints."""
    marked = use.chart.marked
    rendered = render(use, helm, marked.files)
    if not rendered.error and not rendered.stop:
        plain, texts = marked.separate(rendered.output)
        return rendered._replace(output=plain), texts
    if not marked.files or rendered.stop is Stop.TIME:
        return rendered, {}
    if marked.explains(rendered.error) and (use.chart.missing or not marked.is_fixed):
        return rendered._replace(error=marked.restore_columns(rendered.error, use.chart.sources)), {}
    # What failed may be what was added, and what was too large is less without that.
    again = render(use, helm)
    return again._replace(seconds=again.seconds + rendered.seconds), {}


def render_invalid(use: Use, helm: Helm) -> tuple[bytes, Mapping[str, Sequence[str]]]:
    """Return what helm makes of a chart though it is not YAML, and its templates with marks; nothing if it fails."""
    marked = use.chart.marked
    rendered = render(use, helm, marked.files, "--debug")
    return (b"", {}) if rendered.stop or not marked.files else marked.separate(rendered.output)


def list_arguments(use: Use) -> list[str]:
    """Return the arguments of `helm template` for a use."""
    found = [
        use.release,
        CHART,
        *([] if Part.CRDS in use.without else ["--include-crds"]),
        "--api-versions",
        ",".join((*_EVERYWHERE, *use.api_versions)),
    ]
    found += ["--kube-version", use.kube_version] if use.kube_version else []
    found += ["--namespace", use.namespace] if use.namespace else []
    for number in range(len(use.values)):
        found += ["--values", f"{_VALUES}/{number}.yaml"]
    pairs = zip(use.options[::2], use.options[1::2], strict=True)
    for name, argument in pairs:
        if name == "--set-file":
            # A path with a comma would be two.
            key, _, place = argument.rpartition("=")
            found += [name, f"{key}={_VALUES}/{place.strip('{}')}"]
        else:
            found += [name, argument]
    return found
