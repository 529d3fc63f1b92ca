"""What an effect is called for people, and all effects of a change in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from jobgen.compare.impact import FieldImpact, Impact
from jobgen.compare.operator_behavior import MEANING, RANK, Effect, Manner, Outcome
from jobgen.k8s.compare import FieldChange
from jobgen.k8s.resources import ResourceTotals, format_cpu, summarize_memory
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem, format_dotted

NEXT_RUN = "from the next run on"
_WORDS = {Effect.NO_EFFECT: "next run only"}
_IGNORED, _BOTH = "ignored", "in-place and next run"
_MEANINGS = {
    f"{Effect.STOPS_RUNNING} and {Effect.NEW_RUN}": "the running job is stopped, and a new one starts",
    _IGNORED: "nothing in the cluster changes",
    _BOTH: "a part is applied to the running job, and the rest is used by the next run",
}
_MAX_NAMES = 3
_AMOUNT_STEPS = frozenset(
    "completions numNodes numOfHosts parallelism replicas resources resourcesPerNode slotsPerWorker".split()
)
"""Steps of paths whose values decide what a job requests."""
_MAPPINGS = frozenset(("annotations", "data", "labels", "nodeSelector", "stringData"))
"""Fields whose own fields have names that say nothing by themselves."""
_METADATA = {"labels": "label", "annotations": "annotation"}


def name_outcome(outcome: Outcome) -> str:
    """Return what the effect of an outcome is called."""
    return _IGNORED if outcome.manner is Manner.IGNORED else _WORDS.get(outcome.effect, outcome.effect.value)


def name_effects(one: Impact) -> str:
    """Return what the effects of a change are called, all of them."""
    if len(one.effects) == 1:
        return name_outcome(one.outcome)
    if one.effects == (Effect.NO_EFFECT, Effect.IN_PLACE):
        return _BOTH
    return " and ".join(effect.value for effect in one.effects)


def count_names(impacts: Iterable[Impact]) -> list[tuple[str, int, str]]:
    """Return the names of effects, with the number of objects and the meaning of each; the most severe first."""
    counts = Counter((-RANK[one.outcome.effect], name_effects(one)) for one in impacts)
    by_rank = {rank: effect for effect, rank in RANK.items()}
    return [
        (name, count, _MEANINGS.get(name, MEANING[by_rank[-rank]])) for (rank, name), count in sorted(counts.items())
    ]


Formatter = Callable[[int], str]
MEASURES: tuple[tuple[str, Formatter], ...] = (("GPUs", str), ("CPU", format_cpu), ("memory", summarize_memory))


class Parts(NamedTuple):
    """The parts of a change that is used by the running job in part, and by the next run in part."""

    now: str
    """What is applied to the running job; empty if nothing is."""
    later: str
    """What the next run uses; empty if there is no such thing."""
    amounts: str
    """What the change of requests belongs to: `now`, `later`, or empty if that is not known."""


NO_PARTS = Parts("", "", "")


def divide(one: Impact) -> Parts:
    """Divide a change into what is applied now and what the next run uses."""
    if one.action != "changed" or one.outcome.manner is Manner.IGNORED or one.is_replaced:
        return NO_PARTS
    used = [field for field in one.fields if field.outcome.manner is not Manner.IGNORED]
    now = [field for field in used if field.outcome.effect is Effect.IN_PLACE]
    later = [field for field in used if field.outcome.effect is Effect.NO_EFFECT]
    if not later or len(now) + len(later) < len(used):
        return NO_PARTS
    scales = any(field.outcome.manner is Manner.SCALES for field in now)
    rest = [field.change for field in now if field.outcome.manner is not Manner.SCALES]
    first = [*(["scales in place"] if scales else []), *([f"{_name_changes(rest)} at once"] if rest else [])]
    counted = any(map(_concerns_amounts, later))
    amounts = "" if scales and counted else "now" if scales else "later"
    return Parts("; ".join(first), f"{_name_changes([field.change for field in later])} {NEXT_RUN}", amounts)


def _concerns_amounts(field: FieldImpact) -> bool:
    return not _AMOUNT_STEPS.isdisjoint(step for step in field.change.path if isinstance(step, str))


def describe(one: Impact, before: ResourceTotals, after: ResourceTotals, *, in_all: bool = False) -> str:
    """Return why a change has its effects, or each of them if there are several; with the requests that change.

    The amounts are those of all objects with this change; `in_all` says so.
    """
    amounts = format_amounts(before, after)
    amounts += " in all" if amounts and in_all else ""
    if one.outcome.manner is Manner.IGNORED:
        # What Git no longer asks for is still there.
        kept = ", ".join(
            _show(name, amount, show) for (name, show), amount in zip(MEASURES, before.amounts, strict=True) if amount
        )
        return f"{one.outcome.reason}{f' with {kept}' if kept and one.action == 'removed' else ''}"
    parts = divide(one)
    if not parts.now:
        later = f" {NEXT_RUN}" if amounts and parts.amounts == "later" else ""
        return "; ".join(filter(None, (one.outcome.reason, amounts + later)))
    delta = format_first_delta(before, after) if parts.amounts == "now" else ""
    now = parts.now.replace("scales in place", f"scales in place: {delta}") if delta else parts.now
    return "; ".join(filter(None, (now, parts.later, amounts)))


def format_first_delta(before: ResourceTotals, after: ResourceTotals) -> str:
    """Return the change of the first amount that changes, such as `+4 GPUs`; empty if none does."""
    for (name, show), old, new in zip(MEASURES, before.amounts, after.amounts, strict=True):
        if old != new:
            return f"{'+' if new > old else ''}{_show(name, new - old, show)}"
    return ""


def _show(name: str, amount: int, show: Formatter) -> str:
    unit = "GPU" if name == "GPUs" and abs(amount) == 1 else name
    return f"{show(amount)} {unit}"


def format_amounts(before: ResourceTotals, after: ResourceTotals) -> str:
    """Return the amounts that change, before and after."""
    measured = zip(MEASURES, before.amounts, after.amounts, strict=True)
    return ", ".join(f"{name} {format_delta(old, new, show)}" for (name, show), old, new in measured if old != new)


def format_delta(before: int, after: int, format_amount: Formatter) -> str:
    """`4 → 6 (+2)`, or `4`."""
    if before == after:
        return format_amount(after)
    delta = after - before
    return f"{format_amount(before)} → {format_amount(after)} ({'+' if delta > 0 else ''}{format_amount(delta)})"


def _name_changes(changes: Sequence[FieldChange]) -> str:
    """Name what changes: `the new image and command`, `without `nodeSelector``."""
    parts: list[str] = []
    for word, is_gone in (("the new", False), ("without", True)):
        names = list(dict.fromkeys(_name_field(each) for each in changes if (each.op == "removed") is is_gone))
        parts += [f"{word} {_join(names)}"] if names else []
    return ", ".join(parts)


def _join(names: Sequence[str]) -> str:
    hidden = len(names) - _MAX_NAMES
    if hidden > 1:
        return f"{', '.join(names[:_MAX_NAMES])} and {hidden} more fields"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _name_field(change: FieldChange) -> str:
    """Return what a field is called in a sentence: `image`, `label `team``, or the last steps of its path."""
    path = change.path
    names = [step for step in path if isinstance(step, str)]
    if path[:1] == ("metadata",) and len(names) == 3 and names[1] in _METADATA:
        return f"{_METADATA[names[1]]} `{names[2]}`"
    if "resources" in names:
        return "resources"
    variable = path[path.index("env") + 1 :][:1] if "env" in path else ()
    if variable and isinstance(variable[0], NamedItem):
        return f"variable `{variable[0].value}`"
    last, above = path[-1], path[-2:-1]
    if last == "env":
        return "variables"
    if isinstance(last, str) and not _MAPPINGS.isdisjoint(map(str, above)):
        return f"`{format_dotted(path[-2:])}`"
    if isinstance(last, str):
        return last if last.isalpha() and last.islower() else f"`{format_dotted((last,))}`"
    return f"`{format_dotted(path[-2:])}`"
