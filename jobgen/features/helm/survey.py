"""The charts of a tree, and their builds: one for each release that the repository tells of."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from jobgen.features.helm.build import ChartBuild
from jobgen.features.helm.charts import METADATA, VALUES, Chart
from jobgen.features.helm.refusals import UNJUDGED
from jobgen.features.helm.run_helm import find_helm
from jobgen.features.helm.unread_values import find_unread
from jobgen.features.helm.uses import Use, list_own_uses
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Related, Severity, pluralize
from jobgen.recognize import CHART, RENDERED_CHART, VALUES_FILE, Taken
from jobgen.recognize.charts import ChartSurvey
from jobgen.recognize.tree import Surroundings
from jobgen.repo.files import Build, Built, File, FileEntry

_MAX_USES = 20
"""The releases of one chart that are rendered."""
_MAX_NAMED = 5
_NO_HELM = "helm is not on PATH"


class _Note(Build):
    """Findings about charts that need no render."""

    def __init__(self, file: str, findings: Sequence[Finding]) -> None:
        super().__init__(file)
        self._findings = findings

    def read(self) -> bytes:
        """Return what they say."""
        return repr(self._findings).encode("utf-8", "surrogatepass")

    def make(self) -> Built:
        """Return the findings, and no objects."""
        return Built((), self._findings)

    def read_sources(self, finding: Finding) -> Sequence[File]:
        """Return no file: the finding shows no value."""
        del finding
        return ()


def survey_charts(
    around: Surroundings, taken: Mapping[str, Taken], own: frozenset[str], *, has_tool: bool
) -> ChartSurvey:
    """Return the builds of the charts of a tree, and what their files are."""
    files = sorted(path for path in own if posixpath.basename(path) == METADATA and path not in taken)
    charts = [Chart(around.tree.source, posixpath.dirname(path)) for path in files]
    charts = [each for each in charts if each.name]
    uses = {chart.folder: list_own_uses(chart, around.tree)[:_MAX_USES] for chart in charts}
    unread = [entry for chart in charts for entry in _check_values(chart, uses[chart.folder])]
    helm = find_helm() if has_tool else None
    if helm is None:
        left_out = _leave_out(charts, _NO_HELM if has_tool else "this command starts no other program")
        return left_out._replace(entries=[*left_out.entries, *unread])
    entries = [*_note_remote(charts), *unread]
    found: dict[str, Taken] = {}
    for chart in charts:
        if chart.is_library:
            why = "it is a library chart, whose templates are checked in the charts that use it"
            found[chart.metadata_file] = Taken(RENDERED_CHART, why)
            continue
        own_uses = uses[chart.folder]
        count = pluralize(len(own_uses), "release")
        found[chart.metadata_file] = Taken(RENDERED_CHART, f"helm renders it; it is checked in {count}")
        if chart.missing:
            found[chart.metadata_file] = Taken(CHART, "it needs charts that must be downloaded")
        for path in (chart.join(VALUES), *(each.file.path for use in own_uses for each in use.values)):
            if path in own and around.tree.exists(path):
                found[path] = Taken(VALUES_FILE, f"values of the chart `{chart.name}`")
        entries += (_make_entry(ChartBuild(use, helm), use) for use in own_uses)
    return ChartSurvey(entries, found, tuple(each.folder for each in charts))


def _make_entry(build: ChartBuild, use: Use) -> FileEntry:
    # The folder of the chart says whose objects they are.
    path = posixpath.join(use.chart.folder or ".", use.name)
    return FileEntry(posixpath.normpath(path), content=build.read(), optional=True, build=build)


def _check_values(chart: Chart, uses: Sequence[Use]) -> list[FileEntry]:
    """Return the findings about values that nothing reads."""
    unread = find_unread(chart, uses) if not chart.fault else []
    return [_make_static(f"{chart.metadata_file}/values", chart.metadata_file, unread)] if unread else []


def _note_remote(charts: Sequence[Chart]) -> list[FileEntry]:
    """Return one info about all charts that need charts which must be downloaded."""
    remote = [each for each in charts if each.missing]
    if not remote:
        return []
    names = dict.fromkeys(f"`{missing.name}`" for each in remote for missing in each.missing)
    shown = ", ".join(list(names)[:_MAX_NAMED])
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    what = "1 Helm chart needs" if len(remote) == 1 else f"{len(remote)} Helm charts need"
    message = (
        f"{what} charts that must be downloaded, {shown}{more}, so what these render was not checked; "
        "`helm dependency build` downloads them"
    )
    return [_make_note(message, remote)]


def _make_note(message: str, charts: Sequence[Chart]) -> FileEntry:
    places = [Location(each.metadata_file) for each in charts]
    related = tuple(Related(place, "another one") for place in places[1 : 1 + _MAX_NAMED])
    found = Finding(UNJUDGED, "meta", Severity.INFO, message, places[0], related=related)
    return _make_static(f"{places[0].file}/charts", places[0].file, [found])


def _make_static(name: str, file: str, findings: Sequence[Finding]) -> FileEntry:
    note = _Note(file, findings)
    return FileEntry(name, content=note.read(), optional=True, build=note)


def _leave_out(charts: Sequence[Chart], why: str) -> ChartSurvey:
    """Return one info about all charts of a tree, because none of them is rendered."""
    if not charts:
        return ChartSurvey()
    was = "was" if len(charts) == 1 else "were"
    message = f"{pluralize(len(charts), 'Helm chart')} {was} not checked, because {why}; run `jobgen doctor`"
    found = {each.metadata_file: Taken(CHART, why) for each in charts}
    return ChartSurvey([_make_note(message, charts)], found, tuple(each.folder for each in charts))
