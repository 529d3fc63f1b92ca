"""The page of a job shows what it launches in each environment, without secrets."""

import pytest
from pagedata import PageData
from report_browser import go, texts

from jobgen.features.page.report import report

SECRET = "hf_" + "abcdefghij" * 3 + "abcd"
FILES = {
    "jobs/titan.yaml": f"""\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: titan}}
spec:
  framework: pytorch
  replicas: 2
  image: registry.example.com/titan:0.2.0
  env: {{HF_TOKEN: {SECRET}, TP: "2"}}
  command: [bash, -c]
  args: ["torchrun -m torchtitan.train --config llama3_8b --parallelism.tensor_parallel_degree $TP $HF_TOKEN"]
  resources: {{cpu: 8, memory: 64Gi, gpu: 4}}
""",
    "jobs/plain.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: plain}
spec: {framework: generic, image: registry.example.com/a:1, command: [sleep, "1"]}
""",
    "overlays/dev/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: dev}\n",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: prod
  patches:
    - match: {names: [titan]}
      merge: {resources: {gpu: 8}, env: {TP: "8"}}
""",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("launches")
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return report(root)


def test_launches_have_the_numbers_of_each_environment(page):
    data = PageData(page.data)
    cells = data.table("cells")
    numbers = {(cells[row["cell"]]["environment"], row["name"]): row["value"] for row in data.table("launches")}

    assert {
        env: [numbers[env, name] for name in ("GPUs per pod", "tensor parallel size")] for env in ("dev", "prod")
    } == {
        "dev": ["4", "2"],
        "prod": ["8", "8"],
    }
    assert {row["roles"] for row in data.table("launches")} == {"Master, Worker"}
    assert SECRET not in page.data


def test_a_job_shows_its_launches(page, browser, tmp_path):
    (tmp_path / "index.html").write_text(page.page, "utf-8")
    opened = browser.new_page()
    opened.goto((tmp_path / "index.html").as_uri())
    opened.wait_for_selector("html[data-ready]")
    go(opened, "#/job/titan")
    shown = texts(opened, ".launch tbody tr")
    commands = texts(opened, ".launch code")
    go(opened, "#/job/plain")

    assert any(
        row.startswith("tensor parallel size") and "--parallelism.tensor_parallel_degree" in row for row in shown
    )
    assert [command.startswith("torchrun -m torchtitan.train ") for command in commands] == [True, True]
    assert texts(opened, ".launch") == []
    opened.close()
