"""Write the fleet of a repository as one HTML page: its tables, and a page for each job with its origins."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import accumulate
from pathlib import Path

from jobgen.api.errors import NotFoundError, UsageError, check_names
from jobgen.api.lint import LintResult, lint_request, lint_twice
from jobgen.api.lint_files import LintRequest
from jobgen.api.project import Project, ProjectPath, open_project, select_environments
from jobgen.api.tree_entries import add_charts, list_tree_entries
from jobgen.check.rule_docs import RuleDoc, all_docs
from jobgen.compare.snapshot import Snapshot, snapshot_entries, snapshot_repository
from jobgen.engine.inputs import digest_bytes
from jobgen.engine.store import Query, Store
from jobgen.engine.workers import parallel_map
from jobgen.features.page.capacity import NO_PRICES, Capacity, Prices, build_capacity, read_prices
from jobgen.features.page.fleet import Fleet, FleetCell, FleetFinding, build_fleet, place_findings
from jobgen.features.page.page import (
    NONE,
    Change,
    Line,
    LineSource,
    Table,
    assemble_page,
    describe_repository,
    encode,
    find_changes,
    make_title,
)
from jobgen.features.page.stored_pages import JobLines, complete_lines
from jobgen.features.page.timeline import list_forecast_tables
from jobgen.k8s.distinctive import is_distinctive
from jobgen.k8s.redaction import MASK, order_secrets
from jobgen.k8s.secrets import find_secrets
from jobgen.model.builtin_rules import UNREADABLE_RULES
from jobgen.model.data import Node, Plain, TracedKey, TracedList, TracedScalar, untraced
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.encoded_results import decode_findings, encode_findings
from jobgen.rendering.config import read_traced_source
from jobgen.rendering.environment import Rendered
from jobgen.rendering.file_secrets import list_traced_held
from jobgen.rendering.provenance import list_assignments
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import find_file_secrets, redact_source
from jobgen.rendering.result_inputs import digest_value
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.code_owners import CODE_OWNERS_FILES, find_code_owners, parse_code_owners
from jobgen.repo.files import File
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import lacks_jobs, open_store
from jobgen.reports import name_rule_page
from jobgen.reports.entries import number_entries
from jobgen.yamlio.write import ListedLines, list_lines, to_inline_yaml

MAX_MANIFESTS = 6_000
"""How many manifests a page has at most; the jobs that come first have theirs."""
MAX_LINES = 400_000
"""How many lines, of files and manifests together, a page has at most."""

RENDERER = "jobgen"
"""The layer of values that no file sets."""

_SEPARATOR: Line = ("---", ())
_BY_RENDERER: tuple[LineSource, ...] = ((RENDERER, "", 0, ""),)


class JobPages(NamedTuple):
    """The lines of files and manifests."""

    specs: Mapping[str, tuple[Change, ...]]
    """By path."""
    manifests: tuple[Manifest, ...]
    omitted: tuple[tuple[str, int, int], ...]
    """What is not in the page because it would be too large: how many are shown, of how many."""


class Manifest(NamedTuple):
    """The manifest of a cell, as changes to the one with the number `base`; -1 is none."""

    cell: int
    base: int
    changes: tuple[Change, ...]


class _Page(NamedTuple):
    """The page of a job: its file, and the manifests of its cells, each as changes to the first one."""

    job: Job
    cells: tuple[tuple[int, FleetCell], ...]
    has_file: bool
    """True if the job is the first one of its file."""


def build_pages(snapshot: Snapshot, fleet: Fleet, jobs: Sequence[Job], store: Store | None = None) -> JobPages:
    """Build the pages of jobs. The lines of jobs that have not changed are taken from the store."""
    cells: dict[int, list[tuple[int, FleetCell]]] = {}
    for number, cell in enumerate(fleet.cells):
        if cell.objects:
            cells.setdefault(cell.job, []).append((number, cell))
    first_of = {job.file.path: number for number, job in reversed([*enumerate(jobs)])}
    pages = [
        _Page(job, tuple(cells.get(number, ())), first_of[job.file.path] == number) for number, job in enumerate(jobs)
    ]
    counts = accumulate(len(page.cells) for page in pages)
    chosen = [page for page, count in zip(pages, counts, strict=True) if count <= MAX_MANIFESTS]
    found = complete_lines(
        store or Store(),
        [_identify_page(page, snapshot.project.digest) for page in chosen],
        lambda numbers: _list_all_changes(snapshot, [chosen[number] for number in numbers]),
    )
    specs: dict[str, tuple[Change, ...]] = {}
    manifests: list[Manifest] = []
    lines = 0
    for page, (spec, changes) in zip(chosen, found, strict=True):
        if page.has_file:
            specs[page.job.file.path] = spec
        lines += _count_added(spec) + sum(map(_count_added, changes))
        if lines > MAX_LINES:
            break
        first = len(manifests)
        for place, ((number, _), change) in enumerate(zip(page.cells, changes, strict=True)):
            manifests.append(Manifest(number, first if place else -1, change))
    total, files = sum(len(page.cells) for page in pages), sum(page.has_file for page in pages)
    omitted = (("manifests", len(manifests), total), ("files", len(specs), files))
    return JobPages(specs, tuple(manifests), tuple(each for each in omitted if each[1] < each[2]))


def _count_added(changes: Sequence[Change]) -> int:
    return sum(len(change.added) for change in changes)


def _identify_page(page: _Page, layers: str) -> tuple[str, str]:
    """Return a name of a page, and a digest of what its lines depend on: its file, its objects and all layers."""
    job, objects = (
        page.job,
        [(made.env, made.companion, made.object) for _, cell in page.cells for made in cell.objects],
    )
    read = (layers, page.has_file, digest_bytes(job.file.content), objects)
    return f"{job.file.path} {job.position} {job.item}", digest_value(read)


def _list_all_changes(snapshot: Snapshot, pages: Sequence[_Page]) -> list[JobLines]:
    """Return the lines of jobs, in several processes if there are many."""
    # No secret of any overlay may be shown.
    overlays = layout.read_overlays(snapshot.project.layers)
    secrets = snapshot.secrets.union(*(find_file_secrets(file.content) for _, file in overlays))
    snapshot.tracer.traced_project()
    return parallel_map(pages, lambda share: [_list_changes(snapshot.tracer, page, secrets) for page in share])


def _list_changes(tracer: Tracer, page: _Page, secrets: frozenset[str]) -> JobLines:
    """Return the file of a job, and its manifests: the first one in full, the others as changes to it."""
    lines, own = _redact_file(page.job.file)
    spec = find_changes([(line, ()) for line in lines]) if page.has_file else ()
    manifests = list_manifest_lines(tracer, page.job, [cell.objects for _, cell in page.cells], secrets | own)
    return spec, [find_changes(lines, manifests[0] if place else ()) for place, lines in enumerate(manifests)]


@lru_cache(maxsize=1)
def _redact_file(file: File) -> tuple[Sequence[str], frozenset[str]]:
    """Return the lines of a file without its secrets, and the secrets; the jobs of a file follow each other."""
    return redact_source(file.content, read_traced_source(file))


def list_manifest_lines(
    tracer: Tracer, job: Job, cells: Sequence[Sequence[Rendered]], secrets: frozenset[str]
) -> list[list[Line]]:
    """List the lines of the objects of a job in each of its environments, without secrets."""
    whole, seen = secrets, dict[int, Mapping[str, Plain]]()
    for made in (made for objects in cells for made in objects):
        # Most of an object is equal in all environments.
        whole |= find_secrets(made.object, seen.get(made.companion))
        seen.setdefault(made.companion, made.object)
    ordered = order_secrets(filter(is_distinctive, whole))
    # All trees stay alive here, because lines are known by the `id` of their nodes.
    traces = list(tracer.trace_each(job, [objects[0].env for objects in cells]))
    trees = (traced.select(made.companion) for objects, traced in zip(cells, traces, strict=True) for made in objects)
    nodes = (each.node for tree in filter(None, trees) for each in list_traced_held(tree) if each.name) if whole else ()
    held = {id(node) for node in nodes if type(node) is TracedScalar}
    listed: ListedLines[Line] = {}
    manifests: list[list[Line]] = []

    def describe_line(text: str, key: Node, value: Node, items: Node) -> Line:
        sources = _list_sources(key, value, items)
        if id(value) in held:
            # What a secret overrides is a secret, too.
            sources = (*sources[:1], *((*source[:3], MASK) for source in sources[1:]))
            text = _hide_value(text, key)
        return _hide_secrets(text, sources, ordered) if ordered else (text, sources)

    for objects, traced in zip(cells, traces, strict=True):
        lines: list[Line] = []
        for tree in filter(None, (traced.select(made.companion) for made in objects)):
            lines += [_SEPARATOR] if lines else []
            lines += list_lines(tree, describe_line, listed)
        manifests.append(lines)
    return manifests


def _hide_value(text: str, key: Node) -> str:
    """Return a line with a mask in place of a secret; the lines of a block of text follow the one with its key."""
    start = len(text) - len(text.lstrip(" "))
    start += 2 * text.startswith("- ", start)
    label = f"{to_inline_yaml(str(key))}: "
    start += len(label) * text.startswith(label, start)
    return text if text[start : start + 1] in ("|", ">") else f"{text[:start]}{MASK}"


def _hide_secrets(text: str, sources: tuple[LineSource, ...], secrets: Sequence[str]) -> Line:
    for secret in secrets:
        if secret in text or any(secret in value for *_, value in sources):
            text = text.replace(secret, MASK)
            sources = tuple([(layer, file, at, value.replace(secret, MASK)) for layer, file, at, value in sources])
    return text, sources


def _list_sources(key: Node, value: Node, items: Node) -> tuple[LineSource, ...]:
    if type(value) is TracedScalar or (type(value) is TracedList and not value):
        replaced = items.overridden if type(items) is TracedList else None
        if value.overridden is None and replaced is None:
            return ((value.layer or RENDERER, value.location.file, value.location.line, ""),)
        found: list[LineSource] = []
        for place, assignment in enumerate(list_assignments(value, replaced)):
            at, layer = assignment.location, assignment.layer or RENDERER
            text = to_inline_yaml(untraced(assignment.value)) if place else ""
            found.append((layer, "", 0, text) if at is None else (layer, at.file, at.line, text))
        return tuple(found)
    if type(key) is TracedKey and isinstance(value, (dict, list)):
        return ((key.layer or RENDERER, key.location.file, key.location.line, ""),)
    opens_block = isinstance(value, (dict, list)) and value
    return () if opens_block else _BY_RENDERER


_ERROR, _NOTE = "error", "note"
_ENVIRONMENT = "environment:environments"
QUOTA = (
    *(_ENVIRONMENT, "kind:text", "name:text", "cohort:text", "flavor:text", "resource:text"),
    *("nominal", "used", "borrowed", "lent", "waiting", "borrowingLimit", "lendingLimit"),
)
WORKLOAD = (
    *(_ENVIRONMENT, "cell:cells", "kind:text", "namespace:text", "name:text", "queue:text", "clusterQueue:text"),
    *("decision:text", "reason:text", "change:text", "behind:text", "evictedBy:text", "obstacle:text"),
)
_LIMIT = (*(_ENVIRONMENT, "kind:text", "owner:text", "name:text", "resource:text", "used:text", "limit:text", "share"),)
_LAUNCH = ("cell:cells", "roles:text", "command:text", "name:text", "value:text", "source:text")
_COST = (_ENVIRONMENT, "by:text", "name:text", "jobs", "bounded", "priced", "scheduled", "gpuSeconds", "cost")


def list_capacity(capacity: Capacity, fleet: Fleet) -> Iterator[Table]:
    """List the tables of the capacity view."""
    environments = {env: number for number, env in enumerate(fleet.environments)}
    cells = {(cell.environment, cell.kind, cell.namespace, cell.name): at for at, cell in enumerate(fleet.cells)}
    quotas: list[Row] = []
    workloads: list[Row] = []
    notes: list[Row] = [(environments[env], _ERROR, message) for env, message in capacity.errors]
    for state in capacity.queues:
        env = state.report.environment
        for total in state.report.decision.totals:
            cohort, quota = state.find_owner(total)
            names = (total.kind, total.name, cohort, total.flavor, total.resource)
            amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
            limits = (NONE if limit is None else limit for limit in (quota.borrowing_limit, quota.lending_limit))
            quotas.append((environments[env], *names, *amounts, *limits))
        for answer in state.report.decision.answers:
            job = (answer.job.kind, answer.job.namespace, answer.job.name)
            obstacle, change = (answer.obstacle.code, answer.obstacle.change) if answer.obstacle else ("", "")
            behind = (", ".join(answer.blockers), answer.evicted_by, obstacle)
            row = (*job, answer.job.queue, answer.cluster_queue, answer.decision, answer.reason, change, *behind)
            workloads.append((environments[env], cells.get((env, *job), NONE), *row))
        notes += ((environments[env], _NOTE, note) for note in state.report.list_notes())
    yield Table("quotas", QUOTA, quotas)
    yield Table("workloads", WORKLOAD, workloads)
    yield Table("notes", (_ENVIRONMENT, "level:text", "text:text"), notes)
    yield from list_forecast_tables([state.forecast for state in capacity.queues], environments, cells)
    yield Table("limits", _LIMIT, [(environments[each.environment], *each[1:]) for each in capacity.limits])
    yield Table("costs", _COST, [(environments[each.environment], *each[1:]) for each in capacity.costs])
    counted = ((number, run) for number, run in enumerate(capacity.runs) if run.is_counted)
    yield Table("runs", ("cell:cells", "scheduled"), [(number, int(run.is_scheduled)) for number, run in counted])


Row = tuple[str | int, ...]

_JOB = ("name:text", "sweep:text", "framework:text", "isJob", "file:files", "line", "spec:specs", "source:text")
_FINDING = (
    *("rule:text", "category:text", "severity:text", "message:text", "job:jobs", "environment:environments"),
    *("team:text", "status:text", "file:files", "line", "column", "entry"),
)
ERROR = (
    *("rule:text", "category:text", "severity:text", "message:text", "file:files", "line", "column"),
    *("environment:environments", "entry"),
)


class FleetData(NamedTuple):
    """Everything that the fleet view shows."""

    fleet: Fleet
    findings: Sequence[FleetFinding]
    fixed: Sequence[FleetFinding]
    rules: Mapping[str, RuleDoc]
    capacity: Capacity
    pages: JobPages
    errors: tuple[Finding, ...] = ()
    """What cannot be read or rendered, so that it is not in the page, or broken there."""


def list_tables(data: FleetData) -> list[Table]:
    """List all tables."""
    fleet = data.fleet
    environments = {env: number for number, env in enumerate(fleet.environments)}
    specs = {file: number for number, file in enumerate(data.pages.specs)}
    jobs = [
        (*job[:3], int(job.is_job), job.file, job.line, specs.get(job.file, NONE), job.source) for job in fleet.jobs
    ]
    totals = [
        (environments[total.env], total.by, total.name, *list_amounts(total.after.amounts)) for total in fleet.totals
    ]
    names = sorted({each.finding.rule for each in (*data.findings, *data.fixed)})
    docs = [(name, data.rules[name]) for name in names if name in data.rules]
    rules = [(name, doc.category, doc.severity.value, doc.summary, name_rule_page(name)) for name, doc in docs]
    return [
        Table("environments", ("name:text",), [(env,) for env in fleet.environments]),
        Table("jobs", _JOB, jobs),
        _list_cells(data, environments),
        Table("totals", (_ENVIRONMENT, "by:text", "name:text", "gpus", "cpu", "memory"), totals),
        Table("findings", _FINDING, _list_findings(data.findings, environments)),
        Table("fixed", _FINDING, _list_findings(data.fixed, environments)),
        Table("errors", ERROR, list_errors(data.errors, environments)),
        Table("rules", ("name:text", "category:text", "severity:text", "summary:text", "page:text"), rules),
        *list_capacity(data.capacity, fleet),
        Table("launches", _LAUNCH, [(at, *row) for at, cell in enumerate(fleet.cells) for row in cell.launches]),
        Table("omitted", ("what:text", "shown", "total"), data.pages.omitted),
        Table("specs", ("file:files",), [(file,) for file in data.pages.specs], list(data.pages.specs.values())),
        Table(
            "manifests",
            ("cell:cells", "base:manifests"),
            [(each.cell, each.base) for each in data.pages.manifests],
            [each.changes for each in data.pages.manifests],
        ),
    ]


def _list_cells(data: FleetData, environments: Mapping[str, int]) -> Table:
    columns = (
        *("job:jobs", "environment:environments", "state:text", "reason:text", "kind:text", "namespace:text"),
        *("name:text", "queue:text", "team:text", "owner:text", "pods", "gpus", "cpu", "memory"),
        *("errors", "warnings", "infos", "decision:text", "deadline", "gpuSeconds", "cost", "manifest:manifests"),
    )
    entries = number_entries(each.finding for each in data.findings)
    counted = zip(data.findings, entries, strict=True)
    found_by_cell = {(each.job, each.finding.env, each.finding.severity, entry) for each, entry in counted}
    counts = Counter(key[:3] for key in found_by_cell)
    # The decision about its first workload, if a job has several.
    decisions: dict[tuple[str, ...], str] = {}
    for state in data.capacity.queues:
        for answer in state.report.decision.answers:
            key = (state.report.environment, answer.job.kind, answer.job.namespace, answer.job.name)
            decisions.setdefault(key, answer.decision)
    manifests = {each.cell: number for number, each in enumerate(data.pages.manifests)}
    rows: list[Row] = []
    for number, (cell, run) in enumerate(zip(data.fleet.cells, data.capacity.runs, strict=True)):
        found = [sum(counts[cell.job, env, severity] for env in {cell.environment, ""}) for severity in Severity]
        decision = decisions.get((cell.environment, cell.kind, cell.namespace, cell.name), "")
        amounts = (cell.pods, *list_amounts(cell.resources.amounts), *found)
        longest = (run.deadline, run.gpu_seconds, run.cost, manifests.get(number, NONE))
        rows.append((cell.job, environments[cell.environment], *cell[2:10], *amounts, decision, *longest))
    return Table("cells", columns, rows)


def _list_findings(findings: Sequence[FleetFinding], environments: Mapping[str, int]) -> list[Row]:
    """Return the rows of findings, each with the number of the entry that a lint shows for it."""
    rows: list[Row] = []
    for each, entry in zip(findings, number_entries(one.finding for one in findings), strict=True):
        finding = each.finding
        fault = (finding.rule, finding.category, finding.severity.value, finding.message)
        place = (each.job, environments.get(finding.env, NONE), each.team, each.status)
        rows.append((*fault, *place, *finding.location[:3], entry))
    return rows


def list_errors(findings: Iterable[Finding], environments: Mapping[str, int]) -> list[Row]:
    """Return the rows of findings that no job is known for."""
    known = list(findings)
    return [
        (
            each.rule,
            each.category,
            each.severity.value,
            each.message,
            *each.location[:3],
            environments.get(each.env, NONE),
            entry,
        )
        for each, entry in zip(known, number_entries(known), strict=True)
    ]


def list_amounts(amounts: Sequence[int]) -> tuple[int, int, int]:
    """Return GPUs, thousandths of CPUs, and bytes."""
    gpus, cpu, memory = amounts
    return gpus, cpu, -(-memory // 1000)


class ReportResult(NamedTuple):
    """The page of a repository."""

    page: str
    """The HTML."""
    data: str
    """The JSON in the page; docs/report_data.md describes it."""
    jobs: int
    """The number of jobs, members of sweeps included; objects without pods, such as ConfigMaps, are not."""
    findings: tuple[Finding, ...]
    """Those of `lint`, sorted by location."""
    errors: tuple[Finding, ...]
    """What cannot be read or rendered, so that it is not in the page, or broken there; also unreadable policies."""
    unknown_queues: Mapping[str, str]
    """Environments whose queues cannot be read, and why."""
    incomplete: bool
    """True if a broken schema or policy prevented checks."""

    @property
    def failed(self) -> bool:
        """Return True if something is not in the page because of an error."""
        return bool(self.errors or self.unknown_queues)


def report(
    project: ProjectPath,
    *,
    environments: Sequence[str] = (),
    since: str = "",
    repo_url: str | None = None,
    prices: str = "",
    baseline: str = "",
) -> ReportResult:
    """Write the fleet of a repository as one HTML page.

    Args:
        project: A project, or a path in one.
        environments: Names of environments; by default those of the project.
        since: A Git revision; findings are marked as new, and those that are gone are listed.
        repo_url: Where the repository can be browsed, such as `https://github.com/example/jobs`, or a template with
            `{revision}`, `{file}` and `{line}`; by default the remote `origin` says it, and with `""` there are no
            links.
        prices: A file with prices, relative to the project.
        baseline: A baseline file, relative to the project; the findings that it lists are not in the page.

    Raises:
        UsageError: `jobgen.yaml` has errors, or an argument is wrong.
        NotFoundError: There are no jobs.
        TypeError: `environments` is not a list of strings.

    """
    check_names("environments", environments)
    opened = open_project(project)
    head, changed = describe_repository(opened.root, repo_url)
    known_prices = _read_prices(opened, prices) if prices else NO_PRICES
    select_environments(opened.config, environments)
    store = open_store(opened.root)
    day = opened.config.day()

    def answer() -> ReportResult:
        data, linted = _collect_data(opened, environments, (since, baseline), known_prices, head["prefix"], store)
        facts = {"date": day, "since": since, "currency": known_prices.currency}
        shown: dict[str, str | int] = {**head, **facts, "unchecked": int(linted.incomplete)}
        text, jobs = encode("fleet", shown, [*list_tables(data), changed]), sum(job.is_job for job in data.fleet.jobs)
        unknown = dict(data.capacity.errors)
        return ReportResult("", text, jobs, linted.findings, data.errors, unknown, linted.incomplete)

    # Everything but files that the page depends on; what Git and a baseline say is not recorded.
    key = repr((str(opened.root), opened.today, list(environments), known_prices, head, changed.rows, day))
    found = answer() if since or baseline else store.ask(_REPORT, key, answer)
    store.save()
    return found._replace(page=assemble_page(make_title(head, changed), found.data))


def _encode_report(found: ReportResult) -> str | None:
    findings = [encode_findings(list(each)) for each in (found.findings, found.errors)]
    if None in findings:
        return None
    return json.dumps([found.data, found.jobs, *findings, list(found.unknown_queues.items()), found.incomplete])


def _decode_report(text: str) -> ReportResult:
    data, jobs, findings, errors, unknown, incomplete = json.loads(text)
    found, failed = tuple(decode_findings(findings)), tuple(decode_findings(errors))
    return ReportResult("", data, jobs, found, failed, dict(unknown), incomplete)


_REPORT: Query[ReportResult] = Query("report", _encode_report, _decode_report)
"""A report without its page, which is assembled from its data."""


def _collect_data(
    project: Project, environments: Sequence[str], limits: tuple[str, str], prices: Prices, prefix: str, store: Store
) -> tuple[FleetData, LintResult]:
    """Lint, render and decide: return what the page shows. The lint leaves the objects that it renders in the store.

    `limits` are the revision since which findings are new, and the baseline; each can be empty.
    """
    render: Callable[[], Snapshot]
    render = partial(snapshot_repository, project.root, project.root.name, environments, project.today, store)
    jobs = list(read_jobs(layout.find_jobs(project.root), project.config.kinds, []))
    entries = list_tree_entries(project.root, project.root, None) if lacks_jobs(project.root) else None
    if entries is not None:
        # All of it is manifests and charts.
        render = partial(
            snapshot_entries, project.root, project.config.layers, project.root.name, entries, project.today
        )
        tree = render()
        jobs = list(map(tree.job, tree.objects))
    if not jobs and not (empty := render()).failed:
        raise NotFoundError("there is no job under jobs/; write one with `jobgen new NAME`", empty.findings)
    request = LintRequest(project.root, (), environments, today=project.today, leaves_objects=True)
    new: frozenset[Finding] | None = None
    gone: tuple[Finding, ...] = ()
    since, baseline = limits
    if since:
        linted, found_new, gone = lint_twice(request, since, store, baseline)
        new = frozenset(found_new.findings)
    else:
        linted = lint_request(request, store=store, baseline=baseline)
    snapshot = render()
    if entries is None and not environments:
        snapshot = add_charts(snapshot, project.root, project.today)
        jobs += (snapshot.job(each) for each in snapshot.objects if each.position < 0)
    fleet = build_fleet(snapshot, jobs, _read_code_owners(project.root, prefix))
    capacity = build_capacity(snapshot, fleet, prices)
    pages = build_pages(snapshot, fleet, jobs, store)
    # The findings of a policy that cannot be read are not in the page.
    hiding = [each for each in linted.findings if each.rule in UNREADABLE_RULES]
    hiding = [each for each in hiding if each.location.file.startswith("policies/")]
    errors = dict.fromkeys(each for each in (*snapshot.findings, *hiding) if each.severity is Severity.ERROR)
    found, fixed = list(place_findings(fleet, linted.findings, new)), list(place_findings(fleet, gone))
    return FleetData(fleet, found, fixed, all_docs(project.config.layers), capacity, pages, tuple(errors)), linted


def _read_code_owners(root: Path, prefix: str) -> Callable[[str], str]:
    """Return a function that finds the owners of a file by the CODEOWNERS of the Git repository."""
    top = root.resolve()
    for _ in filter(None, prefix.split("/")):
        top = top.parent
    file = next(filter(None, (read_first((top,), path) for path in CODE_OWNERS_FILES)), None)
    rules = parse_code_owners(file.content.decode("utf-8", "replace")) if file else ()
    return cache(lambda path: find_code_owners(rules, f"{prefix}/{path}" if prefix else path))


def _read_prices(opened: Project, path: str) -> Prices:
    file = read_first((opened.root,), path)
    if file is None:
        raise UsageError(f"there is no file `{path}`; the path starts at the root of the repository")
    findings: list[Finding] = []
    prices = read_prices(file, list(opened.config.overlays), findings)
    if findings:
        raise UsageError(f"the prices in `{path}` have errors; fix them", findings)
    return prices
