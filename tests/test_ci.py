"""CI: the documented script is run, the action's steps are run, and templates are what their platforms read."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipapp
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from forgeapi import SOMEONE, Forge, serve_forge
from githubaction import ACTION, ROOT, SERVER, STEPS, UPLOAD, Runner
from gitrepository import Repository
from pagedata import find_data

from jobgen import __version__
from jobgen.yamlio.read import read

GITLAB = read((ROOT / "ci/gitlab.yml").read_bytes(), "gitlab.yml").documents[0].data["jobgen"]
CHANGE = ("What the change does", "Upload the page of the change", "Link the pages", "Comment")
PINNED = re.compile(r"[a-z-]+/[a-z-]+@[0-9a-f]{40}")
PAGE = (ROOT / "docs/ci.md").read_text()
RECIPE = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
STARTER = ROOT / "jobgen/data/starter"
HOOKS = {"jobgen-lint", "jobgen-render-check", "jobgen-policy-test", "jobgen-test"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as `init` makes it, with a committed tree, and a branch with a change."""
    folder = tmp_path_factory.mktemp("template")
    subprocess.run([sys.executable, "-m", "jobgen", "init", folder / "new"], check=True, capture_output=True)
    made = Repository(folder / "new", folder / "home")
    made.run("jobgen", "render", "-o", "rendered")
    assert made.commit().returncode == 0
    made.run("git", "switch", "--quiet", "--create", "change")
    change(made, "gpu: 1", "gpu: 2")
    return folder / "new"


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    return Repository(Path(shutil.copytree(template, tmp_path / "new")), tmp_path / "home")


@pytest.fixture
def forge() -> Iterator[Forge]:
    with serve_forge() as served:
        yield served


def change(repository: Repository, old: str, new: str) -> None:
    job = repository.folder / "jobs/pytorch.yaml"
    job.write_text(job.read_text().replace(old, new))
    repository.run("jobgen", "render", "-o", "rendered")
    assert repository.commit().returncode == 0


def script(repository: Repository) -> subprocess.CompletedProcess[str]:
    path = repository.folder.parent / "check.sh"
    path.write_text(RECIPE)
    return repository.run("sh", str(path), "main")


def test_documented_script_passes_for_a_valid_repository(repository: Repository) -> None:
    repository.use_installed_jobgen()
    done = script(repository)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "pytorch-example" in (repository.folder / "jobgen-diff.md").read_text()
    assert read_data((repository.folder / "jobgen-change.html").read_text())["view"] == "changes"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("jobs/pytorch.yaml", "gpu: 2", "gpu: 500m", "fractional-device"),
        ("jobs/pytorch.yaml", "1.0.0", "1.0.1", "out of date"),
        ("policies/tests/team-label/cases.yaml", "# expect:", "# wanted:", "FAILED"),
    ],
)
def test_documented_script_fails_for_an_invalid_repository(
    repository: Repository, file: str, old: str, new: str, said: str
) -> None:
    path = repository.folder / file
    path.write_text(path.read_text().replace(old, new))
    done = script(repository)

    assert done.returncode == 1
    assert said in done.stdout + done.stderr


def add_failing_test(folder: Path) -> None:
    """Add a test of jobs that fails, written in a form that a search for text may miss."""
    (folder / "tests").mkdir()
    test = {"name": "always red", "jobs": ["pytorch-example"], "expect": {"values": {"kind": "Job"}}}
    text = json.dumps({"apiVersion": "jobgen.dev/v1", "kind": "JobTests", "spec": [test]})
    (folder / "tests/jobs.yaml").write_text(text)


def add_old_owners(folder: Path) -> None:
    """Add a CODEOWNERS that does not have the folder of a team."""
    settings = folder / "jobgen.yaml"
    settings.write_text(settings.read_text() + 'teams: {ml: {folders: [jobs], owners: ["@example/ml"]}}\n')
    (folder / "CODEOWNERS").write_text("# begin of the lines that `jobgen codeowners` writes from teams/\n")


@pytest.mark.stress
def test_failing_tests_and_old_owners_fail_everywhere(repository: Repository) -> None:
    (repository.folder / "tests").mkdir()
    (repository.folder / "tests/other.yaml").write_text("not: ours\n")
    assert not Runner(repository).run({}, "Tests of jobs").failed
    shutil.rmtree(repository.folder / "tests")
    add_failing_test(repository.folder)
    add_old_owners(repository.folder)

    done = script(repository)
    assert (done.returncode, done.stdout.count("failed: always red")) == (1, 1)
    assert "CODEOWNERS is not up to date" in done.stderr
    for step, said in (("Tests of jobs", "failed: always red"), ("Code owners", "is not up to date")):
        run = Runner(repository).run({}, step)
        assert run.failed
        assert said in run.log
    done = run_gitlab(repository, JOBGEN_REPORT="false")
    assert done.returncode == 1
    assert "failed: always red" in done.stdout
    assert "CODEOWNERS is not up to date" in done.stderr


def read_data(page: str) -> dict:
    return json.loads(find_data(page))


def pull_request(repository: Repository, base: str = "main") -> dict:
    return {"pull_request": {"number": 5, "base": {"sha": repository.run("git", "rev-parse", base).stdout.strip()}}}


def test_action_steps_pass_for_a_valid_change(repository: Repository) -> None:
    run = Runner(repository).run(pull_request(repository), report="false")

    assert not run.failed, run.log
    assert json.loads(Path(run.outputs["sarif"]).read_text())["version"] == "2.1.0"
    assert "pytorch-example" in Path(run.outputs["comment"]).read_text()
    assert "pytorch-example" in run.summary
    assert {"Policies", "Rendered tree"} <= {*run.ran}
    assert (run.artifacts, run.outputs["page"], "Comment" in run.ran) == ({}, "", False)


def test_action_steps_fail_for_an_invalid_change_with_annotations_and_sarif(repository: Repository) -> None:
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    run = Runner(repository).run({}, "Lint")
    results = json.loads(Path(run.outputs["sarif"]).read_text())["runs"][0]["results"]

    assert run.failed
    assert "::error file=jobs/pytorch.yaml,line=12" in run.log
    assert results[0]["ruleId"] == "fractional-device"
    assert Runner(repository).run({}, "Rendered tree").failed


def test_a_deleted_tree_fails_the_action(repository: Repository) -> None:
    """Whether it is declared or not: no step is skipped because there is no folder any more."""
    change = pull_request(repository)
    repository.run("git", "rm", "-r", "--quiet", "rendered")
    repository.commit()
    assert Runner(repository).run(change, "Rendered tree").failed
    repository.run("git", "switch", "--quiet", "--detach", "main")
    settings = repository.folder / "jobgen.yaml"
    settings.write_text(f"{settings.read_text()}rendered: rendered\n")
    repository.commit()
    change = pull_request(repository, "HEAD")
    assert not Runner(repository).run(change, "Lint").failed
    repository.run("git", "rm", "-r", "--quiet", "rendered")
    settings.write_text(settings.read_text().replace("rendered: rendered\n", ""))
    repository.commit()
    done = Runner(repository).run(change, "Lint")
    assert done.failed
    assert "there is no folder `rendered`" in done.log


def test_action_fails_for_warnings_on_request(repository: Repository) -> None:
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(re.sub(r"(image: \S+):\S+", r"\1:latest", path.read_text()))

    assert not Runner(repository).run({}, "Lint").failed
    assert Runner(repository).run({}, "Lint", fail_on="warning").failed


def test_pages_are_uploaded_and_linked_from_one_comment(repository: Repository, forge: Forge) -> None:
    foreign = forge.add(SOMEONE, "<!-- jobgen: jobgen -->\nnot yours")
    for number in range(120):
        forge.add(SOMEONE, f"comment {number}")
    event = pull_request(repository)
    steps = (*CHANGE, "Page of all jobs", "Upload the page of all jobs")
    first = Runner(repository, forge.url).run(event, *steps, comment="true", fleet="true")
    again = Runner(repository, forge.url).run(event, *CHANGE, comment="true")
    changes, fleet = (read_data(first.artifacts[f"jobgen-{name}.html"]) for name in ("change", "fleet"))

    assert not first.failed, first.log
    assert (changes["view"], fleet["view"]) == ("changes", "fleet")
    assert {changes["head"]["url"], fleet["head"]["url"]} == {f"{SERVER}/example/jobs"}
    assert fleet["head"]["since"] == event["pull_request"]["base"]["sha"]
    assert Path(first.outputs["site"], "index.html").read_text() == first.artifacts["jobgen-fleet.html"]
    heading, _, links, *_ = first.summary.splitlines()
    assert heading.startswith("### jobgen diff: ")
    assert (
        links == f"[Page of this change]({first.outputs['page-url']}) · [Page of all jobs]({first.outputs['site-url']})"
    )
    # The second run replaces the comment of the first, which is on the second page, and no other.
    assert forge.comments[-1]["body"] == f"<!-- jobgen: jobgen -->\n{again.summary}"
    assert (len(forge.comments), foreign["body"]) == (122, "<!-- jobgen: jobgen -->\nnot yours")
    assert [each for each in forge.requests if "GET" not in each] == [
        "POST /repos/example/jobs/issues/5/comments",
        "PATCH /repos/example/jobs/issues/comments/122",
    ]
    assert forge.tokens == {"Bearer t0ken"}


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "::notice::The token must not write comments"), (502, "::warning::"), (None, "::warning::"), (0, "")],
)
def test_a_comment_that_is_refused_does_not_fail_the_job(
    tmp_path: Path, forge: Forge, status: int | None, said: str
) -> None:
    (tmp_path / "comment.md").write_bytes("é".encode() * 70_000 + b"\xff")
    forge.refused = status or 0
    environ = {
        "GITHUB_API_URL": "http://127.0.0.1:1" if status is None else forge.url,
        "GITHUB_REPOSITORY": "example/jobs",
        "COMMENT": "comment.md",
        "NAME": "jobgen",
        "NO_PROXY": "*",
        "NUMBER": "5",
        "TOKEN": "t0ken",
    }
    command = [sys.executable, "-I", ROOT / "ci/comment.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert bool(done.stdout) is bool(said)
    assert [len(comment["body"]) for comment in forge.comments] == ([] if said else [65_536])


def test_a_change_that_cannot_be_compared_is_explained(repository: Repository, forge: Forge) -> None:
    path = repository.folder / "jobs/<b>`@all $(touch pwned).yaml"
    path.write_text("kind: [")
    repository.commit()
    steps = (*CHANGE, "Page of all jobs", "Upload the page of all jobs")
    run = Runner(repository, forge.url).run(pull_request(repository), *steps, comment="true", fleet="true")
    [comment] = forge.comments
    marker, heading, _, links, _, *errors = comment["body"].splitlines()

    assert run.failed
    assert marker == "<!-- jobgen: jobgen -->"
    assert heading == "### jobgen diff: the change cannot be compared"
    pages = {"Page of this change": "page-url", "Page of all jobs": "site-url"}
    assert links == " · ".join(f"[{page}]({run.outputs[output]})" for page, output in pages.items())
    assert "[yaml-syntax]" in "".join(errors)
    assert [line for line in errors if not line.startswith("    ")] == []
    assert [*run.artifacts] == ["jobgen-change.html", "jobgen-fleet.html"]
    assert "yaml-syntax" in json.dumps(read_data(run.artifacts["jobgen-change.html"]))


@pytest.mark.stress
def test_no_changes_no_upload_and_no_base(repository: Repository) -> None:
    same = Runner(repository).run(pull_request(repository, "HEAD"), *CHANGE)
    unlinked = Runner(repository, can_upload=False).run(pull_request(repository), *CHANGE)
    push = Runner(repository).run({}, *CHANGE, "Page of all jobs", "Upload the page of all jobs", fleet="true")

    assert not any(run.failed for run in (same, unlinked, push))
    assert read_data(same.artifacts["jobgen-change.html"])["head"]["changed"] == 0
    assert "pytorch-example" in unlinked.summary
    assert "](" not in unlinked.summary.partition("\n|")[0]
    assert push.summary == f"[Page of all jobs]({push.outputs['site-url']})\n"
    assert read_data(push.artifacts["jobgen-fleet.html"])["head"]["since"] == ""


def test_action_inputs_are_not_interpolated_into_scripts(repository: Repository, forge: Forge) -> None:
    hostile = '$(touch pwned)"; touch pwned; "`touch pwned`/../x\n--><b>'
    runner = Runner(repository, forge.url)
    refused = runner.run({}, *CHANGE, base=hostile, comment="true")
    priced = runner.run({}, "Page of all jobs", prices=hostile, fleet="true")
    named = runner.run(pull_request(repository), *CHANGE, name=hostile, comment="true")

    assert not any("${{" in each["run"] for each in STEPS.values() if "run" in each)
    assert (refused.failed, priced.failed, named.failed) == (True, True, False)
    assert [re.fullmatch(r"[\w.-]+-change\.html", name) is not None for name in named.artifacts] == [True]
    assert re.match(r"<!-- jobgen: [\w.-]+ -->\n###", forge.comments[0]["body"])
    assert not list(repository.folder.parent.rglob("pwned"))


def test_action_file_matches_the_github_format() -> None:
    known = {step["id"] for step in STEPS.values() if "id" in step}
    values = [each["value"] for each in ACTION["outputs"].values()]

    assert ACTION["runs"]["using"] == "composite"
    assert all(each["shell"] == "bash" for each in STEPS.values() if "run" in each)
    assert all("description" in each for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))
    assert {re.fullmatch(r"\$\{\{ steps\.([\w-]+)\.outputs\.[\w-]+ \}\}", value)[1] for value in values} <= known
    assert all(PINNED.fullmatch(step["uses"]) for step in STEPS.values() if "uses" in step)
    assert sum(step.get("uses", "").startswith(UPLOAD) for step in STEPS.values()) == 2


def add_fault(repository: Repository, env: str) -> None:
    overlay = repository.folder / f"overlays/{env}/overlay.yaml"
    overlay.write_text(overlay.read_text() + "  patches:\n    - merge: {resources: {gpu: 500m}}\n")


def add_known_fault(repository: Repository) -> None:
    """A fault on main, in the environment `dev` only."""
    repository.run("git", "switch", "--quiet", "main")
    add_fault(repository, "dev")
    repository.run("jobgen", "render", "-o", "rendered")
    assert repository.commit().returncode == 0
    repository.run("git", "switch", "--quiet", "change")
    # The rendered trees differ in the same lines.
    repository.run("git", "rebase", "--quiet", "--strategy-option", "theirs", "main")
    repository.run("jobgen", "render", "-o", "rendered")


def list_faulty(log: str) -> list[str]:
    """The environments whose overlays have an error, by the annotations of GitHub."""
    return sorted(set(re.findall(r"::error file=overlays/(\w+)/", log)))


@pytest.mark.stress
def test_action_lints_some_environments_and_leaves_out_known_findings(repository: Repository) -> None:
    add_known_fault(repository)
    event = pull_request(repository)
    runs = {
        "all": Runner(repository).run(event, "Lint"),
        "prod": Runner(repository).run(event, "Lint", environments="prod"),
        "since": Runner(repository).run(event, "Lint", since="base"),
        "no base": Runner(repository).run({}, "Lint", since="base"),
    }
    repository.run("jobgen", "lint", "--write-baseline")
    repository.commit()
    # What a change accepts itself does not count.
    runs["own baseline"] = Runner(repository).run(event, "Lint", baseline="jobgen-baseline.json")
    accepted = pull_request(repository, "HEAD")
    runs["baseline"] = Runner(repository).run(accepted, "Lint", baseline="jobgen-baseline.json")

    assert {name: run.failed for name, run in runs.items()} == {
        "all": True,
        "prod": False,
        "since": False,
        "no base": True,
        "own baseline": True,
        "baseline": False,
    }
    assert {name: list_faulty(run.log) for name, run in runs.items() if run.failed} == {
        "all": ["dev"],
        "no base": ["dev"],
        "own baseline": ["dev"],
    }

    add_fault(repository, "prod")
    new = {
        "since": Runner(repository).run(event, "Lint", since="base"),
        "baseline": Runner(repository).run(accepted, "Lint", baseline="jobgen-baseline.json", fail_on="warning"),
        "environments": Runner(repository).run(event, "Lint", environments="dev\nprod\n"),
    }

    assert {name: list_faulty(run.log) for name, run in new.items() if run.failed} == {
        "since": ["prod"],
        "baseline": ["prod"],
        "environments": ["dev", "prod"],
    }


@pytest.mark.stress
def test_gitlab_template_lints_some_environments_and_leaves_out_known_findings(repository: Repository) -> None:
    add_known_fault(repository)
    repository.run("jobgen", "lint", "--write-baseline")
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(re.sub(r"(image: \S+):\S+", r"\1:latest", path.read_text()))
    repository.run("jobgen", "render", "-o", "rendered")
    repository.commit()
    head = repository.run("git", "rev-parse", "HEAD").stdout.strip()
    found = {}
    for name, variables in {
        "all": {},
        "environments": {"JOBGEN_ENVIRONMENTS": "prod"},
        "since": {"JOBGEN_SINCE": "base"},
        "baseline": {"JOBGEN_BASELINE": "jobgen-baseline.json", "CI_MERGE_REQUEST_DIFF_BASE_SHA": head},
        "fail on": {"JOBGEN_SINCE": "base", "JOBGEN_FAIL_ON": "warning"},
    }.items():
        done = run_gitlab(repository, JOBGEN_REPORT="false", **variables)
        report = json.loads((repository.folder / "gl-code-quality-report.json").read_text())
        found[name] = done.returncode, {each["check_name"] for each in report}

    new, known = "mutable-image-tag", "fractional-device"
    assert {name: (code, rules & {new, known}) for name, (code, rules) in found.items()} == {
        "all": (1, {new, known}),
        "environments": (0, {new}),
        "since": (0, {new}),
        "baseline": (0, {new}),
        "fail on": (1, {new}),
    }


def test_templates_install_the_version_of_this_repository() -> None:
    assert GITLAB["variables"]["JOBGEN_VERSION"] == __version__
    assert any('"jobgen==$JOBGEN_VERSION"' in line for line in GITLAB["before_script"])
    # The action installs itself, so its tag pins the version.
    assert '"$SOURCE"' in STEPS["Install jobgen"]["run"]
    installed = re.findall(r"pip install (\S+)|/jobgen@(\S+)|ref: ([\w.]+)|rev: (\S+)", "".join(EXAMPLES))
    assert {re.split("==|@", "".join(each))[-1].removeprefix("v") for each in installed} == {__version__}
    assert len(installed) == 7


def test_actions_are_pinned_by_digest() -> None:
    """Also in workflows that people copy: the tag of an action can be moved."""
    texts = [*EXAMPLES, *(path.read_text() for path in (*WORKFLOWS, ROOT / "action.yml", STARTER / "github.yaml"))]
    uses = [line for text in texts for line in re.findall(r"uses: (.+)", text)]
    others = [each for each in uses if not each.startswith(("./", "your-organization/jobgen@"))]

    assert len(others) > 30
    assert [
        each for each in others if not re.fullmatch(r"[\w-]+(/[\w-]+){1,2}@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
    ] == []
    # One digest for each version everywhere.
    assert len({each.partition(" # ")[0] for each in others}) == len(set(others))


def test_images_are_pinned_by_digest() -> None:
    templates = [(ROOT / "ci/gitlab.yml").read_text(), (STARTER / "gitlab.yaml").read_text()]
    images = [each for text in (*EXAMPLES, *templates) for each in re.findall(r"(?m)^ *image: (python\S*)", text)]

    assert len(images) >= 3
    assert [each for each in images if not re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", each)] == []
    assert len(set(images)) == 1


def test_no_workflow_gives_secrets_to_forks(repository: Repository) -> None:
    for path in (*WORKFLOWS, STARTER / "github.yaml"):
        data = yaml.safe_load(path.read_text())
        assert data["permissions"] == {"contents": "read"}
        assert "pull_request_target" not in data[True]
    run = Runner(repository).run(pull_request(repository), event_name="pull_request_target")

    assert run.failed
    assert "gives the secrets of the repository to the code of strangers" in run.log
    assert run.ran[0] == "Refuse secrets"


def test_steps_after_a_failed_lint_run(repository: Repository) -> None:
    later = list(STEPS)[list(STEPS).index("Lint") + 1 :]
    assert [name for name in later if "!cancelled()" not in str(STEPS[name].get("if"))] == []
    lint, *others = yaml.safe_load((STARTER / "github.yaml").read_text())["jobs"]["lint"]["steps"][3:]
    assert "jobgen lint" in lint["run"]
    assert all("!cancelled()" in step["if"] for step in others)

    add_failing_test(repository.folder)
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    starter = yaml.safe_load((STARTER / "gitlab.yaml").read_text())["jobgen"]
    done = repository.run("sh", "-e", "-c", "\n".join(starter["script"]))

    assert done.returncode == 1
    assert "failed: always red" in done.stdout


@pytest.mark.parametrize("platform", ["github", "gitlab"])
def test_jobgen_pyz_runs_only_with_its_checksum(repository: Repository, tmp_path: Path, platform: str) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/__main__.py").write_text("import sys; print('ran', *sys.argv[1:])")
    zipapp.create_archive(tmp_path / "source", tmp_path / "jobgen.pyz")
    address = (tmp_path / "jobgen.pyz").as_uri()
    right = hashlib.sha256((tmp_path / "jobgen.pyz").read_bytes()).hexdigest()
    if platform == "github":
        script = STEPS["Install jobgen"]["run"] + '\n"$RUNNER_TEMP/jobgen/bin/jobgen" lint "a b"'
        names = ("PYZ", "SHA256")
    else:
        script = GITLAB["before_script"][1] + '\njobgen lint "a b"'
        names = ("JOBGEN_PYZ", "JOBGEN_SHA256")
    results = []
    for number, value in enumerate((right, "0" * 64, "")):
        words = [f"{names[0]}={address}", f"{names[1]}={value}", f"RUNNER_TEMP={tmp_path}/{number}", f"SOURCE={ROOT}"]
        (tmp_path / str(number)).mkdir()
        results.append(repository.run("env", *words, "bash", "-e", "-c", script))

    assert [done.returncode for done in results] == [0, 1, 1]
    assert results[0].stdout == "ran lint a b\n"
    assert all("ran" not in done.stdout and right in done.stdout + done.stderr for done in results[1:])


def test_gitlab_template_lints_a_folder(repository: Repository) -> None:
    (repository.folder / "ml").mkdir()
    for name in ("jobs", "overlays", "policies", "jobgen.yaml", "rendered"):
        repository.run("git", "mv", name, f"ml/{name}")
    repository.commit()
    path = repository.folder / "ml/jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    repository.commit()
    base = repository.run("git", "rev-parse", "HEAD~1").stdout.strip()
    done = run_gitlab(repository, JOBGEN_DIRECTORY="ml", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    found = json.loads((repository.folder / "gl-code-quality-report.json").read_text())

    assert done.returncode == 1
    assert "ml/jobs/pytorch.yaml" in {each["location"]["path"] for each in found}
    assert (repository.folder / "jobgen-diff.md").is_file()


def test_gitlab_template_uses_no_token() -> None:
    """A merge request can read each variable of its project that is not protected."""
    lines = "\n".join((*GITLAB["before_script"], *GITLAB["script"], PAGE.partition("## GitLab")[2]))
    assert not re.search("(?i)private-token|JOBGEN_TOKEN|CI_API", lines)


def run_gitlab(repository: Repository, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script of the template, with the variables that GitLab sets in a merge request."""
    script = "\n".join(GITLAB["script"])
    made = {
        **{name: value for name, value in GITLAB["variables"].items() if name.startswith("JOBGEN_")},
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.run("git", "rev-parse", "main").stdout.strip(),
        "CI_PROJECT_URL": "https://gitlab.example.com/team/jobs",
        "CI_JOB_URL": "https://gitlab.example.com/team/jobs/-/jobs/9",
        **variables,
    }
    words = [f"{name}={value}" for name, value in made.items()]
    return repository.run("env", *words, "bash", "-e", "-c", script)


@pytest.mark.stress
def test_gitlab_template_writes_pages(repository: Repository) -> None:
    done = run_gitlab(repository, JOBGEN_FLEET="true")
    text = (repository.folder / "jobgen-diff.md").read_text()
    pages = {
        name: read_data((repository.folder / f"jobgen-report/{name}").read_text())
        for name in ("change.html", "index.html")
    }
    base = "https://gitlab.example.com/team/jobs/-/jobs/9/artifacts/file/jobgen-report"

    assert done.returncode == 0, done.stdout + done.stderr
    assert text.splitlines()[2] == f"[Page of this change]({base}/change.html) · [Page of all jobs]({base}/index.html)"
    assert [page["view"] for page in pages.values()] == ["changes", "fleet"]
    assert {(page["head"]["name"], page["head"]["url"]) for page in pages.values()} == {
        ("jobs", "https://gitlab.example.com/team/jobs")
    }


def test_gitlab_template_fails_for_an_invalid_change_and_explains_it(repository: Repository) -> None:
    path = repository.folder / "jobs/pytorch.yaml"
    path.write_text(path.read_text().replace("gpu: 2", "gpu: 500m"))
    (repository.folder / "jobs/$(touch pwned).yaml").write_text("kind: [")
    repository.commit()
    hostile = '$(touch pwned)"; touch pwned; "'
    bad = run_gitlab(
        repository,
        JOBGEN_PRICES=hostile,
        JOBGEN_FLEET="true",
        JOBGEN_FAIL_ON="error",
    )
    found = json.loads((repository.folder / "gl-code-quality-report.json").read_text())
    text = (repository.folder / "jobgen-diff.md").read_text()

    assert bad.returncode == 1
    assert {"path": "jobs/pytorch.yaml", "lines": {"begin": 12}} in [each["location"] for each in found]
    heading, _, link, _, first, *_ = text.splitlines()
    assert heading == "### jobgen diff: the change cannot be compared"
    assert re.fullmatch(r"\[Page of this change\]\(\S+/artifacts/file/jobgen-report/change\.html\)", link)
    assert first.startswith("    jobs/")
    assert not list(repository.folder.parent.rglob("pwned"))


def test_gitlab_template_keeps_what_it_writes(repository: Repository) -> None:
    artifacts = GITLAB["artifacts"]

    assert artifacts["when"] == "always"
    assert artifacts["paths"] == ["jobgen-diff.md", "jobgen-report/"]
    # GitLab accepts only these characters, and shows a folder only if its path ends with a slash.
    assert re.fullmatch(r"[\w -]+", artifacts["expose_as"])


def test_documented_ci_files_are_valid(tmp_path: Path) -> None:
    """They match the schemas of GitHub and GitLab, as the files of this repository do, and an audit finds no hole."""
    workflows, pipelines = [*WORKFLOWS, STARTER / "github.yaml"], [ROOT / "ci/gitlab.yml", STARTER / "gitlab.yaml"]
    for number, text in enumerate(EXAMPLES):
        path = tmp_path / f".github/workflows/{number}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (pipelines if "CI_" in text or "include:" in text else workflows if "\non:" in text else []).append(path)
    assert (len(workflows), len(pipelines)) == (len(WORKFLOWS) + 4, 4)

    kinds = {"github-workflows": workflows, "gitlab-ci": pipelines, "github-actions": [ROOT / "action.yml"]}
    for kind, paths in kinds.items():
        done = run_tool("check-jsonschema", "--builtin-schema", f"vendor.{kind}", *paths)
        assert done.returncode == 0, done.stdout
    # Tags of versions are fine where people can see and change them; action.yml has hashes.
    (tmp_path / "zizmor.yml").write_text('rules: {unpinned-uses: {config: {policies: {"*": ref-pin}}}}\n')
    done = run_tool(
        "zizmor",
        "--offline",
        "--quiet",
        "--min-severity=medium",
        f"--config={tmp_path}/zizmor.yml",
        *workflows,
        ROOT / "action.yml",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_tool(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        pytest.skip(f"{name} is not installed; `pip install -e '.[dev]'` installs it")
    return subprocess.run([path, *words], capture_output=True, text=True, timeout=300, check=False)


def test_documented_inputs_outputs_and_variables_exist() -> None:
    tables = [re.findall(r"`([\w-]+)`", row) for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)]
    documented = {name for names in tables for name in names}
    given, used = set(), set()
    files = [yaml.safe_load(text) for text in (*EXAMPLES, *(path.read_text() for path in WORKFLOWS))]
    for data in files:
        for step in (step for job in data.get("jobs", {}).values() for step in job["steps"]):
            if step.get("uses", "").startswith(("your-organization/jobgen@", "./")):
                given |= step.get("with", {}).keys()
        used |= {*re.findall(r"steps\.jobgen\.outputs\.([\w-]+)", json.dumps(data, default=str))}
    variables = {name for name in GITLAB["variables"] if name.startswith("JOBGEN_")}

    assert documented - HOOKS == ACTION["inputs"].keys() | ACTION["outputs"].keys() | variables
    assert given == {"comment", "fleet"} <= ACTION["inputs"].keys()
    assert used == {"sarif", "site"} <= ACTION["outputs"].keys()
    assert [data["jobgen"]["variables"].keys() <= variables for data in files if "include" in data] == [True]
    lines = (*GITLAB["before_script"], *GITLAB["script"])
    assert all(f"${name}" in "".join(lines).replace("{", "") for name in variables)
