"""What is wrong with the files of a ConfigMap that are scripts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from jobgen.features.launch.python_faults import PythonFault, find_python_fault
from jobgen.features.launch.scripts import list_text_mistakes
from jobgen.k8s.objects import Container
from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.yamlio.inner_text import find_line

_SHELL = lazy_pattern(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|a)?sh\b")
_PYTHON = lazy_pattern(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?python[\d.]*\b")


def find_code_fault(container: Container) -> tuple[At, PythonFault] | None:
    """Return what Python refuses in the text behind `python -c`, and the place of the text; None if nothing."""
    for index, (option, text) in enumerate(pairwise(container.words[1:]), 2):
        if option == "-c":
            # Kubernetes, or another tool, puts something else there.
            fault = None if "$(" in text or "${" in container.image else find_python_fault(text.replace("$$", "$"))
            return (container.word_place(index), fault) if fault else None
        if option[:1] != "-":
            break
    return None


def find_file_mistakes(name: str, text: str) -> Iterator[tuple[int, str, Location]]:
    """Yield the lines of a script that are wrong, each with what is wrong, and its place."""
    is_other = text.startswith("#!")
    if _SHELL.match(text) or (name.endswith(".sh") and not is_other):
        for mistake in list_text_mistakes(text):
            yield mistake.line, mistake.message, find_line(text, mistake.line)
    elif _PYTHON.match(text) or (name.endswith(".py") and not is_other):
        fault = find_python_fault(text)
        if fault is not None:
            yield fault.inside.line, fault.message, fault.inside
