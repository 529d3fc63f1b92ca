"""`jobgen explain`: who set a value, file:line by file:line; or what a rule means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobgen.check.rule_names import canonical_rule_name
from jobgen.cli.commands import ExitCode, Result, error_result, pluralize
from jobgen.cli.commands.environments import environments
from jobgen.cli.commands.explain_rule import explain_rule, rule_names, unknown
from jobgen.model.data import Data
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import InvalidPathError, Step, format_dotted, parse_path
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.provenance import Assignment, ExplainedValue, NoSuchFieldError, explain_path
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Traced, Tracer
from jobgen.render.build import identity_of, job_attributes
from jobgen.repo import layout
from jobgen.report.escape import visible
from jobgen.report.summary import count_severities, format_findings

# A name with the hash of a run.
_RUN = lazy_pattern(r"(.+)-[0-9a-f]{8}\Z")
_TOLD = 5


def explain_name(
    root: Path | None, name: str, field: str, envs: Sequence[str], format_: str, today: str = ""
) -> Result:
    """Explain the job of a name, or else the rule; outside of a repository there are only rules."""
    if root is not None and (canonical_rule_name(name) not in rule_names(root) or _is_job(root, name)):
        return explain_job(root, name, field, envs, format_, today)
    if field:
        return error_result(ExitCode.USAGE, f"`{name}` is a rule, and a rule has no field `{field}`")
    return explain_rule(root, name, format_)


def _is_job(root: Path, name: str) -> bool:
    jobs = read_jobs(layout.find_jobs(root), config.load_frameworks(root), [])
    return any(name in (job.document.name, job.document.sweep) for job in jobs)


def explain_job(root: Path, name: str, field: str, envs: Sequence[str], format_: str, today: str = "") -> Result:
    """Explain a field of a job, or all of them, in each environment."""
    project = config.load(root, today=today)
    chosen = environments(project, envs)
    if isinstance(chosen, Result):
        return chosen
    try:
        path = parse_path(field)
    except InvalidPathError as bad:
        return error_result(ExitCode.USAGE, str(bad))
    run = Run(project, chosen)
    tracer = Tracer(project)
    run.findings += _overlay_findings(project, chosen, tracer)
    if run.failed:
        return error_result(
            ExitCode.ERRORS,
            f"{count_severities(run.findings)}; nothing can be explained",
            format_findings(run.findings),
        )
    walks = _walks(run, tracer, name)
    said = format_findings(run.findings)
    if not walks:
        return _absent(run, name, said)
    if any(walk.problems for _, walk in walks):
        return error_result(ExitCode.ERRORS, f"`{name}` cannot be rendered", said)
    if all(walk.object is None for _, walk in walks):
        return error_result(
            ExitCode.NOTHING_TO_DO, f"`{name}` is paused, done or expired, so nothing is rendered of it", said
        )
    answers, missing = _answers(walks, path)
    if missing and not answers:
        hint = did_you_mean(missing.step, missing.known)
        return error_result(
            ExitCode.NOTHING_TO_DO, f"the rendered object has no `{missing.step}` in `{field}`{hint}", said
        )
    shown = _as_json(answers) if format_ == "json" else _as_text(answers, several=len(walks) > 1)
    return Result(ExitCode.OK, shown, said)


def _overlay_findings(project: ProjectConfig, envs: Sequence[str], tracer: Tracer) -> list[Finding]:
    """What is wrong with the layers under and over all jobs: with one of them missing, no value is explained right."""
    findings = tracer.traced_project().findings if project.findings else ()
    composed = (EnvironmentRunner(project, env).overlay_findings(tracer) for env in envs)
    return [*findings, *(finding for found in composed for finding in found)]


def _walks(run: Run, tracer: Tracer, name: str) -> list[tuple[str, Traced]]:
    """The job in each environment that takes it, with places; its problems go to the run's findings."""
    every = list(read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, run.findings))
    run.names.update(job.document.name for job in every)
    jobs = [job for job in every if job.document.name == name] or _jobs_of_run(every, run.environments, tracer, name)
    if jobs:
        # Other files' faults are not what was asked about.
        files = {job.file.path for job in jobs}
        run.findings[:] = [finding for finding in run.findings if finding.location.file in files]
    walks: list[tuple[str, Traced]] = []
    for job in jobs:
        for env in run.environments:
            expander = tracer.expander(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                walks.append((env, tracer.trace(job, env)))
                run.findings += tracer.findings(job, env)
    return walks


def _jobs_of_run(every: Sequence[Job], envs: Sequence[str], tracer: Tracer, name: str) -> list[Job]:
    """The job that a run is of, by the name that its object has in the cluster."""
    run = _RUN.match(name)
    near = [job for job in every if run and job.document.name.startswith(run[1])]
    return [job for job in near if any(_is_called(tracer.trace(job, env).object, name) for env in envs)]


def _is_called(made: Data, name: str) -> bool:
    return isinstance(made, dict) and identity_of(made).name == name


def _absent(run: Run, name: str, said: str) -> Result:
    """Why there is nothing to explain: the job belongs elsewhere, cannot be read, or does not exist."""
    every = read_jobs(layout.find_jobs(run.project.root), run.project.frameworks, [])
    members = sorted(job.document.name for job in every if job.document.sweep == name)
    if members:
        told = ", ".join(f"`{member}`" for member in members[:_TOLD]) + (" …" if len(members) > _TOLD else "")
        return error_result(
            ExitCode.NOTHING_TO_DO,
            f"`{name}` is a sweep of {pluralize(len(members), 'job')}; explain one: {told}",
            said,
        )
    if name in run.names:
        return error_result(ExitCode.NOTHING_TO_DO, f"`{name}` is not in {' or '.join(run.environments)}", said)
    if run.failed:
        return error_result(ExitCode.ERRORS, f"there is no job `{name}` among those that can be read", said)
    return unknown(name, run.names, rule_names(run.project.root), said)


def _answers(
    walks: list[tuple[str, Traced]], path: tuple[Step, ...]
) -> tuple[list[tuple[str, list[ExplainedValue]]], NoSuchFieldError | None]:
    """The field in every environment that has it; and the last failure to find it."""
    answers, failure = [], None
    for env, walk in ((env, walk) for env, walk in walks if walk.object is not None):
        try:
            answers.append((env, list(explain_path(walk.object, path))))
        except NoSuchFieldError as missing:
            failure = missing
    return answers, failure


def _as_text(answers: list[tuple[str, list[ExplainedValue]]], *, several: bool) -> str:
    blocks = []
    for env, explained in answers:
        heading = f"# {env}\n" if several else ""
        blocks.append(heading + "".join(_story(entry.path, entry.assignments) for entry in explained))
    return "\n".join(blocks)


def _story(path: tuple[Step, ...], words: tuple[Assignment, ...]) -> str:
    values = [json.dumps(word.value, ensure_ascii=False) for word in words]
    places = [str(word.location) if word.location else "-" for word in words]
    width = max(map(len, places))
    lines = [f"{format_dotted(path)} = {values[0]}"]
    for place, word, value, old in zip(places, words, values, (*values[1:], None), strict=True):
        change = value if old is None else f"{old} → {value}"
        lines.append(f"  {place:<{width}}  {word.layer or 'jobgen'}: {change}")
    return "".join(f"{visible(line)}\n" for line in lines)


def _as_json(answers: list[tuple[str, list[ExplainedValue]]]) -> str:
    fields = [_entry(env, entry) for env, explained in answers for entry in explained]
    return json.dumps({"version": 1, "fields": fields}, ensure_ascii=False, indent=2) + "\n"


def _entry(env: str, entry: ExplainedValue) -> dict[str, Any]:
    chain = [
        {
            "value": word.value,
            "layer": word.layer or "jobgen",
            **(
                {"file": word.location.file, "line": word.location.line, "column": word.location.column}
                if word.location
                else {}
            ),
        }
        for word in entry.assignments
    ]
    return {"env": env, "field": format_dotted(entry.path), "value": entry.assignments[0].value, "chain": chain}
