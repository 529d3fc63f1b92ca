"""The `jobgen` command, run in this process: tests of pipes, signals and entry points use `jobgenprocess`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from kubectl import GO
from transcripts import Sections, changed_files, files_below, output_sections, read_transcript

from jobgen import cache
from jobgen.cli.main import run


def jobgen(cwd: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command without the variables of the surrounding environment that could change its output."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME", *GO)}
    # The width of the help is that of the terminal, which other tests of this process may have.
    return run_jobgen(cwd, *arguments, env={**environment, "COLUMNS": "80", **settings})


def run_jobgen_text(
    cwd: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command, and return its output as text."""
    done = run_jobgen(cwd, *arguments, env=env)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def run_jobgen(
    cwd: Path, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command; what it changes in this process is as before when it ends."""
    words = list(map(str, arguments))
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(3)]
        files[0].write(given)
        files[0].seek(0)
        with _surroundings(cwd, env, [io.TextIOWrapper(file, "utf-8") for file in files]):
            try:
                code = run(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            sys.stdout.flush()
            sys.stderr.flush()
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.detach()
        out, err = (file.seek(0) or file.read() for file in files[1:])
    return subprocess.CompletedProcess(["jobgen", *words], code, out, err)


@contextmanager
def _surroundings(cwd: Path, env: Mapping[str, str] | None, streams: list[io.TextIOWrapper]) -> Iterator[None]:
    """Give the command a folder, variables, and streams, as a process of its own has them."""
    before = os.getcwd(), dict(os.environ), (sys.stdin, sys.stdout, sys.stderr)
    cached = cache._folder, cache._salt, cache._secret
    with warnings.catch_warnings():
        # What is deprecated fails tests that call functions.
        warnings.simplefilter("always")
        for category in (DeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        try:
            os.chdir(cwd)
            if env is not None:
                os.environ.clear()
                os.environ.update(env)
            cache._folder, cache._salt, cache._secret = "", b"", b""
            sys.stdin, sys.stdout, sys.stderr = streams
            yield
        finally:
            cache._folder, cache._salt, cache._secret = cached
            sys.stdin, sys.stdout, sys.stderr = before[2]
            os.environ.clear()
            os.environ.update(before[1])
            os.chdir(before[0])


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
