"""Fixes: a transcript in fix/ shows the files before and after `jobgen lint --fix` or `--fix-unsafe`.

A transcript has the name of its rule; what is special about it follows a dot. `manifest diff` is how the rendered
objects change.
"""

import ast
import re
import subprocess
from collections import Counter
from difflib import unified_diff
from pathlib import Path

import pytest
from examples import EXAMPLES, cases
from linting import lint_paths
from sampling import sample
from test_severities import list_parts
from transcripts import changed_files, files_below, find_transcripts, read_transcript

from jobgen.api.errors import UsageError
from jobgen.api.fix import FixedFile, compute_fixes, write_fixes
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.check.rule_docs import all_rule_docs
from jobgen.check.rules import all_rules
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.yamlio.write import to_yaml

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs/fixes.md"
TODAY = "2025-01-31"
TRANSCRIPTS = [read_transcript(path) for path in find_transcripts("fix")]
DIFF = "manifest diff"


def page():
    """The table of the page: rule, and whether its changes are safe, unsafe, or either."""
    return dict(re.findall(r"^\| `([\w-]+)` \| (safe|unsafe|both) \|", PAGE.read_text(), re.MULTILINE))


EXAMPLES_OF_FAULTS = [
    (rule, case) for rule in page() for case in cases(EXAMPLES / f"{rule}.yaml") if rule in dict(case.expected).values()
]
every_transcript = pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)


def option(transcript):
    """Which fixes the command of a transcript asks for."""
    return {"--fix": "safe", "--fix-unsafe": "unsafe"}[transcript.steps[0].arguments[-1]]


def fixed_files(transcript):
    """All files of the repository after the fix."""
    return transcript.files() | {path: text for path, text in transcript.expected.items() if path != DIFF}


def found(folder, *paths):
    return find_findings(LintRequest(folder, paths, today=TODAY)).findings


def apply_fixes(folder, *paths, fix="safe", diff=False):
    return lint_paths(folder, paths, (), format_="text", fix=fix, diff=diff, today=TODAY)


def errors(findings):
    return Counter(finding.rule for finding in findings if finding.severity is Severity.ERROR)


def rendered(folder):
    """The objects of all environments, as far as they can be made."""
    project = config.load_own(folder)
    return "".join(
        f"# {made.env}\n{to_yaml(made.object)}" for made in render_jobs(project, project.environments()).objects
    )


@pytest.fixture
def repository(transcript, tmp_path):
    return transcript.write_repository(tmp_path / "repository")


@every_transcript
def test_fix_transcript(transcript, repository, accept):
    rule = transcript.name.partition(".")[0]
    then, objects = found(repository), rendered(repository)
    told = apply_fixes(repository, fix=option(transcript))
    now = found(repository)
    new_objects = rendered(repository)
    diff = "".join(unified_diff(objects.splitlines(keepends=True), new_objects.splitlines(keepends=True), n=1))
    output = changed_files(transcript.files(), files_below(repository)) | ({DIFF: diff.encode()} if diff else {})
    if accept:
        transcript = transcript.accept([output])

    assert "fixed in 1 file\n" in told.err
    assert output == transcript.expected
    # Once is enough.
    assert "0 findings fixed in 0 files\n" in apply_fixes(repository, fix=option(transcript)).err
    assert files_below(repository) == fixed_files(transcript)
    # The rule finds nothing any more, and no rule finds more than before.
    assert rule in {finding.rule for finding in then if finding.fixable}
    assert rule not in {finding.rule for finding in now if finding.fixable}
    assert not errors(now) - errors(then)


@pytest.mark.parametrize("transcript", sample(TRANSCRIPTS, 3), ids=lambda transcript: transcript.name)
def test_fix_diff_writes_nothing_and_can_be_applied(transcript, repository, tmp_path):
    shown = apply_fixes(repository, fix=option(transcript), diff=True)
    patch = tmp_path / "a.patch"
    patch.write_bytes(shown.out.encode())

    assert files_below(repository) == transcript.files()
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", "-C", repository, "apply", patch], check=True)
    assert files_below(repository) == fixed_files(transcript)


@pytest.mark.parametrize(
    "transcript",
    [transcript for transcript in TRANSCRIPTS if option(transcript) == "unsafe"],
    ids=lambda transcript: transcript.name,
)
def test_fix_leaves_unsafe_changes_out(transcript, repository):
    apply_fixes(repository)

    assert files_below(repository) == transcript.files()


@pytest.mark.parametrize(
    ("rule", "case"),
    sample(EXAMPLES_OF_FAULTS, 5, [f"{rule}: {case.title}" for rule, case in EXAMPLES_OF_FAULTS]),
)
def test_unsafe_fix_of_an_example_adds_no_errors(rule, case, tmp_path):
    case.write(tmp_path)
    then = found(tmp_path)
    apply_fixes(tmp_path, fix="unsafe")
    first = files_below(tmp_path)
    now = found(tmp_path)
    apply_fixes(tmp_path, fix="unsafe")

    assert not errors(now) - errors(then)
    assert [finding for finding in now if finding.fixable] == []
    assert files_below(tmp_path) == first


def test_fixes_page_lists_the_rules_with_transcripts(tmp_path):
    shown: dict[str, set[str]] = {}
    for transcript in TRANSCRIPTS:
        for finding in found(transcript.write_repository(tmp_path / transcript.name)):
            if finding.fix:
                shown.setdefault(finding.rule, set()).add("safe" if finding.fix.safe else "unsafe")

    assert list(page()) == sorted(page())
    assert set(page()) == {transcript.name.partition(".")[0] for transcript in TRANSCRIPTS}
    assert set(page()) <= set(all_rule_docs())
    for rule, words in page().items():
        assert shown[rule] <= ({"safe", "unsafe"} if words == "both" else {words})


def test_rules_with_fixes_are_on_the_fixes_page():
    mending = {rule.name for rule in all_rules() if any("fix_steps=" in ast.unparse(part) for part in list_parts(rule))}

    assert len(mending) > 10

    assert mending <= set(page())


JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {spec: {containers: [{name: pytorch, image: "a:1", imagePullPolicy: always}]}}
"""
MENDED = JOB.replace("always", "Always")


@pytest.fixture
def loose(tmp_path):
    (tmp_path / "bert.yaml").write_text(JOB)
    return tmp_path


def test_fix_of_one_file_leaves_others_alone(loose):
    (loose / "other.yaml").write_text(JOB.replace("bert", "other"))
    apply_fixes(loose, "bert.yaml")

    assert (loose / "bert.yaml").read_text() == MENDED
    assert "always" in (loose / "other.yaml").read_text()


def test_fix_writes_through_a_symlink(loose):
    (loose / "link.yaml").symlink_to("bert.yaml")
    apply_fixes(loose, "link.yaml")

    assert (loose / "link.yaml").is_symlink()
    assert (loose / "bert.yaml").read_text() == MENDED


def test_read_only_file_is_not_fixed(loose):
    (loose / "bert.yaml").chmod(0o444)
    told = apply_fixes(loose, "bert.yaml")

    assert "bert.yaml is read-only; it was not changed\n" in told.err
    assert (loose / "bert.yaml").read_text() == JOB


def test_fix_keeps_file_permissions(loose):
    (loose / "bert.yaml").chmod(0o640)
    apply_fixes(loose, "bert.yaml")

    assert (loose / "bert.yaml").stat().st_mode & 0o777 == 0o640


def test_file_that_changed_meanwhile_is_not_overwritten(loose):
    late = write_fixes(loose, [FixedFile("bert.yaml", b"old", b"new"), FixedFile("gone.yaml", b"old", b"new")])

    assert late == {
        "bert.yaml": "was changed in the meantime",
        "gone.yaml": "cannot be written: No such file or directory",
    }
    assert (loose / "bert.yaml").read_text() == JOB


def test_anchored_value_is_not_fixed(loose):
    text = JOB.replace("always", "&policy always") + JOB.partition("    Master:\n")[2].replace("always", "*policy")
    text = text.replace("      replicas: 1\n      template", "    Worker:\n      replicas: 1\n      template").replace(
        "    Master:\n    Worker:", "    Master:", 1
    )
    (loose / "bert.yaml").write_text(text)
    apply_fixes(loose, "bert.yaml")

    assert [finding.rule for finding in found(loose, "bert.yaml")].count("unsupported-value") == 2
    assert (loose / "bert.yaml").read_text() == text


def test_value_of_a_json_patch_is_not_removed(tmp_path):
    """The error would only become another."""
    patch = "{op: add, path: /spec/runPolicy, value: {ttlSecondsAfterFinished: 60}}"
    deep = "{op: add, path: /spec/runPolicy/ttlSecondsAfterFinished, value: 60}"
    for name, operations in (("a", patch), ("b", f"{{op: add, path: /spec/runPolicy, value: {{}}}}, {deep}")):
        (tmp_path / f"overlays/{name}").mkdir(parents=True)
        (tmp_path / f"overlays/{name}/overlay.yaml").write_text(
            "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  cluster: {gitops: flux}\n  namespace: ml\n"
            f"  patches:\n    - match: {{names: [bert]}}\n      jsonPatch: [{operations}]\n"
        )
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(MENDED)
    old = files_below(tmp_path)
    apply_fixes(tmp_path, fix="unsafe")

    assert {finding.env for finding in found(tmp_path) if finding.rule == "ttl-reruns-job"} == {"a", "b"}
    assert files_below(tmp_path) == old


def test_derived_value_is_not_fixed(tmp_path):
    """The limit of an extended resource is missing, but `gpu` of the spec is not its name."""
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n  framework: pytorch\n"
    text = f"{job}  image: a:1\n  resources: {{requests: {{gpu: 1}}}}\n"
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(text)
    apply_fixes(tmp_path, fix="unsafe")

    assert "missing-resource-limit" in {finding.rule for finding in found(tmp_path)}
    assert (tmp_path / "jobs/a.yaml").read_text() == text


def test_fixes_of_an_object_with_other_errors_are_kept(loose):
    """Rules see what is beside a value of a wrong type, so its fix reveals nothing new."""
    text = JOB.replace("replicas: 1", 'replicas: "1"').replace("always", "Always").replace("bert", "7bert.a")
    text = text.replace("Master", "Chief")
    (loose / "much.yaml").write_text(text)
    told = apply_fixes(loose)

    assert "was not fixed completely" not in told.err
    assert (loose / "much.yaml").read_text() == text.replace('replicas: "1"', "replicas: 1")
    assert (loose / "bert.yaml").read_text() == MENDED


def test_safe_fixes_are_kept_if_unsafe_ones_reveal_more_errors(loose):
    text = JOB.replace("kubeflow.org/v1", "kubeflow.org/v1beta2").replace("always", "Always").replace("Master", "Chief")
    text = text.replace("bert", "7.bert")
    (loose / "old.yaml").write_text(text.replace("name: pytorch", "name: a") + "status: {phase: Running}\n")
    told = apply_fixes(loose, fix="unsafe")

    [line] = [line for line in told.err.splitlines() if line.startswith("old.yaml was not fixed completely")]
    assert re.search(r"than before, the first: old\.yaml:\d+:\d+: .* \[[a-z-]+\]$", line)
    assert (loose / "old.yaml").read_text() == text.replace("name: pytorch", "name: a")


def test_files_of_another_repository_are_not_fixed(loose):
    (loose / "ml/jobs").mkdir(parents=True)
    (loose / "ml/jobgen.yaml").write_text("")
    (loose / "bert.yaml").rename(loose / "ml/jobs/bert.yaml")
    text = (loose / "ml/jobs/bert.yaml").read_text()

    told = apply_fixes(loose)
    assert (told.code, told.err) == (2, "jobgen: `ml` is another jobs repository; lint it with `jobgen -C ml lint`\n")
    assert (loose / "ml/jobs/bert.yaml").read_text() == text


def test_standard_input_and_files_outside_are_not_fixed(loose):
    (loose / "here").mkdir()

    assert apply_fixes(loose / "here", "../bert.yaml").code == 2
    with pytest.raises(UsageError, match="standard input"):
        compute_fixes(LintRequest(loose, stdin=JOB.encode()), unsafe=False)


WRONG = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: bert}\nspec: {framework: pytroch, image: a:1}%s"


def put_job(folder, text):
    (folder / "jobs").mkdir()
    (folder / "jobgen.yaml").touch()
    (folder / "jobs/bert.yaml").write_bytes(text.encode())
    return folder / "jobs/bert.yaml"


def test_a_file_with_a_byte_order_mark_is_fixed_and_keeps_it(tmp_path):
    file = put_job(tmp_path, "\ufeff" + WRONG % "\r\n")
    told = apply_fixes(tmp_path)

    assert "1 finding fixed in 1 file" in told.err
    assert file.read_bytes().decode() == ("\ufeff" + WRONG % "\r\n").replace("pytroch", "pytorch")


@pytest.mark.parametrize(
    ("text", "line", "name"), [(WRONG % " # \u2028\n", 4, "U+2028"), ("a: b\rc: d\n---\n" + WRONG % "\n", 1, "U+000D")]
)
def test_a_file_that_cannot_be_edited_is_named(tmp_path, text, line, name):
    file = put_job(tmp_path, text)
    told = apply_fixes(tmp_path)

    assert told.code == 4
    assert f"jobs/bert.yaml cannot be fixed: line {line} has the character `{name}`" in told.err
    assert file.read_bytes().decode() == text


NUMBERS = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytroch
  image: a:1
  env: {A: &inf .nan, B: "x"}
  resources: {cpu: -.inf}
  runPolicy: {backoffLimit: *inf}
"""
KEYS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: bert}
dat: {a: b}
data: {null: .inf}
"""
AS_JSON = """\
{"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "bert"},
"spec": {"framework": "pytroch", "image": "a:1",
"replicas": 1e999}}"""


@pytest.mark.parametrize(
    ("text", "rules", "fixed"),
    [
        (NUMBERS, {5: "invalid-value", 7: "non-finite-number", 8: "non-finite-number"}, ("pytroch", "pytorch")),
        (KEYS, {4: "unknown-field", 5: "invalid-key non-finite-number"}, ("", "")),
        (
            WRONG.replace("a:1}", "a:1, replicas: .inf}") % "\n",
            {4: "invalid-value non-finite-number"},
            ("pytroch", "pytorch"),
        ),
        (
            AS_JSON,
            {2: "invalid-value", 3: "non-finite-number"},
            ("pytroch", "pytorch"),
        ),
    ],
)
def test_a_number_that_json_lacks_hides_nothing_else(tmp_path, text, rules, fixed):
    file = put_job(tmp_path, text)
    lines = {}
    for each in found(tmp_path):
        lines.setdefault(each.location.line, []).append(each.rule)
    apply_fixes(tmp_path)

    assert {line: " ".join(several) for line, several in lines.items()} == rules
    assert file.read_text() == text.replace(*fixed)


@pytest.mark.parametrize("kind", ["overlay", "Overlays", "OVERLAY", "overley"])
def test_the_kind_of_an_overlay_is_fixed_like_that_of_a_job(tmp_path, kind):
    put_job(tmp_path, WRONG.replace("pytroch", "pytorch") % "\n")
    file = tmp_path / "overlays/dev/overlay.yaml"
    file.parent.mkdir(parents=True)
    text = "apiVersion: jobgen.dev/v1\nkind: %s\nmetadata: {name: dev}\nspec: {namespace: ml}\n"
    file.write_text(text % kind)
    [told] = [each for each in found(tmp_path) if each.location.file == "overlays/dev/overlay.yaml"]
    apply_fixes(tmp_path)

    assert (told.rule, told.location.line) == ("invalid-value", 2)
    assert file.read_text() == text % "Overlay"
