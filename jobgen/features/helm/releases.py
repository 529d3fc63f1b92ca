"""The releases that objects of Argo CD and Flux, and kustomizations, make of charts."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.helm.charts import METADATA, VALUES, Chart
from jobgen.features.helm.refusals import FAILS
from jobgen.features.helm.unread_values import RULE as UNREAD
from jobgen.features.helm.uses import Part, Use, Values, is_plain, name_release, read_typed, set_at
from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.kustomize.kustomization import load
from jobgen.kustomize.resource import read_inline
from jobgen.model.data import Location, Node, TracedScalar, location_of, text_of, untraced, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize.argo_sources import ArgoSource, has_too_many, is_open, list_sources, locate_values
from jobgen.recognize.flux_sources import find_sources, is_own, may_be_own
from jobgen.recognize.gitops_objects import ARGO, HELM, GitOpsObject, GitOpsTree, read_address
from jobgen.recognize.missing_paths import GLOB
from jobgen.repo.files import File, is_kustomization

_VARIABLE = lazy_pattern(r"\{\{[^{}]*\}\}|\$\{[^{}]*\}")
_CHANGES = """patches patchesJson6902 patchesStrategicMerge images replacements transformers replicas components
    namePrefix nameSuffix labels commonLabels commonAnnotations""".split()


class Unjudged(NamedTuple):
    """A release that is not judged, or not with all of its values."""

    location: Location
    chart: str
    why: str
    is_partial: bool = False
    """It is judged without some of its values."""


REMOTE = "jobgen downloads no charts"
CHANGED = "something else changes what helm renders"
OPEN = "some values are filled in elsewhere"
LIMIT = "its ApplicationSet writes too many Applications, and only the first ones were read"
ELSEWHERE = "some values are in another repository"
PATTERN = "a pattern names some of its values files"
HIDDEN = "no file of this repository shows them"


class TextFault(NamedTuple):
    """Why a text has no values."""

    place: Location
    reason: str


class Releases(NamedTuple):
    """The releases of a tree."""

    uses: list[Use]
    unjudged: list[Unjudged]
    kustomized: Mapping[str, Sequence[str]]
    """The folders of the charts that each kustomization names."""
    judged: frozenset[str]
    """The kustomizations whose charts are all judged by themselves, or all counted."""
    inflated: Mapping[str, Sequence[Use]]
    """The charts of kustomizations that are rendered in their builds."""
    faults: Sequence[tuple[str, Finding]] = ()
    """What is wrong with values that releases have as text, each with the file of the release."""


class _Reader:
    """Collects the releases."""

    def __init__(self, tree: GitOpsTree, charts: Mapping[str, Chart]) -> None:
        self.tree = tree
        self.charts = dict(charts)
        self.uses: list[Use] = []
        self.unjudged: list[Unjudged] = []
        self.kustomized: dict[str, list[str]] = {}
        self.judged: set[str] = set()
        self.inflated: dict[str, list[Use]] = {}
        self.faults: list[tuple[str, Finding]] = []

    def find_chart(self, folder: str | None) -> Chart | None:
        """Return the chart in a folder; None if there is none."""
        if folder is None:
            return None
        if folder not in self.charts and self.tree.exists(posixpath.join(folder, METADATA)):
            self.charts[folder] = Chart(self.tree.around.tree.source, folder)
        return self.charts.get(folder)

    def leave_out(self, location: Location, chart: str, why: str, *, is_partial: bool = False) -> None:
        self.unjudged.append(Unjudged(location, chart, why, is_partial))

    def read_file(self, path: str | None) -> File | None:
        file = self.tree.read(path) if path and self.tree.exists(path) else None
        return file if file and file.finding is None else None

    def read_leaf(self, node: TracedScalar, owner: str) -> TracedScalar:
        """Return a value of a Secret as text."""
        try:
            text = base64.b64decode(text_of(node), validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
        return TracedScalar(text, location_of(node) or Location(owner))

    def read_text(self, node: Node, owner: str) -> Values | TextFault | None:
        """Return the values in a text of an object; None if it says nothing."""
        if not isinstance(node, TracedScalar):
            return None
        documents, findings = read_inline(node, self.tree.read_lines(owner), "")
        text, place = text_of(node), location_of(node)
        if documents and isinstance(documents[0], dict):
            # helm reads the first document.
            return Values(File(place.file if place else owner, text.encode("utf-8", "surrogatepass")), documents[0])
        if documents:
            what = "a list" if isinstance(documents[0], list) else "a plain value"
            return TextFault(place or Location(owner), f"they are {what}, and must be a mapping")
        return TextFault(findings[0].location, findings[0].message) if findings else None

    def note_fault(self, owner: GitOpsObject, fault: TextFault, then: str, *, is_secret: bool = False) -> None:
        """Note that what installs a chart cannot read the values of a release."""
        reason = "" if is_secret else f": {fault.reason}"
        message = f"the values of `{owner.name}` cannot be read, so {then}{reason}"
        self.faults.append((owner.file, Finding(FAILS, "gitops", Severity.ERROR, message, fault.place)))

    # Argo CD

    def add_argo(self, source: ArgoSource) -> None:
        """Add what a source of an Application renders."""
        helm, at = source.helm, source.owner.location
        if "chart" in source.data:
            self.leave_out(at, text_of(source.data.get("chart")), REMOTE)
            return
        folder = source.path.strip("/")
        chart = None
        if not is_open(folder) and self.tree.may_be_own(source.url):
            chart = self.find_chart(self.tree.find_path(folder))
        if chart is None:
            path = self.tree.find_path(folder) if self.tree.is_own(source.url) and not is_open(folder) else None
            if path is not None and not self.tree.exists(path):
                # This is an error already.
                return
            if helm or (is_open(folder) and self.tree.may_be_own(source.url) and self.may_be_chart(folder)):
                why = OPEN if is_open(folder) else REMOTE
                self.leave_out(at, posixpath.basename(folder) if not is_open(folder) else "", why)
            return
        values = self.list_argo_values(source, folder)
        if isinstance(values, str):
            if values:
                self.leave_out(at, chart.name, values)
            return
        options, inputs, is_read = self.read_parameters(source, folder)
        if not is_read:
            self.leave_out(at, chart.name, HIDDEN, is_partial=True)
        release = name_release(chart, text_of(helm.get("releaseName")) or source.app)
        namespace = text_of(helm.get("namespace")) or source.namespace
        self.uses.append(
            Use(
                chart,
                release,
                "" if is_open(namespace) else namespace,
                (*values, *self.list_parameters(source)),
                tuple(options),
                inputs=tuple(inputs),
                by=at,
                is_definite=is_read and self.tree.is_own(source.url) and source.is_head,
                sources=(self.tree.read(source.owner.file),),
                kube_version=text_of(helm.get("kubeVersion")),
                api_versions=tuple(map(text_of, as_list(helm.get("apiVersions")))),
                is_merged=True,
                without=_list_left_out(helm, is_kustomize=False),
            )
        )

    def may_be_chart(self, folder: str) -> bool:
        """Return True if a path with variables may be that of a chart of the tree."""
        above = f"{self.tree.around.above}/" if self.tree.around.above else ""
        pattern = re.compile("[^/]*".join(map(re.escape, _VARIABLE.split(folder))) + r"\Z")
        return any(pattern.match(f"{above}{each.folder}") for each in self.charts.values())

    def list_argo_values(self, source: ArgoSource, folder: str) -> list[Values] | str:
        """Return the values of a source in their order, or why not all of them are known."""
        found: list[Values] = []
        for node in as_list(source.helm.get("valueFiles")):
            text = text_of(node)
            file = None if is_open(text) or "://" in text else self.read_file(self.locate(source, folder, text))
            if file is not None:
                found.append(Values(file))
            elif is_open(text):
                return OPEN
            elif value_of(source.helm.get("ignoreMissingValueFiles")) is not True:
                if any(sign in text for sign in GLOB):
                    return PATTERN
                # A file that is missing here is an error already.
                return "" if locate_values(self.tree, source, text) else ELSEWHERE
        given = source.helm.get("valuesObject")
        if isinstance(given, dict):
            text = json.dumps(untraced(given))
            place = location_of(given) or source.owner.location
            found.append(Values(File(place.file, text.encode("utf-8", "surrogatepass")), given))
        else:
            node = source.helm.get("values")
            text = text_of(node)
            read = self.read_text(node, source.owner.file)
            if isinstance(read, TextFault) and not is_open(text):
                self.note_fault(source.owner, read, f"Argo CD cannot render `{source.app}`")
                return ""
            found += [read] if isinstance(read, Values) else []
        return OPEN if is_open(text) else found

    def locate(self, source: ArgoSource, folder: str, text: str) -> str | None:
        if text.startswith("$"):
            name, _, rest = text[1:].partition("/")
            named = [each for each in source.siblings if text_of(each.get("ref")) == name]
            is_own = named and self.tree.may_be_own(text_of(named[0].get("repoURL")))
            return self.tree.find_path(rest) if is_own else None
        return self.tree.find_path(text if text.startswith("/") else posixpath.join(folder, text))

    def list_parameters(self, source: ArgoSource) -> Iterator[Values]:
        """Yield the parameters that are plain fields, as values."""
        for each in map(as_mapping, as_list(source.helm.get("parameters"))):
            name, node = text_of(each.get("name")), each.get("value")
            text = _write(node)
            value = text if value_of(each.get("forceString")) is True else read_typed(text)
            leaf = TracedScalar(value, location_of(node) or source.owner.location)
            found = set_at(name, leaf, location_of(each.get("name")))
            yield from [found] if found and not is_open(text) else []

    def read_parameters(self, source: ArgoSource, folder: str) -> tuple[list[str], list[File], bool]:
        """Return the options for the other parameters, the files that they name, and whether all are known."""
        options: list[str] = []
        inputs: list[File] = []
        is_read = True
        for each in map(as_mapping, as_list(source.helm.get("parameters"))):
            name, text = text_of(each.get("name")), _write(each.get("value"))
            if is_open(text) or is_open(name):
                is_read = False
            elif not is_plain(name, text):
                option = "--set-string" if value_of(each.get("forceString")) is True else "--set"
                escaped = text if text.startswith("{") else text.replace(",", r"\,")
                options += [option, f"{name}={escaped}"]
        for each in map(as_mapping, as_list(source.helm.get("fileParameters"))):
            file = self.read_file(self.locate(source, folder, text_of(each.get("path"))))
            if file is None:
                is_read = False
            else:
                options += ["--set-file", f"{text_of(each.get('name'))}={{{len(inputs)}}}"]
                inputs.append(file)
        return options, inputs, is_read

    # Flux

    def add_flux(self, owner: GitOpsObject) -> None:
        """Add what a HelmRelease installs."""
        wanted = as_mapping(get_path(owner.spec, "chart", "spec"))
        reference = as_mapping(wanted.get("sourceRef") or owner.spec.get("chartRef"))
        name = text_of(wanted.get("chart")) or text_of(reference.get("name"))
        chart, is_certain = self.find_flux_chart(wanted, reference)
        if chart is None:
            # A path that is not in this repository is an error already.
            is_known = is_certain and not is_open(name) and self.tree.find_path(name) is not None
            if not is_known or name.endswith(".tgz") or not is_own(self.tree, reference):
                self.leave_out(owner.location, name, OPEN if is_open(name) else REMOTE)
            return
        if owner.spec.get("postRenderers"):
            self.leave_out(owner.location, chart.name, CHANGED)
            return
        base: list[Values] = []
        for text in map(text_of, as_list(wanted.get("valuesFiles"))):
            file = self.read_file(self.tree.find_path(text))
            base += [Values(file)] if file else []
            is_certain = is_certain and file is not None
        found = self.list_flux_values(owner)
        if found is None:
            return
        values, sources, is_known = found
        release = text_of(owner.spec.get("releaseName"))
        target = text_of(owner.spec.get("targetNamespace"))
        release = release or "-".join(filter(None, (target, owner.name)))
        written = "".join(each.file.content.decode("utf-8", "replace") for each in values if each.data is not None)
        if "${" in written:
            self.leave_out(owner.location, chart.name, OPEN)
            return
        if not is_known:
            self.leave_out(owner.location, chart.name, HIDDEN, is_partial=True)
        self.uses.append(
            Use(
                chart,
                name_release(chart, release),
                target or owner.namespace,
                tuple(values),
                by=owner.location,
                is_definite=is_certain and is_known,
                base=tuple(base),
                sources=(self.tree.read(owner.file), *sources),
            )
        )

    def find_flux_chart(self, wanted: Mapping[str, Any], reference: Mapping[str, Any]) -> tuple[Chart | None, bool]:
        """Return the chart in the tree that a HelmRelease installs, and whether it is certainly that one."""
        if may_be_own(self.tree, reference) and wanted:
            name = text_of(wanted.get("chart"))
            return self.find_chart(self.tree.find_path(name) if not is_open(name) else None), True
        # What is pushed to a registry has the name of its chart at the end.
        sources = find_sources(self.tree, reference, text_of(reference.get("kind")))
        urls = [text_of(each.spec.get("url")) for each in sources]
        if text_of(reference.get("kind")) != "OCIRepository" or len(urls) != 1:
            return None, False
        name = read_address(urls[0]).rpartition("/")[2]
        tag = text_of(get_path(sources[0].spec, "ref", "tag"))
        found = [each for each in self.charts.values() if each.name.lower() == name]
        found = [each for each in found if str(each.metadata.get("version")) == tag]
        return (found[0], True) if len(found) == 1 else (None, False)

    def list_flux_values(self, owner: GitOpsObject) -> tuple[list[Values], list[File], bool] | None:
        """Return the values of a HelmRelease in their order, the files of ConfigMaps, and whether all are known.

        None if Flux cannot read some of them, which is an error.
        """
        found: list[Values] = []
        files: list[File] = []
        is_known = True
        for each in map(as_mapping, as_list(owner.spec.get("valuesFrom"))):
            values = self.read_reference(owner, each)
            if isinstance(values, TextFault):
                is_secret = text_of(each.get("kind")) == "Secret"
                self.note_fault(owner, values, "Flux cannot install it", is_secret=is_secret)
                return None
            if values is None:
                is_known = False
                continue
            found.append(values)
            files.append(self.tree.read(values.file.path))
        given = owner.spec.get("values")
        if isinstance(given, dict) and given:
            place = location_of(given) or owner.location
            text = json.dumps(untraced(given)).encode("utf-8", "surrogatepass")
            found.append(Values(File(place.file, text), given))
        elif isinstance(given, TracedScalar) and given.value not in (None, ""):
            message = f"the values of `{owner.name}` are a text, which Flux ignores; write them as fields, without `|`"
            place = location_of(given) or owner.location
            self.faults.append((owner.file, Finding(UNREAD, "gitops", Severity.WARNING, message, place)))
        return found, files, is_known

    def read_reference(self, owner: GitOpsObject, wanted: Mapping[str, Any]) -> Values | TextFault | None:
        """Return the values that an entry of `valuesFrom` names; None if they are not known."""
        kind, name = text_of(wanted.get("kind")), text_of(wanted.get("name"))
        key, target = text_of(wanted.get("valuesKey")) or "values.yaml", text_of(wanted.get("targetPath"))
        made = self.tree.find_holder(kind, name, owner.namespace, owner) if name and not is_open(name) else None
        if made is None or "sops" in made.data:
            return None
        texts = {**as_mapping(made.data.get("data")), **as_mapping(made.data.get("stringData"))}
        node: Any = texts.get(key)
        place = location_of(node)
        if place is None or not isinstance(node, TracedScalar):
            return None
        if kind == "Secret" and key not in as_mapping(made.data.get("stringData")):
            node = self.read_leaf(node, place.file)
        values = self.set_at(target, node, place) if target else self.read_text(node, place.file)
        return values._replace(is_secret=kind == "Secret") if isinstance(values, Values) else values

    def set_at(self, target: str, node: TracedScalar, place: Location) -> Values | None:
        """Return a text as the value at a path, as Flux sets it; None if it is not a plain one."""
        text = text_of(node)
        is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        value = text[1:-1] if is_quoted else read_typed(text)
        return set_at(target, TracedScalar(value, place), is_exact=is_quoted) if is_quoted or "\n" not in text else None

    # kustomize

    def add_kustomize(self, path: str) -> None:
        """Add the charts that a kustomization renders."""
        fields = as_mapping(load(self.tree.around.tree.source, path).fields)
        folder = posixpath.dirname(path)
        home = text_of(as_mapping(fields.get("helmGlobals")).get("chartHome")) or "charts"
        is_judged = True
        # What only other kustomizations use is judged as they change it.
        is_changed = any(fields.get(field) for field in _CHANGES) or path not in self.tree.around.plan.roots
        inflated: list[Use] = []
        for each in map(as_mapping, as_list(fields.get("helmCharts"))):
            at = location_of(each) or Location(path)
            name, version = text_of(each.get("name")), text_of(each.get("version"))
            inside = f"{name}-{version}/{name}" if version and each.get("repo") else name
            chart = self.find_chart(posixpath.normpath(posixpath.join(folder, home, inside)))
            if chart is None:
                self.leave_out(at, name, REMOTE)
                is_judged = False
                continue
            self.kustomized.setdefault(path, []).append(chart.folder)
            values, is_exact = self.list_kustomize_values(each, chart, folder, at)
            use = Use(
                chart,
                name_release(chart, text_of(each.get("releaseName"))),
                text_of(each.get("namespace")) or text_of(fields.get("namespace")),
                tuple(values),
                by=at,
                is_definite=is_exact,
                sources=(self.tree.read(path),),
                kube_version=text_of(each.get("kubeVersion")),
                api_versions=tuple(map(text_of, as_list(each.get("apiVersions")))),
                without=_list_left_out(each, is_kustomize=True),
            )
            # Since 5.8, kustomize lets helm set the namespace; before, it did so itself.
            inflated += [use] if is_exact else []
            if is_changed and not is_exact:
                self.leave_out(at, name, CHANGED)
            elif not is_changed:
                self.uses.append(use)
        count = len(as_list(fields.get("helmCharts")))
        if len(inflated) == count and not any(each.chart.missing or each.chart.fault for each in inflated):
            self.inflated[path] = inflated
        # An info counts charts that must be downloaded.
        if (is_judged and not is_changed) or (count and path not in self.kustomized):
            self.judged.add(path)

    def list_kustomize_values(
        self, entry: Mapping[str, Any], chart: Chart, folder: str, at: Location
    ) -> tuple[list[Values], bool]:
        """Return the values of an entry of `helmCharts` in their order, and whether all are known."""

        def read(node: Node) -> File | None:
            return self.read_file(posixpath.normpath(posixpath.join(folder, text_of(node))))

        named = read(entry.get("valuesFile")) if entry.get("valuesFile") else None
        others = [read(node) for node in as_list(entry.get("additionalValuesFiles"))]
        is_known = None not in others and (named is not None or not entry.get("valuesFile"))
        layers = [Values(named)] if named else []
        given, merge = entry.get("valuesInline"), text_of(entry.get("valuesMerge")) or "override"
        if isinstance(given, dict) and given:
            place = location_of(given) or at
            inline = Values(File(place.file, json.dumps(untraced(given)).encode("utf-8", "surrogatepass")), given)
            if merge == "merge":
                # The values that they are merged into win, also those of the chart.
                own = self.read_file(chart.join(VALUES))
                layers = [inline, *(layers or ([Values(own)] if own else []))]
            else:
                layers = [inline] if merge == "replace" else [*layers, inline]
            is_known = is_known and merge in ("merge", "override", "replace")
        return [*layers, *(Values(file) for file in others if file)], is_known


def _list_left_out(fields: Mapping[str, Any], *, is_kustomize: bool) -> frozenset[Part]:
    """Return what a release leaves out: kustomize has definitions of kinds only if asked for, and Argo CD always."""
    names = {"skipHooks": Part.HOOKS, "skipTests": Part.TESTS, "skipCrds": Part.CRDS}
    found = {part for name, part in names.items() if value_of(fields.get(name)) is True}
    if is_kustomize and value_of(fields.get("includeCRDs")) is not True:
        found.add(Part.CRDS)
    return frozenset(found)


def _write(node: Node) -> str:
    value = value_of(node)
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _list_patched(tree: GitOpsTree) -> Iterator[GitOpsObject]:
    """Yield the ApplicationSets whose Applications a text with statements changes."""
    yield from (each for each in tree.list_kind(ARGO, "ApplicationSet") if each.spec.get("templatePatch"))


def list_releases(tree: GitOpsTree, charts: Sequence[Chart]) -> Releases:
    """Return the releases of a tree, of charts that are in it, and those that are not judged."""
    reader = _Reader(tree, {each.folder: each for each in charts})
    patched = {each.location: each for each in _list_patched(tree)}
    for source in list_sources(tree):
        if source.owner.location in patched:
            reader.leave_out(source.owner.location, "", CHANGED)
        else:
            reader.add_argo(source)
    for owner in tree.list_kind(ARGO, "ApplicationSet"):
        if has_too_many(tree, owner):
            reader.leave_out(owner.location, "", LIMIT)
    for owner in tree.list_kind(HELM, "HelmRelease"):
        reader.add_flux(owner)
    for path in tree.around.paths:
        if is_kustomization(path) and b"helmCharts" in tree.read(path).content:
            reader.add_kustomize(path)
    judged = frozenset(reader.judged)
    return Releases(reader.uses, reader.unjudged, reader.kustomized, judged, reader.inflated, reader.faults)
