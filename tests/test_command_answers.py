"""What a user gets for mistakes in commands: the right rule on the right line, and nothing beside it."""

import textwrap

import pytest

from jobgen import lint

HEADER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:1.0.0
  resources: {cpu: 8, memory: 64Gi, gpu: 8}
  shm: 16Gi
"""
FIRST = HEADER.count("\n") + 1
ARGPARSE = """\
  configs:
    t:
      mountPath: /opt/t
      data:
        train.py: |
          import argparse
          parser = argparse.ArgumentParser()
          parser.add_argument("--lr", type=float)
          args = parser.parse_args()
"""
SECRET = """\
---
apiVersion: v1
kind: Secret
metadata: {name: s3, namespace: ml}
stringData: {KEY: a, NPROC: b}
"""
DEEPSPEED = """\
  command: [torchrun, --nproc-per-node=8, train.py, --deepspeed_config=/cfg/ds.json]
  configs:
    ds:
      mountPath: /cfg
      data:
        ds.json: |
          {
            "train_batch_size": 8,
"""
SCRIPT = """\
  command:
    - bash
    - -c
    - |
"""
HIDDEN = '  env: {CUDA_VISIBLE_DEVICES: "0,1,2,3"}\n'
FOUR_WORKERS = "  roles: {worker: {replicas: 4}}\n"
SECRETS = "  secrets: {s3: {env: true}}\n"
AWS = "  secrets: {s3: {env: true, prefix: AWS_}}\n"


def write(root, job, patch=""):
    prod = "  cluster: {platform: kubeflow}\n" + (f"  patches:\n    - merge: {patch}\n" if patch else "")
    for name, text in (
        ("jobgen.yaml", "environments: [prod]\n"),
        ("jobs/a.yaml", job),
        (
            "overlays/prod/overlay.yaml",
            f"apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: prod}}\nspec:\n{prod}",
        ),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def find(root):
    """The findings of a repository that concern commands."""
    found = [each for each in lint(root).findings if each.severity.value != "info"]
    return [(each.rule, each.location.file, each.location.line, each.severity.value, each.message) for each in found]


# What follows the header, and the rule, the line behind the header, the severity, and a part of the message.
CASES = {
    "envFrom of a Secret": (
        f"  command: [torchrun, --nproc-per-node=16, train.py]\n{SECRETS}",
        ("nproc-gpu-mismatch", 0, "warning", "a pod has 8 GPUs"),
    ),
    "envFrom with a prefix": (
        f"  command: [torchrun, --nproc-per-node=4, train.py]\n{AWS}",
        ("nproc-gpu-mismatch", 0, "warning", "leave GPUs idle"),
    ),
    "fewer processes than GPUs, which an unknown Secret can hide": (
        f"  command: [torchrun, --nproc-per-node=4, train.py]\n{SECRETS}",
        None,
    ),
    "fewer processes than GPUs, and a Secret whose keys are known": (
        f"  command: [torchrun, --nproc-per-node=4, train.py]\n{SECRETS}{SECRET}",
        ("nproc-gpu-mismatch", 0, "warning", "leave GPUs idle"),
    ),
    "a value of a Secret": (
        f'  command: [bash, -c, "torchrun --nproc-per-node=$NPROC train.py"]\n{SECRETS}{SECRET}',
        None,
    ),
    "a variable that the prefix excludes": (
        f'  command: [bash, -c, "torchrun --nproc-per-node=$NPROC train.py"]\n{AWS}',
        ("launch-refused", 0, "error", "gets an empty value"),
    ),
    "an option of torchrun behind a script of the image": (
        "  command: [torchrun, eval.py, --nproc_per_node=8]\n",
        ("launch-refused", 0, "warning", "`--nproc_per_node` is an option of torchrun, but `eval.py` gets it"),
    ),
    "an option of torchrun in both places": (
        "  command: [torchrun, --nproc-per-node=8, eval.py, --nproc-per-node=8]\n",
        None,
    ),
    "an option of a program that is no launcher": ("  command: [python, run.py, --nproc-per-node=8]\n", None),
    "an option of a script that reads it": (
        "  command: [torchrun, --standalone, /opt/t/train.py, --nproc-per-node=8]\n"
        + ARGPARSE.replace("lr", "nproc-per-node"),
        None,
    ),
    "one item for each line of a script": (
        "  command: [bash, -c, cd /app, python t.py --lr 1]\n",
        ("arguments-after-script", 0, "warning", "write all 2 commands as the lines of one item, below `- |`"),
    ),
    "one item for each part of a command": (
        "  command: [bash, -c, python t.py, --lr 1]\n",
        ("arguments-after-script", 0, "warning", "as one item: `python t.py --lr 1`"),
    ),
    "a reference that nothing defines": (
        "  command: [python, t.py, --lr=$(LR)]\n",
        ("undefined-reference", 0, "warning", "no variable `LR`"),
    ),
    "a reference beside a prefix": (
        f"  command: [python, t.py, --lr=$(LR)]\n{AWS}",
        ("undefined-reference", 0, "warning", "no variable `LR`"),
    ),
    "a reference that a Secret can define": (f"  command: [python, t.py, --lr=$(LR)]\n{SECRETS}", None),
    "a reference to a variable of the operator": (
        "  command: [torchrun, --nnodes=$(PET_NNODES), train.py]\n  roles: {master: {}, worker: {replicas: 3}}\n",
        None,
    ),
    "an escaped reference": ("  command: [python, t.py, --lr=$$(LR)]\n", None),
    "a substitution of a shell": ('  command: [bash, -c, "python t.py --n $(nproc)"]\n', None),
    "a number that nothing defines, reported once": (
        "  command: [torchrun, --nnodes=$(N), train.py]\n",
        ("launch-refused", 0, "error", "set `N` in `env`"),
    ),
    "an open quote": (
        '  command: [bash, -c, "python t.py --name \'x"]\n',
        ("script-syntax", 0, "error", "quotation mark `'` is not closed"),
    ),
    "an open backquote": (
        '  command: [bash, -c, "python t.py --name `date"]\n',
        ("script-syntax", 0, "error", "a backquote is not closed"),
    ),
    "if without fi in a config": (
        """\
  command: [bash, /opt/run/train.sh]
  configs:
    run:
      mountPath: /opt/run
      data:
        train.sh: |
          set -e

          if [ -d /data ]; then
            ls /data
          torchrun train.py
""",
        ("script-syntax", 8, "error", "in line 3 of `/opt/run/train.sh`, `if` has no `fi`"),
    ),
    "a space behind the backslash": (
        """\
  command:
    - bash
    - -c
    - |
      set -e
      torchrun --nproc-per-node=8 \\\x20
        train.py
""",
        ("script-syntax", 5, "warning", "a space behind the `\\`"),
    ),
    "options that are indented deeper": (
        """\
  command: [bash, -c]
  args:
    - >
      torchrun
        --nproc-per-node=8
        train.py
        --lr 0.1
""",
        ("script-syntax", 2, "error", "`--nproc-per-node=8` is run as a program"),
    ),
    "a command of options": (
        "  command: [--epochs=10]\n",
        ("command-in-one-string", 0, "error", "`--epochs=10` is an option"),
    ),
    "torchrun without a script": (
        "  command: [torchrun, --nproc-per-node=8]\n",
        ("launcher-without-script", 0, "error", "`torchrun` gets no script"),
    ),
    "torch.distributed.run without a script": (
        "  command: [python, -m, torch.distributed.run, --nproc-per-node=8]\n",
        ("launcher-without-script", 0, "error", "gets no script"),
    ),
    "accelerate without a script": (
        "  command: [accelerate, launch, --num_processes=8]\n",
        ("launcher-without-script", 0, "error", "gets no script"),
    ),
    "deepspeed without a script": (
        "  command: [deepspeed, --num_gpus=8]\n",
        ("launcher-without-script", 0, "error", "gets no script"),
    ),
    "paddle without a script": (
        "  command: [python, -m, paddle.distributed.launch, --nnodes=1]\n",
        ("launcher-without-script", 0, "error", "gets no script"),
    ),
    "horovodrun without a program": (
        "  command: [horovodrun, -np, '8']\n",
        ("launcher-without-script", 0, "error", "gets no script"),
    ),
    "a script in a variable of the image": ('  command: [bash, -c, "torchrun --nproc-per-node=8 $SCRIPT"]\n', None),
    "help": ("  command: [torchrun, --help]\n", None),
    "an option of torchrun behind a script that has no such option": (
        f"  command: [torchrun, /opt/t/train.py, --nproc-per-node=8]\n{ARGPARSE}",
        ("launch-refused", 0, "warning", "write it before `/opt/t/train.py`"),
    ),
    "an option behind a script with other options": (
        f"  command: [torchrun, /opt/t/train.py, --nnodes=1]\n{ARGPARSE.replace('parse_args()', 'parse_known_args()')}",
        None,
    ),
    "an option behind a script that has it": (
        f"  command: [torchrun, --nproc-per-node=8, /opt/t/train.py, --nnodes=1]\n{ARGPARSE.replace('lr', 'nnodes')}",
        None,
    ),
    "an option behind a script that is not known": (
        "  command: [torchrun, --nproc-per-node=8, train.py, --nnodes=1]\n",
        None,
    ),
    "workers only, with an empty address": (
        f'  command: [bash, -c, "torchrun --nnodes=4 --master-addr=$MASTER_ADDR train.py"]\n{FOUR_WORKERS}',
        ("nnodes-mismatch", 0, "warning", "add a master or an `elasticPolicy`"),
    ),
    "workers only, with a reference": (
        f"  command: [torchrun, --nnodes=4, --master-addr=$(MASTER_ADDR), train.py]\n{FOUR_WORKERS}",
        ("undefined-reference", 0, "warning", "only if the job has a master"),
    ),
    "a launcher in a script of the command": (
        """\
  command:
    - bash
    - -c
    - |
      set -e

      torchrun --nproc-per-node=16 train.py
""",
        ("nproc-gpu-mismatch", 6, "warning", "in line 3 of the script, 16 processes"),
    ),
    "a launcher in a script of a config": (
        """\
  command: [bash, /opt/run/train.sh]
  configs:
    run:
      mountPath: /opt/run
      data:
        train.sh: |
          torchrun --nproc-per-node=16 train.py
""",
        ("nproc-gpu-mismatch", 6, "warning", "in line 1 of `/opt/run/train.sh`, 16 processes"),
    ),
    "comments in a config of DeepSpeed": (
        f'{DEEPSPEED}            # ours\n            "bf16": {{"enabled": true}} // on\n          }}\n',
        None,
    ),
    "a comma too many beside a comment in a config of DeepSpeed": (
        f'{DEEPSPEED}            # ours\n            "bf16": {{"enabled": true}},\n          }}\n',
        ("launch-refused", 9, "warning", "which DeepSpeed can accept and other programs cannot; remove the comma"),
    ),
    "a literal of Python that Hjson reads as text up to the end of the line": (
        f'{DEEPSPEED}            "bf16": {{"enabled": True}},\n            "x": {{}}\n          }}\n',
        ("launch-refused", 8, "error", "which is not JSON or Hjson: it has `True`; write `true`"),
    ),
    "a literal of Python that Hjson reads as text": (
        f'{DEEPSPEED}            "fp16": {{\n              "enabled": True\n            }}\n          }}\n',
        ("launch-refused", 9, "warning", "it has `True`"),
    ),
    "the words of a command as items behind the script": (
        "  command: [bash, -c, torchrun, --nproc-per-node=8, train.py]\n",
        ("arguments-after-script", 0, "error", "write the whole command as one item: `torchrun --nproc-per-node=8"),
    ),
    "the words of a command as items behind the script of a Job": (
        "  command: [bash, -c, torchrun, --nproc-per-node=8, train.py]\n  platform: kubernetes\n",
        ("arguments-after-script", 0, "error", "write the whole command as one item: `torchrun --nproc-per-node=8"),
    ),
    "a variable without a shell that nothing sets": (
        "  command: [torchrun, --nnodes=$NNODES, train.py]\n",
        ("launch-refused", 0, "error", "nothing sets `NNODES`; write `$(PET_NNODES)`, which the operator sets"),
    ),
    "a variable without a shell that nothing sets, and no operator": (
        "  command: [torchrun, --nnodes=$NNODES, --nproc-per-node=8, train.py]\n  platform: kubernetes\n",
        ("launch-refused", 0, "error", "nothing sets `NNODES`; write `1`, the number of pods"),
    ),
    "a variable without a shell that the job sets": (
        '  command: [torchrun, --nnodes=$NODES, train.py]\n  env: {NODES: "1"}\n',
        ("launch-refused", 0, "error", "write `$(NODES)`, which Kubernetes replaces"),
    ),
    "a test without a space behind the bracket": (
        '  command: [bash, -c, "if [-f /ckpt/$RUN/x ]; then ls; fi; torchrun --nproc-per-node=8 train.py"]\n',
        ("script-syntax", 0, "warning", "`[-f` is run as a program, so that the test always fails; write `[ -f /"),
    ),
    "a test without a space before the bracket": (
        '  command: [bash, -c, "[ -d /ckpt/$RUN] && ls; torchrun --nproc-per-node=8 train.py"]\n',
        ("script-syntax", 0, "warning", "`[` has no `]` as its last word"),
    ),
    "tests as they are written": (
        "  command: [bash, -c, '[ \"$A\" = b ] && [[ -d /x ]] && [ -f /$A ] && [ x = y[1] ]; echo = =; python t.py']\n",
        None,
    ),
    "an assignment with spaces where a failure ends the script": (
        f'{SCRIPT}      set -eu\n      RESUME = "--resume"\n      python train.py $RESUME\n',
        ("script-syntax", 5, "error", "`RESUME` is run as a program"),
    ),
    "an assignment with spaces": (
        f'{SCRIPT}      RESUME = "--resume"\n      python train.py\n',
        ("script-syntax", 4, "warning", 'write `RESUME="--resume"` without the spaces around `=`'),
    ),
    "an assignment with a space in a condition": (
        f'{SCRIPT}      set -e\n      if [ -f /x ]; then\n        A ="b"\n      fi\n      python train.py\n',
        ("script-syntax", 6, "warning", "`A` is run as a program"),
    ),
    "fewer processes than GPUs in a list": (
        "  command: [torchrun, --nproc-per-node=4, train.py]\n",
        ("nproc-gpu-mismatch", 0, "warning", "a pod has 8 GPUs; write `--nproc-per-node=gpu`"),
    ),
    "fewer processes than GPUs in a script": (
        '  command: [bash, -c, "torchrun --nproc-per-node=4 train.py"]\n',
        ("nproc-gpu-mismatch", 0, "warning", "a pod has 8 GPUs; write `--nproc-per-node=gpu`"),
    ),
    "a variable that hides GPUs from the processes": (
        f"  command: [torchrun, --nproc-per-node=8, train.py]\n{HIDDEN}",
        ("nproc-gpu-mismatch", 1, "warning", "`CUDA_VISIBLE_DEVICES` shows 4 of 8 GPUs"),
    ),
    "a variable that hides GPUs, and as many processes as it shows": (
        f"  command: [torchrun, --nproc-per-node=4, train.py]\n{HIDDEN}",
        ("launch-variables", 1, "warning", "leaves GPUs idle"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reports_a_mistake_once_where_it_was_written(name, tmp_path):
    text, expected = CASES[name]
    found = find(write(tmp_path, HEADER + text))

    if expected is None:
        assert found == []
        return
    rule, line, severity, part = expected
    [(told, file, at, level, message)] = found
    assert (told, file, at, level) == (rule, "jobs/a.yaml", FIRST + line, severity), message
    assert part in message


def test_points_at_the_patch_that_replaces_the_command(tmp_path):
    job = f"{HEADER}  command: [python, train.py]\n"

    [(rule, file, line, level, _)] = find(write(tmp_path, job, "{command: [--epochs=10]}"))

    assert (rule, file, line, level) == ("command-in-one-string", "overlays/prod/overlay.yaml", 7, "error")


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: run, namespace: ml}
data:
  train.sh: |
    set -e
    while true; do
      torchrun --nproc-per-node=16 train.py
"""


@pytest.mark.parametrize("ending", ["\n", "    done\n"])
def test_points_into_a_config_map_of_another_file(ending, tmp_path):
    job = textwrap.dedent("""\
        apiVersion: v1
        kind: Pod
        metadata: {name: a, namespace: ml}
        spec:
          containers:
            - name: main
              image: registry.example.com/a:1.0.0
              command: [bash, /run/train.sh]
              resources: {limits: {nvidia.com/gpu: 8}}
              volumeMounts: [{name: run, mountPath: /run}]
          volumes: [{name: run, configMap: {name: run}}]
        """)
    (write(tmp_path, job) / "jobs" / "run.yaml").write_text(CONFIG_MAP + ending, "utf-8")

    found = [each[:3] for each in find(tmp_path) if each[0] in ("script-syntax", "nproc-gpu-mismatch")]

    rule, line = ("script-syntax", 7) if ending == "\n" else ("nproc-gpu-mismatch", 8)
    assert found == [(rule, "jobs/run.yaml", line)]


MPI = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: mpi
  image: registry.example.com/a:1.0.0
  runPolicy: {cleanPodPolicy: Running}
  roles:
    launcher: {resources: {cpu: 1, memory: 8Gi}, command: COMMAND}
    worker: {replicas: 2, resources: {cpu: 8, memory: 64Gi, gpu: 1}, shm: 8Gi}
"""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("[mpirun, -np, python, t.py]", "`-np` takes a number, but `python` follows it"),
        ("[mpirun, -n, --bind-to, none, python, t.py]", "`-np` takes a number, but another option follows it"),
        ('[bash, -c, "mpirun -np -x A python t.py"]', "`-np` takes a number"),
        ('[mpirun, -np, "2", python, t.py]', ""),
        ('[bash, -c, "mpirun -np $(cat /n) python t.py"]', ""),
        ('[bash, -c, "mpirun -np $((1 + 1)) python t.py -np x"]', ""),
    ],
)
def test_the_number_of_processes_of_mpirun_is_a_number(command, words, tmp_path):
    write(tmp_path, MPI.replace("COMMAND", command))
    found = [each for each in find(tmp_path) if "`-np` takes" in each[4]]

    assert [each[1:4] for each in found] == [("jobs/a.yaml", 9, "error")] * bool(words)
    assert all(words in each[4] for each in found)


@pytest.mark.parametrize(
    ("pip", "advice"),
    [
        ("numpy scipy>=1.1", "write a list: `pip: [numpy, scipy>=1.1]`"),
        ("torch==2.6.0", "write a list: `pip: [torch==2.6.0]`"),
        ("requirements.txt", ""),
        ("./deps", ""),
        ("[numpy]", ""),
    ],
)
def test_packages_of_ray_are_a_list(pip, advice, tmp_path):
    job = f"  platform: ray\n  command: [python, t.py]\n  ray: {{version: 2.46.0, runtimeEnv: {{pip: {pip}}}}}\n"
    job = HEADER.replace("framework: pytorch", "framework: ray") + job
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(job)
    (tmp_path / "jobgen.yaml").write_text("")
    found = [each[4] for each in find(tmp_path) if "as the path of a file" in each[4]]

    assert [advice in each for each in found] == [True] * bool(advice)
