"""The plugin of Argo CD, called as argocd-cmp-server calls it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cmpserver import ABSENT, Server
from jobgenprocess import run_jobgen_text

from jobgen.features.gitops.commands.cmp import announce_parameters, generate
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
PATHS = "argocd.argoproj.io/manifest-generate-paths"
PROD = [{"name": "env", "string": "prod"}]
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: {framework}
  image: registry.example.com/train:1.0
"""
SECRET = "hunter2-correct-horse"


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "sidecar")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two teams, two environments."""
    root = tmp_path / "repository"
    for team, name, framework in (("a", "bert", "pytorch"), ("a", "gpt", "pytorch"), ("b", "resnet", "tensorflow")):
        (root / f"jobs/team-{team}").mkdir(parents=True, exist_ok=True)
        (root / f"jobs/team-{team}/{name}.yaml").write_text(JOB.format(name=name, framework=framework))
    for env in ("dev", "prod"):
        (root / f"overlays/{env}").mkdir(parents=True)
        (root / f"overlays/{env}/overlay.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{namespace: ml-{env}}}\n"
        )
    (root / "jobgen.yaml").touch()
    return root


def rendered(repository: Path, *words: str) -> str:
    done = run_jobgen_text(repository, "render", *words)
    done.check_returncode()
    return done.stdout


def names(stream: str) -> list[str]:
    return [document.data["metadata"]["name"] for document in read(stream.encode(), "").documents]


def test_plugin_output_equals_render_output(server: Server, repository: Path) -> None:
    answer = server.call(repository, ".", PROD)

    assert answer == (0, rendered(repository, "-e", "prod"), "")


def test_application_path_selects_jobs(server: Server, repository: Path) -> None:
    assert names(server.call(repository, "jobs/team-a", PROD).out) == ["bert", "gpt"]
    assert names(server.call(repository, "jobs/team-b", PROD).out) == ["resnet"]
    assert names(server.call(repository, "jobs", PROD).out) == ["bert", "gpt", "resnet"]


def test_overlay_folder_selects_the_environment(server: Server, repository: Path) -> None:
    assert server.call(repository, "overlays/dev").out == rendered(repository, "-e", "dev")


def test_jobs_are_selected_by_pattern(server: Server, repository: Path) -> None:
    chosen = [*PROD, {"name": "jobs", "array": ["b*", "resnet"]}]

    assert names(server.call(repository, ".", chosen).out) == ["bert", "resnet"]


@pytest.mark.parametrize("parameters", [None, ABSENT, [], [{"name": "env"}], [{"name": "env", "string": ""}]])
def test_single_environment_needs_no_parameters(server: Server, repository: Path, parameters: object) -> None:
    several = server.call(repository, ".", parameters)
    shutil.rmtree(repository / "overlays/dev")
    one = server.call(repository, ".", parameters)
    shutil.rmtree(repository / "overlays")
    none = server.call(repository, ".", parameters)

    assert (several.code, several.out) == (2, "")
    assert several.err == "jobgen: set the parameter `env` to one environment (known: dev, prod)\n"
    assert (one.code, names(one.out), one.err) == (0, ["bert", "gpt", "resnet"], "")
    assert (none.code, names(none.out), none.err) == (0, ["bert", "gpt", "resnet"], "")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            [{"name": "evn", "string": "prod"}],
            "there is no parameter `evn`; did you mean `env`? (known: env, team, jobs)",
        ),
        ([{"string": "prod"}], "there is no parameter `` (known: env, team, jobs)"),
        ([{"name": "env", "array": [SECRET]}], "the parameter `env` must be given as `string`"),
        ([{"name": "jobs", "string": SECRET}], "the parameter `jobs` must be given as `array`"),
        ([{"name": "jobs", "array": [1]}], "the parameter `jobs` must be given as `array`"),
        ({"env": SECRET}, "ARGOCD_APP_PARAMETERS is not a list of parameters"),
        ([SECRET], "ARGOCD_APP_PARAMETERS is not a list of parameters"),
        ([{"name": "env", "string": "qa"}], "there is no environment `qa` (known: dev, prod)"),
        ([*PROD, *PROD], "the parameter `env` is given twice; remove one of them"),
    ],
)
def test_invalid_parameters_are_reported_in_one_line(
    server: Server, repository: Path, parameters: object, message: str
) -> None:
    assert server.call(repository, ".", parameters) == (2, "", f"jobgen: {message}\n")


def test_malformed_parameters_are_reported_without_their_text(server: Server, repository: Path) -> None:
    answer = server.call(repository, ".", ABSENT, ARGOCD_APP_PARAMETERS=f"[{SECRET}")

    assert answer == (2, "", "jobgen: ARGOCD_APP_PARAMETERS is not JSON\n")


def test_missing_repository_root_is_reported(server: Server, repository: Path) -> None:
    (server.work / "jobgen.yaml").touch()
    (server.work.parent / "jobgen.yaml").touch()
    answer = server.call(repository, "jobs/team-a", PROD, common_root="jobs")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "jobgen: there is no jobgen.yaml at or above `jobs/team-a` in the files that Argo CD sent; if "
        "argocd.argoproj.io/manifest-generate-paths is set, add /jobgen.yaml, /jobs and /overlays to it\n"
    )


def test_repository_without_settings_is_not_part_of_its_parent(server: Server, repository: Path) -> None:
    (repository / "jobgen.yaml").unlink()
    (server.work / "jobgen.yaml").write_text("environments: [elsewhere]\n")

    assert names(server.call(repository, ".", PROD).out) == ["bert", "gpt", "resnet"]


def test_missing_overlays_are_reported(server: Server, repository: Path) -> None:
    shutil.rmtree(repository / "overlays")
    answer = server.call(repository, "jobs/team-a", PROD)

    assert answer == (
        2,
        "",
        f"jobgen: there is no environment `prod`; does {PATHS} include /overlays? (known: none)\n",
    )


def test_unrelated_folder_is_reported(server: Server, repository: Path) -> None:
    (repository / "docs").mkdir()
    answer = server.call(repository, "docs", PROD)

    assert (answer.code, answer.out) == (2, "")
    assert "`docs` must be the root of the repository, a folder in jobs/, or overlays/<env>" in answer.err


def test_selection_without_jobs_is_an_error(server: Server, repository: Path) -> None:
    (repository / "jobs/team-c").mkdir()
    empty = server.call(repository, "jobs/team-c", PROD)
    unmatched = server.call(repository, ".", [*PROD, {"name": "jobs", "array": ["nobody"]}])

    assert (empty.code, empty.out) == (3, "")
    assert empty.err == "jobgen: there is no job below jobs/team-c/ in prod; an empty result would delete everything\n"
    assert (unmatched.code, unmatched.out) == (3, "")
    assert unmatched.err == "jobgen: there is no job `nobody` below jobs/ in prod (known: bert, gpt, resnet)\n"


def test_broken_job_of_another_team_is_ignored(server: Server, repository: Path) -> None:
    (repository / "jobs/team-b/broken.yaml").write_text("kind: TrainingJob\n  bad: [\n")

    assert server.call(repository, "jobs/team-a", PROD).code == 0
    assert server.call(repository, "jobs/team-b", PROD).code == 1
    assert server.call(repository, ".", PROD).code == 1


def test_errors_are_reported_briefly_and_without_values(server: Server, repository: Path) -> None:
    lines = "".join(f"    {SECRET}-{number}: {SECRET}\n" for number in range(20))
    path = repository / "jobs/team-a/bert.yaml"
    path.write_text(path.read_text() + f"  env:\n{lines}  password: {SECRET}\n  image2: {SECRET}\n")
    answer = server.call(
        repository, ".", PROD, ARGOCD_ENV_TOKEN=SECRET, PARAM_TOKEN=SECRET, ARGOCD_APP_SOURCE_REPO_URL=SECRET
    )

    assert (answer.code, answer.out) == (1, "")
    assert SECRET not in answer.err
    assert "jobs/team-a/bert.yaml:28:3: unknown-field" in answer.err
    assert len(answer.err.splitlines()) <= 7
    assert str(server.work) not in answer.err


def test_kind_missing_from_the_cluster_is_reported(server: Server, repository: Path) -> None:
    served = "v1,v1/Pod,apps/v1,apps/v1/Deployment,kubeflow.org/v1,kubeflow.org/v1/PyTorchJob"
    answer = server.call(repository, ".", PROD, KUBE_API_VERSIONS=served)
    team = server.call(repository, "jobs/team-a", PROD, KUBE_API_VERSIONS=served)

    assert answer == (
        1,
        "",
        (
            "jobs/team-b/resnet.yaml:1:1: the cluster does not serve kubeflow.org/v1 TFJob\n"
            "jobgen: nothing was generated\n"
        ),
    )
    assert team.code == 0


@pytest.mark.parametrize("served", ["", "v1", "v1,kubeflow.org/v1", "v1,kubeflow.org/v1beta1"])
def test_api_list_without_kinds_is_ignored(server: Server, repository: Path, served: str) -> None:
    assert server.call(repository, ".", PROD, KUBE_API_VERSIONS=served).code == 0


def test_eight_concurrent_calls_are_independent(server: Server, repository: Path) -> None:
    expected = {env: rendered(repository, "-e", env) for env in ("dev", "prod")}
    envs = ["dev", "prod"] * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda env: server.call(repository, ".", [{"name": "env", "string": env}]), envs))

    assert answers == [(0, expected[env], "") for env in envs]


@pytest.fixture
def large(repository: Path) -> Path:
    """So many jobs that a run takes a while, in several processes."""
    for number in range(8000):
        (repository / f"jobs/team-a/many-{number}.yaml").write_text(JOB.format(name=f"m-{number}", framework="pytorch"))
    return repository


def group_is_gone(group: int) -> bool:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_plugin_stops_at_the_timeout_and_on_sigterm(server: Server, large: Path) -> None:
    with server.start(large, ".", PROD, JOBGEN_CMP_TIMEOUT="0.3") as late:
        out, err = late.communicate(timeout=300)
    assert (late.returncode, out, err) == (4, "", "jobgen: not finished after 0.3 seconds; nothing was generated\n")
    assert group_is_gone(late.pid)

    with server.start(large, ".", PROD) as told:
        time.sleep(0.8)
        os.killpg(told.pid, signal.SIGTERM)
        out, err = told.communicate(timeout=300)
    assert out == ""
    assert (told.returncode, err) in (
        (4, "jobgen: ended by a signal; nothing was generated\n"),
        (-signal.SIGTERM, ""),  # it had not begun yet
        (128 + signal.SIGTERM, ""),
    )
    assert group_is_gone(told.pid)


def test_parameter_announcement_lists_environments(server: Server, repository: Path) -> None:
    answer = server.call(repository, "jobs/team-a", None, command=("parameters",))
    announced = json.loads(answer.out)

    assert (answer.code, answer.err) == (0, "")
    assert [(one["name"], one["collectionType"], one["required"]) for one in announced] == [
        ("env", "string", True),
        ("jobs", "array", False),
    ]
    assert announced[0]["tooltip"] == "One of: dev, prod"


TEAMS = """\
environments: [dev, prod]
teams:
  a: {folders: [jobs/team-a, jobs/extra/a], namespaces: [a-*], environments: {prod: {namespaces: [a-prod]}}}
  b: {folders: [jobs/team-b], namespaces: [b-*]}
"""


@pytest.fixture
def tenants(repository: Path) -> Path:
    """A repository with teams, of which one has two folders, and with an overlay that is no environment."""
    (repository / "jobgen.yaml").write_text(TEAMS)
    (repository / "jobs/extra/a").mkdir(parents=True)
    (repository / "jobs/extra/a/llama.yaml").write_text(JOB.format(name="llama", framework="pytorch"))
    (repository / "overlays/base").mkdir()
    (repository / "overlays/base/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    for env in ("dev", "prod"):
        (repository / f"overlays/{env}/overlay.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{extends: [base], namespace: ml-{env}}}\n"
        )
    return repository


def call(repository: Path, path: str = ".", namespace: str = "", **parameters: object) -> tuple[int, list[str], str]:
    """The plugin in this process, without limits: its exit code, the names of its objects, and its message."""
    types = {str: "string", list: "array"}
    given = [{"name": name, types[type(value)]: value} for name, value in parameters.items()]
    environ = {"ARGOCD_APP_PARAMETERS": json.dumps(given), "ARGOCD_APP_NAMESPACE": namespace}
    result = generate(repository / path, {**environ, "ARGOCD_APP_SOURCE_PATH": path}, enforce=False)
    return int(result.code), names(result.out), result.err.removeprefix("jobgen: ").removesuffix("\n")


def test_team_selects_jobs(tenants: Path) -> None:
    assert call(tenants, env="dev", team="a") == (0, ["bert", "gpt", "llama"], "")
    assert call(tenants, env="dev", team="b") == (0, ["resnet"], "")
    assert call(tenants, "jobs/extra", env="dev", team="a") == (0, ["llama"], "")
    assert call(tenants, env="dev", team="a", jobs=["*e*"]) == (0, ["bert"], "")
    assert call(tenants, "overlays/dev", team="b") == (0, ["resnet"], "")
    assert len(call(tenants, env="dev")[1]) == 4


def test_jobs_of_a_team_are_those_of_a_render(tenants: Path) -> None:
    environ = {"ARGOCD_APP_PARAMETERS": json.dumps([*PROD, {"name": "team", "string": "b"}])}

    assert generate(tenants, environ, enforce=False).out == rendered(tenants, "-e", "prod", "resnet")


def test_broken_job_of_another_team_does_not_matter(tenants: Path) -> None:
    (tenants / "jobs/team-b/broken.yaml").write_text("kind: TrainingJob\n  bad: [\n")

    assert call(tenants, env="dev", team="a")[0] == 0
    assert call(tenants, env="dev", team="b")[0] == 1


def test_two_teams_may_have_jobs_of_one_name(tenants: Path) -> None:
    job = JOB.format(name="bert", framework="tensorflow").replace("metadata: {", "metadata: {namespace: other, ")
    (tenants / "jobs/team-b/bert.yaml").write_text(job)

    assert call(tenants, env="dev", team="a", jobs=["bert"]) == (0, ["bert"], "")
    assert call(tenants, env="dev", team="b") == (0, ["resnet", "bert"], "")


NOT_ALLOWED = "team `a` cannot use the namespace `{}` of the destination in `{}`; {}"
REFUSED = [
    (".", "", {"env": "dev", "team": "c"}, "there is no team `c` (known: a, b)"),
    (
        "jobs/team-b",
        "",
        {"env": "dev", "team": "a"},
        "team `a` owns nothing below jobs/team-b/ (its folders: jobs/team-a, jobs/extra/a)",
    ),
    (
        ".",
        "",
        {"env": "base"},
        "the overlay `base` is not an environment: `environments` of jobgen.yaml does not list it (known: dev, prod)",
    ),
    ("overlays/dev", "", {"env": "prod"}, "the parameter `env` is `prod`, but the path is overlays/dev"),
    (".", "", {}, "set the parameter `env` to one environment (known: dev, prod)"),
    (
        ".",
        "ml-dev",
        {"env": "prod"},
        (
            "the namespace `ml-dev` of the destination belongs to dev; "
            "`prod` uses `ml-prod`; change `env`, or the destination"
        ),
    ),
    (
        ".",
        "a-dev",
        {"env": "prod", "team": "a"},
        NOT_ALLOWED.format("a-dev", "prod", "it can in dev (allowed: a-prod)"),
    ),
    ("jobs/team-a", "a-dev", {"env": "prod"}, NOT_ALLOWED.format("a-dev", "prod", "it can in dev (allowed: a-prod)")),
    (
        ".",
        "b-dev",
        {"env": "dev", "team": "a"},
        NOT_ALLOWED.format("b-dev", "dev", "team `b` has it (allowed: a-*)"),
    ),
]


@pytest.mark.parametrize(("path", "namespace", "parameters", "message"), REFUSED)
def test_parameters_are_checked_against_the_settings(
    tenants: Path, path: str, namespace: str, parameters: dict[str, object], message: str
) -> None:
    assert call(tenants, path, namespace, **parameters) == (2, [], message)


@pytest.mark.parametrize("namespace", ["", "argocd", "ml-prod"])
def test_other_destinations_are_allowed(tenants: Path, namespace: str) -> None:
    assert call(tenants, ".", namespace, env="prod")[0] == 0


def test_destination_is_allowed_if_an_object_is_in_it(tenants: Path) -> None:
    job = JOB.format(name="shared", framework="pytorch").replace("metadata: {", "metadata: {namespace: ml-dev, ")
    (tenants / "jobs/shared.yaml").write_text(job)

    assert call(tenants, ".", "ml-dev", env="prod")[0] == 0


def test_every_pattern_must_match_a_job_of_the_application(tenants: Path) -> None:
    misspelled = call(tenants, env="dev", jobs=["bert", "resnett"])
    elsewhere = call(tenants, "jobs/team-a", env="dev", jobs=["bert", "resnet"])

    assert misspelled == (
        3,
        [],
        "there is no job `resnett` below jobs/ in dev; did you mean `resnet`? (known: bert, gpt, llama, resnet)",
    )
    assert elsewhere == (3, [], "there is no job `resnet` below jobs/team-a/ in dev (known: bert, gpt)")


def test_missing_or_broken_teams_are_reported(tenants: Path) -> None:
    (tenants / "jobgen.yaml").write_text("{}\n")
    assert call(tenants, env="dev", team="a") == (
        2,
        [],
        f"there is no team `a`; does {PATHS} include /teams? (known: none)",
    )

    (tenants / "teams").mkdir()
    (tenants / "teams/a.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folder: [jobs/team-a]}\n")
    code, _, message = call(tenants, env="dev", team="a")
    assert (code, message.splitlines()[-1]) == (2, "jobgen: teams/ has errors")
    assert "teams/a.yaml:3:8: unknown-field" in message


def test_parameter_announcement_lists_teams(tenants: Path) -> None:
    announced = {
        path: {each["name"]: each for each in json.loads(announce_parameters(tenants / path, {}).out)}
        for path in (".", "overlays/prod")
    }

    assert announced["."]["env"]["tooltip"] == "One of: dev, prod"
    assert announced["."]["team"]["tooltip"] == "One of: a, b; if empty, all teams"
    assert (announced["."]["env"]["required"], announced["."]["env"]["string"]) == (True, "")
    assert announced["overlays/prod"]["env"]["required"] is False
    assert announced["overlays/prod"]["env"]["string"] == "prod"


def test_dockerfile_copies_existing_files() -> None:
    lines = (ROOT / "deploy/argocd/Dockerfile").read_text().splitlines()
    sources = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]

    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {"jobgen", "schemas", "policies", "pyproject.toml", "deploy/argocd/plugin.yaml"} <= set(sources)


def test_plugin_file_matches_the_argo_cd_format() -> None:
    plugin = read((ROOT / "deploy/argocd/plugin.yaml").read_bytes(), "plugin.yaml").documents[0].data

    assert (plugin["apiVersion"], plugin["kind"]) == ("argoproj.io/v1alpha1", "ConfigManagementPlugin")
    assert plugin["metadata"]["name"] == "jobgen"
    assert plugin["spec"]["generate"] == {"command": ["jobgen", "cmp", "generate"]}
    assert plugin["spec"]["parameters"]["dynamic"] == {"command": ["jobgen", "cmp", "parameters"]}
    # Discovery would send every repository to every plugin.
    assert "discover" not in plugin["spec"]


@pytest.mark.stress
def test_nothing_outlives_the_deadline(tmp_path: Path) -> None:
    """Neither code that takes every exception for a fault of a rule, nor compiled code that never returns."""
    script = tmp_path / "late.py"
    script.write_text(
        """\
import collections, itertools, sys
from jobgen.features.gitops.commands import cmp

cmp._AGAIN_SECONDS = 0.1


def hide_exceptions():
    while True:
        try:
            while True:
                pass
        except Exception:
            pass


def hide_everything_once():
    try:
        while True:
            pass
    except BaseException:
        hide_exceptions()


def never_return():
    collections.deque(itertools.repeat(None), 0)


print(cmp._run_in_time(globals()[sys.argv[1]]).err, end="")
"""
    )
    late = "jobgen: not finished after 0.2 seconds; nothing was generated\n"
    for name, expected in (("hide_exceptions", late), ("hide_everything_once", late), ("never_return", "")):
        command = [sys.executable, str(script), name]
        env = {**os.environ, "JOBGEN_CMP_TIMEOUT": "0.2", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=300)
        assert (done.stdout, done.returncode) == (expected, 0 if expected else 1), (name, done.stderr)
