"""What helm says if it renders nothing of a chart: which value is missing, or which line of a template is wrong."""

from __future__ import annotations

import posixpath

from jobgen.features.helm.charts import METADATA, VALUES, is_archive
from jobgen.features.helm.template_text import ANY_ITEM, ANY_KEY, DEFINED, Path, list_mentions
from jobgen.features.helm.uses import Use
from jobgen.features.helm.value_reads import Place, Read, read_values
from jobgen.features.helm.value_tree import ValueTree
from jobgen.model.builtin_rules import UNREADABLE_RULES
from jobgen.model.data import Location, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File
from jobgen.yamlio.read import read

FAILS, NEEDS_VALUE, UNJUDGED = "chart-render-fails", "chart-value-missing", "unjudged-chart"

# Where templates fail, the outermost first; an error of a named template follows those of what uses it. Helm 4 writes
# the place alone, and what it executes in the next line.
_AT = lazy_pattern(
    r"(?:template: |parse error at \(|execution error at \(|(?<![\w:(])(?=[^\s:()]+:\d+:\d+ executing ))"
    r"([^\s:()]+):(\d+)(?::(\d+))?"
)
_YAML = lazy_pattern(r"YAML parse error on ([^\s:]+): (?:error converting YAML to JSON: )?(.*)")
_YAML_LINE = lazy_pattern(r"yaml: line (\d{1,9}): ?")
_PARSES = ("parse error at (", "parse error (")
_UNDEFINED = lazy_pattern(
    r"(?:error calling include: template: )?no template \"([^\"]+)\"|template \"([^\"]+)\" not defined"
)
_REFUSED = lazy_pattern(
    r"execution error at \([^()]*\): (.*)",
)
_NIL = lazy_pattern(r"nil pointer evaluating [^.]*\.(\S+)")
_CONTEXT = lazy_pattern(r"\.(?:Chart|Release|Capabilities|Template|Files)\b")
_FIRST = lazy_pattern(r"\$?\.(\w+)\.")
_NAMES = ("Capabilities", "Chart", "Files", "Release", "Subcharts", "Template", "Values")
"""What the context of a chart has."""
_AT_PATH = lazy_pattern(r"at <([^<>]*)>: ")
_CALLS = lazy_pattern(r"\A(?:error calling (?:include|tpl): )+")
_VALUES = lazy_pattern(r"\.Values((?:\.\w+)+)")
_MAX_MESSAGE = 300


# A values file that a program fills in is none of helm.
_UNREAD = UNREADABLE_RULES - {"template-text"}


class Refusal(NamedTuple):
    """Why helm rendered nothing."""

    rule: str
    reason: str
    path: str = ""
    """The file of the chart, as helm names it."""
    line: int = 1
    column: int = 1
    value: str = ""
    """The value that is missing."""
    is_nil: bool = False
    """True if what should have the value has none itself."""
    undefined: str = ""
    """The named template that no chart defines."""
    is_unreadable: bool = False
    """True if the template cannot be read, whatever the values are."""
    context: str = ""
    """The first name of the expression whose part is nil, such as `Value`: of the context, unless `.` is another."""
    is_not_yaml: bool = False
    """True if helm cannot read what the template writes; `line` is then a line of this, or 0."""


def read_refusal(message: str) -> Refusal:
    """Read an error of `helm template`."""
    text = message.removeprefix("Error: ").split("\n\nUse --debug")[0].strip()
    flat = " ".join(text.split())
    undefined = _UNDEFINED.search(flat)
    places = _AT.findall(flat)
    path, line, column = (places[-1][0], int(places[-1][1]), int(places[-1][2] or 0) + 1) if places else ("", 1, 1)
    path = path.partition("/")[2]
    written = _YAML.search(flat)
    if written:
        reason, number = f"what it writes is not YAML: {_shorten(written[2])}", _YAML_LINE.match(written[2])
        line = int(number[1]) if number else 0
        return Refusal(FAILS, reason, written[1].partition("/")[2], line, is_not_yaml=True)
    if undefined:
        name = undefined[1] or undefined[2]
        reason = f"no chart here defines the template `{name}`"
        return Refusal(UNJUDGED, reason, path, line, column, undefined=name)
    if any(sign in flat for sign in _PARSES):
        reason = _shorten(flat.partition("): ")[2] or flat)
        return Refusal(FAILS, reason, path, line, column, is_unreadable=True)
    refused = _REFUSED.search(flat)
    expressions = _AT_PATH.findall(flat)
    nowhere = _NIL.search(flat) if not refused and expressions else None
    if nowhere and (_CONTEXT.match(expressions[-1]) or nowhere[1] == "Values"):
        # No value is missing: a loop, or what includes a named template, passes another context.
        path, line, column = places[0][0].partition("/")[2], int(places[0][1]), int(places[0][2] or 0) + 1
        shown = _shorten(expressions[-1])
        what = f"`{shown}` is read where `.` is not the context of a chart; pass it on, or write `$` before it"
        return Refusal(FAILS, what, path, line, column)
    reason = _CALLS.sub("", _AT_PATH.split(flat)[-1]) if expressions else flat
    nil = _NIL.search(reason)
    if refused or nil:
        read = [match for each in reversed(expressions) for match in _VALUES.findall(each)]
        stated = _VALUES.findall(refused[1]) if refused else []
        found = (stated or read or [""])[0]
        value = f".Values{found}" if found else ""
        text = _shorten(refused[1] if refused else reason)
        first = _FIRST.match(expressions[-1]) if nil and not refused and expressions else None
        context = first[1] if first else ""
        return Refusal(NEEDS_VALUE, text, path, line, column, value, is_nil=not refused, context=context)
    if not path:
        return Refusal(UNJUDGED, _shorten(flat))
    return Refusal(FAILS, _shorten(reason), path, line, column)


def _shorten(text: str) -> str:
    return text[:_MAX_MESSAGE].replace("`", "'").strip()


def report_refusal(use: Use, refusal: Refusal, written: Place | None = None) -> Finding:
    """Return the finding about a chart of which helm rendered nothing.

    `written` is the line of a template that writes what is not YAML, if it is known.
    """
    chart = use.chart
    path = chart.sources.get(refusal.path, "")
    if refusal.rule == UNJUDGED and not path:
        return _report_unplaced(use, refusal)
    is_misindented = False
    if refusal.is_not_yaml:
        # Imported late: most templates write YAML.
        from jobgen.features.helm.misindented import find_fault, find_fault_at

        text = chart.templates.get(path, "")
        fault = find_fault(text, refusal.line)
        if written is not None:
            path = written[0]
            refusal = refusal._replace(reason=_YAML_LINE.sub("", refusal.reason))
            fault = fault if fault.advice else find_fault_at(chart.templates.get(path, ""), written[1])
        advice = f"; {fault.advice}" if fault.advice else ""
        is_misindented = bool(fault.advice)
        refusal = refusal._replace(line=fault.line, reason=f"{refusal.reason}{advice}")
    at = Location(chart.origins[path], refusal.line, refusal.column) if path else Location(chart.metadata_file)
    if is_archive(at.file):
        where = f" (line {refusal.line} of `{path.partition('/')[2]}` in the archive)"
        at, refusal = Location(at.file), refusal._replace(reason=f"{refusal.reason}{where}")
    if refusal.undefined:
        return _report_undefined(use, refusal, at)
    if refusal.rule == NEEDS_VALUE:
        meant = find_meant(refusal.context, _NAMES) if refusal.context and refusal.context not in _NAMES else ""
        if meant and read_values(chart).has_context((path, refusal.line)):
            message = f"`.{refusal.context}` is nothing that templates get, so helm renders nothing of the chart"
            return _report(FAILS, Severity.ERROR, f"{message}; did you mean `.{meant}`?", at)
        return _report_missing(use, refusal, path, at)
    return _report_failure(use, refusal, path, at, is_misindented=is_misindented)


def _report_failure(use: Use, refusal: Refusal, path: str, at: Location, *, is_misindented: bool) -> Finding:
    how, rest = _name_values(use), "so nothing of the chart was checked"
    if refusal.is_unreadable:
        # It is one fault, whatever the values are.
        return _report(FAILS, Severity.ERROR, f"helm cannot read this template, {rest}: {refusal.reason}", at)
    if refusal.rule == FAILS:
        certain = use.is_definite or is_misindented or _is_complete(use, path)
        severity = Severity.ERROR if certain else Severity.WARNING
        if refusal.is_not_yaml:
            rest = "so each install with these values fails, and nothing of the chart was checked"
        return _report(FAILS, severity, f"helm cannot render this template {how}, {rest}: {refusal.reason}", at)
    return _report(UNJUDGED, Severity.WARNING, f"helm does not render this chart {how}: {refusal.reason}", at)


def _report_unplaced(use: Use, refusal: Refusal) -> Finding:
    """Report what is the fault of no template: of a file that cannot be read, or of what installs the chart."""
    unread = _find_unread(use)
    if unread is not None:
        message = f"helm cannot read this file, so nothing of the chart was checked: {unread.message}"
        return _report(FAILS, Severity.ERROR, message, unread.location)
    at = use.by or Location(use.chart.metadata_file)
    if refusal.undefined:
        return _report_undefined(use, refusal, at)
    message = f"helm does not render this chart {_name_values(use)}: {refusal.reason}"
    return _report(UNJUDGED, Severity.WARNING, message, at)


def _find_unread(use: Use) -> Finding | None:
    """Return why a file cannot be read that says what the chart is, or which values it has; None if all can be."""
    chart = use.chart
    files = [each.file for each in (*use.base, *use.values) if each.data is None]
    for path, content in chart.files.items():
        if posixpath.basename(path) in (METADATA, VALUES) and not is_archive(chart.origins[path]):
            files.append(File(chart.origins[path], content))
    every = (found for file in files for found in read(file.content, file.path).findings)
    return next((found for found in every if found.rule in _UNREAD), None)


def _report_undefined(use: Use, refusal: Refusal, at: Location) -> Finding:
    """Report a named template that no chart defines: one with a similar name was meant."""
    defined = {name for text in use.chart.templates.values() for name in DEFINED.findall(text)}
    meant = find_meant(refusal.undefined, sorted(defined))
    hint = f"; did you mean `{meant}`?" if meant else ""
    if use.is_definite or meant:
        message = f"helm cannot render this template {_name_values(use)}: {refusal.reason}{hint}"
        return _report(FAILS, Severity.ERROR, message, at)
    # A chart around this one may define it.
    return _report(
        UNJUDGED, Severity.WARNING, f"helm does not render this chart {_name_values(use)}: {refusal.reason}", at
    )


def _report_missing(use: Use, refusal: Refusal, path: str, at: Location) -> Finding:
    """Report a value that a template needs; one with a similar name that no template reads was meant."""
    value = refusal.value or _find_read(use, path, refusal.line)
    steps = tuple(value.removeprefix(".Values.").split(".")) if value and refusal.is_nil else ()
    gap, meant = _find_gap(use, path, steps)
    value = f".Values.{'.'.join(gap)}" if meant else value
    what = f"`{value}` has no value" if value else "a value is missing"
    # What the chart's own values lack is the same fault with each file that does not set it.
    how = "in the default values" if use.by is None and not use.is_definite else _name_values(use)
    severity = Severity.ERROR if use.is_definite or meant else Severity.INFO
    hint = f"; did you mean `{meant}`?" if meant else ""
    message = f"{what} {how}, so nothing of the chart was checked: {refusal.reason}{hint}"
    return _report(NEEDS_VALUE, severity, message, at)


def _find_gap(use: Use, path: str, steps: Path) -> tuple[Path, str]:
    """Return the outermost part of the path of a value that is not set, and the name beside it that was meant."""
    if not steps or path.startswith("charts/"):
        return steps, ""
    values = ValueTree(use)
    length = next((length for length in range(1, len(steps)) if not values.find(steps[:length])), len(steps))
    missing, above = steps[:length], steps[: length - 1]
    rest = steps[length:]
    beside = {str(key) for holder in values.find(above) if isinstance(holder, dict) for key in holder}
    texts = [content.decode("utf-8", "replace") for content in use.chart.files.values() if b"Values" in content]
    reads = {each for text in texts for each in list_mentions(text)}
    meant = find_meant(missing[-1], sorted(beside))
    given = (*above, meant, *rest)
    is_unread = not any(each == given[: len(each)] for each in reads) and bool(values.find(given))
    return missing, meant if is_unread else ""


def _is_complete(use: Use, path: str) -> bool:
    """Return True if a template fails though all values that it reads are there: nobody has to fill them in."""
    values = ValueTree(use)
    reads = read_values(use.chart).find_in_file(path) if path and not use.options else ()
    return bool(path) and not use.options and all(each.has_default or _is_set(values, each) for each in reads)


def _is_set(values: ValueTree, read: Read) -> bool:
    items = [at for at, step in enumerate(read.path) if step in (ANY_ITEM, ANY_KEY)]
    read = read._replace(path=read.path[: items[0]]) if items else read
    nodes = [value_of(node) for node in values.find_read(read)]
    return bool(nodes) and all(node not in (None, "", {}, []) for node in nodes)


def _find_read(use: Use, path: str, line: int) -> str:
    """Return the value that a line of a template reads, if it reads only one."""
    reads = {each.name for each in read_values(use.chart).find_all((path, line)) if each.is_direct}
    return f".Values.{'.'.join(reads.pop())}" if len(reads) == 1 else ""


def _name_values(use: Use) -> str:
    files = dict.fromkeys(f"`{each.file.path}`" for each in use.values)
    if use.options and not use.sources:
        return "with the options of a command in its documentation"
    return f"with {', '.join(files)}" if files else "in the default values" if use.by is None else "in this release"


def report_stopped(use: Use) -> Finding:
    """Return the finding about a chart that needs too much."""
    message = "helm needed too much time, memory or output for this chart, so nothing of it was checked; simplify it"
    return _report(UNJUDGED, Severity.WARNING, message, Location(use.chart.metadata_file))


def report_fault(use: Use) -> Finding:
    """Return the finding about a chart whose files cannot all be read."""
    fault = use.chart.fault
    assert fault is not None
    message = f"{fault.message}; nothing of the chart `{use.chart.name}` was checked"
    return _report(UNJUDGED, Severity.WARNING, message, Location(fault.file))


def _report(rule: str, severity: Severity, message: str, at: Location) -> Finding:
    return Finding(rule, "gitops" if rule == FAILS else "meta", severity, message, at)
