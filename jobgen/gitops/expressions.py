"""Health checks of Flux, in CEL: the same verdicts as in Lua, asked in the order `inProgress`, `failed`, `current`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jobgen.gitops.health import DEGRADED, HEALTHY, PROGRESSING, SUSPENDED, Words, words_of
from jobgen.gitops.known import Known


def expressions(kind: Known) -> dict[str, str]:
    """The expressions of a kind; Flux takes a job for which none is true to be in progress."""
    words = words_of(kind.group)
    ended = (words.finished, words.failed)
    going = tuple(word for word in words.order if word not in ended)
    # `failed` is asked before `current`, so a tie of the two is a failure in both engines.
    return {
        "inProgress": _by_phase(
            (PROGRESSING, SUSPENDED), f"!has(status.conditions) || {_last(going, ended, '<')}", words
        ),
        "failed": _by_phase(
            (DEGRADED,), f"has(status.conditions) && {_last([words.failed], words.order, '<=')}", words
        ),
        "current": _by_phase(
            (HEALTHY,), f"has(status.conditions) && {_last([words.finished], words.order, '<=')}", words
        ),
    }


def _last(told: Collection[str], others: Collection[str], before: str) -> str:
    """One of these conditions is true, and none of the others turned true after it."""
    return f"""status.conditions.exists(c,
  c.status == 'True' && c.type {_among(told)} && status.conditions.all(d,
    d.status != 'True' || !(d.type in {_list(others)}) ||
    d.?lastTransitionTime.orValue('') {before} c.?lastTransitionTime.orValue('')))"""


def _by_phase(verdicts: Collection[str], text: str, words: Words) -> str:
    """Whether the verdict is one of these: by the phase where it decides, else by the conditions."""
    if not words.phases:
        return text
    meant = [phase for phase, verdict in words.phases.items() if verdict in verdicts]
    return f"has(status.phase) && status.phase in {_list(words.phases)} ? status.phase {_among(meant)} :\n({text})"


def _among(texts: Collection[str]) -> str:
    """`== 'a'`, or `in ['a', 'b']`."""
    return f"in {_list(texts)}" if len(texts) > 1 else f"== '{next(iter(texts))}'"


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"
