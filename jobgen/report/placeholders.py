"""Reports a file with unfilled placeholders once: it is a template, so its values are not wrong one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from jobgen.model.finding import Finding, Related, quoted_values
from jobgen.model.lazy_re import lazy_pattern
from jobgen.report.entries import RANK

RULE = "unfilled-placeholder"

# `<name>`, `{{ name }}`, `${NAME}`, `$NAME` as the whole value, and `...` for something left out.
_PLACEHOLDER = lazy_pattern(r"<[A-Za-z][^<>`]*>|\$?\{\{(?:[^}]*\}\})?|\$\{(?:[^}]*\})?|\$[A-Z_][A-Z0-9_]*\Z|\A\.\.\.\Z")
# Rules that refuse a value, or text, because of what it is.
_VALUE_RULES = frozenset(
    """bad-job-name invalid-annotation invalid-config-key invalid-container-name invalid-env-name invalid-host-name
    invalid-label invalid-name invalid-object-name invalid-quantity invalid-value invalid-volume-name
    invalid-volume-path malformed-image missing-main-container template-text unknown-enum-value unsupported-value
    wrong-type yaml-syntax""".split()
)
# Rules that state already that a single value is a placeholder.
_EXPLAINED = frozenset(("malformed-image", "template-text"))
_MAX_RELATED = 5


def group_placeholders(
    findings: Iterable[Finding], read_text: Callable[[str], str]
) -> tuple[list[Finding], dict[Finding, list[Finding]]]:
    """Return the findings that are not about placeholders, and one for each file with any, with what it replaces.

    A message may quote other tools, so a placeholder counts only if it stands in the file, which `read_text` reads.
    """
    read_words = cache(lambda file: " ".join(read_text(file).split()))
    left: list[Finding] = []
    by_file: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        placeholder = find_placeholder(finding)
        if placeholder and " ".join(placeholder.split()) in read_words(finding.location.file):
            by_file.setdefault((finding.location.file, finding.env), []).append(finding)
        else:
            left.append(finding)
    grouped: dict[Finding, list[Finding]] = {}
    for several in by_file.values():
        if len(several) == 1 and several[0].rule in _EXPLAINED:
            left += several
        else:
            grouped[_report(several)] = several
    return left, grouped


def find_placeholder(finding: Finding) -> str:
    """What looks like a placeholder in the values that a finding is about; empty if nothing does."""
    if finding.rule not in _VALUE_RULES:
        return ""
    matches = map(_PLACEHOLDER.search, quoted_values(finding.message))
    return next((match[0] for match in matches if match), "")


def _report(several: list[Finding]) -> Finding:
    ordered = sorted(several, key=lambda finding: finding.location)
    names = list(dict.fromkeys(map(find_placeholder, ordered)))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    message = f"the file is a template: `{names[0]}`{more} must be filled in; fill in the values, or exclude the file"
    others = [finding for finding in ordered if finding.location != ordered[0].location]
    related = [Related(finding.location, f"`{find_placeholder(finding)}`") for finding in others[:_MAX_RELATED]]
    return Finding(
        RULE,
        "yaml",
        min((finding.severity for finding in several), key=RANK.__getitem__),
        message,
        ordered[0].location,
        env=ordered[0].env,
        related=tuple(related),
        # The file as a whole: the fingerprint stays while its placeholders are filled in one after the other.
        evidence=(),
        also_reported_by=tuple(sorted({finding.rule for finding in several})),
    )
