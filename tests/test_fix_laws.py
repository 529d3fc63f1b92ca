"""The laws of `--fix`: it changes the value or key of a finding and nothing else, and a slip becomes what it was."""

import re
import tempfile
from pathlib import Path

import pytest
from examples import EXAMPLES, cases
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths
from sampling import laws, sample
from transcripts import files_below

from jobgen.api.fix import apply_fixes, compute_fixes
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.model.data import TracedKey, TracedScalar, untraced
from jobgen.model.meant import find_meant
from jobgen.model.suggest import suggest_quantity
from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_inline_yaml, to_yaml

TODAY = "2025-01-31"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml, labels: {project: nlp}}
spec:
  framework: pytorch   # the framework
  platform: kubeflow
  image: "registry.example.com/a:1.0.0"
  command: [torchrun, train.py]
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
  shm: 16Gi
  queue: team-a
  serviceAccount: trainer
  annotations: {example.com/a: b}
  env: {NCCL_DEBUG: INFO}
  volumes:
    data: {pvc: data, mountPath: /data}
  runPolicy:
    backoffLimit: 3
    cleanPodPolicy: Running
  roles:
    master: {}
    worker: {replicas: 3, restartPolicy: OnFailure}
"""
BASE = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: dev}
spec:
  namespace: ml
  cluster: {platforms: [kubeflow], gitops: argocd}
  defaults: {labels: {cluster: dev}, podTemplate: {spec: {terminationGracePeriodSeconds: 30}}}
  patches:
    - match: {names: [a]}
      merge: {shm: 8Gi}
"""
PROD = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\n"
PROD += "spec: {extends: [dev], cluster: {gpuResource: amd.com/gpu}}\n"
FILES = {"jobs/a.yaml": JOB, "overlays/dev/overlay.yaml": BASE, "overlays/prod/overlay.yaml": PROD}
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: ml}\ndata: {a: b}\n"


def write(folder, files):
    for name, text in {"jobgen.yaml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def fix(folder, *, unsafe=False):
    """Fix all files of a folder, and return what was told."""
    return lint_paths(folder, (), (), format_="text", fix="unsafe" if unsafe else "safe", today=TODAY)


def load(text):
    return [untraced(document.data) for document in read(text.encode(), "a.yaml").documents]


def rendered(folder):
    project = config.load_own(folder)
    return "".join(
        f"# {made.env}\n{to_yaml(made.object)}" for made in render_jobs(project, project.environments()).objects
    )


# What one fix changes, by the locations of its edits.


def list_leaves(tree, path=()):
    """Yield the path of each scalar, with the places of all keys on it and of the scalar itself."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            place = {key.location[1:3]} if isinstance(key, TracedKey) else set()
            for below, (found, places) in list_leaves(value, (*path, str(key))):
                yield below, (found, places | place)
        if not tree:
            yield path, ({}, set())
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from list_leaves(value, (*path, at))
        if not tree:
            yield path, ([], set())
    else:
        is_traced = isinstance(tree, TracedScalar)
        yield path, (untraced(tree), {tree.location[1:3]} if is_traced else set())


def read_leaves(content, file):
    documents = read(content, file, traced=True).documents
    return dict(list_leaves([document.data for document in documents]))


EXAMPLES_WITH_FIXES = [
    (path.stem, case)
    for path in sorted(EXAMPLES.glob("*.yaml"))
    for case in cases(path)
    if case.expected and f"`{path.stem}`" in (Path(__file__).parent.parent / "docs/fixes.md").read_text()
]
CRLF = "crlf"
CONTENTS = {
    "plain": lambda text: text,
    CRLF: lambda text: text.replace("\n", "\r\n"),
    "comments": lambda text: re.sub(r"(?m)^(\s*)(\w+: [\w./-]+)$", r"\1\2  # why", text),
}


@pytest.mark.parametrize(
    ("rule", "case"),
    sample(EXAMPLES_WITH_FIXES, 2, [f"{rule}: {case.title}" for rule, case in EXAMPLES_WITH_FIXES]),
)
@pytest.mark.parametrize("variant", CONTENTS)
def test_a_fix_changes_only_what_its_finding_is_about(rule, case, variant, tmp_path):
    case.write(tmp_path)
    for path, content in files_below(tmp_path).items():
        if path.endswith(".yaml") and path.startswith(("jobs/", "overlays/", "teams/")):
            (tmp_path / path).write_bytes(CONTENTS[variant](content.decode()).encode())
    for finding in find_findings(LintRequest(tmp_path, today=TODAY)).findings:
        if not finding.fix or finding.fix.edits[0].op == "comment":
            continue
        file = finding.fix.edits[0].location.file
        old = (tmp_path / file).read_bytes()
        new, count = apply_fixes(old, file, [finding.fix.edits])
        if finding.fix.edits[0].op == "join":
            # Parts become one text, and later items move: only quotes are added.
            assert count == 1
            assert new.replace(b'"', b"") == old.replace(b'"', b"")
            assert len(read_leaves(new, file)) < len(read_leaves(old, file))
            continue
        before, after = read_leaves(old, file), read_leaves(new, file)
        if finding.fix.edits[0].op == "split":
            # One text becomes several items, and later items move.
            values, [edit] = [value for value, _ in before.values()], finding.fix.edits
            at = values.index(edit.was)
            assert [value for value, _ in after.values()] == [*values[:at], *edit.value, *values[at + 1 :]]
            continue
        places = {edit.location[1:3] for edit in finding.fix.edits}
        added = {edit.key for edit in finding.fix.edits if edit.op == "add"}
        renamed = {edit.value for edit in finding.fix.edits if edit.op == "rename"}

        assert (new != old) == bool(count)
        for path, (value, found) in before.items():
            assert places & found or after[path][0] == value, (finding, path)
        for path in after.keys() - before.keys():
            assert {*path} & (added | renamed) or value == {}, (finding, path)
        assert new.count(b"\n") == new.count(b"\r\n") or b"\r\n" not in old


# A slip of the keyboard.

WORDS = sorted({*re.findall(r"[A-Za-z]\w{2,}(?=:)|\b(?:pytorch|kubeflow|Running|OnFailure|argocd)\b", JOB + BASE)})
USER_WORDS = {"project", "cluster", "NCCL_DEBUG", "data", "com", "a"}


def slip(draw, word):
    """A word with one slip in it."""
    at = draw(st.integers(0, len(word) - 2))
    letter = draw(st.sampled_from("aeioustrnl"))
    return draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            ]
        )
    )


def write_flow(text):
    return "---\n".join(f"{to_inline_yaml(each)}\n" for each in load(text))


STYLES = {
    "block": lambda text: text,
    "flow": write_flow,
    "crlf": CONTENTS[CRLF],
    "documents": lambda text: f"{CONFIG_MAP}---\n{text}" if "TrainingJob" in text else text,
    "quoted": lambda text: re.sub(r": (pytorch|kubeflow|OnFailure|64Gi)\b", r": '\1'", text),
    "own anchor": lambda text: text.replace("volumes:\n", "volumes: &v\n"),
}


@laws(20)
@given(st.data())
def test_a_slip_becomes_what_it_was_or_stays(data):
    style = STYLES[data.draw(st.sampled_from(sorted(STYLES)))]
    files = {name: style(text) for name, text in FILES.items()}
    meant = dict(files)
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(sorted(files)[:2]))
        word = data.draw(
            st.sampled_from([each for each in WORDS if re.search(rf"\b{each}\b", files[name])] or ["spec"])
        )
        typed = slip(data.draw, word)
        if word not in USER_WORDS:
            files[name] = re.sub(rf"(?<![\w/.-]){word}\b(?![\w/.-])", typed, files[name], count=1)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        fix(Path(folder))
        for name, text in files.items():
            new = (Path(folder) / name).read_bytes().decode()
            # Each line is as it was typed or as it was meant.
            for typed, right, found in zip(*(each.split("\n") for each in (text, meant[name], new)), strict=True):
                assert style is write_flow or found in (typed, right)
        if all((Path(folder) / name).read_bytes().decode() == text for name, text in meant.items()):
            once = rendered(Path(folder))
            write(Path(folder), meant)
            assert rendered(Path(folder)) == once


@pytest.mark.parametrize(
    ("typed", "meant", "file"),
    [
        ("resouces:", "resources:", "jobs/a.yaml"),
        ("64gi", "64Gi", "jobs/a.yaml"),
        ("64GiB", "64Gi", "jobs/a.yaml"),
        ("pytroch ", "pytorch ", "jobs/a.yaml"),
        ("jobgen.dev/v1beta1", "jobgen.dev/v1", "jobs/a.yaml"),
        ("jobgen.dev/v1alpha2", "jobgen.dev/v1", "overlays/dev/overlay.yaml"),
        ("TrainigJob", "TrainingJob", "jobs/a.yaml"),
        ("kubeflw", "kubeflow", "jobs/a.yaml"),
        ("wroker:", "worker:", "jobs/a.yaml"),
        ("namspace: ml\n  c", "namespace: ml\n  c", "overlays/dev/overlay.yaml"),
        ("plaforms:", "platforms:", "overlays/dev/overlay.yaml"),
        ("lables: {cluster", "labels: {cluster", "overlays/dev/overlay.yaml"),
        ("patchs:", "patches:", "overlays/dev/overlay.yaml"),
        ("OnFailur}", "OnFailure}", "jobs/a.yaml"),
    ],
)
def test_a_misspelling_with_one_meaning_is_fixed_safely(typed, meant, file, tmp_path):
    assert meant in FILES[file]
    write(tmp_path, FILES | {file: FILES[file].replace(meant, typed, 1)})
    told = fix(tmp_path)

    assert (tmp_path / file).read_text() == FILES[file]
    assert told.err.startswith("1 finding fixed in 1 file\n")


@pytest.mark.parametrize(
    ("typed", "meant", "file"),
    [
        ("memory: 64gb", "memory: 64Gi", "jobs/a.yaml"),
        ("memory: 64g", "memory: 64Gi", "jobs/a.yaml"),
        ("jobgen.dev/v2", "jobgen.dev/v1", "jobs/a.yaml"),
        ("platform: kubeflow-trainer", "platform: kubeflow", "jobs/a.yaml"),
        ("enviroment:", "env:", "jobs/a.yaml"),
        # The value is no mapping.
        ("volums: 3\n  volumes:", "volumes:", "jobs/a.yaml"),
        ("resouces: {}\n  resources:", "resources:", "jobs/a.yaml"),
        ("labls: [a]\n  image:", "image:", "jobs/a.yaml"),
    ],
)
def test_a_misspelling_with_two_meanings_is_not_fixed_safely(typed, meant, file, tmp_path):
    files = FILES | {file: FILES[file].replace(meant, typed, 1)}
    write(tmp_path, files)
    fix(tmp_path)

    assert (tmp_path / file).read_text() == files[file]


def test_a_fix_of_nothing_names_the_unsafe_fixes(tmp_path):
    write(tmp_path, FILES | {"jobs/a.yaml": JOB.replace("64Gi", "64GB")})

    assert fix(tmp_path).err.startswith("0 findings fixed in 0 files\n`--fix-unsafe` would fix 1; review")
    assert fix(tmp_path, unsafe=True).err.startswith("1 finding fixed in 1 file\n")


def test_unsafe_fixes_that_would_not_be_made_are_not_counted(tmp_path):
    job = JOB.replace("64Gi", "64GB")
    write(tmp_path, FILES | {"jobs/a.yaml": job + "# sops signs this: ENC[a]\n"})
    signed = fix(tmp_path).err
    write(tmp_path, {"jobs/a.yaml": f"# a\x85b\n{job}"})
    odd = fix(tmp_path).err

    assert signed.startswith("0 findings fixed in 0 files\n")
    assert odd.startswith("0 findings fixed in 0 files\n"), odd
    assert "would fix" not in signed + odd


# Texts that commas cut.

ITEMS = ["train.py", "--lr", "--gpus=0", "1", "2", "3.5", "true", "a", '"x"', "--b=[1"]


@laws(40)
@given(st.lists(st.tuples(st.sampled_from(ITEMS[:-1]), st.sampled_from([",", ", "])), min_size=1, max_size=7))
def test_a_fix_of_a_list_only_adds_quotes(parts):
    line = "".join(item + comma for item, comma in parts).rstrip(", ")
    text = JOB.replace("[torchrun, train.py]", f"[torchrun, train.py, {line}]")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {"jobs/a.yaml": text})
        fix(Path(folder))
        new = (Path(folder) / "jobs/a.yaml").read_text()

    assert new.replace('"', "") == text.replace('"', "")
    before, after = (load(each)[0]["spec"]["command"] for each in (text, new))
    assert ",".join(map(str, untyped(after))) == ",".join(map(str, untyped(before)))
    # What became one item begins with an option and its value.
    assert all(item.startswith("--gpus=0,") for item in after if isinstance(item, str) and "," in item)


def untyped(items):
    """The items as they are written."""
    return [{True: "true"}.get(item, item) if isinstance(item, bool) else item for item in items]


@pytest.mark.parametrize(
    ("typed", "fixed"),
    [
        ("[torchrun, train.py, --gpus=0,1,2,3]", '[torchrun, train.py, "--gpus=0,1,2,3"]'),
        ("[torchrun, train.py, --gpus=0,1, --epochs, 3]", '[torchrun, train.py, "--gpus=0,1", --epochs, "3"]'),
        ("[torchrun,train.py,--epochs,3]", '[torchrun,train.py,--epochs,"3"]'),
        ("[torchrun, train.py, --betas=(0.9, 0.999), -x]", '[torchrun, train.py, "--betas=(0.9, 0.999)", -x]'),
        # The program may read these parts today.
        ("[torchrun, train.py, --layers=a,b]", "[torchrun, train.py, --layers=a,b]"),
        # Whether these are items is unknown.
        ("[torchrun, train.py, --gpus, 0,1]", "[torchrun, train.py, --gpus, 0,1]"),
        ("[torchrun,train.py,--gpus=0,1]", "[torchrun,train.py,--gpus=0,1]"),
    ],
)
def test_a_text_that_commas_cut_is_quoted_whole_or_not_at_all(typed, fixed, tmp_path):
    write(tmp_path, {"jobs/a.yaml": JOB.replace("[torchrun, train.py]", typed)})
    fix(tmp_path)

    assert f"  command: {fixed}\n" in (tmp_path / "jobs/a.yaml").read_text()


@pytest.mark.stress
@laws(20)
@given(st.lists(st.sampled_from(["0", "1", "a", "b.c"]), min_size=2, max_size=5), st.sampled_from([",", ", "]))
def test_a_fix_of_a_mapping_only_adds_quotes(parts, behind):
    line = f"nodeSelector: {{zone: {','.join(parts)}{behind}disk: ssd}}"
    text = JOB.replace("  env: {NCCL_DEBUG: INFO}", f"  {line}")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {"jobs/a.yaml": text})
        fix(Path(folder))
        new = (Path(folder) / "jobs/a.yaml").read_text()

    assert new.replace('"', "") == text.replace('"', "")
    selector = load(new)[0]["spec"]["nodeSelector"]
    assert new == text or selector == {"zone": ",".join(parts), "disk": "ssd"} or not isinstance(selector["zone"], str)


# Suggestions.


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("pytorch.nprocPerNode: 4", "write `pytorch: {nprocPerNode: 4}`"),
        ("podTemplate.spec: {hostIPC: true}", ""),
        ("enviroment: {A: b}", "did you mean `env`?"),
    ],
)
def test_a_field_is_suggested_by_its_path_and_its_other_words(line, told, tmp_path):
    text = JOB.replace("  env: {NCCL_DEBUG: INFO}\n", f"  {line}\n")
    write(tmp_path, {"jobs/a.yaml": text})

    assert told in lint_paths(tmp_path, (), (), format_="text", today=TODAY).out


@pytest.mark.parametrize(
    ("file", "typed", "fixed"),
    [
        ("jobs/a.yaml", "  pytorch.nprocPerNode: 4\n", "  pytorch: {nprocPerNode: 4}\n"),
        ("jobs/a.yaml", "  pytorch: {nprocPerNode: 1}\n  pytorch.nprocPerNode: 4\n", ""),
        ("overlays/dev/overlay.yaml", "  cluster.kubernetes: '1.30'\n", ""),
    ],
)
def test_a_path_that_is_written_as_a_key_is_fixed(file, typed, fixed, tmp_path):
    text = FILES[file].replace("spec:\n  namespace: ml\n", f"spec:\n  namespace: ml\n{typed}", 1)
    text = text.replace("  shm: 16Gi\n", f"  shm: 16Gi\n{typed}", 1)
    write(tmp_path, FILES | {file: text})
    fix(tmp_path)
    new = (tmp_path / file).read_text()

    if file.startswith("overlays/"):
        assert load(new)[0]["spec"]["cluster"] == {"platforms": ["kubeflow"], "gitops": "argocd", "kubernetes": "1.30"}
    else:
        assert new == text.replace(typed, fixed or typed)


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("resouces", ["resources", "replicas"], "resources"),
        ("Restart_Policy", ["restartPolicy"], "restartPolicy"),
        ("gup", ["gpu", "cpu"], "gpu"),
        ("cpu", ["gpu"], ""),
        ("a100", ["h100"], ""),
        ("v2", ["v1"], ""),
        ("h101", ["h100"], ""),
        ("cart", ["card", "care"], ""),
        ("jobgen.dev/v1beta1", ["jobgen.dev/v1"], "jobgen.dev/v1"),
        ("batch/v1beta1", ["batch/v1"], ""),
        ("x" * 1_000_000, ["x"], ""),
        ("gpu-queue", ["gpu-queue"], ""),
        ("gpu-queue", ["gpu-queue", "gpu-queues"], ""),
        ("GPU-queue", ["gpu-queue"], "gpu-queue"),
    ],
)
def test_certain_words(word, known, meant):
    assert find_meant(word, known) == meant


@pytest.mark.parametrize(
    ("written", "name", "meant", "is_safe"),
    [
        ("64gi", "memory", "64Gi", True),
        ("64 GiB", "memory", "64Gi", True),
        ("500 m", "cpu", "500m", True),
        ("64g", "memory", "64G", False),
        ("64GB", "memory", "64G", False),
        ("500mi", "cpu", "500Mi", False),
    ],
)
def test_certain_quantities(written, name, meant, is_safe):
    [step], safe = suggest_quantity(written, name)

    assert (step.value, safe) == (meant, is_safe)


def test_the_same_fixes_are_computed_twice(tmp_path):
    write(tmp_path, FILES | {"jobs/a.yaml": JOB.replace("resources", "resouces").replace("64Gi", "64gi")})
    one, other = (compute_fixes(LintRequest(tmp_path, today=TODAY), unsafe=False) for _ in range(2))

    assert one == other
    assert [file.new.decode() for file in one.files] == [JOB]


def test_no_fix_is_offered_for_a_text_that_an_alias_repeats(tmp_path):
    job = re.sub(r"master: [^$]*", "master: &role {resouces: {cpu: 8}}\n    worker: *role\n", JOB)
    write(tmp_path, FILES | {"jobs/a.yaml": job.replace("team-a", "team-a\n  replica: 1")})
    told = lint_paths(tmp_path, (), (), format_="text", today=TODAY).out

    assert "did you mean `resources`" in told
    assert "fixable" not in told.partition("resources")[2].partition("jobs/a.yaml")[0]
    assert fix(tmp_path, unsafe=True).err.startswith("1 finding fixed in 1 file\n")
    assert "resouces" in (tmp_path / "jobs/a.yaml").read_text()
