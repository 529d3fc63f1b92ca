"""The entries of a report: the same finding in several environments is one entry, with one fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from jobgen.model.builtin_rules import original_rule_name
from jobgen.model.finding import Finding, Fix, Identity, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports import Report, Suppressed
from jobgen.reports.escape import visible

_LAYERS = ("overlays/", "teams/")
"""Folders of files whose values apply to several jobs."""
_MAX_NAMED = 3
RANK = {severity: rank for rank, severity in enumerate(Severity)}


class ReportEntry(NamedTuple):
    """Findings with the same message at the same location."""

    finding: Finding
    """The first of them."""
    environments: tuple[str, ...] = ()
    objects: tuple[Identity, ...] = ()
    pointers: tuple[str, ...] = ()
    by: str = ""
    """`comment` or `baseline` if it is suppressed; else empty."""
    reason: str = ""

    @property
    def message(self) -> str:
        """The message, with the objects and environments it applies to."""
        within = f"in {', '.join(self.environments)}" if self.environments else ""
        where = " ".join(filter(None, (self._name_objects(), within)))
        return f"{self.finding.message} ({where})" if where else self.finding.message

    def _name_objects(self) -> str:
        """The objects, if there are several, or if the location does not show which one it is."""
        subjects = self.subjects
        if self.finding.cause == "names objects":
            return ""
        if self.finding.location.file.startswith(_LAYERS):
            few = subjects[:_MAX_NAMED] if len(subjects) > _MAX_NAMED + 1 else subjects
            return ", ".join(few) + (f" and {len(subjects) - len(few)} others" if len(few) < len(subjects) else "")
        return f"{len(subjects)} objects" if len(subjects) > 1 else ""

    @property
    def subjects(self) -> list[str]:
        """The affected objects, each once, regardless of the namespace that an environment sets."""
        if not self.environments:  # then the namespace is the object's own
            return [str(one) for one in self.objects]
        return list(dict.fromkeys(str(one._replace(namespace="")) for one in self.objects))

    @property
    def suppression_note(self) -> str:
        """What suppresses it, and why."""
        return f"suppressed by {self.by}: {self.reason or 'no reason given'}"


def entries(report: Report) -> list[ReportEntry]:
    """Return the findings that are not suppressed, by location."""
    return _merge(Suppressed(finding, "", "") for finding in report.findings)


def group_findings(findings: Iterable[Finding]) -> list[ReportEntry]:
    """Return findings as entries, in the order of the first finding of each."""
    return list(map(_make_entry, _group(Suppressed(finding, "", "") for finding in findings)))


def number_entries(findings: Iterable[Finding]) -> list[int]:
    """Return the number of the entry of each finding, in the order of the first finding of each."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(_find_key(Suppressed(finding, "", "")), len(numbers)) for finding in findings]


def suppressed_entries(report: Report) -> list[ReportEntry]:
    """Return the suppressed findings, by location."""
    return _merge(report.suppressed)


def shown_entries(report: Report) -> list[ReportEntry]:
    """Return all entries to show, by location; suppressed ones only if the report shows them."""
    if not report.show_suppressed:
        return entries(report)
    return sorted([*entries(report), *suppressed_entries(report)], key=lambda entry: entry.finding.location)


def worst_first(several: Sequence[ReportEntry]) -> list[ReportEntry]:
    """Sort errors before warnings before infos, each by location."""
    return sorted(several, key=lambda entry: RANK[entry.finding.severity])


def count_entries(report: Report) -> Counter[tuple[str, Severity]]:
    """Return how many entries that are not suppressed each rule has at each severity."""
    groups = _group(Suppressed(finding, "", "") for finding in report.findings)
    return Counter((group[0].finding.rule, group[0].finding.severity) for group in groups)


def count_suppressed_entries(report: Report) -> Counter[str]:
    """Return how many suppressed entries each rule has."""
    return Counter(group[0].finding.rule for group in _group(report.suppressed))


def _merge(several: Iterable[Suppressed]) -> list[ReportEntry]:
    def rank(entry: ReportEntry) -> tuple[object, ...]:
        finding = entry.finding
        related: tuple[object, ...] = ()
        if finding.related:
            related = tuple(chain.from_iterable((*location, message) for location, message in finding.related))
        return finding.location, RANK[finding.severity], *finding.fault, related, entry.by, entry.reason

    return sorted(map(_make_entry, _group(several)), key=rank)


def _group(several: Iterable[Suppressed]) -> Collection[list[Suppressed]]:
    """Group findings that differ only in environment, object or pointer: one edit fixes them."""
    groups: dict[object, list[Suppressed]] = {}
    for one in several:
        groups.setdefault(_find_key(one), []).append(one)
    return groups.values()


def _find_key(one: Suppressed) -> object:
    finding = one.finding
    return finding.location, finding.severity, finding.fault, finding.related, one.by, one.reason


def _make_entry(group: list[Suppressed]) -> ReportEntry:
    findings = [one.finding for one in group]
    if len(findings) > 1:
        findings.sort(key=lambda one: (one.env, one.object or (), one.pointer, one.category, not one.fixable))
    return ReportEntry(
        findings[0],
        tuple(dict.fromkeys(found.env for found in findings if found.env)),
        tuple(dict.fromkeys(found.object for found in findings if found.object)),
        tuple(dict.fromkeys(found.pointer for found in findings if found.pointer)),
        group[0].by,
        group[0].reason,
    )


def fingerprints(several: Sequence[ReportEntry]) -> list[str]:
    """Return a unique fingerprint for each entry that stays the same when lines move and messages are reworded.

    It is made of the rule's first name, the object without what an environment changes of it, or else the file and the
    values at fault, and the pointer; entries that share these are numbered in order.
    """
    # Imported late: a lint without findings needs no fingerprint.
    from hashlib import sha256

    seen: Counter[str] = Counter()
    found = []
    for entry in several:
        finding, objects = entry.finding, entry.objects
        same = finding._replace(object=objects[0]).identity if objects else finding.identity
        subject: tuple[str, ...]
        if len({(one.api_version.rpartition("/")[0], one.kind, one.name) for one in objects}) == 1:
            # An overlay may set the namespace, so it distinguishes objects only where there are no overlays.
            namespace = "" if entry.environments else objects[0].namespace
            subject = ("object", *same.kind, same.name, namespace, same.path)
        else:
            subject = ("file", finding.location.file, *entry.pointers[:1], *same.values)
        text = "\0".join((original_rule_name(same.rule), *subject))
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        seen[digest] += 1
        found.append(f"{digest}:{seen[digest]}")
    return found


# Findings as plain lines, and the totals of a lint.


def format_findings(findings: Iterable[Finding]) -> str:
    """Return one line for each finding, with all its environments, followed by its related locations."""
    lines: list[str] = []
    for entry in group_findings(findings):
        finding = entry.finding
        lines.append(f"{finding.location}: {finding.severity.value}: {entry.message} [{finding.rule}]")
        lines += [f"    {related.location}: {related.message}" for related in finding.related]
    return "".join(f"{visible(line)}\n" for line in lines)


def count_severities(findings: Iterable[Finding]) -> str:
    """Return `2 errors, 1 warning`; empty without findings. One in several environments counts once, as in a lint."""
    return _format_counts(Counter(entry.finding.severity for entry in group_findings(findings)))


def _format_counts(counts: Counter[Severity]) -> str:
    return ", ".join(pluralize(counts[severity], severity.value) for severity in Severity if counts[severity])


def summarize(report: Report) -> str:
    """Return the last line of a lint, without a newline: what was checked and how much was found."""
    groups = _group(Suppressed(finding, "", "") for finding in report.findings)
    found = _format_counts(Counter([group[0].finding.severity for group in groups])) or "nothing found"
    fixes = [group[0].finding.fix for group in groups if group[0].finding.fix]
    parts = [f"{found}{_describe_fixes(fixes)} in {pluralize(report.files, 'file')}"]
    parts += [f"{pluralize(report.objects, 'object')}{_describe_checks(report)}"]
    suppressed = count_suppressed_entries(report).total()
    parts += [f"{suppressed} suppressed"] if suppressed else []
    parts += [f"{report.left_out} not selected"] if report.left_out else []
    # How many files were not read, and why: `3 skipped (2 hidden, 1 Helm chart)`.
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items()))
    parts += [f"{sum(report.skipped.values())} skipped ({reasons})"] if reasons else []
    parts += [f"{len(report.weaker)} customized (list with -v)"] if report.weaker else []
    parts += (*report.captures, *report.trees)
    return visible("; ".join(parts))


def list_taken(report: Report) -> list[tuple[str, str, str]]:
    """Return the path of each file, what it was taken for, and why; those that are judged as they are if asked for."""
    return [
        (path, sort, why)
        for path, (sort, why) in sorted(report.taken.items())
        if report.explain_files or sort != "object"
    ]


def describe_files(report: Report) -> str:
    """Return a line for each file: its path, what it was taken for, and why."""
    return "".join(f"{visible(f'{path}: {sort}: {why}')}\n" for path, sort, why in list_taken(report))


def describe_scope(report: Report) -> str:
    """Return what was checked: `214 objects of 120 files in 3 environments checked by 131 rules`."""
    return f"{pluralize(report.objects, 'object')} of {pluralize(report.files, 'file')}{_describe_checks(report)}"


def _describe_checks(report: Report) -> str:
    environments = len([name for name in report.environments if name])
    within = f" in {pluralize(environments, 'environment')}" if environments else ""
    rules = f" by {pluralize(len(report.rules), 'rule')}" if report.rules else ""
    return f"{within} checked{rules}"


def _describe_fixes(fixes: Sequence[Fix]) -> str:
    """Return how many findings have a fix: ` (3 fixable, 1 with --fix-unsafe)`."""
    unsafe = sum(not fix.safe for fix in fixes)
    if 0 < unsafe < len(fixes):
        return f" ({len(fixes)} fixable, {unsafe} with --fix-unsafe)"
    return f" ({len(fixes)} fixable with {'--fix-unsafe' if unsafe else '--fix'})" if fixes else ""


def count_rules(report: Report) -> str:
    """Return how often each rule found something, the most frequent first, one line for each rule."""
    counts = {(rule, severity.value): count for (rule, severity), count in count_entries(report).items()}
    counts |= {(rule, "suppressed"): count for rule, count in count_suppressed_entries(report).items()}
    ranks = [*(severity.value for severity in Severity), "suppressed"]
    rows = sorted(counts.items(), key=lambda row: (-row[1], ranks.index(row[0][1]), row[0][0]))
    digits = max((len(str(count)) for count in counts.values()), default=0)
    width = max((len(severity) for _, severity in counts), default=0)
    return "".join(f"{count:>{digits}}  {severity:<{width}}  {visible(rule)}\n" for (rule, severity), count in rows)


def pluralize(count: int, noun: str) -> str:
    """Return `1 object`, `2 objects`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
