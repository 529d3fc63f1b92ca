"""The real `jobgen` command, run in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jobgenprocess import run_jobgen
from transcripts import Sections, changed_files, files_below, output_sections, read_transcript


def jobgen(cwd: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command without the variables of the surrounding environment that could change its output."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    return run_jobgen(cwd, *arguments, env={**environment, **settings}, timeout=60)


def run_transcript(path: Path, root: Path, *, accept: bool) -> tuple[list[Sections], list[Sections]]:
    """Run the commands of a transcript below `root`; return their output and what was expected."""
    transcript = read_transcript(path)
    directory = transcript.write_repository(root)
    outputs = []
    for step in transcript.steps:
        before = files_below(root)
        done = jobgen(directory, *step.arguments)
        output = output_sections(done.returncode, done.stdout, done.stderr)
        outputs.append(output | changed_files(before, files_below(root)))
    if accept:
        transcript = transcript.accept(outputs)
    return outputs, [step.expected for step in transcript.steps]
