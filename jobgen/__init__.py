"""jobgen: write training jobs once; render them for each environment and operator.

The names in `__all__` are the public Python API, described in docs/api.md. Everything else is private.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # `python -m jobgen` looks for modules in the current folder first, which may be a repository of others. The first
    # argument is `-m` only while Python looks for the module to run. Even __future__ must not be imported before.
    del sys.path[0]

TYPE_CHECKING = False  # type checkers know this name; `import typing` takes as long as an empty Python
if TYPE_CHECKING:
    from jobgen.api.diff import ChangedField, ChangedObject, DiffResult, diff
    from jobgen.api.errors import JobgenError, NotFoundError, OperationError, ToolError, UsageError
    from jobgen.api.exceptions import AcceptedFindings, ExceptionsResult, exceptions
    from jobgen.api.explain import Explanation, RuleExplanation, explain
    from jobgen.api.lint import LintResult, lint
    from jobgen.api.project import Project, load
    from jobgen.api.render import RenderedObject, RenderResult, render
    from jobgen.compare.changes import (
        Balance,
        QueueChanges,
        QueueObjectChange,
        QuotaAmounts,
        QuotaChange,
        WorkloadChange,
    )
    from jobgen.explanation.explain import ClusterChange, ExplainedField, RenderedValue, ValueSource
    from jobgen.features.kueue.queue import QueuedWorkload, QueueResult, queue
    from jobgen.features.page.report import ReportResult, report
    from jobgen.features.teams.teams import BudgetLine, TeamEnvironment, TeamOverview, TeamsResult, teams
    from jobgen.features.testing.job_tests import JobTestOutcome, JobTestsResult, run_tests
    from jobgen.model.data import Location
    from jobgen.model.finding import Finding, Identity, Related, Severity
    from jobgen.reports import Suppressed

__version__ = "0.3.0"

__all__ = [
    "AcceptedFindings",
    "Balance",
    "BudgetLine",
    "ChangedField",
    "ChangedObject",
    "ClusterChange",
    "DiffResult",
    "ExceptionsResult",
    "ExplainedField",
    "Explanation",
    "Finding",
    "Identity",
    "JobTestOutcome",
    "JobTestsResult",
    "JobgenError",
    "LintResult",
    "Location",
    "NotFoundError",
    "OperationError",
    "Project",
    "QueueChanges",
    "QueueObjectChange",
    "QueueResult",
    "QueuedWorkload",
    "QuotaAmounts",
    "QuotaChange",
    "Related",
    "RenderResult",
    "RenderedObject",
    "RenderedValue",
    "ReportResult",
    "RuleExplanation",
    "Severity",
    "Suppressed",
    "TeamEnvironment",
    "TeamOverview",
    "TeamsResult",
    "ToolError",
    "UsageError",
    "ValueSource",
    "WorkloadChange",
    "__version__",
    "diff",
    "exceptions",
    "explain",
    "lint",
    "load",
    "queue",
    "render",
    "report",
    "run_tests",
    "teams",
]

# Names are imported when they are first used, so that `import jobgen` is fast.
_MODULES = {
    "jobgen.api.diff": "ChangedField ChangedObject DiffResult diff",
    "jobgen.api.errors": "JobgenError NotFoundError OperationError ToolError UsageError",
    "jobgen.api.exceptions": "AcceptedFindings ExceptionsResult exceptions",
    "jobgen.api.explain": "Explanation RuleExplanation explain",
    "jobgen.explanation.explain": "ClusterChange ExplainedField RenderedValue ValueSource",
    "jobgen.features.testing.job_tests": "JobTestOutcome JobTestsResult run_tests",
    "jobgen.api.lint": "LintResult lint",
    "jobgen.api.project": "Project load",
    "jobgen.features.kueue.queue": "QueuedWorkload QueueResult queue",
    "jobgen.api.render": "RenderedObject RenderResult render",
    "jobgen.features.page.report": "ReportResult report",
    "jobgen.features.teams.teams": "BudgetLine TeamEnvironment TeamOverview TeamsResult teams",
    "jobgen.model.data": "Location",
    "jobgen.model.finding": "Finding Identity Related Severity",
    "jobgen.compare.changes": "Balance QueueChanges QueueObjectChange QuotaAmounts QuotaChange WorkloadChange",
    "jobgen.reports": "Suppressed",
}
_FEATURES = "jobgen.features."
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if _HOMES[name].startswith(_FEATURES):
        from jobgen.model.features import NO_FEATURE, all_features

        feature = _HOMES[name].removeprefix(_FEATURES).partition(".")[0]
        if feature not in all_features():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {NO_FEATURE.format(feature)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
