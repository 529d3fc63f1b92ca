"""Names in overlays that depend on the job: `{team}`, `{env}` and `{job}` in `namespace` and `queue`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.data import Node, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest

PLACEHOLDERS = ("team", "env", "job")
_PLACEHOLDER = lazy_pattern(r"\{([^{}]*)\}")
_DNS_LABEL = lazy_pattern(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN = lazy_pattern(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class JobWords(NamedTuple):
    """What placeholders stand for in one job and environment."""

    team: str
    env: str
    job: str
    node: Node = None
    """The name of the job, as it is written."""


def find_words(metadata: Mapping[str, Any], owner: str, env: str) -> JobWords:
    """Return the words of a job. Its team owns its file; without one, it is the job's label `team`."""
    labels = metadata.get("labels")
    label = value_of(labels.get("team")) if isinstance(labels, dict) else None
    name = metadata.get("name")
    return JobWords(owner or str(label or ""), env, str(value_of(name) or ""), name)


def find_placeholder_errors(field: str, node: Node) -> Iterator[Problem]:
    """Report placeholders that do not exist."""
    for name in _PLACEHOLDER.findall(str(value_of(node) or "")):
        if name not in PLACEHOLDERS:
            close = find_closest(name, list(PLACEHOLDERS))
            meant = f"{{{close}}}" if close else ""
            hint = ask_for(meant) or "; use `{team}`, `{env}` or `{job}`"
            message = Sentence("`{{{}}}` is not a placeholder of `{}`{}", name, field, hint)
            yield Problem("invalid-value", message, node, cause="no placeholder", meant=meant)


def fill_name(field: str, node: Node, words: JobWords, problems: list[Problem]) -> Node:
    """Return a name with its placeholders filled; None if that is no valid name, which becomes a problem."""
    text = str(value_of(node) or "")
    if "{" not in text:
        return node
    used = _PLACEHOLDER.findall(text)
    if "team" in used and not words.team:
        message = Sentence(
            "the job has no team, which `{}: {}` needs; add the label `team`, or a team for its folder", field, text
        )
        problems.append(Problem("missing-field", message, words.node, ((node, f"`{field}` of the overlay"),)))
        return None
    if not {*used} <= {*PLACEHOLDERS}:
        return None
    filled = _PLACEHOLDER.sub(lambda match: str(getattr(words, match[1])), text)
    is_valid = (_DNS_LABEL if field == "namespace" else _DNS_SUBDOMAIN).fullmatch(filled)
    if not is_valid:
        most = "63 lower-case letters, digits and `-`" if field == "namespace" else "253 characters of a DNS name"
        message = Sentence(
            "`{}: {}` is `{}` for job `{}`, and must be at most {}", field, text, filled, words.job, most
        )
        problems.append(Problem("invalid-value", message, node, ((words.node, "the job"),)))
        return None
    return with_value(node, filled)
