"""Faults are mended where they were written: a case is a folder `before` and a folder `after`, or `after-unsafe`.

The folder's name is the rule's, and behind a dot what is special. `rendered.diff` is what becomes of the objects.
"""

import re
import shutil
import subprocess
from collections import Counter
from difflib import unified_diff
from pathlib import Path

import pytest
from examples import EXAMPLES, cases

from jobgen import catalogue
from jobgen.commands.fixing import Mended, fixed, put_in_place
from jobgen.commands.lint import lint_paths
from jobgen.commands.linting import lint
from jobgen.commands.scope import Asked
from jobgen.emit import to_yaml
from jobgen.model import Severity
from jobgen.pipeline import Run
from jobgen.ruledocs import documented

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs/fixes.md"
TODAY = "2025-01-31"
CASES = sorted(TESTS.glob("fix/*"))


def page():
    """The table of the page: rule, and whether its changes are safe, unsafe, or either."""
    return dict(re.findall(r"^\| `([\w-]+)` \| (safe|unsafe|both) \|", PAGE.read_text(), re.MULTILINE))


EXAMPLES_OF_FAULTS = [
    (rule, case) for rule in page() for case in cases(EXAMPLES / f"{rule}.yaml") if rule in dict(case.expected).values()
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def how(case):
    return "unsafe" if (case / "after-unsafe").exists() else "safe"


def found(folder, *paths):
    return lint(Asked(folder, paths, today=TODAY)).findings


def mend(folder, *paths, fix="safe", diff=False):
    return lint_paths(folder, paths, (), format_="text", fix=fix, diff=diff, today=TODAY)


def errors(findings):
    return Counter(finding.rule for finding in findings if finding.severity is Severity.ERROR)


def rendered(folder):
    """The objects of all environments, as far as they can be made."""
    shelf = catalogue.load(folder)
    return "".join(f"# {made.env}\n{to_yaml(made.object)}" for made in Run(shelf, shelf.environments()))


@pytest.fixture
def before(case, tmp_path):
    shutil.copytree(case / "before", tmp_path / "repository")
    return tmp_path / "repository"


@every_case
def test_a_fault_is_mended_where_it_was_written_and_nothing_else_is_touched(case, before, accept):
    rule, after = case.name.partition(".")[0], case / ("after-unsafe" if how(case) == "unsafe" else "after")
    then, objects = found(before), rendered(before)
    told = mend(before, fix=how(case))
    now = found(before)
    diff = "".join(unified_diff(objects.splitlines(keepends=True), rendered(before).splitlines(keepends=True), n=1))
    if accept:
        shutil.rmtree(after)
        shutil.copytree(before, after)
        (case / "rendered.diff").write_text(diff)

    assert "mended in 1 file\n" in told.err
    assert files(before) == files(after)
    # Once is enough.
    assert "0 faults were mended in 0 files\n" in mend(before, fix=how(case)).err
    assert files(before) == files(after)
    assert diff == (case / "rendered.diff").read_text()
    # The rule finds nothing any more, and no rule finds more than before.
    assert rule in {finding.rule for finding in then if finding.fixable}
    assert rule not in {finding.rule for finding in now if finding.fixable}
    assert not errors(now) - errors(then)


@every_case
def test_a_diff_writes_nothing_and_can_be_applied(case, before, tmp_path):
    old = files(before)
    shown = mend(before, fix=how(case), diff=True)
    patch = tmp_path / "a.patch"
    patch.write_bytes(shown.out.encode())

    assert files(before) == old
    subprocess.run(["git", "init", "-q", before], check=True)
    subprocess.run(["git", "-C", before, "apply", patch], check=True)
    shutil.rmtree(before / ".git")
    assert files(before) == files(next(case.glob("after*")))


@pytest.mark.parametrize("case", [case for case in CASES if how(case) == "unsafe"], ids=lambda case: case.name)
def test_what_could_change_what_was_meant_is_not_done_unasked(case, before):
    mend(before)

    assert files(before) == files(case / "before")


@pytest.mark.parametrize(
    ("rule", "case"), EXAMPLES_OF_FAULTS, ids=[f"{rule}: {case.title}" for rule, case in EXAMPLES_OF_FAULTS]
)
def test_no_example_gets_worse(rule, case, tmp_path):
    case.write(tmp_path)
    then = found(tmp_path)
    mend(tmp_path, fix="unsafe")
    first = files(tmp_path)
    now = found(tmp_path)
    mend(tmp_path, fix="unsafe")

    assert not errors(now) - errors(then)
    assert [finding for finding in now if finding.fixable] == []
    assert files(tmp_path) == first


def test_the_page_names_the_rules_that_have_cases(tmp_path):
    shown: dict[str, set[str]] = {}
    for case in CASES:
        for finding in found(shutil.copytree(case / "before", tmp_path / case.name)):
            if finding.fix:
                shown.setdefault(finding.rule, set()).add("safe" if finding.fix.safe else "unsafe")

    assert list(page()) == sorted(page())
    assert set(page()) == {case.name.partition(".")[0] for case in CASES}
    assert set(page()) <= set(documented())
    for rule, words in page().items():
        assert shown[rule] <= ({"safe", "unsafe"} if words == "both" else {words})


def test_a_rule_that_mends_is_on_the_page():
    sources = TESTS.parent.glob("jobgen/rules/*/*.py")
    mending = {path.stem.replace("_", "-") for path in sources if "mend=" in path.read_text()}

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


def test_a_loose_manifest_is_mended_alone(loose):
    (loose / "other.yaml").write_text(JOB.replace("bert", "other"))
    mend(loose, "bert.yaml")

    assert (loose / "bert.yaml").read_text() == MENDED
    assert "always" in (loose / "other.yaml").read_text()


def test_a_linked_file_is_mended_where_it_is(loose):
    (loose / "link.yaml").symlink_to("bert.yaml")
    mend(loose, "link.yaml")

    assert (loose / "link.yaml").is_symlink()
    assert (loose / "bert.yaml").read_text() == MENDED


def test_a_file_that_may_not_be_written_is_left_alone(loose):
    (loose / "bert.yaml").chmod(0o444)
    told = mend(loose, "bert.yaml")

    assert "bert.yaml may not be written; left alone\n" in told.err
    assert (loose / "bert.yaml").read_text() == JOB


def test_a_file_keeps_its_rights(loose):
    (loose / "bert.yaml").chmod(0o640)
    mend(loose, "bert.yaml")

    assert (loose / "bert.yaml").stat().st_mode & 0o777 == 0o640


def test_a_file_that_was_changed_meanwhile_is_left_alone(loose):
    late = put_in_place(loose, [Mended("bert.yaml", b"old", b"new"), Mended("gone.yaml", b"old", b"new")])

    assert late == {
        "bert.yaml": "was changed by somebody else meanwhile",
        "gone.yaml": "cannot be written: No such file or directory",
    }
    assert (loose / "bert.yaml").read_text() == JOB


def test_a_value_that_an_alias_uses_elsewhere_is_left_alone(loose):
    text = JOB.replace("always", "&policy always") + JOB.partition("    Master:\n")[2].replace("always", "*policy")
    text = text.replace("      replicas: 1\n      template", "    Worker:\n      replicas: 1\n      template").replace(
        "    Master:\n    Worker:", "    Master:", 1
    )
    (loose / "bert.yaml").write_text(text)
    mend(loose, "bert.yaml")

    assert [finding.rule for finding in found(loose, "bert.yaml")].count("unsupported-value") == 2
    assert (loose / "bert.yaml").read_text() == text


def test_the_value_of_a_json_patch_is_not_taken_out(tmp_path):
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
    old = files(tmp_path)
    mend(tmp_path, fix="unsafe")

    assert {finding.env for finding in found(tmp_path) if finding.rule == "ttl-reruns-job"} == {"a", "b"}
    assert files(tmp_path) == old


def test_a_value_that_was_made_of_another_is_left_alone(tmp_path):
    """The limit of an extended resource is missing, but `gpu` of the spec is not its name."""
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n  framework: pytorch\n"
    text = f"{job}  image: a:1\n  resources: {{requests: {{gpu: 1}}}}\n"
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(text)
    mend(tmp_path, fix="unsafe")

    assert "missing-resource-limit" in {finding.rule for finding in found(tmp_path)}
    assert (tmp_path / "jobs/a.yaml").read_text() == text


def test_a_file_that_would_show_more_errors_is_left_alone_and_others_are_mended(loose):
    """Rules are not asked about an object of the wrong shape, and have much to say about this one."""
    text = JOB.replace("replicas: 1", 'replicas: "1"').replace("always", "Always").replace("bert", "7bert.a")
    text = text.replace("name: pytorch", "name: other").replace("Master", "Chief")
    (loose / "much.yaml").write_text(text)
    told = mend(loose)

    assert "much.yaml was not mended in full: it would show more errors than before\n" in told.err
    assert (loose / "much.yaml").read_text() == text
    assert (loose / "bert.yaml").read_text() == MENDED


def test_unsafe_changes_that_would_show_more_errors_do_not_keep_safe_ones_back(loose):
    text = JOB.replace("kubeflow.org/v1", "kubeflow.org/v1beta2").replace("always", "Always").replace("Master", "Chief")
    text = text.replace("bert", "7.bert")
    (loose / "old.yaml").write_text(text.replace("name: pytorch", "name: a") + "status: {}\n")
    told = mend(loose, fix="unsafe")

    assert "old.yaml was not mended in full: it would show more errors than before\n" in told.err
    assert (loose / "old.yaml").read_text() == text.replace("name: pytorch", "name: a")


def test_standard_input_and_other_folders_are_not_mended(loose):
    (loose / "here").mkdir()

    assert mend(loose / "here", "../bert.yaml").code == 2
    assert fixed(Asked(loose, stdin=JOB.encode()), unsafe=False).code == 2
