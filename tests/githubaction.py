"""Runs the steps of action.yml as GitHub does: conditions, variables, outputs. Uploads of artifacts are not real."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitrepository import Repository
from jobgenprocess import install_jobgen

from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
ACTION = read((ROOT / "action.yml").read_bytes(), "action.yml").documents[0].data
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
INSTALL = "Install jobgen"
UPLOAD = "actions/upload-artifact@"
SERVER = "https://github.example.com"
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
_COMPARED = re.compile(r"(\S+) ([!=]=) '([^']*)'")


@dataclass
class Run:
    """What a run of the action leaves."""

    failed: bool = False
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    artifacts: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


class Runner:
    """A runner of GitHub with a checkout."""

    def __init__(self, repository: Repository, api: str = "http://127.0.0.1:9", *, can_upload: bool = True) -> None:
        self.repository, self.can_upload = repository, can_upload
        self.temporary = repository.folder.parent / "runner"
        binaries = self.temporary / "jobgen/bin"
        if not binaries.exists():
            install_jobgen(binaries)
            (binaries / "python").symlink_to(sys.executable)
        self.environ = {
            **repository.environ,
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": api,
            "GITHUB_REPOSITORY": "example/jobs",
            "GITHUB_SERVER_URL": SERVER,
            "NO_PROXY": "*",
        }

    def run(self, event: Mapping[str, object], *only: str, event_name: str = "pull_request", **inputs: str) -> Run:
        """Run the steps, or only some of them, with inputs whose names have `_` for `-`."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= ACTION["inputs"].keys()
        run, steps = Run(), {}
        context = {
            "inputs": {name: each["default"] for name, each in ACTION["inputs"].items()} | given,
            "github": {"action_path": str(ROOT), "token": "t0ken", "event": event, "event_name": event_name},
            "steps": steps,
        }
        for name, step in STEPS.items():
            if name != INSTALL and (not only or name in only) and _holds(step.get("if"), context, run.failed):
                run.ran.append(name)
                steps[step.get("id", name)] = {"outputs": self._run_step(step, context, run)}
        run.outputs = {name: _fill(each["value"], context) for name, each in ACTION["outputs"].items()}
        return run

    def _run_step(self, step: dict, context: dict, run: Run) -> dict[str, str]:
        if "uses" in step:
            return self._upload(step, context, run)
        files = [self.temporary / name for name in ("output", "summary")]
        for path in files:
            path.write_text("")
        variables = {name: _fill(value, context) for name, value in step.get("env", {}).items()}
        paths = dict(zip(("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"), map(str, files), strict=True))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.repository.folder,
            env={**self.environ, **paths, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        run.log += done.stdout + done.stderr
        run.failed |= done.returncode != 0
        run.summary += files[1].read_text()
        return dict(line.split("=", 1) for line in files[0].read_text().splitlines())

    def _upload(self, step: dict, context: dict, run: Run) -> dict[str, str]:
        assert step["uses"].startswith(UPLOAD)
        values = {name: _fill(str(value), context) for name, value in step["with"].items()}
        path = Path(values["path"])
        assert path.name not in run.artifacts
        if not self.can_upload:
            run.failed |= step.get("continue-on-error") is not True
            return {}
        run.artifacts[path.name] = path.read_text()
        return {"artifact-url": f"{SERVER}/example/jobs/actions/runs/1/artifacts/{len(run.artifacts)}"}


def _find(path: str, context: object) -> str:
    """A value of the context; what is missing is empty, as on GitHub."""
    for name in path.split("."):
        context = context.get(name) if isinstance(context, Mapping) else None
    assert not isinstance(context, Mapping), path
    return "" if context is None else str(context)


def _fill(text: str, context: dict) -> str:
    def evaluate(match: re.Match[str]) -> str:
        return next(filter(None, (_find(path, context) for path in match[1].split(" || "))), "")

    return _EXPRESSION.sub(evaluate, text)


def _holds(condition: str | None, context: dict, failed: bool) -> bool:
    if condition is None:
        return not failed
    terms = _EXPRESSION.fullmatch(condition)[1].split(" && ")
    # Without a function of the state, GitHub adds `success()`.
    return ("!cancelled()" in terms or not failed) and all(
        _compare(term, context) for term in terms if term != "!cancelled()"
    )


def _compare(term: str, context: dict) -> bool:
    compared = _COMPARED.fullmatch(term)
    if compared is None:
        return bool(_find(term, context))
    return (_find(compared[1], context) == compared[3]) is (compared[2] == "==")
