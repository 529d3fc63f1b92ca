"""Code actions: what they change is what `jobgen lint --fix` writes, removes the finding and adds no error."""

import itertools
import re
from collections import Counter
from random import Random

import pytest
from command import jobgen
from sampling import sample
from test_fix import EXAMPLES_OF_FAULTS
from transcripts import files_below, find_transcripts, read_transcript

import jobgen as jobgen_api
from jobgen.api.fix import compute_fixes
from jobgen.api.lint_files import LintRequest
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.list_offers import (
    list_extractions,
    list_fix_all,
    list_fixes,
    list_offers,
    list_suppressions,
)
from jobgen.features.editor.offers import (
    MORE_ERRORS,
    ActionRequest,
    Change,
    is_new,
    list_migrations,
    list_replacements,
)
from jobgen.features.editor.server.positions import LineMap, Units
from jobgen.features.editor.workspace import Workspace
from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.yamlio.read import read

TODAY = "2025-01-31"
TRANSCRIPTS = [read_transcript(path) for path in find_transcripts("fix")]
ENCODINGS = ("utf-8", "utf-16", "utf-32")


def open_workspace(folder):
    """A workspace with the results of the background process."""
    workspace = Workspace(folder, TODAY)
    workspace.linter = WorkspaceLinter(folder, TODAY)
    return lint_all(workspace)


def lint_all(workspace):
    workspace.take(workspace.linter.lint(workspace.drafts, lambda *_: None))
    return workspace


def request(workspace, file, location=None):
    """A request for the actions of a location, or of the whole file."""
    everywhere = Location(file, 1, 1, 10**6, 1)
    return ActionRequest(workspace, file, location or everywhere, workspace.lint_file(file).all)


def files_with_findings(workspace):
    return sorted(file for file in workspace.snapshot.findings if workspace.lint_file(file).all)


def use(workspace, change):
    """Make a change in the editor, as a client does: by replacing ranges."""
    for file, new in change.files.items():
        old = workspace.read(file).content.decode()
        text = apply_as_client(old, list_replacements(old, new.decode()), "utf-16")
        assert text == new.decode()
        workspace.open(workspace.root / file, text)
    lint_all(workspace)


def apply_as_client(text, replacements, encoding):
    """The text after replacements, each at positions that count units of an encoding."""
    lines, units = LineMap(text, Units(encoding)), {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    rows = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z|\Z", text)

    def find(position):
        row = rows[position.line]
        content = row.rstrip("\r\n").encode(name)
        assert position.character * units <= len(content), "after the end of the line"
        return len("".join(rows[: position.line])) + len(content[: position.character * units].decode(name))

    for each in reversed(replacements):
        start, end = find(lines.position(each.start)), find(lines.position(each.end))
        text = text[:start] + each.text + text[end:]
    return text


def errors(workspace):
    found = [each for several in workspace.snapshot.findings.values() for each in several.all]
    return Counter(each.location.file for each in found if each.severity is Severity.ERROR)


def name_fault(finding):
    return finding.rule, finding.message, finding.env, finding.location.file


def faults(workspace):
    return Counter(name_fault(each) for several in workspace.snapshot.findings.values() for each in several.all)


def fix_one_by_one(workspace, *, unsafe):
    """Take offers until there are none; check each. Return the files that changed."""
    for _ in range(30):
        offers = (
            offer
            for file in sorted(workspace.snapshot.findings)
            for offer in list_fixes(request(workspace, file))
            if offer.is_preferred or unsafe
        )
        taken = next(((offer, made) for offer in offers if isinstance(made := offer.make(), Change)), None)
        if taken is None:
            return {file: workspace.read(file).content for file in files_below(workspace.root)}
        offer, change = taken
        before, there = errors(workspace), faults(workspace)
        use(workspace, change)
        left = faults(workspace)
        assert all(left[name] < there[name] for name in map(name_fault, offer.findings)), offer.title
        assert not errors(workspace) - before, offer.title
    raise AssertionError("there is always something to fix")


def fix_all(workspace):
    """The files that the offers to fix all safe findings change."""
    changed = {}
    for file in files_with_findings(workspace):
        for offer in list_fix_all(request(workspace, file)):
            made = offer.make()
            changed |= made.files if isinstance(made, Change) else {}
    return changed


@pytest.mark.parametrize("transcript", sample(TRANSCRIPTS, 3), ids=lambda transcript: transcript.name)
def test_fixes_write_what_lint_fix_writes(transcript, tmp_path):
    folder = transcript.write_repository(tmp_path)
    unsafe = transcript.steps[0].arguments[-1] == "--fix-unsafe"
    expected = {path: text for path, text in transcript.expected.items() if "diff" not in path}
    workspace = open_workspace(folder)

    assert fix_all(workspace) == ({} if unsafe else expected)
    assert fix_one_by_one(workspace, unsafe=unsafe) == transcript.files() | expected
    assert files_below(folder) == transcript.files(), "the disk stays as it is"


MANIFEST = """\
# Größe 🚀
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - {name: pytorch, args: ["größe 🚀"], securityContext: {privileged: true}, image: "example.com/bert:latest"}
"""


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    return open_workspace(folder)


def suppress_all(workspace, file):
    """Take offers to suppress until there are none."""
    for _ in range(20):
        offers = list(list_suppressions(request(workspace, file)))
        if not offers:
            return workspace.read(file).content.decode()
        before = faults(workspace)
        use(workspace, offers[0].make())
        left = faults(workspace)
        assert all(left[name] < before[name] for name in map(name_fault, offers[0].findings)), offers[0].title
        # Several rules may report one fault.
        assert {rule for rule, *_ in left - before} <= {
            each for one in offers[0].findings for each in one.also_reported_by
        }
    raise AssertionError("there is always something to suppress")


def test_suppression_stands_on_the_line_or_above_it(tmp_path):
    text = suppress_all(write(tmp_path, {"bert.yaml": MANIFEST}), "bert.yaml")

    line = next(line for line in text.splitlines() if "latest" in line)
    assert "            # jobgen: ignore[privileged-container, mutable-image-tag] -- TODO: state the reason\n" in text
    assert "#" not in line
    new, old = ([each.data for each in read(each.encode(), "").documents] for each in (text, MANIFEST))
    assert new == old


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace('bert:latest"}', 'bert:latest"}  # a note'),
        lambda text: text.replace('"example.com/bert:latest"', '"example.com/bert\\\n      :latest"'),
        lambda text: text.replace("replicas: 1", "replicas: 1\t# one"),
        lambda text: f"{text}---\n{text.replace('bert', 'bart')}",
        lambda text: text.removesuffix("\n"),
    ],
)
def test_suppression_keeps_the_data_of_any_text(change, tmp_path):
    text = change(MANIFEST)
    workspace = write(tmp_path, {"bert.yaml": text})
    assert faults(workspace)

    new = suppress_all(workspace, "bert.yaml")

    before, after = (read(each.encode(), "") for each in (text, new))
    assert [each.data for each in before.documents] == [each.data for each in after.documents]
    assert ("\r\n" in new) == ("\r\n" in text)
    assert not set(re.findall("(?<!\r)\n", new)) or "\r\n" not in text


def test_suppression_joins_a_comment(tmp_path):
    comment = "            # jobgen: ignore[mutable-image-tag] -- known\n"
    text = MANIFEST.replace("            - {", f"{comment}            - {{")

    new = suppress_all(write(tmp_path, {"bert.yaml": text}), "bert.yaml")

    joined = comment.replace("mutable-image-tag", "mutable-image-tag, privileged-container")
    assert new == text.replace(comment, joined)


def test_suppression_stands_beside_a_short_line(tmp_path):
    text = (
        MANIFEST[: MANIFEST.index("            - {")] + "            - name: pytorch\n              image: a:latest\n"
    )
    new = suppress_all(write(tmp_path, {"bert.yaml": text}), "bert.yaml")

    comment = "# jobgen: ignore[mutable-image-tag] -- TODO: state the reason"
    assert new == text.replace("a:latest\n", f"a:latest  {comment}\n")


def test_suppression_is_not_offered_where_it_has_no_effect(tmp_path):
    settings = "mandatory: [mutable-image-tag]\n"
    files = {"jobgen.yaml": settings, "jobs/bert.yaml": MANIFEST, "jobs/broken.yaml": "a: [", "jobs/a.json": "{}"}
    workspace = write(tmp_path, files)
    offered = [offer for file in files for offer in list_suppressions(request(workspace, file))]

    rules = {each.rule for file in files for each in workspace.lint_file(file).all}
    assert {"mutable-image-tag", "yaml-syntax"} <= rules
    assert {(each.location.file, each.rule) for offer in offered for each in offer.findings} == {
        ("jobs/bert.yaml", "privileged-container")
    }


def test_ambiguous_scalar_is_quoted_unless_that_is_an_error(tmp_path):
    text = MANIFEST.replace("replicas: 1", "replicas: 0x1").replace(
        "metadata: {name: bert, namespace: ml}", "metadata: {name: bert, namespace: ml, annotations: {on: 1.10}}"
    )
    workspace = write(tmp_path, {"bert.yaml": text})
    offers = {offer.id: offer for offer in list_offers(request(workspace, "bert.yaml"))}

    assert offers["quote 8:17"].title == "Quote this scalar"
    assert offers["quote 8:17"].make() == MORE_ERRORS
    quoted = [offer for offer in offers.values() if "1.10" in str(offer.make())]
    assert quoted


MXNET = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: old}
spec:
  framework: mxnet
  image: mxnet:1 # the last one
  ports: {mxjob-port: 9991}
  roles:
    scheduler: {}
    worker: {replicas: 3, command: [python3, größe.py], resources: {cpu: 1, memory: 1Gi}} # three
"""


def migrations(workspace, file, line):
    at = Location(file, line, 5, line, 5)
    return {offer.title: offer.make() for offer in list_migrations(request(workspace, file, at))}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_spec_is_migrated_as_the_command_does(tmp_path, newline):
    other = MXNET.replace("old", "other").replace("\n", newline)
    text = f"{other}---{newline}" + MXNET.replace("\n", newline)
    workspace = write(tmp_path, {"jobgen.yaml": "{}\n", "jobs/old.yaml": text})

    [(title, change)] = migrations(workspace, "jobs/old.yaml", 16).items()

    assert (title, change.note) == ("Migrate to PyTorchJob of kubeflow (2 fields lost)", "lost: ports, roles.scheduler")
    accepted = ["--accept=lost-fields", "--accept=lost-roles"]
    printed = jobgen(tmp_path, "migrate", "old", "--to", "PyTorchJob", *accepted).stdout.decode()
    assert list(change.files) == ["jobs/old.yaml"]
    assert change.files["jobs/old.yaml"].decode() == f"{other}---{newline}" + printed.replace("\n", newline)
    assert "# the last one" in printed


def test_manifest_is_migrated_with_its_runtime(tmp_path):
    workspace = write(tmp_path, {"jobs/bert.yaml": MANIFEST, "jobgen.yaml": "{}\n"})

    [(title, change)] = migrations(workspace, "jobs/bert.yaml", 3).items()

    assert title == "Migrate to TrainJob of trainer"
    assert "the comments of the manifest are lost" in change.note
    assert list(change.files) == ["jobs/bert.yaml", "runtimes/bert.yaml"]
    printed = jobgen(tmp_path, "migrate", "bert", "--to", "trainer").stdout.decode()
    assert "---\n".join(text.decode() for text in change.files.values()) == printed
    # Only where the kind is written.
    assert not migrations(workspace, "jobs/bert.yaml", 8)
    (tmp_path / "runtimes").mkdir()
    (tmp_path / "runtimes/bert.yaml").write_text("kind: other\n")
    assert not migrations(workspace, "jobs/bert.yaml", 3)


@pytest.mark.parametrize(
    ("path", "target"),
    [("runtimes", "../outside"), ("runtimes/bert.yaml", "../../outside/new.yaml"), ("runtimes/bert.yaml", "bert.yaml")],
)
def test_no_change_creates_a_file_through_a_link(tmp_path, path, target):
    (tmp_path / "outside").mkdir()
    workspace = write(tmp_path / "repository", {"jobs/bert.yaml": MANIFEST, "jobgen.yaml": "{}\n"})
    assert is_new(workspace, "runtimes/bert.yaml")
    (workspace.root / path).parent.mkdir(exist_ok=True)
    (workspace.root / path).symlink_to(target)

    assert not migrations(workspace, "jobs/bert.yaml", 3)
    for file in ("runtimes/bert.yaml", "../outside/a.yaml"):
        assert not is_new(workspace, file)


@pytest.mark.parametrize("name", ["../../bert", "/tmp/bert", "..", "a/../../../b"])
def test_name_of_a_job_chooses_no_file_outside(tmp_path, name):
    manifest = MANIFEST.replace("name: bert", f"name: {name}")
    assert manifest != MANIFEST
    workspace = write(tmp_path, {"jobs/bert.yaml": manifest, "jobgen.yaml": "{}\n"})
    assert migrations(workspace, "jobs/bert.yaml", 3) == {}


SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: example.com/train:1.2
  env: {SEED: "größe 🚀"}
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
"""
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {platform: kubeflow}
  defaults:
    resources: {memory: 16Gi}
"""
LEAF = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  extends: [base]\n  namespace: ml-"
REPOSITORY = {
    "jobgen.yaml": "{}\n",
    "jobs/bert.yaml": SPEC,
    "jobs/bart.yaml": SPEC.replace("bert", "bart").replace('  env: {SEED: "größe 🚀"}\n', ""),
    "overlays/base/overlay.yaml": BASE,
    "overlays/dev/overlay.yaml": f"{LEAF}dev\n",
    "overlays/prod/overlay.yaml": f"{LEAF}prod\n",
}


def extractions(workspace, line, column, file="jobs/bert.yaml"):
    at = Location(file, line, column, line, column)
    return {offer.title: offer.make() for offer in list_extractions(request(workspace, file, at))}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("line", "column", "path", "removed", "added"),
    [
        (6, 5, "image", "  image: example.com/train:1.2\n", "    image: example.com/train:1.2\n"),
        (6, 12, "image", "  image: example.com/train:1.2\n", "    image: example.com/train:1.2\n"),
        (8, 16, "resources.cpu", "cpu: 4, ", ", cpu: 4"),
        (8, 26, "resources.memory", "memory: 16Gi, ", ""),
    ],
)
def test_value_is_moved_to_an_overlay(tmp_path, newline, line, column, path, removed, added):
    files = {name: text.replace("\n", newline) for name, text in REPOSITORY.items()}
    workspace = write(tmp_path, files)

    [(title, change)] = extractions(workspace, line, column).items()

    assert (title, change.note) == (f"Move `{path}` to the defaults of overlay base", "")
    moved = {"jobs/bert.yaml": SPEC.replace(removed, "")}
    if added:
        anchor = "16Gi" if added.startswith(",") else "16Gi}\n"
        moved["overlays/base/overlay.yaml"] = BASE.replace(anchor, f"{anchor}{added}")
    assert {name: text.decode() for name, text in change.files.items()} == {
        name: text.replace("\n", newline) for name, text in moved.items()
    }
    before = jobgen_api.render(tmp_path)
    use(workspace, change)
    with workspace.reading():
        assert jobgen_api.render(tmp_path).objects == before.objects


def test_other_jobs_that_a_move_changes_are_named(tmp_path):
    workspace = write(tmp_path, REPOSITORY)

    [(title, change)] = extractions(workspace, 7, 4).items()

    assert title == "Move `env` to the defaults of overlay base (changes 1 other job)"
    assert change.note == "it also changes bart"


def test_move_is_not_offered_if_an_object_would_change(tmp_path):
    workspace = write(tmp_path, REPOSITORY)
    assert extractions(workspace, 6, 5)
    # The overlay of an open document has another default.
    workspace.open(tmp_path / "overlays/base/overlay.yaml", f"{BASE}    image: example.com/train:2\n")
    assert not extractions(workspace, 6, 5)
    workspace.close(tmp_path / "overlays/base/overlay.yaml")
    # The environments have nothing in common.
    workspace.open(tmp_path / "overlays/prod/overlay.yaml", f"{LEAF}prod\n".replace("  extends: [base]\n", ""))
    assert not extractions(workspace, 6, 5)
    workspace.close(tmp_path / "overlays/prod/overlay.yaml")
    # The job has an error, and its metadata has no default.
    assert not extractions(workspace, 3, 14)
    workspace.open(tmp_path / "jobs/bert.yaml", SPEC.replace("cpu: 4", "cpu: many"))
    assert not extractions(workspace, 6, 5)


def test_lost_comment_is_stated(tmp_path):
    text = SPEC.replace("train:1.2", "train:1.2  # ours")
    [change] = extractions(write(tmp_path, REPOSITORY | {"jobs/bert.yaml": text}), 6, 5).values()

    assert change.note == "the comment after the value is lost"


VARIANTS = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "astral": lambda text: f"# Größe 🚀 {'𝒳' * 3}\n" + text.replace(" {", " { ").replace("\n", " # 🚀\n", 1),
    "documents": lambda text: f"{text}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: größe, namespace: ml}}\n",
    "tabs": lambda text: text.replace("\n", "\t\n", 3),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_fixes_of_unusual_texts_are_those_of_lint_fix(variant, tmp_path):
    """The same for other line ends, characters of two units, several documents, and tabs at the end of lines."""
    taken = 0
    for number, transcript in enumerate(TRANSCRIPTS):
        plain = {path: text.decode() for path, text in transcript.files().items()}
        files = {path: VARIANTS[variant](text) if path.startswith("jobs/") else text for path, text in plain.items()}
        if number % 12 != list(VARIANTS).index(variant) or any(path.endswith(".json") for path in files):
            continue
        workspace = write(tmp_path / transcript.name, files)
        unsafe = transcript.steps[0].arguments[-1] == "--fix-unsafe"
        fixed = compute_fixes(LintRequest(workspace.root, today=TODAY), unsafe=unsafe).files
        assert fix_one_by_one(workspace, unsafe=unsafe) == {
            **{path: text.encode() for path, text in files.items()},
            **{each.path: each.new for each in fixed},
        }, transcript.name
        taken += len(fixed)

    assert taken >= 5


def test_overlay_is_fixed_beside_errors_of_jobs_as_lint_fix_does(tmp_path):
    """The jobs of an overlay with errors are not rendered with it, but their errors are known."""
    broken = VARIANTS["documents"](SPEC)
    overlay = BASE.replace("platform: kubeflow", "platform: kubeflow, gpu-resource: amd.com/gpu")
    workspace = write(tmp_path, REPOSITORY | {"jobs/bert.yaml": broken, "overlays/base/overlay.yaml": overlay})

    fixed = compute_fixes(LintRequest(workspace.root, today=TODAY), unsafe=False).files
    assert [each.path for each in fixed] == ["overlays/base/overlay.yaml"]
    assert fix_one_by_one(workspace, unsafe=False)["overlays/base/overlay.yaml"] == fixed[0].new


def test_replacements_are_small_and_give_the_new_text():
    random = Random(5)
    parts = ("a", "bc", "🚀", "ö", "\n", "\r\n", "\r", "  ", "x: y\n", "\r\n\r\n", "\u2028", "\x0b")
    for _ in range(400):
        old = [random.choice(parts) for _ in range(random.randrange(30))]
        new = list(old)
        for _ in range(random.randrange(4)):
            at = random.randrange(len(new) + 1)
            new[at : at + random.randrange(3)] = random.choices(parts, k=random.randrange(3))
        before, after = "".join(old), "".join(new)
        found = list_replacements(before, after)

        assert all(apply_as_client(before, found, encoding) == after for encoding in ENCODINGS)
        assert all(left.end < right.start for left, right in itertools.pairwise(found))
        assert bool(found) == (before != after)


def test_long_text_is_compared_quickly():
    old = "".join(f"key{number}: {number}\n" for number in range(20_000))
    new = old.replace("key10: 10\n", "key10: 11\n").replace("key19990: 19990\n", "")
    found = list_replacements(old, new)

    assert apply_as_client(old, found, "utf-16") == new


@pytest.mark.parametrize(
    ("rule", "secret"), [("plain-secret", "hunter2-5ECRET-t0ken"), ("ambiguous-scalar", "0812345678123")]
)
def test_titles_have_no_secrets(rule, secret, tmp_path):
    text = SPEC.replace('{SEED: "größe 🚀"}', f"{{DB_PASSWORD: {secret}}}")
    workspace = write(tmp_path, REPOSITORY | {"jobs/bert.yaml": text})
    offers = list_offers(request(workspace, "jobs/bert.yaml", Location("jobs/bert.yaml", 7, 10, 7, 26)))

    assert rule in {each.rule for offer in offers for each in offer.findings}
    changes = [made for offer in offers if isinstance(made := offer.make(), Change)]
    assert changes
    assert secret.strip("0") not in repr([*(offer.title for offer in offers), *(change.note for change in changes)])


def test_quick_fixes_of_examples_remove_the_finding_and_add_no_error(tmp_path):
    taken = 0
    for number, (_, case) in enumerate(EXAMPLES_OF_FAULTS[::5]):
        folder = tmp_path / str(number)
        case.write(folder)
        before = files_below(folder)
        taken += fix_one_by_one(open_workspace(folder), unsafe=True) != before

    assert taken >= 12


def test_fix_of_settings_that_hide_everything(tmp_path):
    settings = "enviroments: [dev]\nmandatry: [mutable-image-tag]\n"
    files = REPOSITORY | {"jobgen.yaml": settings, "jobs/bart.yaml": SPEC.replace("cpu: 4", "cpu: many")}
    workspace = write(tmp_path, files)

    while offers := list(list_fixes(request(workspace, "jobgen.yaml"))):
        use(workspace, offers[0].make())

    text = workspace.read("jobgen.yaml").content
    assert text == b"environments: [dev]\nmandatory: [mutable-image-tag]\n"
    assert errors(workspace)["jobs/bart.yaml"]


def test_offers_are_few_and_keep_their_names(tmp_path):
    containers = "".join(f"            - {{name: c{each}, image: a:latest}}\n" for each in range(200))
    head = MANIFEST[: MANIFEST.index("            - {")]
    workspace = write(tmp_path, {"bert.yaml": head.replace("replicas: 1", 'replicas: "1"') + containers})
    everything = list_offers(request(workspace, "bert.yaml"))
    first = next(each.location for offer in everything for each in offer.findings if each.fix)
    some = {offer.id for offer in list_offers(request(workspace, "bert.yaml", first)) if offer.id.startswith("fix")}

    assert len(everything) < 50
    assert some <= {offer.id for offer in everything}


def test_cursor_on_a_line_gets_the_actions_of_its_findings_the_nearest_first(tmp_path):
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n  framework: pytorch\n"
    job += "  image: a/b:1\n  env: {A: yes, B: 0755}\n"
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml, cluster: {platform: kubeflow}}\n"
    for path, text in {"jobgen.yaml": "", "jobs/a.yaml": job, "overlays/prod/overlay.yaml": overlay}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    workspace = open_workspace(tmp_path)

    def list_lines(line, column, end):
        asked = request(workspace, "jobs/a.yaml", Location("jobs/a.yaml", line, column, line, end))
        offers = [*list_fixes(asked), *list_suppressions(asked)]
        return [(each.location.line, each.location.column) for offer in offers for each in offer.findings]

    first, second = (7, 12), (7, 20)
    assert set(list_lines(7, 3, 3)) == {first, second}, "on the key"
    assert list_lines(7, 13, 13)[0] == first
    assert list_lines(7, 21, 21)[0] == second
    assert set(list_lines(7, 21, 22)) == {second}, "a selection is exact"
    assert not list_lines(6, 3, 3)
