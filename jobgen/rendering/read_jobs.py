"""Read jobs from files: the valid documents, and the errors of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from jobgen.k8s.secrets import is_encrypted
from jobgen.model.budget import Work, charge
from jobgen.model.data import EncryptedObject, Location, Node, ValidFields, location_of, untraced, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.mend import list_parents
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.rendering import config
from jobgen.rendering.build import is_spec, list_errors, manifest_errors, split_list
from jobgen.rendering.expand import JobDocument
from jobgen.rendering.locate import locate
from jobgen.rendering.mended_jobs import ABOUT_MISSING_FIELDS, MendedJob, follows_from, mend_job
from jobgen.rendering.trace import WHOLE, Job, member_index
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import LOCK_FILE, Built, File, FileEntry, is_kustomization, read_file, starts_object
from jobgen.repo.lock import LOCK
from jobgen.reports.suppress import Suppression, may_suppress, parse_suppressions
from jobgen.schema import ambiguous
from jobgen.spec.frameworks import Frameworks, collect_frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.sweeps import (
    expand_sweep,
    find_matrix_errors,
    find_misspelled_keys,
    find_oversize,
    find_stray_variables,
    find_sweep_warnings,
    find_variables_of_manifest,
    find_variables_of_name,
    is_sweep,
)
from jobgen.yamlio.read import Source, YamlDocument

_DOCUMENT_STEPS = 100
"""The steps that a document takes to be read, and to be located if it has an error."""
_MANY_BYTES = 10_000
"""The bytes of a file that may have many documents; the steps of those of a smaller one are free."""
_OTHER_FOLDERS = {"Team": "a team belongs in teams/", "JobTests": "tests of jobs belong in tests/"}


class JobFiles(NamedTuple):
    """Files of a jobs repository: together, their objects are environments."""

    entries: Sequence[FileEntry]

    @property
    def are_loose(self) -> bool:
        """False, because the objects of several files are compared."""
        return False

    def list_all(self, root: Folder) -> Iterable[FileEntry]:
        """Return all files that may define what the objects of these use."""
        return layout.find_jobs(root)


class LooseFiles(NamedTuple):
    """Files that are rendered or checked by themselves: each may be meant for another cluster."""

    entries: Sequence[FileEntry]

    @property
    def are_loose(self) -> bool:
        """True, because no environment has the objects of all of them."""
        return True

    def list_all(self, _: Folder) -> Iterable[FileEntry]:
        """Return all files that may define what the objects of these use."""
        return self.entries


Files = JobFiles | LooseFiles


def read_jobs(
    paths: Iterable[FileEntry],
    kinds: tuple[Kind, ...],
    findings: list[Finding],
    comments: list[Suppression] | None = None,
    skipped: list[tuple[str, str]] | None = None,
    mended: list[MendedJob] | None = None,
) -> Iterator[Job]:
    """Read the jobs of files. Errors are added to `findings`, suppression comments to `comments`.

    What a file is that is skipped, because it is none of Kubernetes, and why, is added to `skipped`; jobs with errors,
    without their faulty values, are added to `mended`.
    """
    for path in paths:
        if path.build is not None:
            yield from _read_built(path, path.build(), findings)
            if comments is not None:
                for file in path.build.list_comments():
                    collect_suppressions(file, comments, findings, is_fixable=False)
        else:
            for job in _read_documents(path, findings, comments, skipped):
                if is_spec(job.document.data):
                    yield from _read_spec(job, collect_frameworks(kinds), findings, mended)
                else:
                    yield from _read_manifests(job, findings, mended)
            if mended is not None and not path.is_source:
                mended += _read_repaired(read_file(path), kinds, findings)


_READ_AS_TEXT = ("non-finite-number", "invalid-key")
"""Values and keys that JSON lacks: they are text, and nothing else of their lines is in doubt."""


def _read_repaired(file: File, kinds: tuple[Kind, ...], findings: list[Finding]) -> Iterator[MendedJob]:
    """Return the jobs whose text has syntax errors, as it was probably meant."""
    # Keys that are set twice may be those of a second object.
    rules = ("yaml-syntax", "duplicate-key")
    own = [found for found in findings if found.location.file == file.path]
    lines = frozenset(found.location.line for found in own if found.rule in rules)
    slips = [found.location for found in own if found.rule in (*rules, *_READ_AS_TEXT)]
    for document in config.read_traced_source(file).repaired if slips else ():
        data = document.data
        parents = frozenset(list_parents(data, lambda found: found is not None and found.line in lines))
        job = Job(JobDocument(untraced(data), file.path), file, 0, WHOLE, document.location, mended=data)
        if not is_spec(data):
            each = None if any(manifest_errors(data)) else MendedJob(job, job)
        elif errors := config.find_errors(data, "trainingjob", collect_frameworks(kinds)):
            located = (locate(problem, file.path, document.location) for problem in errors)
            findings += (
                found for found in located if found.location not in slips and not follows_from(found, lines, parents)
            )
            each = mend_job(job, errors, _error_finder(collect_frameworks(kinds)))
        else:
            each = MendedJob(job, job)
        if each:
            # What is missing may be part of the text that was repaired.
            hidden = each.hidden | ABOUT_MISSING_FIELDS
            faults = each.faults.union(slips)
            yield each._replace(lines=lines, hidden=hidden, parents=each.parents | parents, faults=faults)


def _error_finder(frameworks: Frameworks) -> Callable[[ValidFields], list[Problem]]:
    return lambda data: config.find_errors(data, "trainingjob", frameworks)


def _read_documents(
    path: FileEntry, findings: list[Finding], comments: list[Suppression] | None, skipped: list[tuple[str, str]] | None
) -> Iterator[Job]:
    """Return the documents of a file; none if it is no input, or if builds have its objects."""
    file = read_file(path)
    found: list[Finding] = []
    source = config.read_documents(file, found, shared=True) if _may_be_ours(path, file) else Source(path.path, ())
    documents = source.documents
    reason = _skip_reason(path, documents, found) if path.optional and not path.is_source else None
    if reason:
        if skipped is not None:
            skipped.append(reason)
        return
    # Patches may be lists of operations.
    findings += (_as_kustomize(each) for each in found if each.rule != "not-a-mapping") if path.is_source else found
    if comments is not None:
        collect_suppressions(file, comments, findings)
    if path.is_source:
        return
    if source.misread:
        findings += _leave_out_reported(source)
    is_checked = comments is not None and not found and not path.optional
    if is_checked and not [True for document in documents if split_list(document.data)]:
        # A file that was named was meant to be checked; one in jobs/ may lack its job.
        severity = Severity.WARNING if file.path.startswith("jobs/") else Severity.ERROR
        message = "the file holds no object; add one, or remove the file"
        findings.append(locate(Problem("empty-file", message, category="yaml", severity=severity), file.path))
    if len(file.content) > _MANY_BYTES:
        charge(Work.DOCUMENTS, _DOCUMENT_STEPS * sum(map(_count_objects, documents)))
    for position, document in enumerate(documents):
        data = document.data
        if "sops" in data and is_encrypted(data):
            data = EncryptedObject(data, _cut_document(file, document.location.line))
        yield Job(JobDocument(data, file.path), file, position, WHOLE, document.location)


def _leave_out_reported(source: Source) -> Iterator[Finding]:
    """Yield the misread keys of manifests; those of job specs are reported with their values."""
    for found in source.misread:
        above = [document for document in source.documents if document.location.line <= found.location.line]
        if above and not is_spec(above[-1].data):
            yield found


def _count_objects(document: YamlDocument) -> int:
    items = document.data.get("items")
    return len(items) if isinstance(items, list) else 1


def _as_kustomize(finding: Finding) -> Finding:
    """Return a finding about the text of a source: kustomize accepts what the cluster never sees."""
    if finding.rule != "duplicate-key" or not is_kustomization(finding.location.file):
        return finding
    return finding._replace(severity=Severity.WARNING, message=finding.reword("Kubernetes", "kustomize"))


def _cut_document(file: File, line: int) -> str:
    """Return the text of the document that starts at a line."""
    lines = file.content.decode("utf-8", "replace").splitlines()[line - 1 :]
    end = next((number for number, text in enumerate(lines) if text.startswith(("---", "..."))), len(lines))
    return "\n".join(lines[:end]).rstrip() + "\n"


def _may_be_ours(path: FileEntry, file: File) -> bool:
    """Return True if a file is worth parsing: it was named, it is in jobs/, or it may hold objects."""
    if not path.optional or path.is_source:
        return True
    if file.finding:
        return file.finding.rule != "file-too-large" or starts_object(path)
    # Imported late: files that are named need no check.
    from jobgen.recognize.objects import may_hold_objects

    return may_hold_objects(file.content)


def _skip_reason(
    path: FileEntry, documents: Sequence[YamlDocument], findings: Sequence[Finding]
) -> tuple[str, str] | None:
    """Return what a file of a folder is that is no input, and why; None if it is one, or is broken."""
    from jobgen.recognize import CONFIG
    from jobgen.recognize.objects import begins_object, is_object
    from jobgen.recognize.programs import name_program

    is_broken = bool(findings) and not documents and begins_object(read_file(path).content)
    if any(is_object(document.data) for document in documents) or is_broken:
        return None
    if path.path.rpartition("/")[2] == LOCK:
        return LOCK_FILE, "jobgen writes it beside what it renders"
    if findings and not documents:
        return CONFIG.name, "it is not YAML, and no line begins with `apiVersion` or `kind`"
    return CONFIG.name, name_program(path.path, [document.data for document in documents])


def _read_built(path: FileEntry, built: Built, findings: list[Finding]) -> Iterator[Job]:
    """Return the objects that a tool builds, and add what is wrong with the files that say how."""
    file = read_file(path)
    findings += built.findings
    for position, each in enumerate(built.objects):
        if any(manifest_errors(each.data)):
            findings += [locate(problem, each.file, each.location) for problem in manifest_errors(each.traced)]
        else:
            document = JobDocument(each.data, path.path)
            yield Job(document, file, position, WHOLE, Location(path.path), built=each)


def collect_suppressions(
    file: File, comments: list[Suppression], findings: list[Finding], *, is_fixable: bool = True
) -> None:
    """Collect the suppression comments of a file; those of a template are not fixable."""
    if may_suppress(file.content):
        found, faults = parse_suppressions(file.content, file.path)
        comments += found if is_fixable else (each._replace(is_fixable=False) for each in found)
        findings += faults


def _read_spec(
    job: Job, frameworks: Frameworks, findings: list[Finding], mended: list[MendedJob] | None
) -> Iterator[Job]:
    data, file = job.document.data, job.file
    if data.get("kind") == "Overlay":
        message = Sentence("an overlay belongs in overlays/, not in jobs/; move the file")
        findings.append(locate(Problem("misplaced-overlay", message), file.path, job.location))
    elif place := _OTHER_FOLDERS.get(str(data.get("kind"))):
        message = Sentence("{}, not in jobs/; move the file", place)
        findings.append(locate(Problem("misplaced-document", message), file.path, job.location))
    elif is_sweep(data):
        yield from _expand_sweep(job, frameworks, findings)
    elif config.find_errors(data, "trainingjob", frameworks):
        findings += config.locate_errors(file, job.position, "trainingjob", frameworks)
        if _may_have_expressions(file.content):
            findings += _locate_errors(job, find_stray_variables)
        _mend(job, frameworks, mended)
    elif found := config.find_ambiguous(file, job.position, "trainingjob", frameworks):
        findings += found
        _mend(job, frameworks, mended)
    elif _may_have_expressions(file.content) and any(find_stray_variables(data)):
        findings += _locate_errors(job, find_stray_variables)
    else:
        yield job


def _mend(job: Job, frameworks: Frameworks, mended: list[MendedJob] | None) -> None:
    if mended is not None:
        find = _error_finder(frameworks)
        each = mend_job(job, find(job.traced_document().data), find)
        mended.extend([each] if each else [])


def _expand_sweep(job: Job, frameworks: Frameworks, findings: list[Finding]) -> Iterator[Job]:
    """The jobs of a sweep; none if one of them has errors."""
    data = job.document.data
    if any(_check_sweep(data, frameworks)):
        findings += _locate_errors(job, lambda traced: _check_sweep(traced, frameworks))
        return
    if found := config.find_ambiguous(job.file, job.position, "trainingjob", frameworks):
        findings += found
        return
    members = expand_sweep(data, [])
    if any(find_sweep_warnings(data, members)):
        findings += _locate_errors(job, lambda traced: find_sweep_warnings(traced, expand_sweep(traced, [])))
    for index, member in enumerate(members):
        document = JobDocument(member, job.file.path, str(value_of(data["metadata"]["name"])))
        yield job._replace(document=document, item=member_index(index), sweep=data)


def _check_sweep(data: ValidFields, frameworks: Frameworks) -> list[Problem]:
    """The errors of a sweep: of its matrix, else of its expressions, else of its members."""
    matrix = data["spec"]["matrix"]
    problems = list(find_oversize(matrix)) or list(find_variables_of_name(data))
    if problems:
        return problems
    # The rest is checked after substitution.
    # The key has the location of what is wrong with the whole matrix.
    alone = {key: value for key, value in data["spec"].items() if key == "matrix"}
    errors = config.find_errors({**data, "spec": alone}, "trainingjob", frameworks)
    # The matrix can be expanded in spite of these.
    unclear = [problem for problem in errors if problem.rule == ambiguous.RULE]
    problems = (
        list(find_misspelled_keys(matrix))
        or [problem for problem in errors if problem.rule != ambiguous.RULE]
        or list(find_matrix_errors(matrix))
    )
    if not problems:
        made = expand_sweep(data, problems)
        problems = problems or [found for one in made for found in config.find_errors(one, "trainingjob", frameworks)]
        if problems and problems[0].location:
            problems = _report_as_written(problems, config.find_errors(data, "trainingjob", frameworks))
    return problems + unclear


def _report_as_written(problems: Sequence[Problem], written: Iterable[Problem]) -> list[Problem]:
    """Return the problems of all members, each as the document has it if it does: it shows no value of one member.

    A value that is an expression itself is right in the document, and wrong in a member.
    """
    known = {(problem.rule, problem.location): problem for problem in written if not _is_expression(problem.node)}
    return [known.get((problem.rule, problem.location), problem) for problem in problems]


def _is_expression(node: Node) -> bool:
    return "${{" in str(value_of(node)) if isinstance(value_of(node), str) else False


@lru_cache(maxsize=64)
def _may_have_expressions(content: bytes) -> bool:
    """Search a file, once for all its documents, for the start of an expression, also in the form of other tools."""
    return b"{{" in content


def _locate_errors(job: Job, faults: Callable[[ValidFields], Iterable[Problem]]) -> Iterator[Finding]:
    """The errors of one document with locations, each once, however many members have it."""
    data = config.read_traced(job.file)[job.position].data
    return iter(dict.fromkeys(locate(problem, job.file.path, job.location) for problem in faults(data)))


def _read_manifests(whole: Job, findings: list[Finding], mended: list[MendedJob] | None) -> Iterator[Job]:
    if list_errors(whole.document.data):
        findings += _locate_errors(whole, list_errors)
    path = whole.file.path
    for item, manifest in enumerate(split_list(whole.document.data)):
        job = whole._replace(document=JobDocument(manifest, path), item=item)
        find: Callable[[Any], Iterable[Problem]] = manifest_errors
        if is_kustomization(path) and any(manifest_errors(manifest)):
            find = _find_kustomization
        elif _may_have_expressions(whole.file.content) and not manifest_errors(manifest):
            find = find_variables_of_manifest
        if any(find(manifest)):
            problems = list(find(job.traced_document().data))
            findings += [locate(problem, path, job.start()) for problem in problems]
            each = _name_manifest(job, problems) if find is manifest_errors and mended is not None else None
            if mended is not None and each:
                mended.append(each)
        else:
            yield job


def _find_kustomization(document: Node) -> Iterator[Problem]:
    message = "this is a kustomization, and jobgen reads every file here as jobs or objects"
    yield Problem(
        "missing-field", Sentence("{}; move it with its resources to another folder, or remove it", message), document
    )


def _name_manifest(job: Job, problems: Sequence[Problem]) -> MendedJob | None:
    """Return an object whose name is at fault with two other names; None if it has other faults.

    Without any metadata it is a part of something else, and with a name in braces it is a template.
    """
    data = job.traced_document().data
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict) or isinstance(metadata.get("name"), dict | list):
        return None
    copies = [{**data, "metadata": {**metadata, "name": name}} for name in ("unnamed", "without-name")]
    if any(manifest_errors(copies[0])):
        return None
    left_out, filled = (
        job._replace(document=job.document._replace(data=untraced(copied)), mended=copied) for copied in copies
    )
    return MendedJob(left_out, filled, frozenset(location_of(problem.node) for problem in problems))
