"""`jobgen explain`: who set a value, file:line by file:line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobgen import catalogue, repo
from jobgen.commands import Code, Result, environments, stopped
from jobgen.explain import Explained, NoSuchFieldError, Word, explain
from jobgen.jobs import jobs_in
from jobgen.make import facets_of
from jobgen.path import BadPathError, Step, dotted, parse
from jobgen.pipeline import Run
from jobgen.report import text
from jobgen.schema import nearest
from jobgen.trace import Traced, Tracer


def explain_job(root: Path, name: str, field: str, envs: Sequence[str], format_: str) -> Result:
    """Explain a field of a job, or all of them, in each environment."""
    shelf = catalogue.load(root)
    chosen = environments(shelf, envs)
    if isinstance(chosen, Result):
        return chosen
    try:
        path = parse(field)
    except BadPathError as bad:
        return stopped(Code.USAGE, str(bad))
    run = Run(shelf, chosen)
    walks = _walks(run, name)
    said = text.render(run.findings)
    if not walks:
        return stopped(Code.NOTHING, f"there is no job `{name}`{nearest(name, sorted(run.names))}", said)
    if any(walk.problems for _, walk in walks):
        return stopped(Code.ERRORS, f"`{name}` cannot be rendered", said)
    try:
        answers = [(env, list(explain(walk.object, path))) for env, walk in walks]
    except NoSuchFieldError as missing:
        hint = nearest(missing.step, missing.known)
        return stopped(Code.NOTHING, f"the rendered object has no `{missing.step}` in `{field}`{hint}", said)
    shown = _as_json(answers) if format_ == "json" else _as_text(answers)
    return Result(Code.FINE, shown, said)


def _walks(run: Run, name: str) -> list[tuple[str, Traced]]:
    """The job in each environment that takes it, with places; its problems go to the run's findings."""
    tracer = Tracer(run.shelf)
    every = list(jobs_in(repo.jobs(run.shelf.root), run.findings))
    run.names.update(job.document.name for job in every)
    jobs = [job for job in every if job.document.name == name]
    # Other files' faults are not what was asked about.
    files = {job.file.path for job in jobs}
    run.findings[:] = [finding for finding in run.findings if finding.mark.file in files]
    walks: list[tuple[str, Traced]] = []
    for job in jobs:
        for env in run.environments:
            expander = tracer.expander(env)
            if expander.environment.takes(facets_of(job.document, expander)):
                walks.append((env, tracer.trace(job, env)))
                run.findings += tracer.findings(job, env)
    return walks


def _as_text(answers: list[tuple[str, list[Explained]]]) -> str:
    several = len(answers) > 1
    blocks = []
    for env, explained in answers:
        heading = f"# {env}\n" if several else ""
        blocks.append(heading + "".join(_story(entry.path, entry.words) for entry in explained))
    return "\n".join(blocks)


def _story(path: tuple[Step, ...], words: tuple[Word, ...]) -> str:
    values = [json.dumps(word.value, ensure_ascii=False) for word in words]
    places = [str(word.mark) if word.mark else "-" for word in words]
    width = max(map(len, places))
    lines = [f"{dotted(path)} = {values[0]}\n"]
    for place, word, value, old in zip(places, words, values, (*values[1:], None), strict=True):
        change = value if old is None else f"{old} → {value}"
        lines.append(f"  {place:<{width}}  {word.layer or 'jobgen'}: {change}\n")
    return "".join(lines)


def _as_json(answers: list[tuple[str, list[Explained]]]) -> str:
    fields = [_entry(env, entry) for env, explained in answers for entry in explained]
    return json.dumps({"version": 1, "fields": fields}, ensure_ascii=False, indent=2) + "\n"


def _entry(env: str, entry: Explained) -> dict[str, Any]:
    chain = [
        {
            "value": word.value,
            "layer": word.layer or "jobgen",
            **({"file": word.mark.file, "line": word.mark.line, "column": word.mark.column} if word.mark else {}),
        }
        for word in entry.words
    ]
    return {"env": env, "field": dotted(entry.path), "value": entry.words[0].value, "chain": chain}
