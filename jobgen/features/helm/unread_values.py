"""Values that no template of a chart reads: they are misspelled, or do nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jobgen.features.helm.charts import VALUES, Chart, is_crd, is_template
from jobgen.features.helm.subcharts import Subchart, list_charts, list_subcharts
from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY, DEFINED, Path, list_mentions
from jobgen.features.helm.uses import Use, Values
from jobgen.model.data import Location, TracedKey, location_of, text_of, value_of
from jobgen.model.finding import Finding, Related, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant, may_mean
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File

RULE = "unread-value"
_MISNAMED = "values.yml"
_FOR_SUBCHARTS = ("global", "tags")
_MAX_FOUND = 50
_MAX_KEYS = 500
_NEAR = 2
"""By how many letters names that are meant for each other differ in length, without separators."""
_WORD = lazy_pattern(r"[.\"]([a-z]\w*)")
_INCLUDED = lazy_pattern(r"\b(?:include|template)\s+[\"`]([^\"`\n]+)[\"`]")
_MAX_NAMED = 3
"""How many other places a finding names."""


# What charts name the settings of pods and workloads: who sets one expects the objects to change.
_SETTINGS = frozenset(
    """affinity args autoscaling backoffLimit command completions containerSecurityContext env envFrom extraArgs
    extraEnv gpus hostNetwork image imagePullPolicy imagePullSecrets ingress initContainers livenessProbe nodeSelector
    parallelism persistence podAnnotations podLabels podSecurityContext ports priorityClassName queueName
    readinessProbe replicaCount replicas resources restartPolicy securityContext service serviceAccount
    serviceAccountName startupProbe terminationGracePeriodSeconds tolerations topologySpreadConstraints
    ttlSecondsAfterFinished volumeMounts volumes""".split()
)


class _Unread(NamedTuple):
    """A value that nothing reads, whether it sets nothing, and the names beside it."""

    place: Location
    is_null: bool
    is_empty: bool
    beside: frozenset[str]
    written: str = ""
    """The key as it is written, if YAML reads it as something else."""


def find_unread(chart: Chart, uses: Sequence[Use], shared: Collection[str]) -> list[Finding]:
    """Return the values of a chart and of its uses that nothing reads; none if the text does not show it.

    The files that are `shared` have values for other charts as well.
    """
    misnamed = chart.join(_MISNAMED)
    if VALUES not in chart.files and chart.tree.exists(misnamed) and not _uses_file(uses, misnamed):
        message = f"helm reads `{VALUES}` and no `{_MISNAMED}`; rename it"
        return [Finding(RULE, "gitops", Severity.WARNING, message, Location(misnamed))]
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
        for key, holder, path in islice(_list_unread(each.read() or {}, reads, below, ()), _MAX_FOUND):
            place, value = location_of(key) or Location(each.file.path), value_of(holder[key])
            beside, is_empty = frozenset(map(str, holder)), value in (None, "", False, {}, [])
            unread = _Unread(place, value is None, is_empty, beside, key.written if type(key) is TracedKey else "")
            found.setdefault(path, []).append(unread)
    if chart.missing and _includes_elsewhere(chart):
        # What a template of another place gets, it may read whatever its name is.
        found = {
            path: each
            for path, each in found.items()
            if find_meant(path[-1], _list_free(below.get(path[:-1], ()), each))
        }
    reported = [
        _report(path, sorted(below.get(path[:-1], ())), several) for path, several in islice(found.items(), _MAX_FOUND)
    ]
    return [*reported, *_find_misspelled(chart, files, frozenset(found))]


def _includes_elsewhere(chart: Chart) -> bool:
    """Return True if a template includes one that is not here, which may read any value."""
    texts = [content.decode("utf-8", "replace") for path, content in chart.files.items() if is_template(path)]
    defined = {name for text in texts for name in DEFINED.findall(text)}
    return any(name not in defined for text in texts for name in _INCLUDED.findall(text))


def _uses_file(uses: Sequence[Use], path: str) -> bool:
    return any(each.file.path == path for use in uses for each in (*use.base, *use.values))


def _find_misspelled(chart: Chart, files: Sequence[Values], known: Collection[Path]) -> Iterator[Finding]:
    """Yield the keys in what loops and named templates get that these do not read, but another one like it."""
    if not _may_be_misspelled(chart, files):
        return
    # Imported late: the names of most values are right.
    from jobgen.features.helm.value_reads import read_values

    reads = read_values(chart)
    reads.follow_all()
    if not reads.is_exact:
        return
    whole = {each.name for each in reads.whole}
    below: dict[Path, set[str]] = {}
    for path in {each.name for each in (*reads.whole, *reads.parts)}:
        for length, name in enumerate(path):
            below.setdefault(path[:length], set()).add(name)
    found: dict[Path, list[_Unread]] = {}
    for each in files:
        for key, holder, path in islice(_list_misspelled(each.read() or {}, whole, below, ()), _MAX_FOUND):
            place = location_of(key) or Location(each.file.path)
            unread = _Unread(place, is_null=False, is_empty=False, beside=frozenset(map(str, holder)))
            if not any(path[: len(other)] == other for other in known):
                found.setdefault(path, []).append(unread)
    for path, several in found.items():
        if find_meant(path[-1], _list_free(below[path[:-1]], several)):
            yield _report(path, sorted(below[path[:-1]]), several)


def _may_be_misspelled(chart: Chart, files: Sequence[Values]) -> bool:
    """Return True if a key of values is no word of a template, and is like one."""
    texts = (content for path, content in chart.files.items() if not is_crd(path) and b"Values" in content)
    words = {word for text in texts for word in _WORD.findall(text.decode("utf-8", "replace"))}
    unknown = {key for each in files for key in _list_keys(each.read())} - words
    near = ((key, word) for key in islice(unknown, _MAX_KEYS) for word in words if abs(len(key) - len(word)) < _NEAR)
    return any(may_mean(key, word) for key, word in near)


def _list_keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from map(str, node)
    if isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _list_keys(child)


def _list_misspelled(
    node: Any, whole: Collection[Path], below: Mapping[Path, set[str]], path: Path
) -> Iterator[tuple[str, Mapping[str, Any], Path]]:
    """Yield the keys that nothing reads, with the mappings that hold them; `[]` stands for any item."""
    if path in whole or path not in below:
        return
    names = below[path]
    if isinstance(node, list):
        for item in node if ANY_ITEM in names else ():
            yield from _list_misspelled(item, whole, below, (*path, ANY_ITEM))
    elif isinstance(node, dict):
        for key, value in node.items():
            for name in {str(key), ANY_ITEM} & names:
                yield from _list_misspelled(value, whole, below, (*path, name))
            if not names & {str(key), ANY_ITEM, ANY_KEY}:
                yield key, node, (*path, str(key))


def _list_free(known: Iterable[str], unread: Sequence[_Unread]) -> list[str]:
    """Return the names that are not set beside a value: one that is set is not the one that was meant."""
    return sorted(name for name in known if not any(name in each.beside for each in unread))


def _list_reads(chart: Chart) -> set[Path] | None:
    """Return the paths that the chart and the charts in it mention; None if one of them may read anything."""
    inner = list(list_charts(chart.files)) if any(path.startswith("charts/") for path in chart.files) else [("", ())]
    if any(each.entry.get("import-values") for folder, _ in inner for each in list_subcharts(chart.files, folder)):
        return None
    # A named template of any chart may be included with the values of any other.
    texts = {
        path: set(list_mentions(content.decode("utf-8", "replace")))
        for path, content in chart.files.items()
        if not is_crd(path) and b"Values" in content
    }
    named = [mentions for path, mentions in texts.items() if posixpath.basename(path).startswith("_")]
    shared = set[Path]().union(*named)
    reads: set[Path] = set()
    for folder, keys in inner:
        own = [found for path, found in texts.items() if path.startswith(folder) and not _is_deeper(path, folder)]
        mentions = shared.union(*own)
        if () in mentions and not keys:
            return None
        reads |= {(*keys, *path) for path in mentions}
        for each in list_subcharts(chart.files, folder):
            conditions = text_of(each.entry.get("condition")).split(",")
            reads |= {(*keys, *path.strip().split(".")) for path in conditions if path.strip()}
            reads |= {(*keys, each.key)} if not _has_values(each, chart) else set()
    # A chart that is not there may read anything of its values.
    reads |= {(each.alias or each.name,) for each in chart.missing}
    return reads or None


def _is_deeper(path: str, folder: str) -> bool:
    return path[len(folder) :].startswith("charts/")


def _has_values(subchart: Subchart, chart: Chart) -> bool:
    """Return True if a template of a chart in another one reads a value, so that it is known which ones it has."""
    own = (path for path in chart.files if path.startswith(subchart.folder) and not is_crd(path))
    return any(b"Values" in chart.files[path] for path in own)


def _list_unread(
    fields: Mapping[str, Any], reads: set[Path], below: Mapping[Path, set[str]], above: Path
) -> Iterator[tuple[str, Mapping[str, Any], Path]]:
    """Yield the keys that nothing reads, with the mappings that hold them.

    `below` has the next names of each path above one that is read.
    """
    for key, value in fields.items():
        path = (*above, str(key))
        if path in reads or path[-1] in _FOR_SUBCHARTS:
            continue
        if path not in below:
            yield key, fields, path
        elif isinstance(value, dict):
            yield from _list_unread(value, reads, below, path)


def _report(path: Path, known: list[str], unread: Sequence[_Unread]) -> Finding:
    """Report a value once, however many files have it; null sets nothing.

    It is a warning if it is probably misspelled, or sets what every chart should let one set. Anything else may be a
    note of the author, or a leftover.
    """
    places = list(dict.fromkeys(each.place for each in unread if not each.is_null) or (each.place for each in unread))
    files = len({place.file for place in places}) - 1
    also = f", also not in {pluralize(files, 'other file')}" if files else ""
    free = _list_free(known, unread)
    # `subnetworks[]` is how some write that a value is a list.
    name, bracket, _ = path[-1].partition("[")
    meant = name if bracket and name in free else find_meant(path[-1], free)
    hint = f"; did you mean `{meant}`?" if meant else "; remove it, or read it in a template"
    if not meant and len(free) == 1 and path[:-1] and ANY_ITEM not in path and not bracket:
        # `version` beside no `tag`.
        other = ".".join((*path[:-1], *free))
        hint = f"; rename it if it is meant for `{other}`, which the templates read and nothing sets, or remove it"
    written = unread[0].written
    if written:
        hint = f"; YAML reads `{written}` as `{path[-1]}`, so quote it"
    message = f"`{'.'.join(path).replace(f'.{ANY_ITEM}', ANY_ITEM)}` is read by no template of the chart{also}{hint}"
    is_setting = path[-1] in _SETTINGS and not all(each.is_empty for each in unread)
    is_faulty = bool(meant and not all(each.is_null for each in unread)) or is_setting
    severity = Severity.WARNING if is_faulty or written else Severity.INFO
    related = tuple(Related(place, "the same") for place in places[1 : _MAX_NAMED + 1])
    return Finding(RULE, "gitops", severity, message, places[0], related=related)
