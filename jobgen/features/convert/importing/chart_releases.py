"""The objects of a Helm chart as folders of manifests, one for each of its values, to import them like others."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path

from jobgen.api.lint_files import LintRequest, find_sources
from jobgen.api.recognized_files import recognize_files
from jobgen.engine.inputs import list_folder
from jobgen.features.convert.importing.collect import SkippedManifest
from jobgen.k8s.nodes import as_mapping
from jobgen.model.builtin_rules import UNJUDGED_CHART_RULES
from jobgen.model.data import Location, ValidFields
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import CHART_METADATA, Build, BuiltObject, Release
from jobgen.yamlio.write import to_yaml

_VALUES = lazy_pattern(r"(?:values([\w.-]*)|([\w.-]*)[-_.]values)\.ya?ml\Z")
_HOOK = "helm.sh/hook"
_DEFAULT = "default"
_MAX_RENDERS = 20


class _Rendering(NamedTuple):
    """What helm makes of a chart with some values."""

    environment: str
    build: Build


def is_chart(folder: Path) -> bool:
    """Return True if a folder is that of a Helm chart."""
    return (folder / CHART_METADATA).is_file()


def write_renderings(directory: Path, path: str, scratch: Path) -> tuple[list[str], list[SkippedManifest]]:
    """Write what helm makes of a chart, with each of its values to a folder.

    Return the names of the folders, and what cannot be imported exactly.
    """
    left_out: dict[tuple[Location, str], SkippedManifest] = {}
    written: dict[str, dict[str, str]] = {}
    for environment, build in _list_renderings(directory, path, left_out):
        built = build()
        faults = [each for each in built.findings if _prevents(each)]
        if faults or not built.objects:
            reason = faults[0].message if faults else "helm renders no object"
            place = faults[0].location if faults else Location(build.file)
            left_out[place, reason] = SkippedManifest(place, f"{reason} (environment `{environment}`)")
            continue
        again = [each.data for each in build.make_again()]
        files = written.setdefault(environment, {})
        for number, each in enumerate(built.objects):
            reason = _explain(each, again[number] if number < len(again) else None)
            if reason:
                left_out[each.location, reason] = SkippedManifest(each.location, reason)
            else:
                files[f"{number:03}-{posixpath.basename(each.file).partition('.')[0]}.yaml"] = to_yaml(each.data)
    is_same = len(set(map(repr, written.values()))) == 1
    names = list(written)[: 1 if is_same else None]
    for environment in names:
        (scratch / environment).mkdir()
        for name, text in written[environment].items():
            (scratch / environment / name).write_text(text, "utf-8")
    return names, [left_out[key] for key in sorted(left_out)]


def _prevents(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR or finding.rule in UNJUDGED_CHART_RULES


def _explain(built: BuiltObject, again: ValidFields | None) -> str:
    """Return why an object of a chart is not the same in a repository; empty if it is."""
    annotations = as_mapping(as_mapping(built.data.get("metadata")).get("annotations"))
    named = f"{built.data.get('kind')} `{as_mapping(built.data.get('metadata')).get('name')}`"
    if _HOOK in annotations:
        return f"{named} is a hook of helm, which runs it at another time than a repository does"
    if again != built.data:
        return f"helm renders {named} differently each time, with a random value or the time"
    return ""


def _list_renderings(
    directory: Path, path: str, left_out: dict[tuple[Location, str], SkippedManifest]
) -> Iterator[_Rendering]:
    """Yield the releases of a chart by objects of the repository; without any, the chart with each of its values."""
    request = LintRequest(directory, (path,))
    found = dict(_find_builds(request, path, left_out))
    released = {release: build for release, build in found.items() if release.by and _is_manifest(release.by)}
    names: dict[str, int] = {}
    if released:
        for release, build in released.items():
            texts = (*release.values[-1:], release.by) if release.values else (release.by,)
            yield _Rendering(_number(names, _name(texts[0]) or release.name), build)
        return
    for release, build in found.items():
        if not release.values and not release.by:
            yield _Rendering(_number(names, _DEFAULT), build)
    files = sorted(each.name for each in list_folder(str(directory / path)) if _VALUES.match(each.name))
    for name in [each for each in files if each != "values.yaml"][:_MAX_RENDERS]:
        given = request._replace(chart_values=(posixpath.join(path, name),))
        for build in dict(_find_builds(given, path, left_out)).values():
            yield _Rendering(_number(names, _name(name) or _DEFAULT), build)


def _is_manifest(path: str) -> bool:
    return path.endswith((".yaml", ".yml", ".json"))


def _find_builds(
    request: LintRequest, path: str, left_out: dict[tuple[Location, str], SkippedManifest]
) -> Iterator[tuple[Release, Build]]:
    """Yield the builds of a chart; what says that it is not rendered is left out."""
    folder = posixpath.normpath(path)
    survey = recognize_files(request, find_sources(request))
    for entry in survey.entries:
        release = entry.build.release if entry.build else None
        if entry.build and release and release.chart == ("" if folder == "." else folder):
            yield release, entry.build
        elif entry.build:
            for each in entry.build().findings if release is None else ():
                if each.rule in UNJUDGED_CHART_RULES:
                    left_out[each.location, each.rule] = SkippedManifest(each.location, each.message)


def _name(path: str) -> str:
    """Return what an environment is called by the name of a file of values."""
    base = posixpath.basename(path)
    match = _VALUES.match(base)
    text = (match[1] or match[2] or "") if match else base.rpartition(".")[0]
    cleaned = "".join(letter if letter.isalnum() else "-" for letter in text.lower())
    return cleaned.strip("-")[:60]


def _number(names: dict[str, int], name: str) -> str:
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}-{names[name]}"
