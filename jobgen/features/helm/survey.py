"""The charts of a tree, and their builds: one for each release that the repository tells of."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobgen.engine.programs import is_inside
from jobgen.engine.shared_results import SharedResults
from jobgen.features.helm.build import ChartBuild
from jobgen.features.helm.charts import METADATA, SCHEMA, VALUES, Chart, is_packaged
from jobgen.features.helm.cluster_apis import set_cluster
from jobgen.features.helm.commands import Commands, MissingFile, list_commands
from jobgen.features.helm.metadata import find_metadata_faults
from jobgen.features.helm.misnamed import find_misnamed_metadata, find_misnamed_templates
from jobgen.features.helm.pipelines import list_pipeline_uses
from jobgen.features.helm.refusals import FAILS, UNJUDGED
from jobgen.features.helm.releases import CHANGED, Releases, Unjudged, list_releases
from jobgen.features.helm.run_helm import Helm, find_helm
from jobgen.features.helm.stage import MarkedRender, list_arguments
from jobgen.features.helm.subcharts import Optional, list_optional
from jobgen.features.helm.unread_values import find_unread
from jobgen.features.helm.uses import Use, Values, is_values_file, list_own_uses, name_release
from jobgen.features.helm.value_schema import check_values
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Related, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.suggest import ask_for
from jobgen.recognize import CHART, RENDERED_CHART, VALUES_FILE, Taken
from jobgen.recognize.charts import ChartSurvey
from jobgen.recognize.gitops_objects import GitOpsTree
from jobgen.recognize.tree import ChartOptions, FileTree, list_folders
from jobgen.repo.files import FileEntry, note_findings
from jobgen.spec.overlay import Cluster

_MAX_USES = 20
"""The releases of one chart that are rendered."""
_MAX_NAMED = 5
_VALUES_FILE = lazy_pattern(r"values[^/]*\.ya?ml\Z")
_NO_HELM = "helm is not on PATH"
_OWN_HELM = "the helm on PATH is a file of this repository, which a change could replace"


def survey_charts(
    tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str], options: ChartOptions
) -> ChartSurvey:
    """Return the builds of the charts of a tree, and what their files are."""
    around = tree.around
    charts = _find_charts(tree, taken, own)
    releases = list_releases(tree, charts)
    if options.values:
        uses, missing = _list_given(tree, charts, options), list[MissingFile]()
    else:
        uses, missing = _list_uses(tree, charts, releases, own)
    used = (use.chart for several in uses.values() for use in several)
    charts = list({each.folder: each for each in (*charts, *used)}.values())
    folders = tuple(each.folder for each in charts)
    faults = {each.metadata_file: find_metadata_faults(each) for each in charts}
    refused = {path: found for path, found in faults.items() if found}
    charts = [each for each in charts if each.metadata_file not in refused]
    left_out = _note_unjudged([each for each in releases.unjudged if each.location.file in own])
    known = [note_findings(f"{path}/metadata", found) for path, found in refused.items()]
    known += [*_note_faults(releases, own), *_note_misnamed(tree, charts, own), *_note_missing_files(missing)]
    known += [*_check_values(charts, uses), *_note_archives(tree, options.archives)]
    described = {path: Taken(CHART, "helm cannot read its metadata") for path in refused}
    helm = find_helm() if options.has_tool else None
    why = _explain(helm, options)
    if helm is None or why:
        found = _leave_out(charts, why)
        known += _check_schemas(charts, uses)
        taken = {**found.taken, **described}
        return found._replace(entries=[*found.entries, *left_out, *known], taken=taken, folders=folders)
    entries = [*_note_remote(charts), *left_out, *known]
    described |= _list_read(charts, own)
    inflated_uses = [use for several in releases.inflated.values() for use in several]
    cluster = options.find_cluster() if options.find_cluster else Cluster()
    shared = SharedResults[MarkedRender]()
    for chart in charts:
        if chart.is_library:
            why = "it is a library chart, whose templates are checked in the charts that use it"
            described[chart.metadata_file] = Taken(RENDERED_CHART, why)
            entries += _note_installed_library(chart, uses[chart.folder])
            if chart.join(VALUES) in own:
                described[chart.join(VALUES)] = Taken(VALUES_FILE, f"values of the chart `{chart.name}`")
            continue
        own_uses = _sort_uses(set_cluster(uses[chart.folder], cluster))
        if len(own_uses) > _MAX_USES:
            entries.append(_note_limit(chart, len(own_uses)))
            own_uses = own_uses[:_MAX_USES]
        described[chart.metadata_file] = _describe(chart, own_uses, inflated_uses)
        listed = (each.file.path for use in own_uses for each in (*use.base, *use.values) if each.data is None)
        for path in (chart.join(VALUES), chart.join(SCHEMA), *listed):
            if path in own and around.tree.exists(path):
                described[path] = Taken(VALUES_FILE, f"values of the chart `{chart.name}`")
        entries += _make_entries(own_uses, helm, around.objects, shared)
    entries += _note_optional([(each, uses[each.folder]) for each in charts if not (each.is_library or each.fault)])
    judged = releases.judged if not options.values else frozenset()
    inflated = {
        path: [ChartBuild(use, helm) for use in set_cluster(several, cluster)]
        for path, several in releases.inflated.items()
    }
    return ChartSurvey(entries, described, folders, judged, inflated)


def _list_read(charts: Sequence[Chart], own: frozenset[str]) -> dict[str, Taken]:
    """Return the files that templates write, which are not applied by themselves."""
    read = Taken(RENDERED_CHART, "a template of the chart reads it")
    users = [each for each in charts if any(b".Files" in content for content in each.files.values())]
    return {
        path: read
        for each in users
        for path in own
        if path.startswith(each.join("")) and each.reads_file(path.removeprefix(each.join("")))
    }


def _explain(helm: Helm | None, options: ChartOptions) -> str:
    """Return why no chart is rendered; empty if all of them are."""
    if helm is None:
        return _NO_HELM if options.has_tool else "this command starts no other program"
    return _OWN_HELM if is_inside(helm.path, options.home) else ""


def _describe(chart: Chart, own_uses: Sequence[Use], inflated: Sequence[Use]) -> Taken:
    """Return what the metadata of a chart is taken for."""
    if chart.missing:
        return Taken(CHART, "it needs charts that must be downloaded")
    if own_uses:
        return Taken(RENDERED_CHART, f"helm renders it; it is checked in {pluralize(len(own_uses), 'release')}")
    if any(use.chart.folder == chart.folder for use in inflated):
        return Taken(RENDERED_CHART, "it is checked in the builds of kustomizations")
    return Taken(CHART, CHANGED)


def _find_charts(tree: GitOpsTree, taken: Mapping[str, Taken], own: frozenset[str]) -> list[Chart]:
    """Return the charts whose files are linted: their metadata, a template, or values."""
    source = tree.around.tree.source
    files = {path for path in own if posixpath.basename(path) == METADATA and path not in taken}
    charts = [Chart(source, posixpath.dirname(path)) for path in sorted(files)]
    # Without the metadata, single files of a chart were named.
    for path in sorted(own) if not files else ():
        folders = (folder for folder in list_folders(path) if source.exists(posixpath.join(folder, METADATA)))
        charts += (Chart(source, folder) for folder in list(folders)[-1:])
    unique = {each.folder: each for each in charts}
    unique |= {each.folder: each for each in _list_dependents(tree, set(unique), own) if each.folder not in unique}
    # A file of this name may be another program's.
    return [each for each in unique.values() if each.name or source.is_folder(each.join("templates"))]


def _list_dependents(tree: GitOpsTree, folders: set[str], own: frozenset[str]) -> Iterator[Chart]:
    """Yield the charts around the linted files that use some charts by their folders."""
    source = tree.around.tree.source
    for path in tree.around.paths if folders else ():
        if posixpath.basename(path) == METADATA and path not in own and b"file://" in tree.read(path).content:
            chart = Chart(source, posixpath.dirname(path))
            if not folders.isdisjoint(chart.local_folders):
                yield chart


def _list_given(tree: GitOpsTree, charts: Sequence[Chart], options: ChartOptions) -> dict[str, list[Use]]:
    """Return the uses of charts, by their folders, with the files of values that a command names."""
    given = tuple(Values(tree.around.tree.read(path)) for path in options.values)
    return {each.folder: [Use(each, name_release(each), values=given, is_definite=True)] for each in charts}


def _list_uses(
    tree: GitOpsTree, charts: Sequence[Chart], releases: Releases, own: frozenset[str]
) -> tuple[dict[str, list[Use]], list[MissingFile]]:
    """Return the uses of charts, by their folders: of those that are linted, and those that linted files release.

    Also return the files of values that commands name, and that are missing.
    """
    around = tree.around
    linted = {each.folder: each for each in charts}
    may_use = charts or any(_VALUES_FILE.search(path) for path in own)
    found = list_commands(around.tree, around.above) if may_use else Commands({}, [])
    commands = found.uses
    for use in list_pipeline_uses(around.tree, around.above) if may_use else ():
        commands.setdefault(use.chart.folder, []).append(use)
    uses = {each.folder: list_own_uses(each, around.tree, commands.get(each.folder, ())) for each in charts}
    for use in (*releases.uses, *(use for several in commands.values() for use in several)):
        is_command = use.by is not None and not use.sources
        if use.chart.folder in linted and not is_command:
            before = (each._replace(is_replaced=each.by is None) for each in uses[use.chart.folder])
            uses[use.chart.folder] = [*before, use]
        elif use.chart.folder not in linted and not own.isdisjoint(_list_files(use)):
            # A release is judged if its chart is linted, or what says how it is released.
            uses.setdefault(use.chart.folder, []).append(use)
    for folder in {each for several in releases.kustomized.values() for each in several}:
        if folder in uses:
            # Nothing is installed with the values of the chart alone, or with files that the kustomization names.
            uses[folder] = [use for use in uses[folder] if use.by is not None]
    for folder, chart in linted.items():
        uses[folder] = _select_named(_try_values(chart, around.tree, own, uses[folder]), own)
    return uses, [each for each in found.missing if each.chart.folder in linted]


def _select_named(uses: Sequence[Use], own: frozenset[str]) -> list[Use]:
    """Return the uses of a chart that read a linted file, if none of these is a part of the chart itself."""
    if uses and uses[0].chart.metadata_file in own:
        return list(uses)
    named = [use for use in uses if not own.isdisjoint(_list_files(use))]
    parts = [path for use in uses[:1] for path in use.chart.origins.values()]
    return named if named and own.isdisjoint(parts) else list(uses)


def _try_values(chart: Chart, tree: FileTree, own: frozenset[str], uses: Sequence[Use]) -> list[Use]:
    """Return the uses of a chart, with one for each named file of values that no other use reads."""
    if chart.metadata_file in own:
        return list(uses)
    read = {path for use in uses for path in _list_files(use)}
    beside = sorted(path for path in own if posixpath.dirname(path) == chart.folder and path not in read)
    tried = (path for path in beside if is_values_file(path) and posixpath.basename(path) != VALUES)
    return [*uses, *(Use(chart, name_release(chart), values=(Values(tree.read(path)),)) for path in tried)]


def _list_files(use: Use) -> Iterator[str]:
    """Yield the files that say how a chart is released."""
    yield from (each.file.path for each in (*use.base, *use.values))
    yield from (each.path for each in use.sources)


def _sort_uses(uses: Sequence[Use]) -> list[Use]:
    """Return uses without those that render the same, the releases of the repository first."""
    ordered = sorted(uses, key=lambda use: not use.is_definite)
    unique: dict[str, Use] = {}
    for use in ordered:
        values = [each.file for each in (*use.base, *use.values)]
        # What is seen in two places is shown in the first one.
        key = repr((values, list_arguments(use), use.inputs, use.open, use.is_definite, use.by is None))
        unique.setdefault(key, use)
    return list(unique.values())


def _make_entries(
    uses: Sequence[Use], helm: Helm, judged: frozenset[str], shared: SharedResults[MarkedRender]
) -> Iterator[FileEntry]:
    seen: Counter[str] = Counter()
    installed = _select_installed(uses)
    for use in uses:
        build = ChartBuild(use, helm, is_installed=use in installed, judged=judged, shared=shared)
        # The folder of the chart says whose objects they are.
        path = posixpath.normpath(posixpath.join(use.chart.folder or ".", use.name))
        seen[path] += 1
        name = path if seen[path] == 1 else f"{path} ({seen[path]})"
        yield FileEntry(name, content=build.read(), optional=True, build=build)


def _select_installed(uses: Sequence[Use]) -> Sequence[Use]:
    """Return what is probably installed: the releases of objects, else those of commands, else those with values."""
    ranks = ([use for use in uses if use.sources], [use for use in uses if use.by], [use for use in uses if use.values])
    return next(filter(None, ranks), uses)


def _check_values(charts: Sequence[Chart], uses: Mapping[str, Sequence[Use]]) -> Iterator[FileEntry]:
    """Yield the findings about values that nothing reads."""
    users: dict[str, set[str]] = {}
    for folder, several in uses.items():
        for path in (each.file.path for use in several for each in (*use.base, *use.values) if each.data is None):
            users.setdefault(path, set()).add(folder)
    shared = frozenset(path for path, folders in users.items() if len(folders) > 1)
    for chart in charts:
        unread = find_unread(chart, uses[chart.folder], shared) if not chart.fault else []
        if unread:
            yield note_findings(f"{chart.metadata_file}/values", unread)


def _check_schemas(charts: Sequence[Chart], uses: Mapping[str, Sequence[Use]]) -> Iterator[FileEntry]:
    """Yield the findings about values that a schema refuses, of charts that helm does not render."""
    for chart in charts:
        known = _sort_uses(uses[chart.folder])[:_MAX_USES] if not (chart.fault or chart.is_library) else []
        found = dict.fromkeys(each for use in known for each in check_values(use))
        if found:
            yield note_findings(f"{chart.metadata_file}/schema", list(found))


def _note_installed_library(chart: Chart, uses: Sequence[Use]) -> Iterator[FileEntry]:
    """Yield an error for each release of a library chart, which helm installs nowhere."""
    for use in uses:
        if use.sources and use.by:
            message = (
                f"`{chart.name}` is a library chart, so helm refuses to install it; use a chart that depends on it"
            )
            found = Finding(FAILS, "gitops", Severity.ERROR, message, use.by)
            yield note_findings(f"{use.by.file}/library {use.by.line}", [found])


def _note_limit(chart: Chart, count: int) -> FileEntry:
    message = (
        f"{count} releases use this chart with different values, and the {_MAX_USES} first ones were checked; "
        "lint the objects that release it by themselves"
    )
    found = Finding(UNJUDGED, "meta", Severity.INFO, message, Location(chart.metadata_file))
    return note_findings(f"{chart.metadata_file}/limit", [found])


def _note_unjudged(releases: Sequence[Unjudged]) -> list[FileEntry]:
    """Return one info for each reason why releases were not checked, or not with all of their values."""
    entries: list[FileEntry] = []
    for (why, is_partial), group in _group(releases).items():
        names = list(dict.fromkeys(f"`{each.chart}`" for each in group if each.chart))
        shown = f" of {_list_names(names)}" if names else ""
        was, its = ("was", "its") if len(group) == 1 else ("were", "their")
        checked = f"checked without some of {its} values" if is_partial else "not checked"
        message = f"{pluralize(len(group), 'Helm release')}{shown} {was} {checked}, because {why}"
        places = list(dict.fromkeys(each.location for each in group))
        related = tuple(Related(place, "another one") for place in places[1 : 1 + _MAX_NAMED])
        found = Finding(UNJUDGED, "meta", Severity.INFO, message, places[0], related=related)
        entries.append(note_findings(f"{places[0].file}/releases: {why}", [found]))
    return entries


def _note_faults(releases: Releases, own: frozenset[str]) -> Iterator[FileEntry]:
    """Yield what is wrong with the values of releases, if their objects, or what has the values, are linted."""
    shown = [found for owner, found in releases.faults if not own.isdisjoint((owner, found.location.file))]
    for number, found in enumerate(dict.fromkeys(shown)):
        yield note_findings(f"{found.location.file}/values {number}", [found])


def _note_misnamed(tree: GitOpsTree, charts: Sequence[Chart], own: frozenset[str]) -> Iterator[FileEntry]:
    """Yield the files and folders that helm does not read because of their names."""
    around = tree.around
    found = [*find_misnamed_metadata(around.tree, own), *find_misnamed_templates(charts, around.paths)]
    yield from (note_findings(f"{each.location.file}/name", [each]) for each in found)


def _note_missing_files(missing: Sequence[MissingFile]) -> Iterator[FileEntry]:
    """Yield an info for each file of values that a script names and that does not exist, which another may write."""
    for number, (place, path, chart) in enumerate(dict.fromkeys(missing)):
        beside = [name for name in chart.tree.list_names(chart.folder or ".") if is_values_file(name)]
        meant = find_meant(posixpath.basename(path), beside)
        hint = ask_for(meant) or "; correct the path, unless something writes the file"
        message = (
            f"`{path}` does not exist here, so `{chart.name}` was not checked with the values of this command{hint}"
        )
        found = Finding(UNJUDGED, "meta", Severity.INFO, message, place, cause="not installed")
        yield note_findings(f"{place.file}/values file {number}", [found])


def _group(releases: Sequence[Unjudged]) -> dict[tuple[str, bool], list[Unjudged]]:
    grouped: dict[tuple[str, bool], list[Unjudged]] = {}
    for release in sorted(releases, key=lambda release: release.location):
        grouped.setdefault((release.why, release.is_partial), []).append(release)
    return grouped


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"


def _note_remote(charts: Sequence[Chart]) -> list[FileEntry]:
    """Return one info about all charts that need charts which must be downloaded."""
    remote = [each for each in charts if each.missing]
    if not remote:
        return []
    names = dict.fromkeys(f"`{missing.name}`" for each in remote for missing in each.missing)
    what = "1 Helm chart needs" if len(remote) == 1 else f"{len(remote)} Helm charts need"
    message = (
        f"{what} charts that must be downloaded, {_list_names(list(names))}, so what these render was not checked; "
        "`helm dependency build` downloads them"
    )
    return [_make_note(message, remote)]


def _note_optional(charts: Sequence[tuple[Chart, Sequence[Use]]]) -> list[FileEntry]:
    """Return one info about all charts in others that no values turn on: nothing of them is rendered."""
    found: list[tuple[Chart, Optional]] = []
    for chart, uses in charts:
        found += ((chart, each) for each in list_optional(chart, uses))
    if not found:
        return []
    names = dict.fromkeys(f"`{each.name}`{f' (`{each.switch}`)' if each.switch else ''}" for _, each in found)
    what = "1 optional Helm chart was" if len(found) == 1 else f"{len(found)} optional Helm charts were"
    them = "it" if len(found) == 1 else "them"
    message = f"{what} not checked, because no values here turn {them} on: {_list_names(list(names))}"
    places = list(dict.fromkeys(Location(chart.metadata_file) for chart, _ in found))
    related = tuple(Related(place, "another one") for place in places[1 : 1 + _MAX_NAMED])
    note = Finding(UNJUDGED, "meta", Severity.INFO, message, places[0], related=related, cause="not installed")
    return [note_findings(f"{places[0].file}/optional", [note])]


def _note_archives(tree: GitOpsTree, paths: Sequence[str]) -> list[FileEntry]:
    """Return one info about packaged charts, which are copies of charts or have no source here."""
    packaged = [path for path in paths if is_packaged(tree.read(path).content)]
    if not packaged:
        return []
    was, them = ("was", "it") if len(packaged) == 1 else ("were", "them")
    what = pluralize(len(packaged), "packaged Helm chart")
    message = f"{what} {was} not checked; unpack {them} with `tar -xzf`, and lint the folder"
    related = tuple(Related(Location(path, 0), "another one") for path in packaged[1 : 1 + _MAX_NAMED])
    found = Finding(UNJUDGED, "meta", Severity.INFO, message, Location(packaged[0], 0), related=related)
    return [note_findings(f"{packaged[0]}/packages", [found])]


def _make_note(message: str, charts: Sequence[Chart]) -> FileEntry:
    places = [Location(each.metadata_file) for each in charts]
    related = tuple(Related(place, "another one") for place in places[1 : 1 + _MAX_NAMED])
    found = Finding(UNJUDGED, "meta", Severity.INFO, message, places[0], related=related)
    return note_findings(f"{places[0].file}/charts", [found])


def _leave_out(charts: Sequence[Chart], why: str) -> ChartSurvey:
    """Return one info about all charts of a tree, because none of them is rendered."""
    if not charts:
        return ChartSurvey()
    was = "was" if len(charts) == 1 else "were"
    message = f"{pluralize(len(charts), 'Helm chart')} {was} not checked, because {why}; run `jobgen doctor`"
    found = {each.metadata_file: Taken(CHART, why) for each in charts}
    return ChartSurvey([_make_note(message, charts)], found, tuple(each.folder for each in charts))
