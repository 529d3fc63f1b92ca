"""Values that are set when a chart is installed: a fault of what stands here is not certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY, Path
from jobgen.features.helm.uses import Use, split_path
from jobgen.features.helm.value_reads import Place, Read, read_values
from jobgen.features.helm.value_tree import ValueTree
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Finding, Related, Severity
from jobgen.recognize.survey import RULE

_MAX_RELATED = 5
_REFERENCE = "unknown-reference"


def settle_open_values(use: Use, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of a use, with one info instead of those about values without a value of their own."""
    values = _OpenValues(use)
    kept: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    for finding in findings:
        name = values.find(finding)
        if name:
            left.append((finding, name))
        else:
            kept.append(finding)
    return [*kept, _report(left)] if left else kept


class _OpenValues:
    """The values of a use that are empty, or that a command sets to what is not known here."""

    def __init__(self, use: Use) -> None:
        self.use = use
        given = (argument.partition("=")[0] for argument in use.options[1::2])
        self._given = {_generalize(each) for each in given}
        self._set = {_generalize(each) for each in use.open}

    @cached_property
    def _values(self) -> ValueTree:
        return ValueTree(self.use)

    @cached_property
    def _templates(self) -> dict[str, str]:
        chart = self.use.chart
        return {chart.origins[path]: path for path in chart.templates}

    def find(self, finding: Finding) -> str:
        """Return the value without a value of its own that a finding is about; empty if there is none."""
        path = self._templates.get(finding.location.file)
        if path is None or finding.object is None:
            return ""
        found = self._find_at((path, finding.location.line))
        if not found and finding.rule == _REFERENCE:
            found = next(filter(None, map(self._find_at, self._list_entries(finding))), "")
        return found

    def _list_entries(self, finding: Finding) -> Iterator[Place]:
        """Yield the lines of the object that a finding refers to, which write an entry that it lacks."""
        for each in finding.related:
            path = self._templates.get(each.location.file, "")
            for number, line in enumerate(self.use.chart.templates.get(path, "").split("\n"), 1):
                if line.partition(":")[0].strip(" \"'") in finding.values:
                    yield path, number

    def _find_at(self, place: Place) -> str:
        reads = sorted(read_values(self.use.chart).find_all(place))
        is_set = (each for each in reads for other in self._set if _is_part(each.name, other))
        found = next(is_set, None)
        direct = [each for each in reads if each.is_direct and ANY_KEY not in each.path]
        empty = [each for each in direct if self._is_empty(each)]
        if found is None and empty:
            # What another value follows is written all the same, if it is not the one that the text lacks.
            found = next((each for each in empty if not each.has_default), empty[0] if empty == direct else None)
        return "" if found is None else f".Values.{'.'.join(found.name).replace(f'.{ANY_ITEM}', ANY_ITEM)}"

    def _is_empty(self, read: Read) -> bool:
        if any(_is_part(read.name, each) for each in self._given):
            return False
        return all(_is_blank(node) for node in self._values.find_read(read))


def _generalize(text: str) -> Path:
    """Return the path that `--set` names, for any item of a list."""
    return tuple(ANY_ITEM if step.isdecimal() else step for step in split_path(text))


def _is_blank(node: Node) -> bool:
    value = value_of(node)
    return value is None or value == "" or (isinstance(node, (dict, list)) and not node)


def _is_part(path: Path, other: Path) -> bool:
    """Return True if one of two paths begins with the other."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


def _report(left: Sequence[tuple[Finding, str]]) -> Finding:
    """Return the info about values that were not checked."""
    ordered = sorted(left, key=lambda pair: pair[0].location)
    names = list(dict.fromkeys(name for _, name in ordered))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    verb = "is" if len(names) == 1 else "are"
    message = f"`{names[0]}`{more} {verb} set when the chart is installed, so these values were not checked"
    first = ordered[0][0]
    related = dict.fromkeys(
        Related(each.location, f"`{name}`") for each, name in ordered if each.location != first.location
    )
    found = Finding(RULE, "meta", Severity.INFO, message, first.location, object=first.object, env=first.env)
    return found._replace(related=tuple(related)[:_MAX_RELATED])
