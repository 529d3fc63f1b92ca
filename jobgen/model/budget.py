"""The budget of a run: the steps and bytes that its work on what users wrote may take, in a file and in all together.

Whatever loops over data of users, copies it or matches it against a pattern charges the budget of the file that it is
about, in batches: a step is about a microsecond of Python. Steps instead of a clock make the result the same on every
machine. A file that takes more than its budget ends in one finding that names it and what took the steps.

A file that takes more steps than what is free leaves an `Excess` in its result. Results are kept and come from several
processes, so only the end of a run knows the sum. Each process has the limit of the whole run: those that stop early
have taken more already, so whether a run takes more does not depend on its processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from jobgen.model.named_tuple import NamedTuple

MAX_FILE_STEPS = 2_000_000
"""The steps that a file may take in one environment: a few seconds."""
MAX_FILE_BYTES = 64 * 1024 * 1024
"""The bytes that are copied and generated for a file in one environment."""
FREE_FILE_STEPS = 50_000
"""The steps of a file that do not count for the run."""
MAX_OTHER_STEPS, MAX_OTHER_BYTES = 50_000_000, 1024 * 1024 * 1024
"""The steps and bytes of what a command does that is about no file alone: about a minute."""
MAX_RUN_STEPS = 6_000_000
"""The steps that all files may take in a run beyond those that are free: several seconds."""
MAX_ADVICE_STEPS = 8_000_000
"""The steps of a run for advice about faults that are reported anyway."""
TOO_MANY_STEPS = "too-many-steps"
"""The rule of the finding about a file that takes more than its budget."""


class Work(StrEnum):
    """What takes steps and bytes, as messages name it."""

    BUILD = "build of this kustomization"
    CHART = "render of this chart"
    COMMANDS = "commands of its containers"
    VARIABLES = "variables of its containers"
    WORKFLOW = "parameters of its workflows"
    PATCHES = "patches of its jobs"
    LOCKS = "locked fields"
    SCHEMA = "schemas of the repository"
    POLICIES = "policies"
    SWEEP = "matrix"
    PODS = "pods that the file of its team counts"
    DOCUMENTS = "documents in it"
    COMPARISON = "comparison of its objects"
    PLACEMENT = "requirements of nodes"


class BudgetExceededError(Exception):
    """A part of the work on a file needed more steps than it may take."""


class OverBudgetError(Exception):
    """A file, or a run, needs more steps or bytes than its budget has; the text is the message of a finding."""


class Excess(NamedTuple):
    """The steps on a part of a file that count for the run, and what took the most of them."""

    steps: int
    costliest: str
    is_whole: bool
    """False if the run had no steps left for the rest."""


class OpenExcess:
    """An excess that still grows."""

    __slots__ = ("costliest", "is_whole", "steps")

    def __init__(self, costliest: str) -> None:
        self.costliest = costliest
        self.steps = 0
        self.is_whole = True


class FileBudget:
    """The steps and bytes that a file has taken so far."""

    __slots__ = ("_excess", "_excesses", "_is_shared", "size", "steps")

    def __init__(self, *, is_shared: bool = False) -> None:
        self.steps = 0
        self.size = 0
        self._is_shared = is_shared
        """True for work that is about no file alone."""
        self._excesses: list[OpenExcess] = []
        self._excess: OpenExcess | None = None

    def begin_excess(self, costliest: str) -> OpenExcess:
        """Note that a part of the file takes more than what is free."""
        excess = OpenExcess(costliest)
        self._excesses.append(excess)
        return excess

    def take_excesses(self) -> list[Excess]:
        """What was noted since the last call."""
        if not self._excesses:
            return []
        taken = [Excess(each.steps, each.costliest, each.is_whole) for each in self._excesses]
        self._excesses, self._excess = [], None
        return taken

    def charge(self, work: Work, steps: int, size: int = 0) -> None:
        """Take steps and bytes; raise OverBudgetError if there are too few."""
        self.steps += steps
        self.size += size
        if self.steps > FREE_FILE_STEPS or self.size > MAX_FILE_BYTES:
            self.count(work, steps)

    def count(self, work: Work, steps: int) -> None:
        """Count steps that have been taken for the run; raise OverBudgetError if there were too few."""
        if self._is_shared:
            if self.steps > MAX_OTHER_STEPS or self.size > MAX_OTHER_BYTES:
                raise OverBudgetError(f"this repository is too large: the {work} needed more than is allowed; split it")
            return
        if self.steps > MAX_FILE_STEPS or self.size > MAX_FILE_BYTES:
            limit = f"{MAX_FILE_STEPS:,} steps" if self.steps > MAX_FILE_STEPS else f"{MAX_FILE_BYTES >> 20} MiB"
            raise OverBudgetError(_explain(work, limit))
        self._excess = self._excess or self.begin_excess(work)
        self._excess.steps += steps
        RUN.used += steps
        if RUN.used > MAX_RUN_STEPS:
            self._excess.is_whole = False
            raise OverBudgetError(_explain(work, f"the {MAX_RUN_STEPS:,} steps of a run"))


def _explain(work: Work, limit: str) -> str:
    return f"not all of this file was checked: the {work} needed more than {limit}; split the file, or simplify it"


class RunBudget:
    """The steps of a run in this process, and the budget of the file that it works on."""

    __slots__ = ("_files", "advice", "file", "used")

    def __init__(self) -> None:
        self.reset()

    @property
    def is_used_up(self) -> bool:
        """Return True if the run has taken all of its steps in this process."""
        return self.used > MAX_RUN_STEPS

    def reset(self) -> None:
        """Start a run."""
        self.used = self.advice = 0
        self._files: dict[tuple[str, str], FileBudget] = {}
        self.close()

    def allows_advice(self, steps: int) -> bool:
        """Take steps for advice; return whether there are enough."""
        self.advice += steps
        return self.advice <= MAX_ADVICE_STEPS

    def close(self) -> None:
        """Let what follows charge a budget that is about no file alone."""
        self.file = FileBudget(is_shared=True)

    def open(self, file: str, env: str = "") -> FileBudget:
        """Let what follows charge the budget of a file in an environment."""
        key = file, env
        if key not in self._files:
            self._files[key] = FileBudget()
        self.file = found = self._files[key]
        return found

    @contextmanager
    def begin_file(self) -> Iterator[None]:
        """Let what follows charge a budget of its own, and then the one of before again."""
        before, self.file = self.file, FileBudget()
        try:
            yield
        finally:
            self.file = before


RUN = RunBudget()


def charge(work: Work, steps: int, size: int = 0) -> None:
    """Take steps and bytes of the file that the run works on; raise OverBudgetError if there are too few."""
    RUN.file.charge(work, steps, size)


class Budget:
    """The steps that one part of the work may take, beside the budget of the file, which it charges as well."""

    __slots__ = ("counts_bytes", "limit", "remaining", "work")

    def __init__(self, limit: int, work: Work, *, counts_bytes: bool = False) -> None:
        self.limit = self.remaining = limit
        self.work = work
        self.counts_bytes = counts_bytes
        """True if a step stands for a byte."""

    def reset(self) -> None:
        """Restore all steps, for the next object."""
        self.remaining = self.limit

    def spend(self, steps: int = 1) -> None:
        """Use steps; raise `BudgetExceededError` if there are too few."""
        self.remaining -= steps
        if self.remaining < 0:
            raise BudgetExceededError
        if self.counts_bytes:
            RUN.file.charge(self.work, 0, steps)
            return
        file = RUN.file
        file.steps += steps
        if file.steps > FREE_FILE_STEPS:
            file.count(self.work, steps)
