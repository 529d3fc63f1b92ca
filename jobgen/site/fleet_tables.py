"""The tables of the fleet view: environments, jobs, cells, totals, findings, and the pages of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobgen.model.finding import Finding, Severity
from jobgen.site.encode import NONE, Line, Source, Table, Texts, encode_lines, encode_texts
from jobgen.site.fleet import Fleet, FleetCell
from jobgen.site.job_pages import ManifestLine


class Numbers:
    """Numbers of distinct values, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def __call__(self, *value: str) -> int:
        """Return the number of a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._numbers)


class FleetTables:
    """Builds the tables of a fleet; files and origins are collected from all of them."""

    def __init__(self, fleet: Fleet, texts: Texts) -> None:
        self._fleet = fleet
        self._texts = texts
        self._files = Numbers()
        self._origins = Numbers()
        self._environments = {env: number for number, env in enumerate(fleet.environments)}
        self._specs: dict[tuple[str, int], int] = {}
        self._spec_rows: list[tuple[int, int, str]] = []
        self._manifest_rows: list[tuple[int, int, str]] = []
        self._manifest_of: dict[int, int] = {}
        self._bases: dict[int, tuple[int, list[Line]]] = {}

    def add_spec(self, job: int, lines: Sequence[str]) -> None:
        """Add the text of the file of a job."""
        file = self._fleet.jobs[job].file
        if (file, 0) not in self._specs:
            self._specs[file, 0] = len(self._spec_rows)
            numbers = (self._texts[line] for line in lines)
            self._spec_rows.append((self._files(file), 1, encode_texts(numbers)))

    def add_manifest(self, cell: int, lines: Sequence[ManifestLine]) -> None:
        """Add the manifest of a cell; it is stored as a change to the first manifest of its job."""
        numbered = [self._to_line(line) for line in lines]
        job, number = self._fleet.cells[cell].job, len(self._manifest_rows)
        base, known = self._bases.setdefault(job, (NONE, []))
        if base == NONE:
            self._bases[job] = (number, numbered)
        self._manifest_of[cell] = number
        self._manifest_rows.append((cell, base, encode_lines(numbered, known)))

    def _to_line(self, line: ManifestLine) -> Line:
        sources = tuple(
            Source(
                self._origins(source.layer, str(self._files(source.file) if source.file else NONE)),
                source.line,
                source.column,
                self._texts[source.value],
            )
            for source in line.sources
        )
        return Line(self._texts[line.text], sources)

    def list_tables(self, findings: Sequence[Finding]) -> list[Table]:
        """List all tables."""
        located = [self._locate_finding(finding) for finding in findings]
        counts = Counter[tuple[int, str, Severity]]()
        for finding, (job, _) in zip(findings, located, strict=True):
            counts[job, finding.env, finding.severity] += 1
        tables = [
            Table("environments", ("name:text",), [(env,) for env in self._fleet.environments]),
            self._list_jobs(),
            self._list_cells(counts),
            self._list_totals(),
            self._list_findings(findings, located),
            Table("specs", ("file:files", "line", "lines"), self._spec_rows),
            Table("manifests", ("cell:cells", "base:manifests", "lines"), self._manifest_rows),
            Table("origins", ("layer:text", "file:files"), [(layer, int(file)) for layer, file in self._origins]),
        ]
        return [*tables, Table("files", ("path:text",), list(self._files))]

    def _list_jobs(self) -> Table:
        columns = ("name:text", "sweep:text", "framework:text", "isJob", "file:files", "line", "spec:specs")
        rows = [
            (
                job.name,
                job.sweep,
                job.framework,
                int(job.is_job),
                self._files(job.file),
                job.line,
                self._specs.get((job.file, 0), NONE),
            )
            for job in self._fleet.jobs
        ]
        return Table("jobs", columns, rows)

    def _list_cells(self, counts: Mapping[tuple[int, str, Severity], int]) -> Table:
        columns = (
            *("job:jobs", "environment:environments", "state:text", "reason:text", "kind:text", "namespace:text"),
            *("name:text", "queue:text", "team:text", "owner:text", "pods", "gpus", "cpu", "memory"),
            *("errors", "warnings", "infos", "manifest:manifests"),
        )
        return Table("cells", columns, [self._list_cell(*pair, counts) for pair in enumerate(self._fleet.cells)])

    def _list_cell(
        self, number: int, cell: FleetCell, counts: Mapping[tuple[int, str, Severity], int]
    ) -> tuple[str | int, ...]:
        found = [sum(counts[cell.job, env, severity] for env in {cell.environment, ""}) for severity in Severity]
        return (
            cell.job,
            self._environments[cell.environment],
            *cell[2:10],
            cell.pods,
            *_list_amounts(cell.resources.amounts),
            *found,
            self._manifest_of.get(number, NONE),
        )

    def _list_totals(self) -> Table:
        columns = ("environment:environments", "by:text", "name:text", "gpus", "cpu", "memory")
        rows = [
            (self._environments[total.env], total.by, total.name, *_list_amounts(total.after.amounts))
            for total in self._fleet.totals
        ]
        return Table("totals", columns, rows)

    def _locate_finding(self, finding: Finding) -> tuple[int, int]:
        return NONE, self._environments.get(finding.env, NONE)

    def _list_findings(self, findings: Sequence[Finding], located: Sequence[tuple[int, int]]) -> Table:
        columns = (
            *("rule:text", "category:text", "severity:text", "message:text", "job:jobs", "environment:environments"),
            *("file:files", "line", "column"),
        )
        rows = [
            (
                finding.rule,
                finding.category,
                finding.severity.value,
                finding.message,
                *where,
                self._files(finding.location.file),
                finding.location.line,
                finding.location.column,
            )
            for finding, where in zip(findings, located, strict=True)
        ]
        return Table("findings", columns, rows)


def _list_amounts(amounts: Sequence[int]) -> tuple[int, int, int]:
    """Return GPUs, thousandths of CPUs, and bytes."""
    gpus, cpu, memory = amounts
    return gpus, cpu, -(-memory // 1000)
