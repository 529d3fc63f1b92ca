"""Hooks and CI of a jobs repository in a subfolder of a Git repository: they are read only at its top.

jobgen writes nothing above its folder, so it prints what to add there.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

HOOKS = ".pre-commit-config.yaml"
_WORKFLOW = ".github/workflows/jobgen.yaml"
_PIPELINE = ".gitlab-ci.yml"
_START = (
    "Start with `pip install",
    "`jobgen init` printed hooks for the top of the Git repository. With them, start with `pip install",
)
"""What the README says about hooks at the top, and below it."""
_PLAIN = re.compile(r"[\w.^/][\w ./^=-]*(?<! )")
_ALWAYS = re.compile(r"(?m)^( +)always_run: true$")


def split_files(texts: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of the folder, and those for the top of the Git repository by their path there."""
    movers = {HOOKS: _move_hooks, _WORKFLOW: _move_workflow, _PIPELINE: _move_pipeline}
    own = {path: text.replace(*_START) for path, text in texts.items() if path not in movers}
    names = {_WORKFLOW: f".github/workflows/jobgen-{_make_name(prefix)}.yaml"}
    moved = {names.get(path, path): movers[path](text, prefix) for path, text in texts.items() if path in movers}
    return own, moved


def describe_files(files: Mapping[str, str]) -> str:
    """Return the texts to add, each after a comment with its path."""
    return "---\n".join(f"# {path}, at the top of the Git repository\n{text}" for path, text in files.items())


def _make_name(prefix: str) -> str:
    """Return the folder as a part of the name of a file or of a job."""
    return re.sub(r"[^\w.]+", "-", prefix).strip("-.") or "jobs"


def _quote(text: str) -> str:
    """Return a text as a scalar of YAML."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _move_hooks(text: str, prefix: str) -> str:
    """Run the hooks in the folder, at commits that change it."""
    folder = re.escape(prefix)
    text = text.partition("      # If you commit what")[0]
    text = re.sub(r"(?m)^( +- id: \S+)$", rf"\1-{_make_name(prefix)}", text)
    text = re.sub(r"(?m)^( +name: )(.*)$", lambda found: found[1] + _quote(f"{found[2]} in {prefix}"), text)
    command = f"jobgen -C {shlex.quote(prefix)} "
    text = re.sub(
        r"(?m)^( +entry: )(.*)$", lambda found: found[1] + _quote(found[2].replace("jobgen ", command, 1)), text
    )
    text = re.sub(r"(?m)^( +files: )\^(.*)$", lambda found: found[1] + _quote(f"^{folder}/{found[2]}"), text)
    # pre-commit does not name deleted files, so a commit that only deletes some does not run the hooks.
    text = _ALWAYS.sub(lambda found: f"{found[1]}files: {_quote(f'^{folder}/')}", text)
    return text.replace("commit. They", "commit that adds or changes files in the folder.\n# They")


def _move_workflow(text: str, prefix: str) -> str:
    """Run the steps in the folder, for changes in it."""
    folder, paths = _quote(prefix), json.dumps(f"{prefix}/**", ensure_ascii=False)
    text = text.replace("name: jobgen\n", f"name: {_quote(f'jobgen {prefix}')}\n", 1)
    text = text.replace("  pull_request:\n", f"  pull_request:\n    paths: [{paths}]\n")
    text = text.replace("    branches: [main]\n", f"    branches: [main]\n    paths: [{paths}]\n")
    text = text.replace("    steps:\n", f"    defaults:\n      run:\n        working-directory: {folder}\n    steps:\n")
    comment = " # opens in the browser"
    return text.replace(
        f"path: jobgen-change.html{comment}", f"path: {_quote(f'{prefix}/jobgen-change.html')}{comment}"
    )


def _move_pipeline(text: str, prefix: str) -> str:
    """Run the job in the folder, for changes in it."""
    text = text.replace("jobgen:\n", f"jobgen-{_make_name(prefix)}:\n", 1)
    text = text.replace("  script:\n", f"  script:\n    - {_quote(f'cd {shlex.quote(prefix)}')}\n", 1)
    text = text.replace("paths: [jobgen-change.html]", f"paths: [{_quote(f'{prefix}/jobgen-change.html')}]")
    report = "gl-code-quality-report.json"
    text = text.replace(f"codequality: {report}", f"codequality: {_quote(f'{prefix}/{report}')}")
    changes = f"      changes: [{json.dumps(f'{prefix}/**/*', ensure_ascii=False)}]\n"
    return re.sub(r"(?m)^    - if: \$CI.*\n", lambda found: found[0] + changes, text)
