"""Mistakes in commands, arguments, variables and scripts: one finding on its line that says what to write instead."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from linting import lint_paths
from test_clear_messages import TODAY, lint_files
from test_misread import H

from jobgen.features.launch.shell.values import UNKNOWN
from jobgen.k8s import programs
from jobgen.model.mend import UNKNOWN_TEXT

MAIN = """\
- name: pytorch
  image: registry.example.com/a:1.0.0
  resources: {limits: {nvidia.com/gpu: 1, cpu: 8, memory: 64Gi}}
"""
POD = f"spec:\n  restartPolicy: Never\n  containers:\n{textwrap.indent(MAIN, '  ')}"


def _head(version: str, kind: str, spec: str = "") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: ml}}\nspec:\n{spec}"


def write_job(text: str, rest: str = "") -> str:
    pod = textwrap.indent(POD + textwrap.indent(text, "    ") + textwrap.indent(rest, "  "), "    ")
    return _head("batch/v1", "Job", "  template:\n") + pod


def write_pytorch_job(text: str, rest: str = "") -> str:
    whole = POD.replace("  restartPolicy: Never\n", "") + textwrap.indent(text, "    ") + textwrap.indent(rest, "  ")
    pod = textwrap.indent(whole, " " * 8)
    spec = "  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      restartPolicy: Never\n      template:\n"
    return _head("kubeflow.org/v1", "PyTorchJob", spec) + pod


def write_volcano_job(text: str, rest: str = "") -> str:
    pod = textwrap.indent(POD + textwrap.indent(text, "    ") + textwrap.indent(rest, "  "), " " * 6)
    spec = "  minAvailable: 1\n  schedulerName: volcano\n  tasks:\n  - name: worker\n    replicas: 1\n    template:\n"
    return _head("batch.volcano.sh/v1alpha1", "Job", spec) + pod


def write_job_set(text: str, rest: str = "") -> str:
    pod = textwrap.indent(POD + textwrap.indent(text, "    ") + textwrap.indent(rest, "  "), " " * 10)
    spec = "  replicatedJobs:\n  - name: node\n    template:\n      spec:\n        backoffLimit: 0\n        template:\n"
    return _head("jobset.x-k8s.io/v1alpha2", "JobSet", spec) + pod


def write_spec(text: str) -> str:
    return H + textwrap.indent(text, "  ")


WRITERS = (write_job, write_pytorch_job, write_volcano_job, write_job_set, write_spec)


def lint_text(folder: Path, text: str, **files: str) -> list[dict[str, Any]]:
    found = lint_files(folder, {"jobs/a.yaml": text, **files})
    return sorted(found, key=lambda each: (each["file"], each["line"]))


# What a broken item or field has, whatever the launcher misses because of it: the line in the container, and words.
BROKEN = {
    "mapping behind a script": ("command: [accelerate, launch]\nargs:\n- train.py\n- --lr: 0.1\n", 4, "`--lr=0.1`"),
    "only mappings": ("command: [torchrun]\nargs:\n- train.py: x\n", 3, "`args[0]` is a mapping"),
    "list in a list": ("command: [torchrun]\nargs:\n- [train.py, -x]\n", 3, "`args[0]` is a list"),
    "text": ("command: [deepspeed]\nargs: train.py --lr 1\n", 2, 'write `args: [train.py, --lr, "1"]`'),
    "lines": ("command: [torchrun]\nargs: |\n  train.py\n  --x\n", 2, "`args` is `train.py --x`, and must be a list"),
    "mapping": ("command: [torchrun]\nargs: {train.py: x}\n", 2, "`args` is a mapping"),
    "item of a command": ("command:\n- torchrun\n- --nproc-per-node: 2\n- train.py\n", 3, "`--nproc-per-node=2`"),
    "misspelled": ("command: [accelerate, launch]\narg: [train.py]\n", 2, "did you mean `args`?"),
    "unknown": ("command: [accelerate, launch]\nscript: train.py\n", 2, "`script` is not a field"),
    "variables": ("command: [torchrun, --nnodes=$(NN), t.py]\nenv: NN=1\n", 2, "`env` is `NN=1`"),
    "list of a variable": ("command: [torchrun, --nnodes=$(NN), t.py]\nenv:\n- NN: '1'\n", 3, "`NN` is not a field"),
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_depends_on_a_broken_field_is_not_reported(write, name, tmp_path):
    text, line, words = BROKEN[name]
    if write is write_spec and name == "list of a variable":
        text, words = text.replace("- NN", "  NN").replace("'1'", "[1]"), "`NN` is a list"
    whole = write(text)
    start = whole[: whole.index("command:")].count("\n")

    [found] = lint_text(tmp_path, whole)

    assert (found["line"] - start, words in found["message"]) == (line, True), found["message"]


def test_a_left_out_argument_is_unknown_to_what_reads_commands():
    assert UNKNOWN_TEXT == UNKNOWN


# Words in one item: the items before it, what is written, and the list to write instead.
JOINED = {
    'command: ["python tune.py --trials=20"]': "[python, tune.py, --trials=20]",
    'command: [python, -u, "train.py --data=/data"]': "[python, -u, train.py, --data=/data]",
    'command: [python3.11, "train.py", "--x"]': "",
    'command: [python, -W, ignore, "src/train.py --lr 1"]': '[python, -W, ignore, src/train.py, --lr, "1"]',
    'command: [python, "-m pkg.train"]': "[python, -m, pkg.train]",
    'command: [python, -m, "pkg.train --x"]': "[python, -m, pkg.train, --x]",
    'command: [python, "-u train.py"]': "[python, -u, train.py]",
    'command: [python, "my train.py"]': "",
    'command: [python, -c, "import a; a.b.py "]': "",
    'command: [python, run.py, "train.py --lr 1"]': "",
    'command: [tini, --, "python train.py"]': '[tini, "--", python, train.py]',
    'command: [bash, "run.sh --x"]': "[bash, run.sh, --x]",
    'command: [bash, -e, "python train.py"]': '[bash, -e, -c, "python train.py"]',
    'command: [sh, "-c python train.py"]': '[sh, -c, "python train.py"]',
    'command: [bash, "my script.sh"]': "",
    'command: ["bash -c", "python train.py"]': '[bash, -c, "python train.py"]',
    'command: [bash, -o, pipefail, -c, "python train.py"]': "",
    'command: ["accelerate launch", train.py]': "[accelerate, launch, train.py]",
    'command: [accelerate, "launch train.py"]': "[accelerate, launch, train.py]",
    'command: [accelerate, launch, "--num_processes=1 train.py"]': "[accelerate, launch, --num_processes=1, train.py]",
    'command: [accelerate, launch, train.py, "--text", "a --b c"]': "",
    'command: [torchrun, "--nproc_per_node=1 train.py"]': "[torchrun, --nproc_per_node=1, train.py]",
    'command: [torchrun, "train.py --lr 0.1"]': '[torchrun, train.py, --lr, "0.1"]',
    'command: [torchrun, --no-python, "python train.py"]': "[torchrun, --no-python, python, train.py]",
    'command: [torchrun, train.py, "--cmd=a.py --b"]': "",
    'command: [deepspeed, "train.py --lr 1"]': '[deepspeed, train.py, --lr, "1"]',
    'command: [python, -m, torch.distributed.run, "train.py --lr 1"]': "",
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("text", JOINED)
def test_words_in_one_item_are_told_apart(write, text, tmp_path):
    whole = write(f"{text}\n")
    wanted = JOINED[text]
    if "torch.distributed" in text:
        wanted = '[python, -m, torch.distributed.run, train.py, --lr, "1"]'

    found = lint_text(tmp_path, whole)

    messages = [each["message"] for each in found]
    assert len(found) == bool(wanted), messages
    if wanted:
        assert f"write `{wanted}`" in messages[0]
        assert found[0]["line"] == whole[: whole.index("command:")].count("\n") + 1


@pytest.mark.parametrize("items", [' [torchrun, "train.py --lr 1"]', '\n- torchrun\n- "train.py --lr 1"'])
def test_a_fix_writes_an_item_for_each_word(items, tmp_path):
    lint_text(tmp_path, write_job(f"command:{items} # here\n"))
    lint_paths(tmp_path, (), (), format_="text", fix="unsafe", today=TODAY)

    written = '[torchrun, train.py, --lr, "1"] # here\n'
    if "[" not in items:
        written = '- train.py\n        - --lr\n        - "1" # here\n'
    assert written in (tmp_path / "jobs/a.yaml").read_text()
    assert lint_files(tmp_path, {}) == []


MODULES = {
    "[python, -m, eval.py]": "eval",
    "[python, -u, -m, src/train.py]": "src.train",
    "[python, -m, src/train, --x]": "src.train",
    "[torchrun, -m, ./train.py]": "train",
    "[torchrun, --module, a.b.py]": "a.b",
    "[accelerate, launch, --module, src/train.py]": "src.train",
    "[deepspeed, --module, train.py]": "train",
    "[mpirun, -np, '1', python, -m, train.py]": "train",
    '[bash, -c, "cd /app; python -m train.py"]': "train",
    "[python, -m, train, a/b.py]": "",
    "[python, train.py, -m, a.py]": "",
    "[python, -m, pkg.train]": "",
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("items", MODULES)
def test_a_module_is_no_file(write, items, tmp_path):
    found = lint_text(tmp_path, write(f"command: {items}\n"))

    meant = MODULES[items]
    assert [each["severity"] for each in found] == ["error"] * bool(meant), [each["message"] for each in found]
    assert all(f"write `{meant}`, or remove `-m`" in each["message"] for each in found)


def test_a_module_of_an_absolute_path_has_no_name(tmp_path):
    [found] = lint_text(tmp_path, write_job("command: [python, -m, /app/train.py]\n"))
    assert found["message"].endswith("; remove `-m`")


ENTRYPOINTS = {
    """ "['python', 'train.py', '--lr', '1']" """: "write `python train.py --lr 1`",
    ' "[python, train.py]"': "write `python train.py`",
    ' python "train.py --x"': "remove the quotation marks",
    """ '"python train.py"'""": "remove the quotation marks",
    " python -m train.py": "write `train`, or remove `-m`",
    """ python train.py --name "a b""": 'a quotation mark `"` of the entrypoint is not closed',
    " python train.py --names '[a, b]'": "",
    " python -c 'import a'": "",
}


@pytest.mark.parametrize("text", ENTRYPOINTS)
def test_an_entrypoint_is_a_text_that_a_shell_splits(text, tmp_path):
    pod = textwrap.indent(POD.replace("  restartPolicy: Never\n", ""), " " * 8)
    spec = (
        f"  shutdownAfterJobFinishes: true\n  entrypoint:{text.rstrip()}\n  rayClusterSpec:\n    rayVersion: 2.46.0\n"
    )
    spec += "    headGroupSpec:\n      rayStartParams: {}\n      template:\n"
    found = lint_text(tmp_path, _head("ray.io/v1", "RayJob", spec) + pod)

    assert len(found) == bool(ENTRYPOINTS[text]), [each["message"] for each in found]
    assert all(each["line"] == 6 and ENTRYPOINTS[text] in each["message"] for each in found)


# Lines of a script: the words of the answer, without any if it is right.
SLIPS = {
    "export A =1": "write `export A=1`",
    "export A= 1": "write `export A=1`",
    "export A: one": "write `export A=one`",
    "export A= B=2": "",
    'export NAME = "a b"': 'write `export NAME="a b"`',
    "N = $(nproc)": "write `N=$(nproc)`",
    "A= 1": "write `A=1`",
    "A= python t.py": "",
    "A= b": "",
    "$A=1": "`$A` is the value of `A`, and not its name; write `A=1`",
    "export ${A}=x y": "write `export A=x y`",
    "export A=1, B=2": "the comma becomes a part of the value",
    "export A=1 B=2": "",
    "set A=1": "write `A=1`",
    "set -- A=1": "",
    "setenv OMP_NUM_THREADS 4": "write `export OMP_NUM_THREADS=4`",
    "set -e pipefail": "write `set -e -o pipefail`",
    "set -euo pipefail": "",
    "pip install torch>=2.0": "write `'torch>=2.0'`",
    "cd /app && pip install -q 'a>1' numpy<2": "write `'numpy<2'`",
    "pip install 'torch>=2.0' > /tmp/log": "",
    "pip install torch 2>err": "",
    "if [ $A==1 ]; then b; fi": 'write `[ "$A" = 1 ]`',
    'if [ "$A" == 1 ]; then b; fi': "",
    "echo '[ a=b ]'": "",
    "a --lr 1 –-xy": "`–-xy` begins with a long dash, and not with `-`; write `--xy`",
    "a —verbose": "write `--verbose`",
    "a –m b": "write `-m`",
    "a – b": "",
    "echo ${A": "`${A` is not closed, so that the shell refuses the script; write `${A}`",
    "echo ${A} ${B:-x}": "",
    "N=$((2 * 3)": "`$((` is not closed",
    "N=$((2 * (3 + 1)))": "",
    "if a; then\n  b\nelseif c; then\n  d\nfi": "write `elif` instead of `elseif`",
    "torchrun t.py ^\n  --lr 1": "write `\\` instead of `^` at the end of line 2",
    "torchrun -m\n  a.py\n  --lr 1\n  --b 2": "`a.py` of the next line is run as a program; write `\\` at the end of "
    "lines 2, 3 and 4",
    "torchrun \\\n  a.py\n  --lr 1\necho a": "the line before it ends the command; write `\\` at the end of line 3",
    "if a; then\n  b.py\n  --lr 1\nfi": "write `\\` at the end of line 3",
}


@pytest.mark.parametrize("line", SLIPS)
def test_a_line_of_a_script_is_read_as_a_shell_reads_it(line, tmp_path):
    script = textwrap.indent(f"set -x\n{line}\npython train.py\n", "  ")
    found = [each["message"] for each in lint_text(tmp_path, write_job(f"command:\n- bash\n- -c\n- |\n{script}"))]

    assert [SLIPS[line] in each and "in line" in each for each in found] == [True] * bool(SLIPS[line]), found


@pytest.mark.parametrize(
    ("line", "words"), [("// train", "`//` begins no comment in a shell"), ("import os", "`import os` is Python")]
)
def test_the_first_line_of_a_script_is_one_of_a_shell(line, words, tmp_path):
    [found] = lint_text(tmp_path, write_job(f"command:\n- bash\n- -c\n- |\n  {line}\n  export A = 1\n")[:-1])[:1]
    assert (words in found["message"], found["severity"]) == (True, "warning")


MODE = "is a file of a volume with mode `0644`, which no user can execute (`permission denied`)"
VOLUME = "volumeMounts: [{name: s, mountPath: /opt/s}]\n"
PREPARE = f"""\
- name: prepare
  image: registry.example.com/a:1.0.0
  resources: {{limits: {{cpu: 1, memory: 1Gi}}}}
  command: COMMAND
  {VOLUME}"""


@pytest.mark.parametrize("write", WRITERS[:4])
@pytest.mark.parametrize("field", ["initContainers", "containers"])
@pytest.mark.parametrize(
    ("command", "advice", "severity"),
    [
        ("[/opt/s/prepare.sh, -x]", "start it with a shell: `[sh, /opt/s/prepare.sh]`", "error"),
        ("[/opt/s/prepare.py]", "start it with Python: `[python, /opt/s/prepare.py]`", "error"),
        ("[sh, -c, /opt/s/prepare.sh -x]", "start it with a shell: `sh /opt/s/prepare.sh`", "error"),
        ('[sh, -c, "/opt/s/prepare.sh; ls"]', "`sh /opt/s/prepare.sh`", "warning"),
        ("[bash, /opt/s/prepare.sh]", "", ""),
        ("[python, /opt/s/prepare.py]", "", ""),
        ("[/opt/other/prepare.sh]", "", ""),
    ],
)
def test_every_container_needs_the_mode_of_its_script(write, field, command, advice, severity, tmp_path):
    other = PREPARE.replace("COMMAND", command)
    rest = f"initContainers:\n{other}" if field == "initContainers" else other
    text = write("command: [python, train.py]\n", f"{rest}volumes: [{{name: s, configMap: {{name: scripts}}}}]\n")

    found = lint_text(tmp_path, text)

    assert [(each["severity"], MODE in each["message"]) for each in found] == [(severity, True)] * bool(advice), found
    assert all(advice in each["message"] for each in found)


def write_files(**files: str) -> str:
    """Return a ConfigMap with files."""
    texts = (f"  {name.replace('_', '.')}: |\n{textwrap.indent(text, '    ')}" for name, text in files.items())
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files, namespace: ml}\ndata:\n" + "".join(texts)


MOUNT = "volumeMounts: [{name: f, mountPath: /opt/f}]\n"
FILES = "volumes: [{name: f, configMap: {name: files}}]\n"
# The texts of files: the line at fault, and words of the answer; none if nothing may be said.
SHELL_FILES = {
    '#!/bin/bash\necho "start\npython train.py\n': (2, 'quotation mark `"` is not closed'),
    "if true; then\n  a\npython train.py\n": (1, "`if` has no `fi`"),
    "set -e\nexport LR = 0.1\npython train.py\n": (2, "write `export LR=0.1`"),
    "{{ .Values.x }}\nif true; then\n": (0, ""),
    "#!/usr/bin/env fish\nif true\nend\n": (0, ""),
    "echo 'it'\n": (0, ""),
}
PYTHON_FILES = {
    "import os\ndef main()\n    print(1)\n": (2, "write `def main():`"),
    'x = 1\nprint("a)\n': (2, "is not closed (Python: `unterminated string literal"),
    "x = (1,\ny = 2\n": (1, "`(` is not closed"),
    "x = [1)\n": (1, "`)` does not close `[`"),
    "x = 1]\n": (1, "`]` closes nothing"),
    "x = 1\n  y = 2\n": (2, "is indented more than the line before it"),
    "if x:\ny = 1\n": (2, "is not indented below the line before it"),
    "if x:\n    y = 1\n\tz = 2\n": (3, "is not aligned with the lines before it"),
    'print "a"\n': (1, "is Python 2"),
    "if x = 1:\n    y()\n": (1, "write `==`"),
    "x = “a”\n": (1, "invalid character"),
    "#!/bin/sh\nx = (\n": (0, ""),
    "def f[T](x: T) -> T:\n    return x\n": (0, ""),
    "type X = int\n": (0, ""),
    "x = f'{a['b']}'\n": (0, ""),
    "import {{ .Values.x }}\nif x = 1:\n": (0, ""),
    "%pip install x\nif x = 1:\n": (0, ""),
}


@pytest.mark.parametrize("text", [*SHELL_FILES, *PYTHON_FILES])
def test_a_script_that_no_command_names_is_a_warning_on_its_line(text, tmp_path):
    name = "run_sh" if text in SHELL_FILES else "run_py"
    line, words = {**SHELL_FILES, **PYTHON_FILES}[text]
    if text.startswith("#!/bin/sh\nx"):
        text, words = "#!/bin/sh\nx=a\n", ""
    found = lint_text(tmp_path, write_files(**{name: text}))

    assert [(each["line"] - 5, each["rule"], each["severity"]) for each in found] == [
        (line, "broken-script", "warning")
    ] * bool(words), found
    assert all(words in each["message"] for each in found)


@pytest.mark.parametrize("write", WRITERS[:4])
@pytest.mark.parametrize("is_shell", [True, False])
def test_a_script_that_a_command_names_is_one_error_on_its_line(write, is_shell, tmp_path):
    name, text = ("run_sh", next(iter(SHELL_FILES))) if is_shell else ("run_py", next(iter(PYTHON_FILES)))
    start = "bash, /opt/f/run.sh" if is_shell else "torchrun, --standalone, /opt/f/run.py"
    job = write(f"command: [{start}]\n{MOUNT}", FILES)
    found = lint_files(tmp_path, {"jobs/a.yaml": job, "jobs/files.yaml": write_files(**{name: text})})

    assert [(each["file"], each["line"], each["severity"]) for each in found] == [("jobs/files.yaml", 7, "error")], (
        found
    )
    assert found[0]["alsoReportedBy"] == ["broken-script"]


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("is_shell", [True, False])
def test_a_file_of_a_generator_has_its_own_line(is_named, is_shell, tmp_path):
    name, text = ("run.sh", next(iter(SHELL_FILES))) if is_shell else ("run.py", next(iter(PYTHON_FILES)))
    command = f"[{'bash' if is_shell else 'python'}, /opt/f/{name}]" if is_named else "[python, train.py]"
    kustomization = f"resources: [job.yaml]\nconfigMapGenerator:\n- {{name: files, namespace: ml, files: [{name}]}}\n"
    job = write_job(f"command: {command}\n{MOUNT}", FILES)
    found = lint_files(tmp_path, {"kustomization.yaml": kustomization, "job.yaml": job, name: text})

    severity = "error" if is_named else "warning"
    assert [(each["file"], each["line"], each["severity"]) for each in found] == [(name, 2, severity)], found


def test_a_config_map_of_a_build_is_read_where_it_is_written(tmp_path):
    files = {
        "base/kustomization.yaml": "resources: [job.yaml, files.yaml]\n",
        "base/job.yaml": write_job(f"command: [bash, /opt/f/run.sh]\n{MOUNT}", FILES),
        "base/files.yaml": write_files(run_sh=next(iter(SHELL_FILES))),
        "prod/kustomization.yaml": "resources: [../base]\nnamespace: prod\n",
    }
    found = lint_files(tmp_path, files)
    assert {(each["file"], each["line"]) for each in found} == {("base/files.yaml", 7)}, found


CONFIGS = {
    ("c.json", '{"a": "x"],\n "b": 2}\n'): (1, "`]` closes nothing; remove it, or write its other bracket"),
    ("c.json", '{"a": [1, 2}\n'): (1, "`[` is not closed; write `]` here"),
    ("c.json", '{"a": {"b": 1}\n'): (1, "`{` is not closed; write `}`"),
    ("c.json", '{"a": 1,\n b: 2}\n'): (2, '`b` has no quotation marks; write `"b"`'),
    ("c.json", '{"a": "b}\n'): (1, "a quotation mark is not closed"),
    ("c.json", '{"a": 1,}\n'): (1, "remove the comma"),
    ("c.yaml", 'a: 1\nb: "x"]\n'): (2, 'write `b: "x"`, or `b: ["x"]`'),
    ("c.yaml", 'a: 1\nb: "x",\n'): (2, 'write `b: "x"`'),
    ("c.yaml", "a: [1, 2\n"): (1, "has a `[` that is not closed"),
    ("c.yaml", "a: 1\n\tb: 2\n"): (2, "is indented with a tab"),
    ("c.toml", '[a]\nx = "1"]\n'): (2, "is not TOML"),
    ("c.yaml", "a: 1\n"): (0, ""),
}
NAMING = [
    "command: [python, train.py, --config=/opt/f/FILE]\n",
    "command: [torchrun, train.py, /opt/f/FILE]\n",
    "command: [bash, -c, python train.py --config /opt/f/FILE]\n",
    "command: [python, train.py]\nenv: [{name: APP_CONFIG, value: /opt/f/FILE}]\n",
]


@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize("naming", NAMING)
def test_a_config_file_that_a_command_names_is_read(naming, case, tmp_path):
    (name, text), (line, words) = case, CONFIGS[case]
    files = write_files(**{name.replace(".", "_"): text})
    job = write_job(naming.replace("FILE", name) + MOUNT, FILES)
    found = lint_files(tmp_path, {"jobs/a.yaml": job, "jobs/files.yaml": files})

    assert [(each["file"], each["line"] - 5, each["severity"]) for each in found] == [
        ("jobs/files.yaml", line, "warning")
    ] * bool(words), found
    assert all(words in each["message"] for each in found)


# Commands of one line: words of the answer, none if it is right, and whether it is an error.
COMMANDS = {
    "[pyhton, t.py]": ("did you mean `python`?", False),
    "[pythno3, t.py]": ("did you mean `python3`?", False),
    "[torchun, t.py]": ("did you mean `torchrun`?", False),
    "[torch, run, t.py]": ("did you mean `torchrun`?", False),
    "[my-trainer, t.py]": ("", False),
    "[bash, t.py]": ("write `[python, t.py]`", False),
    "[python3, run.sh, -x]": ("write `[sh, run.sh, -x]`", False),
    "[torchrun, --standalone, torchrun, t.py]": (
        "`torchrun` takes `torchrun` for a Python script; write it once",
        False,
    ),
    "[torchrun, --standalone, --no-python, torchrun, t.py]": ("", False),
    "[pip install x, python t.py]": ('write `[sh, -c, "pip install x && python t.py"]`', True),
    "[python t.py, --lr 1]": ('write `[python, t.py, "--lr 1"]`', True),
    "[python2, t.py]": ("", False),
    "[dash, t.sh]": ("", False),
    "[A=1, python, t.py]": ("set the variable in `env`, or write `[env, A=1, python, t.py]`", True),
    "[env, A=1, python, t.py]": ("", False),
    "[python, torchrun, t.py]": ("write `[torchrun, t.py]`", False),
    "[python, -m, torchrun, t.py]": ("write `torch.distributed.run`, or start `torchrun`", True),
    "[python, -m, torch.distributed.run, t.py]": ("", False),
    "[nohup, torchrun, t.py]": ("", False),
    "[accelerate, t.py]": ("write `launch` before it", True),
    "[accelerate, env]": ("", False),
    "[torchrun, -nnodes=1, t.py]": (
        "`-nnodes` has one dash, and is not an option of torchrun; write `--nnodes`",
        False,
    ),
    "[torchrun, --master-port=29500a, t.py]": ("`29500a` is not a number", True),
    "[torchrun, --max-restarts, three, t.py]": ("argument --max-restarts: invalid int value", True),
    "[torchrun, --master-port=29500, t.py]": ("", False),
    "[python, ~/t.py]": ("write the whole path, such as `/root/t.py`", False),
    "[bash, -c, 'python ~/t.py']": ("", False),
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("items", COMMANDS)
def test_a_program_or_an_option_that_does_not_exist_is_named(write, items, tmp_path):
    words, is_error = COMMANDS[items]
    found = lint_text(tmp_path, write(f"command: {items}\n"))

    assert [(each["severity"], words in each["message"]) for each in found] == [
        ("error" if is_error else "warning", True)
    ] * bool(words), found


@pytest.mark.parametrize(("value", "meant"), [("0-3", "0,1,2,3"), ("0:1", "0,1"), ("4,0..2", "0,1,2"), ("0,1", "")])
def test_a_range_of_devices_is_no_list(value, meant, tmp_path):
    text = write_job(f"command: [python, t.py]\nenv: [{{name: CUDA_VISIBLE_DEVICES, value: '{value}'}}]\n")
    found = lint_text(tmp_path, text.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2"))
    found = [each for each in found if "CUDA_VISIBLE" in each["message"]]

    assert [f'write `"{meant}"`' in each["message"] for each in found] == [True] * bool(meant)


def test_a_value_names_variables_above_it(tmp_path):
    env = "env:\n- {name: A, value: $(B)/x}\n- {name: B, value: $(A)}\n- {name: C, value: $(C)}\n"
    [found] = lint_text(tmp_path, write_job(f"command: [python, t.py]\n{env}"))
    assert found["message"] == "`$(B)` stays as it is, because `B` is set below `A`; write `B` above it"


def test_a_comma_inside_of_a_quotation_mark_moves_out(tmp_path):
    [found] = lint_text(tmp_path, write_spec('command: ["python", "t.py," "--lr=1"]\n'))
    assert '"t.py", "--lr=1"]`' in found["message"]


@pytest.mark.parametrize("name", [*programs._MEANT, "hl-smi", "rocm-smi", "julia", "Rscript", "node"])
def test_a_program_that_exists_is_not_told_to_be_another(name):
    assert programs.describe_program([name, "--help"]) is None
