"""The objects of a chart with the values of one release."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

from jobgen.engine.inputs import digest_bytes
from jobgen.engine.shared_results import SharedResults
from jobgen.features.helm.charts import is_archive, is_crd
from jobgen.features.helm.cluster_apis import may_be_missing
from jobgen.features.helm.comments import list_comments
from jobgen.features.helm.locate import Chunk, Locator, split_documents, split_output, writes_kind
from jobgen.features.helm.object_faults import find_conflicts, find_hook_faults
from jobgen.features.helm.open_values import settle_open_values
from jobgen.features.helm.refusals import FAILS, Refusal, read_refusal, report_fault, report_refusal, report_stopped
from jobgen.features.helm.run_helm import Helm
from jobgen.features.helm.stage import MarkedRender, list_arguments, render, render_invalid, render_with_marks
from jobgen.features.helm.uses import Part, Use
from jobgen.features.helm.value_reads import Place
from jobgen.features.helm.value_schema import find_violations
from jobgen.k8s.nodes import get_path
from jobgen.model.budget import FREE_FILE_STEPS, RUN, Work, charge
from jobgen.model.data import Location, Node, value_of
from jobgen.model.finding import Finding, Related
from jobgen.recognize.charts import ChartOfKustomization
from jobgen.rendering.build import split_list
from jobgen.rendering.file_secrets import read_masked
from jobgen.rendering.redact import hide_quoted
from jobgen.repo.files import Built, BuiltObject, File

_FREE_SECONDS = 1.5
"""The time of the processor in which helm renders almost all charts."""
_STEPS_PER_SECOND = 500_000
_STOPPED_STEPS = 1_900_000
"""What a chart costs the run that helm could not render in its time, and the most that one costs."""
_BYTES_PER_STEP = 20
_MAX_NAMED = 3
"""The templates of an archive that a note names."""


class ChartBuild(ChartOfKustomization):
    """What helm makes of a use of a chart."""

    def __init__(
        self,
        use: Use,
        helm: Helm,
        *,
        is_installed: bool = True,
        judged: Collection[str] = frozenset(),
        shared: SharedResults[MarkedRender] | None = None,
    ) -> None:
        """Start with a use; helm is started when the objects are asked for, unless `shared` has what it printed.

        Files of `crds/` that are `judged` by themselves are left out: helm changes nothing in them.
        """
        super().__init__(use.by.file if use.by else use.chart.metadata_file)
        self.use = use
        self.release = use.release_of(is_installed=is_installed)
        self._helm = helm
        self._judged = sorted(use.chart.origins[path] for path in use.chart.files if is_crd(path)) if judged else []
        self._judged = [path for path in self._judged if path in judged]
        self._secrets = File("")
        self._shared = shared

    def read(self) -> bytes:
        """Return a digest of all that the objects depend on."""
        chart = self.use.chart
        files = [(path, digest_bytes(content)) for path, content in sorted(chart.files.items())]
        values = [(each.file.path, digest_bytes(each.file.content)) for each in (*self.use.base, *self.use.values)]
        inputs = [digest_bytes(each.content) for each in (*self.use.inputs, *self.use.sources)]
        parts = (
            self._helm,
            chart.fault,
            files,
            values,
            inputs,
            list_arguments(self.use),
            sorted(part.value for part in self.use.without),
            self._judged,
            self.use.by,
            self.use.is_definite,
            self.use.is_replaced,
        )
        return digest_bytes(repr(parts).encode("utf-8", "surrogatepass")).encode()

    def make(self) -> Built:
        """Render the chart."""
        use = self.use
        if use.chart.fault:
            return Built((), (report_fault(use),))
        charge(Work.CHART, sum(map(len, use.chart.files.values())) // _BYTES_PER_STEP)
        if RUN.is_used_up:
            # The run has taken too much, so helm is not started.
            charge(Work.CHART, FREE_FILE_STEPS + 1)
        rendered, marked = self._render()
        slow = int((rendered.seconds - _FREE_SECONDS) * _STEPS_PER_SECOND)
        if slow > 0 or rendered.stop:
            charge(Work.CHART, _STOPPED_STEPS if rendered.stop else min(slow, _STOPPED_STEPS))
        if rendered.stop:
            return Built((), (report_stopped(use),))
        if rendered.error:
            violations = find_violations(use, rendered.error)
            if violations:
                return Built((), violations)
            refusal = read_refusal(rendered.error)
            if use.is_replaced and not refusal.is_unreadable:
                return Built((), ())
            # What is not there may be in a chart that must be downloaded; one finding names all of these.
            is_known = not use.chart.missing or (refusal.rule == FAILS and refusal.is_unreadable)
            if not is_known:
                return Built((), ())
            written = self._find_invalid(refusal) if refusal.is_not_yaml else None
            return Built((), (report_refusal(use, refusal, written),))
        charge(Work.CHART, len(rendered.output) // _BYTES_PER_STEP)
        objects, findings = self._read(split_output(rendered.output, use.chart), marked)
        self._secrets = _collect_secrets(objects)
        return Built(objects, findings)

    def _render(self) -> MarkedRender:
        """Return what helm prints; another process may have started it."""
        key = self.read() if self._shared else b""
        found = self._shared.find(key) if self._shared else None
        if found is None:
            found = render_with_marks(self.use, self._helm)
            if self._shared:
                self._shared.add(key, found)
        return found

    def _find_invalid(self, refusal: Refusal) -> Place | None:
        """Return the line of a template that writes what is not YAML; None if it is not certain."""
        output, marked = render_invalid(self.use, self._helm)
        path = self.use.chart.sources.get(refusal.path)
        chunks = [each for each in split_output(output, self.use.chart) if each.path == path]
        chunks = [each._replace(lines=lines) for each in chunks for lines in split_documents("\n".join(each.lines))]
        locator = Locator(self.use, chunks, marked)
        for number, chunk in enumerate(chunks):
            faults = [each for each in read_masked(chunk.content, chunk.path).findings if each.rule == "yaml-syntax"]
            if faults:
                lines = locator.find_lines(number)
                at = min(each.location.line for each in faults) - 1
                origin = lines[at] if at < len(lines) else None
                return origin.place if origin else None
        return None

    def make_again(self) -> Sequence[BuiltObject]:
        """Return the objects that helm writes with the functions of the chart itself."""
        rendered = render(self.use, self._helm)
        return self._read(split_output(rendered.output, self.use.chart), {})[0]

    def _read(
        self, chunks: Sequence[Chunk], marked: Mapping[str, Sequence[str]]
    ) -> tuple[list[BuiltObject], list[Finding]]:
        locator = Locator(self.use, chunks, marked)
        objects: list[BuiltObject] = []
        installed: list[BuiltObject] = []
        findings = list(find_hook_faults(self.use, locator)) if marked else []
        for number, chunk in enumerate(chunks):
            if self.use.chart.origins[chunk.path] in self._judged and is_crd(chunk.path):
                continue
            source = read_masked(chunk.content, chunk.path)
            findings += (_move(each, locator, number) for each in source.findings if each.rule != "not-a-mapping")
            for position, document in enumerate(source.documents):
                data = document.data
                if _is_left_out(data, self.use):
                    continue
                start = locator.find_document(chunk.path, str(data.get("kind") or ""))
                trace = cache(partial(locator.trace, number, position, start))
                before = len(objects)
                for index, item in enumerate(split_list(data)):
                    located = trace if item is data else partial(_trace_item, trace, index)
                    objects.append(BuiltObject(item, located, start.file, len(objects), start))
                installed += [] if is_crd(chunk.path) else objects[before:]
        return objects, [*findings, *find_conflicts(self.use, installed)]

    def owns(self, file: str) -> bool:
        """Return True if a file is one of the chart, or of its values."""
        files = (each.file.path for each in (*self.use.base, *self.use.values))
        return file in self.use.chart.origins.values() or file in files

    def list_comments(self) -> Iterator[File]:
        """Return the templates whose comments suppress findings."""
        return list_comments(self.use)

    def select(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, with one info instead of those about values that are set at installation."""
        certain = (each for each in super().select(findings) if not self._is_asked(each))
        noted = (self._note_archive(_note_document(each)) for each in certain)
        reported = hide_quoted(noted, self._hidden)
        return reported if self.use.is_definite else settle_open_values(self.use, reported)

    def _note_archive(self, finding: Finding) -> Finding:
        """Return a finding about an object of an archive with a note that names the template."""
        chart, place = self.use.chart, finding.location
        if finding.object is None or not is_archive(place.file):
            return finding
        paths = [path for path in chart.templates if chart.origins[path] == place.file]
        wrote = [path for path in paths if writes_kind(chart.templates[path], finding.object.kind)][:_MAX_NAMED]
        names = " or ".join(f"`{path.partition('/')[2]}`" for path in wrote)
        note = Related(place, f"{names} of the archive writes the object")
        return finding._replace(related=(*finding.related, note)) if wrote else finding

    def _is_asked(self, finding: Finding) -> bool:
        """Return True for an old version that a template writes only where the cluster serves it."""
        if finding.rule != "old-api-version" or finding.object is None:
            return False
        return may_be_missing(self.use, finding.object.api_version)

    @cached_property
    def _hidden(self) -> frozenset[str]:
        """The values of the use that Secrets have."""
        trees = (each.data for each in (*self.use.base, *self.use.values) if each.is_secret)
        return frozenset(text for tree in trees for text in _list_leaves(tree) if text)

    def read_sources(self, finding: Finding) -> Iterator[File]:
        """Return the files that the values of a finding may come from."""
        shown = {finding.location.file, *(each.location.file for each in finding.related)}
        chart = self.use.chart
        yield from (
            File(chart.origins[path], chart.files[path]) for path in chart.files if chart.origins[path] in shown
        )
        yield from (each.file for each in (*self.use.base, *self.use.values))
        yield self._secrets
        yield _hold(self._hidden)


def _trace_item(trace: Callable[[], Any], index: int) -> Any:
    return trace()["items"][index]


def _is_left_out(data: Mapping[str, Any], use: Use) -> bool:
    """Return True if a release does not install an object, because it leaves hooks, or tests, out."""
    annotation = get_path(data, "metadata", "annotations", "helm.sh/hook") if use.without else None
    if not isinstance(annotation, str):
        return False
    is_test = any(event.strip().startswith("test") for event in annotation.split(","))
    return Part.HOOKS in use.without or (is_test and Part.TESTS in use.without)


def _note_document(finding: Finding) -> Finding:
    """Return a finding with a note if its place is a whole document."""
    location = finding.location
    if location.end_line <= location.line or finding.object is None:
        return finding
    start = Location(location.file, location.line, location.column)
    note = Related(start, "one of the lines from here writes it; which one could not be determined")
    return finding._replace(location=start, related=(*finding.related, note))


def _move(finding: Finding, locator: Locator, number: int) -> Finding:
    """Return a finding about the text that helm printed, at the line of the template."""
    related = tuple(each._replace(location=_find_line(each.location, locator, number)) for each in finding.related)
    return finding._replace(location=_find_line(finding.location, locator, number), related=related, fix=None)


def _find_line(location: Location, locator: Locator, number: int) -> Location:
    lines = locator.find_lines(number)
    origin = lines[location.line - 1] if location.line <= len(lines) else None
    if origin is None:
        return Location(locator.use.chart.origins[locator.chunks[number].path])
    return locator.place(origin.place, "")


def _collect_secrets(objects: Iterable[BuiltObject]) -> File:
    """Return the values of all Secrets of a chart: a template can write one to any field."""
    import base64
    import binascii

    texts: list[str] = []
    for each in objects:
        if each.data.get("kind") != "Secret":
            continue
        for field in ("data", "stringData"):
            values = each.data.get(field)
            found = [value for value in values.values() if isinstance(value, str)] if isinstance(values, dict) else []
            texts += found
            for value in found if field == "data" else ():
                try:
                    texts.append(base64.b64decode(value, validate=True).decode("utf-8", "replace"))
                except (binascii.Error, ValueError):
                    continue
    return _hold(texts)


def _hold(texts: Iterable[str]) -> File:
    """Return a Secret with some texts, which no finding may show."""
    data = {str(at): text for at, text in enumerate(texts)}
    content = {"apiVersion": "v1", "kind": "Secret", "stringData": data}
    return File("", json.dumps(content).encode("utf-8", "surrogatepass") if data else b"")


def _list_leaves(node: Node) -> Iterator[str]:
    if isinstance(node, (dict, list)):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _list_leaves(item)
    else:
        yield str(value_of(node))
