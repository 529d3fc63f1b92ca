"""What a file reads of the layers of an environment: the blocks that match its jobs, as data and as text.

A patch, and an entry of `defaults` in a list, concern only the jobs that they match. All else in the overlays of an
environment concerns each of its jobs. The text counts beside the data, because the findings in a layer depend on the
lines on which values are written, and on those around them; how many lines are above does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from jobgen.model.data import Node, TracedKey
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.result_inputs import digest_value
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.spec.overlay import Environment, list_ancestors

_ANCHOR = lazy_pattern(r"(?:^|[\s\[{,-])&[^\s&]")
NOT_SELECTED = "not selected"
"""What a file reads of an environment that selects none of its jobs."""


class _Span(NamedTuple):
    """The lines of an entry of a list; they count from 0, and the last one is not part of it."""

    file: str
    start: int
    stop: int


class LayerBlocks:
    """The blocks of the overlays of one environment."""

    def __init__(self, runner: EnvironmentRunner, tracer: Tracer) -> None:
        self._runner = runner
        self._tracer = tracer

    @cached_property
    def digest(self) -> str:
        """The digest of all that any job can read."""
        return digest_value((self._common, self._environment.jobs, self._patches, self._defaults))

    def digest_for(self, jobs: Sequence[Job]) -> str:
        """Return the digest of what the jobs of a file read."""
        chosen = [self._choose(job) for job in jobs]
        is_selected = not jobs or any(each is not None for each in chosen)
        return digest_value((self._common, chosen)) if is_selected else NOT_SELECTED

    def _choose(self, job: Job) -> tuple[list[str], list[str]] | None:
        """Return the patches and defaults that match a job; None if the environment does not select it."""
        environment, attributes = self._environment, self._runner.attributes(job)
        if not environment.matches(attributes):
            return None
        defaults = zip(environment.defaults, self._defaults, strict=True)
        return (
            [self._by_patch[id(patch)] for patch in environment.patches_for(attributes)],
            [digest for each, digest in defaults if each.matches(attributes)],
        )

    @property
    def _environment(self) -> Environment:
        return self._runner.expander.environment

    @cached_property
    def _marked(self) -> Environment:
        """The environment with locations."""
        return self._tracer.expander(self._runner.name).environment

    @cached_property
    def _common(self) -> str:
        """The digest of what each job reads: all but blocks, and the lines that are of no block."""
        # Representations are compared, because `1`, `1.0` and `true` are equal in Python.
        rest = self._environment._replace(jobs=(), patches=(), defaults=(), runtimes={})
        return digest_value((rest, list(self._list_rest())))

    @cached_property
    def _patches(self) -> list[str]:
        pairs = zip(self._environment.patches, self._marked.patches, strict=True)
        return [digest_value((patch._replace(place=0), self._read_text(marked.node))) for patch, marked in pairs]

    @cached_property
    def _by_patch(self) -> dict[int, str]:
        return dict(zip(map(id, self._environment.patches), self._patches, strict=True))

    @cached_property
    def _defaults(self) -> list[str]:
        pairs = zip(self._environment.defaults, self._marked.defaults, strict=True)
        return [digest_value((each, self._read_text(marked.block))) for each, marked in pairs]

    def _read_text(self, block: Node) -> Sequence[str]:
        """Return the lines of a block; none if they count for all jobs."""
        span = self._spans.get(id(block))
        return self._texts[span.file][span.start : span.stop] if span else ()

    def _list_rest(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the lines of each overlay that are of no block."""
        spans = self._spans.values()
        for file, lines in sorted(self._texts.items()):
            own = {number for span in spans if span.file == file for number in range(span.start, span.stop)}
            yield file, [line for number, line in enumerate(lines) if number not in own]

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        """The lines of the overlays of the environment, by file."""
        project = self._runner.project
        chain = list_ancestors(self._runner.name, project.overlays)
        files = (file for name, file in layout.read_overlays(project.layers) if name in chain)
        return {file.path: file.content.decode("utf-8", "surrogateescape").split("\n") for file in files}

    @cached_property
    def _spans(self) -> dict[int, _Span]:
        """The lines of each block, by the `id` of a patch, or of what an entry of `defaults` merges."""
        project, found = self._tracer.traced_project(), dict[int, _Span]()
        for name in list_ancestors(self._runner.name, project.overlays):
            for spec in project.overlays[name].specs:
                for key, inside in (("patches", ""), ("defaults", "merge")):
                    entries = spec.get(key)
                    for entry in entries if isinstance(entries, list) else ():
                        span = self._find_span(entry)
                        if span:
                            found[id(entry[inside] if inside else entry)] = span
        return found

    def _find_span(self, entry: Mapping[str, Node]) -> _Span | None:
        """Return the lines of an entry that begins on a line of its own, with the comments above it."""
        places = [key.location for key in entry if isinstance(key, TracedKey)]
        if len(places) < len(entry):
            return None
        at = min(places)
        lines = self._texts.get(at.file, [])
        before = lines[at.line - 1][: at.column - 1] if at.line <= len(lines) else ""
        # What an anchor names may be a part of other entries.
        if before.strip() != "-" or any(map(_ANCHOR.search, lines)):
            return None
        start = stop = at.line - 1
        while start and _is_comment(lines[start - 1]):
            start -= 1
        depth = before.index("-")
        for number in range(at.line, len(lines)):
            if not _is_comment(lines[number]):
                if len(lines[number]) - len(lines[number].lstrip(" ")) <= depth:
                    break
                stop = number
        return _Span(at.file, start, stop + 1)


def _is_comment(line: str) -> bool:
    """Return True if a line is empty, or a comment."""
    text = line.strip()
    return not text or text.startswith("#")
