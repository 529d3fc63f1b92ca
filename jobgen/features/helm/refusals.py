"""What helm says if it renders nothing of a chart: which value is missing, or which line of a template is wrong."""

from __future__ import annotations

from jobgen.features.helm.template_text import list_reads, read_template
from jobgen.features.helm.uses import Use
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

FAILS, NEEDS_VALUE, UNJUDGED = "chart-render-fails", "chart-value-missing", "unjudged-chart"

# Where templates fail, the outermost first; an error of a named template follows those of what uses it. Helm 4 writes
# the place alone, and what it executes in the next line.
_AT = lazy_pattern(
    r"(?:template: |parse error at \(|execution error at \(|(?<![\w:(])(?=[^\s:()]+:\d+:\d+ executing ))"
    r"([^\s:()]+):(\d+)(?::(\d+))?"
)
_YAML = lazy_pattern(r"YAML parse error on ([^\s:]+): (?:error converting YAML to JSON: )?(.*)")
_PARSES = ("parse error at (", "parse error (")
_UNDEFINED = lazy_pattern(
    r"(?:error calling include: template: )?no template \"([^\"]+)\"|template \"([^\"]+)\" not defined"
)
_REFUSED = lazy_pattern(
    r"execution error at \([^()]*\): (.*)",
)
_NIL = lazy_pattern(r"nil pointer evaluating [^.]*\.(\S+)")
_AT_PATH = lazy_pattern(r"at <([^<>]*)>: ")
_VALUES = lazy_pattern(r"\.Values((?:\.\w+)+)")
_MAX_MESSAGE = 300


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
    is_unreadable: bool = False
    """True if the template cannot be read, whatever the values are."""


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
        return Refusal(FAILS, f"what it writes is not YAML: {_shorten(written[2])}", written[1].partition("/")[2])
    if undefined:
        name = undefined[1] or undefined[2]
        return Refusal(UNJUDGED, f"no chart here defines the template `{name}`", path, line, column)
    if any(sign in flat for sign in _PARSES):
        reason = _shorten(flat.partition("): ")[2] or flat)
        return Refusal(FAILS, reason, path, line, column, is_unreadable=True)
    refused = _REFUSED.search(flat)
    expressions = _AT_PATH.findall(flat)
    reason = _AT_PATH.split(flat)[-1] if expressions else flat
    nil = _NIL.search(reason)
    if refused or nil:
        read = [match for each in reversed(expressions) for match in _VALUES.findall(each)]
        stated = _VALUES.findall(refused[1]) if refused else []
        found = (stated or read or [""])[0]
        value = f".Values{found}" if found else ""
        return Refusal(NEEDS_VALUE, _shorten(refused[1] if refused else reason), path, line, column, value)
    if not path:
        return Refusal(UNJUDGED, _shorten(flat))
    return Refusal(FAILS, _shorten(reason), path, line, column)


def _shorten(text: str) -> str:
    return text[:_MAX_MESSAGE].replace("`", "'").strip()


def report_refusal(use: Use, refusal: Refusal) -> Finding:
    """Return the finding about a chart of which helm rendered nothing."""
    chart = use.chart
    path = chart.sources.get(refusal.path, "")
    at = Location(chart.origins[path], refusal.line, refusal.column) if path else Location(chart.metadata_file)
    at = Location(at.file) if at.file.endswith((".tgz", ".tar.gz")) else at
    rest = "so nothing of the chart was checked"
    how = _name_values(use)
    if refusal.rule == NEEDS_VALUE:
        value = refusal.value or _find_read(use, path, refusal.line)
        what = f"`{value}` has no value" if value else "a value is missing"
        # What the chart's own values lack is the same fault with each file that does not set it.
        how = "in the default values" if use.by is None and not use.is_definite else how
        severity = Severity.ERROR if use.is_definite else Severity.INFO
        return _report(NEEDS_VALUE, severity, f"{what} {how}, {rest}: {refusal.reason}", at)
    if refusal.rule == FAILS:
        severity = Severity.ERROR if use.is_definite or refusal.is_unreadable else Severity.WARNING
        return _report(FAILS, severity, f"helm cannot render this template {how}, {rest}: {refusal.reason}", at)
    return _report(UNJUDGED, Severity.WARNING, f"helm does not render this chart {how}: {refusal.reason}", at)


def _find_read(use: Use, path: str, line: int) -> str:
    """Return the value that a line of a template reads, if it reads only one."""
    template = read_template(use.chart.templates.get(path, ""))
    reads = list_reads(template).get(line, []) if template else []
    return f".Values.{'.'.join(reads[0])}" if len(reads) == 1 else ""


def _name_values(use: Use) -> str:
    files = [f"`{each.file.path}`" for each in use.values]
    if use.options:
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
