"""Values that no template of a chart reads: they are misspelled, or do nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jobgen.features.helm.charts import VALUES, Chart, is_crd
from jobgen.features.helm.template_text import Path, list_mentions
from jobgen.features.helm.uses import Use, Values
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.finding import Finding, Related, Severity, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean
from jobgen.repo.files import File
from jobgen.yamlio.read import read

RULE = "unread-value"
_FOR_SUBCHARTS = ("global", "tags")
_MAX_FOUND = 50
_MAX_NAMED = 3
"""How many other places a finding names."""


class _Unread(NamedTuple):
    """A value that nothing reads, and whether it is null."""

    place: Location
    is_empty: bool


def find_unread(chart: Chart, uses: Sequence[Use], shared: Collection[str]) -> list[Finding]:
    """Return the values of a chart and of its uses that nothing reads; none if the text does not show it.

    The files that are `shared` have values for other charts as well.
    """
    reads = _list_reads(chart)
    if reads is None:
        return []
    below: dict[Path, set[str]] = {}
    for path in reads:
        for length, name in enumerate(path):
            below.setdefault(path[:length], set()).add(name)
    files = [Values(File(chart.join(VALUES), chart.files[VALUES]))] if VALUES in chart.files else []
    files += (each for use in uses for each in (*use.base, *use.values) if each.file.path not in shared)
    found: dict[Path, list[_Unread]] = {}
    for each in files:
        data = each.data
        if data is None:
            documents = read(each.file.content, each.file.path, traced=True).documents
            data = documents[0].data if documents else {}
        for key, value, path in islice(_list_unread(data, reads, below, ()), _MAX_FOUND):
            place = location_of(key) or Location(each.file.path)
            found.setdefault(path, []).append(_Unread(place, is_empty=value_of(value) is None))
    return [
        _report(path, sorted(below.get(path[:-1], ())), several) for path, several in islice(found.items(), _MAX_FOUND)
    ]


def _list_reads(chart: Chart) -> set[Path] | None:
    """Return the paths that the chart mentions; None if it passes all of its values on."""
    # A chart that is not there, or another one that gets these values, may read anything.
    if chart.missing or any(each.repository or each.name for each in chart.dependencies):
        return None
    texts = (content for path, content in chart.files.items() if not is_crd(path) and b"Values" in content)
    reads = {path for text in texts for path in list_mentions(text.decode("utf-8", "replace"))}
    return None if () in reads or not reads else reads


def _list_unread(
    fields: Mapping[str, Any], reads: set[Path], below: Mapping[Path, set[str]], above: Path
) -> Iterator[tuple[str, Any, Path]]:
    """Yield the keys and values that nothing reads; `below` has the next names of each path above one that is read."""
    for key, value in fields.items():
        path = (*above, str(key))
        if path in reads or (not above and path[0] in _FOR_SUBCHARTS):
            continue
        if path not in below:
            yield key, value, path
        elif isinstance(value, dict):
            yield from _list_unread(value, reads, below, path)


def _report(path: Path, known: list[str], unread: Sequence[_Unread]) -> Finding:
    """Report a value once, however many files have it; null sets nothing."""
    places = list(dict.fromkeys(each.place for each in unread if not each.is_empty) or (each.place for each in unread))
    files = len({place.file for place in places}) - 1
    also = f", also not in {pluralize(files, 'other file')}" if files else ""
    hint = did_you_mean(path[-1], known) or "; remove it, or read it in a template"
    message = f"`{'.'.join(path)}` is read by no template of the chart{also}{hint}"
    severity = Severity.INFO if all(each.is_empty for each in unread) else Severity.WARNING
    related = tuple(Related(place, "the same") for place in places[1 : _MAX_NAMED + 1])
    return Finding(RULE, "gitops", severity, message, places[0], related=related)
