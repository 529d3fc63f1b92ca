"""Text that YAML reads in another way than it was written is one finding, on its line, with what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lintfiles import TODAY, lint_files, overlay
from linting import lint_paths

H = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:1.0.0
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
  shm: 16Gi
"""
SWEEP = "  matrix: {lr: [0.01, 0.1], bs: [1, 2]}\n"
USED = "    - --lr=${{ matrix.lr }}\n    - --bs=${{ matrix.bs }}\n"
RUN = "  command: [python, train.py]\n"


def lint_job(folder: Path, text: str, **files: str) -> list[dict[str, Any]]:
    return lint_files(folder, {"jobs/a.yaml": text, **files})


def show(found: dict[str, Any]) -> tuple[int, str]:
    """The line, counted from the end of the header, and what to write."""
    return found["line"] - H.count("\n"), found["message"].rpartition("; ")[2]


# What is appended to the header: the line of the only finding, and its advice.
CASES = {
    # Brackets and commas in the items of a list.
    "  command: [python, train.py, --milestones=[30,60,90]]\n": (1, 'write `"--milestones=[30,60,90]"`'),
    "  command: [python, train.py, --cfg={a: 1}]\n": (1, 'write `"--cfg={a: 1}"`'),
    '  command: [python, train.py, --cfg={"a": 1}]\n': (1, """write `'--cfg={"a": 1}'`"""),
    "  command: [python, --m=[[1,2],[3]], x]\n": (1, 'write `"--m=[[1,2],[3]]"`'),
    "  command: [python, a=[1,2], b={c: d}]\n": (1, 'write `"a=[1,2]"`, and `"b={c: d}"`'),
    "  command: [python, train.py, --gpus=0,1,2,3]\n": (1, 'write `"--gpus=0,1,2,3"`'),
    "  command: [python, train.py, --gpus, 0,1]\n": (1, 'write `"0,1"`'),
    "  command: [python,train.py,--gpus=0,1]\n": (1, 'write `"--gpus=0,1"`'),
    "  command: [python, train.py, --betas=(0.9,0.999)]\n": (1, 'write `"--betas=(0.9,0.999)"`'),
    "  command: [python, train.py, --betas=(0.9, 0.999)]\n": (1, 'write `"--betas=(0.9, 0.999)"`'),
    "  command: [python, train.py, --layers=a,b,c, -x]\n": (1, 'write `"--layers=a,b,c"`'),
    '  command: [python, train.py, --devices=0,1,2"]\n': (1, 'write `"--devices=0,1,2"`'),
    '  command: [python, "--devices=0,1,2,3, train.py]\n': (1, 'write `…, "--devices=0,1,2,3", train.py]`'),
    "  command: [python, train.py, “--devices=0,1,2”]\n": (1, 'write `"--devices=0,1,2"`'),
    RUN + "  env: {CUDA_VISIBLE_DEVICES: 0,1,2,3}\n": (2, 'write `"0,1,2,3"`'),
    RUN + "  env: {CUDA_VISIBLE_DEVICES: 0, 1, B: c}\n": (2, 'write `"0, 1"`'),
    RUN + "  env: {A: “0,1,2”}\n": (2, 'write `"0,1,2"`'),
    RUN + "  nodeSelector: {a: b: c}\n": (2, 'write `"b: c"`'),
    RUN + "  nodeSelector: {a: b; c: d}\n": (2, "write `nodeSelector: {a: b, c: d}`"),
    "  command: [python, train.py, --m=[1,2]\n": (1, 'write `command: [python, train.py, "--m=[1,2]"]`'),
    "  command: [python,\n    train.py, --gpus=0,1]\n": (2, 'write `"--gpus=0,1"`'),
    "  command: [python,\n    train.py, --m=[1,2]]\n": (2, 'write `"--m=[1,2]"`'),
    # Characters that look like others.
    RUN + "  nodeSelector: {a: b， c: d}\n": (2, "write `nodeSelector: {a: b, c: d}`"),
    RUN + "  nodeSelector: {a: b；c: d}\n": (2, "write `nodeSelector: {a: b, c: d}`"),
    "  command： [python, train.py]\n": (1, "write `command: [python, train.py]`"),
    "  command: [python, train.py】\n": (1, "write `command: [python, train.py]`"),
    "  command: 【python, train.py】\n": (1, "write `[python, train.py]`"),
    "  command: [python， train.py]\n": (1, "write `python, train.py`"),
    "  command:\u00a0[python, train.py]\n": (1, "write `command: [python, train.py]`"),
    "  command:\n    – python\n    – train.py\n": (
        2,
        "write `- python`, and correct the line below in the same way",
    ),
    "  command: [python, train.py, --lr=０.1]\n": (1, "write `--lr=0.1`"),
    "  command: [python, train.py, —lr=0.1]\n": (1, "write `--lr=0.1`"),
    "  соmmand: [python, train.py]\n": (1, "write `command`"),
    RUN + "  replicas: １\n": (2, "write `1`"),
    RUN + "  replicas: 1\u00a0\n": (2, "write `1`"),
    RUN + "  env:\n    A：1\n": (3, "write `A: 1`"),
    RUN + "  env: {A： b, C: d}\n": (2, "write `A: b`"),
    RUN + "  nodeSelector: {a: “b c”, d: e}\n": (2, 'write `"b c"`'),
    # Dashes, indents and items.
    "  command:\n  -python\n  -train.py\n": (2, "write `- python`, and correct the line below in the same way"),
    f"{SWEEP}  command:\n    - python\n    - @c.json\n{USED}": (4, 'write `- "@c.json"`'),
    f"{SWEEP}  command:\n    - python\n   - train.py\n{USED}": (4, "indent it by 1 more space"),
    f"{SWEEP}  command:\n    - python\n     - train.py\n{USED}": (4, "indent it by 4 spaces, as the item above"),
    f"{SWEEP}  command:\n    - python\n    - --tag: exp1\n{USED}": (4, "write `--tag=exp1`, or two items"),
    f"{SWEEP}  command:\n    - python\n    - --lr: ${{{{ matrix.lr }}}}\n{USED}": (4, "write `--lr=…`, or two items"),
    '  command: [python, train.py, "--lr 0.1"]\n': (1, "write two items, or `--lr=0.1`"),
    RUN + "  nodeSelector:\n    a:b\n    c:d\n": (3, "write `nodeSelector: {a: b, c: d}`"),
    "  command: [bash, -c]\n  args:\n    - >\n      python t.py\n        --lr=1\n        --x\n": (
        5,
        "write `\\` at the end of lines 1 and 2",
    ),
    f"{RUN}  configs:\n    x:\n      mountPath: /etc/x\n      data:\n        c.yaml:\n          a: 1\n": (
        6,
        "write `c.yaml: |`, and keep the lines below it as its text",
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_a_mistake_is_one_finding_with_what_was_meant(text, tmp_path):
    assert [show(each) for each in lint_job(tmp_path, H + text)] == [CASES[text]]


@pytest.mark.parametrize(
    "text",
    [
        '  command: [python, train.py, "--prompt=你好，世界"]\n  env: {MSG: 训练：第一次}\n',
        "  command: [python, train.py, --x, a]\n",
        "  command: [find, ., (, -name, x, )]\n",
        "  command: [python,train.py,--x=1,a]\n",
        '  command: [python, train.py, --extra-args, "--lr 0.1"]\n',
        "  command: [bash, -c]\n  args:\n    - |\n      a=(\n        --lr=1\n      )\n      python t.py ${a[@]}\n",
        "  command: [bash, -c]\n  args:\n    - |\n      python t.py \\\n        --lr=1\n",
    ],
)
def test_what_is_meant_is_no_finding(text, tmp_path):
    assert lint_job(tmp_path, H + text) == []


def test_numbers_with_spaces_are_items(tmp_path):
    found = lint_job(tmp_path, f"{H}  command: [python, train.py, --n, 2, --x, 3]\n")

    assert [show(each)[1] for each in found] == ["quote it"] * 2


def test_a_null_that_is_written_holds_nothing_below_it(tmp_path):
    [found] = lint_job(tmp_path, f"{H}{RUN}  env: {{D: null, E: [1, 2]}}\n")

    assert found["message"].startswith("`E` is a list")


def test_a_missing_separator_is_one_finding_for_each_object(tmp_path):
    other = H.replace("name: a", "name: b")
    found = lint_job(tmp_path, f"{H}{RUN}# another one\n{other}{RUN}  replicas: x\n")

    assert [(each["line"], each["message"].partition("; ")[2]) for each in found] == [
        (11, "write a line `---` above it"),
        (20, "for example, write `replicas: 9`"),
    ]


def test_a_kustomization_among_jobs_says_what_it_is(tmp_path):
    for text in ("resources: [a.yaml]\n", "kind: Kustomization\nresources: [a.yaml]\n"):
        found = lint_files(tmp_path, {"jobs/a.yaml": H + RUN, "jobs/kustomization.yaml": text})

        assert [each["message"].partition(",")[0] for each in found] == ["this is a kustomization"]


def test_an_image_with_a_space_says_nothing_about_overlays(tmp_path):
    job = (H + RUN).replace("/a:1.0.0", "/a :1.0.0")
    [found] = lint_job(tmp_path, job, **overlay("{images: [{name: registry.example.com/a, newTag: 2.0.0}]}"))

    assert found["message"].endswith("; write `registry.example.com/a:1.0.0`")


def test_a_container_without_a_name_in_a_patch_is_one_finding(tmp_path):
    patch = "{containers: [{env: [{name: A, value: b}], image: c:1.0}]}"
    path = f"  manifest: {{spec: {{pytorchReplicaSpecs: {{Master: {{template: {{spec: {patch}}}}}}}}}}}\n"
    found = lint_job(tmp_path, f"{H}{RUN}  volumes: {{data: {{pvc: data, mountPath: /data}}}}\n{path}")

    assert [each["message"] for each in found] == ["`containers[0]` needs `name`"]


def test_values_that_are_split_in_a_mapping_are_joined_by_a_fix(tmp_path):
    lint_job(tmp_path, f"{H}{RUN}  env: {{CUDA_VISIBLE_DEVICES: 0,1,2,3, B: c}}\n  replicas: １\n")
    lint_paths(tmp_path, (), (), format_="text", fix="safe", today=TODAY)

    text = tmp_path.joinpath("jobs/a.yaml").read_text()
    assert '  env: {CUDA_VISIBLE_DEVICES: "0,1,2,3", B: c}\n  replicas: 1\n' in text
