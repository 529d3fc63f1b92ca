"""Mistakes of new users: the line of each answer, its words, words that it must not have, and how many findings."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from lintfiles import PYTORCH, TODAY, lint_files
from linting import lint_paths
from test_misread import RUN, H

JOB = H + RUN
SECRET = "{containers: [{name: pytorch, env: [{name: T, valueFrom: {secretKeyRef: {name: hub, key: token}}}]}]}"
SECRET_LINE = f"  podTemplate: {{spec: {SECRET}}}\n"
CONFIGS = "  configs: {t: {mountPath: /opt/run, data: {run.sh: 'python t.py'}}}\n"
MATRIX = "  matrix: {x: [1, 2]}\n"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\n"
DATA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ml}\ndata:\n  x.yaml:\n    a: 1\n    b: 2\n"


class Case(NamedTuple):
    """A file with a mistake, and the answer."""

    text: str
    line: int
    words: str
    forbidden: str = "remove the line"
    count: int = 1
    file: str = "jobs/a.yaml"
    others: tuple[tuple[str, str], ...] = ()


def change(old: str, new: str) -> str:
    assert old in JOB
    return JOB.replace(old, new)


def append(text: str) -> str:
    return JOB + text


def command(items: str) -> str:
    return f"{H}  command: {items}\n"


def patch(text: str) -> str:
    return OVERLAY + "spec:\n" + text


PROD = "overlays/prod/overlay.yaml"
QUEUES = ((PROD, patch("  cluster: {queues: {gpu-small: {gpus: 8}}}\n")),)
RESOURCES = "{cpu: 8, memory: 64Gi, gpu: 1}"
CASES = {
    # What the list of the trial has.
    "brackets": Case(command("[python, --milestones=[30,60,90]]"), 9, 'write `"--milestones=[30,60,90]"`'),
    "braces": Case(command("[python, --cfg={a: 1}]"), 9, 'write `"--cfg={a: 1}"`'),
    "Chinese comma": Case(append("  nodeSelector: {a: b， c: d}\n"), 10, "`nodeSelector: {a: b, c: d}`", "，, "),
    "dash without space": Case(command("\n  -python\n  -train.py"), 10, "write `- python`", "indent it by 0"),
    "at sign": Case(f"{H}{MATRIX}  command:\n    - python\n    - @c\n    - ${{{{ matrix.x }}}}\n", 12, '`- "@c"`'),
    "mapping item": Case(f"{H}{MATRIX}  command:\n    - p\n    - --a: b\n    - ${{{{ matrix.x }}}}\n", 12, "`--a=b`"),
    "list in env": Case(append("  env: {D: null, E: [1, 2]}\n"), 10, 'write `E: "1,2"`', "belongs to"),
    "conflict": Case(
        append(SECRET_LINE + "<<<<<<< HEAD\n  replicas: 1\n=======\n>>>>>>> x\n"), 11, "merge conflict", "not shown"
    ),
    "tab": Case(append(SECRET_LINE + "\tqueue: a\n"), 11, "indent it by 2 spaces", "not shown"),
    "full-width colon": Case(change("shm: 16Gi", "shm：8Gi") + SECRET_LINE, 8, "write `shm: 8Gi`", "not shown"),
    "indent": Case(append(SECRET_LINE + "   queue: a\n"), 11, "indent it by 1 space less", "not shown"),
    "devices": Case(append("  env: {CUDA_VISIBLE_DEVICES: 0,1}\n"), 10, 'write `"0,1"`'),
    "open quote": Case(command('[python, "--devices=0,1, train.py]'), 9, '"--devices=0,1", train.py]`'),
    "curly quotes": Case(command("[python, t.py, “--devices=0,1”]"), 9, 'write `"--devices=0,1"`', "quote it"),
    "full-width digit": Case(append("  replicas: ２\n"), 10, "write `2`", "9"),
    "separator": Case(JOB + JOB.replace("name: a", "name: b"), 10, "write a line `---` above it", "duplicate"),
    "dotted": Case(append("  pytorch.nprocPerNode: 4\n"), 10, "write `pytorch: {nprocPerNode: 4}`", "manifest"),
    "platform": Case(append("  platform: kubeflow-trainer\n"), 10, "did you mean `trainer`?"),
    "environment": Case(append("  enviroment: {A: b}\n"), 10, "did you mean `env`?", "envFrom"),
    "text of a file": Case(
        append("  configs: {x: {mountPath: /x, data: {c.yaml: {a: 1}}}}\n"), 10, "write `c.yaml: |`"
    ),
    "space in image": Case(change("/a:1", "/a :1"), 6, "write `registry.example.com/a:1.0.0`", "overlay"),
    "parentheses": Case(command("[python, t.py, --betas=(0.9,0.999)]"), 9, 'write `"--betas=(0.9,0.999)"`'),
    "one argument": Case(command('[python, t.py, "--lr 0.1"]'), 9, "write two items, or `--lr=0.1`"),
    "folder": Case(
        append("  configs: {t: {mountPath: /t/c.yaml, data: {c.yaml: 'a'}}}\n"), 10, "set `subPath: c.yaml`"
    ),
    "no such script": Case(command("[bash, /opt/run/t.sh]") + CONFIGS, 9, "has only `run.sh`"),
    "runtime": Case(append("  platform: trainer\n  pytorch: {runtime: torch-distribted}\n"), 11, "`torch-distributed`"),
    "misspelling": Case(change("resources", "resouces"), 7, "did you mean `resources`?"),
    "no name": Case(append(f"  podTemplate: {{spec: {SECRET.replace('name: pytorch, ', '')}}}\n"), 10, "needs `name`"),
    # What somebody else might write.
    "hosts": Case(command("[python, t.py, --hosts=a.ex.com,b.ex.com]"), 9, 'write `"--hosts=a.ex.com,b.ex.com"`'),
    "pairs": Case(command("[python, t.py, --opts=a=1,b=2]"), 9, 'write `"--opts=a=1,b=2"`'),
    "ports": Case(command("[python, t.py, --peers=a:1,b:2, -x]"), 9, 'write `"--peers=a:1,b:2"`'),
    "zones": Case(append("  nodeSelector: {zone: a,b}\n"), 10, 'write `"a,b"`'),
    "labels": Case(append("  labels: {a: x,y}\n"), 10, 'write `"x,y"`', "true"),
    "data of a manifest": Case(DATA, 5, "write `x.yaml: |`", file="jobs/c.yaml"),
    "list of a match": Case(
        patch("  patches: [{match: {names: a, b}, merge: {shm: 8Gi}}]\n"), 5, "`[a, b]`", file=PROD
    ),
    "list of platforms": Case(
        patch("  cluster: {platforms: kubeflow, trainer}\n"), 5, "`[kubeflow, trainer]`", file=PROD
    ),
    "list of a matrix": Case(f"{H}  matrix: {{lr: 0.1, 0.2}}\n{RUN}", 9, "write `[0.1, 0.2]`"),
    "equals": Case(change("shm: 16Gi", "shm = 16Gi"), 8, "write `shm: 16Gi`"),
    "equals without spaces": Case(change("shm: 16Gi", "shm=16Gi"), 8, "write `shm: 16Gi`"),
    "no braces": Case(change(RESOURCES, RESOURCES[1:-1]), 7, "has no braces around its entries", '"cpu'),
    "round brackets": Case(change(RESOURCES, f"({RESOURCES[1:-1]})"), 7, "write `resources: {cpu: 8", '"(cpu'),
    "square brackets": Case(change(RESOURCES, f"[{RESOURCES[1:-1]}]"), 7, f"write `resources: {RESOURCES}`"),
    "no comma": Case(command('["python", "t.py" "--x"]'), 9, 'write `command: ["python", "t.py", "--x"]`'),
    "comment in a list": Case(command("[python, t.py, --tag #1]"), 9, 'write `command: [python, t.py, "--tag #1"]`'),
    "two on a line": Case(command("[python, t.py] replicas: 2"), 9, "needs a line of its own", "quotes"),
    "text behind a mark": Case(command("\n    - | python t.py\n      ls"), 10, "belongs on the next line", "extra"),
    "comma behind a number": Case(append("  replicas: 2,\n"), 10, "write `replicas: 2`", "9"),
    "bracket at the end": Case(
        change("[python, train.py]", "python, train.py]"), 9, "write `command: [python, train.py]`"
    ),
    "variables": Case(append("  env:\n    A=1\n    B=2\n"), 11, 'write `env: {A: "1", B: "2"}`'),
    "no spaces": Case(change(RESOURCES, "{cpu:8, memory:64Gi, gpu:1}"), 7, "write `cpu: 8`", count=3),
    "half a core": Case(change("cpu: 8,", "cpu: 8,5,"), 7, "`5` has no value", '"8,5"'),
    "template": Case(
        change("train.py]", '"--lr={{ matrix.lr }}"]') + "  matrix: {lr: [1, 2]}\n", 9, "`${{ matrix.lr }}`"
    ),
    # Text behind a closing quotation mark.
    "quoted program": Case(f'{H}  command: "python" eval.py\n', 9, "write `command: [python, eval.py]`", "aligned"),
    "quoted item of a block": Case(
        command('\n    - "python" -m\n    - eval'), 10, "write `- python`, and `- -m` below"
    ),
    "quoted item of a list": Case(command('["python" -m, eval]'), 9, 'write `command: ["python", -m, eval]`'),
    "quoted value": Case(append('  env:\n    A: "x"y\n    B: c\n'), 11, 'write `A: "xy"`', "indent"),
    "quoted word": Case(append('  env: {A: "x" y}\n'), 10, """write `env: {A: "x y"}`, or `'"x" y'`"""),
    "quoted image": Case(
        change("registry.example.com/a:1.0.0", '"registry.example.com/a":1.0.0'),
        6,
        '`image: "registry.example.com/a:1.0.0"`',
    ),
    "quotes in quotes": Case(append('  env:\n    A: "a "b" c"\n'), 11, """write `A: 'a "b" c'`"""),
    # The lines of a script without `|`.
    "lost bar of an item": Case(
        command("\n    - bash\n    - -c\n    -\n      set -x\n      pip install x\n      python t.py"),
        12,
        "write `- |`",
    ),
    "lost bar of an item with a colon": Case(
        command('\n    - bash\n    - -c\n    -\n      set -x\n      echo "a: b"\n      python t.py'), 12, "write `- |`"
    ),
    "lost bar beside the dash": Case(
        command("\n    - bash\n    - -c\n    - cd /app\n      python t.py"), 12, "write `- |`, and the text below it"
    ),
    "folded script": Case(
        command("\n    - bash\n    - -c\n    - >-\n      cd /app\n      python t.py"),
        12,
        "`>-` joins the lines of this script",
    ),
    "lost bar of a file": Case(
        append(
            "  configs:\n    t:\n      mountPath: /t\n      data:\n        a.sh:\n          cd x\n          sh a: b\n"
        ),
        14,
        "write `a.sh: |`",
    ),
    "script as a command": Case(command("\n    cd /app\n    python t.py"), 10, "write `command: [bash, -c]`", "[cd,"),
    # Words of Slurm and docker-compose, and fields in wrong places.
    "wall time": Case(append("  walltime: 12:00:00\n"), 10, "write `activeDeadlineSeconds: 43200` below `runPolicy`"),
    "tasks": Case(append("  tasks_per_node: 4\n"), 10, "write `nprocPerNode: 4` below `pytorch`", "manifest"),
    "shared memory": Case(append("  shared_memory: 4Gi\n"), 10, "write `shm`", "manifest"),
    "file among configs": Case(
        append("  configs:\n    ds.json: '{}'\n"), 11, "write `ds: {mountPath: /etc/ds, data: {ds.json: …}}`"
    ),
    "labels of an overlay": Case(
        OVERLAY.replace("prod}", "prod, labels: {a: b}}"), 3, "write `spec.defaults.labels`", file=PROD
    ),
    "namespace of an overlay": Case(
        OVERLAY.replace("prod}", "prod, namespace: a}"), 3, "write `namespace` below `spec`", "name`?", file=PROD
    ),
    # Variables of a sweep are no template text of another tool.
    "item beside a variable": Case(
        f"{H}{MATRIX}  command:\n    - python\n    - t.py\n   - -x=${{{{ matrix.x }}}}\n    - -a\n",
        13,
        "indent it by 1 more space",
        "template",
    ),
    "variable without quotes": Case(
        append(f"{MATRIX}  env: {{A: ${{{{ matrix.x }}}}}}\n"), 11, 'write `"${{ matrix.x }}"`', "template"
    ),
    "half of a variable": Case(
        append(f"{MATRIX}  args: [-a, -x=${{{{ matrix.x }}, -b]\n"), 11, 'write `args: [-a, "-x=${{ matrix.x }}", -b]`'
    ),
    "variable of another tool": Case(
        append(f"{MATRIX}  args: [-x={{{{ matrix.x }}}}]\n"), 11, "write `${{ matrix.x }}`, and quotes around", "render"
    ),
    "quote behind a variable": Case(
        append(f'{MATRIX}  env:\n    A: "${{{{ matrix.x }}}}" b\n'), 12, 'write `A: "${{ matrix.x }} b"`', "template"
    ),
    "open brace of an item": Case(command("[python, t.py, --cfg={a: 1, --lr=2]"), 9, '[python, t.py, "--cfg={a: 1}", '),
    # Programs in scripts, and lines of scripts that YAML joins.
    "program of a script": Case(
        command("\n    - bash\n    - -c\n    - |\n      cd /app\n      torchrn t.py"), 14, "did you mean `torchrun`?"
    ),
    "script below its launcher": Case(
        command("\n    - bash\n    - -c\n    - |\n      cd /app\n      torchrun --nnodes=1\n        t.py --lr 0.1\n"),
        15,
        "`t.py` is run as a program, because the line before it ends the command; write `\\` at the end of line 2",
    ),
    "line of a folded script": Case(
        command("\n    - bash\n    - -c\n    - >\n      python t.py\n        --lr 0.1\n"),
        14,
        "`--lr` is run as a program",
    ),
    "block of a folded script": Case(
        command("\n    - bash\n    - -c\n    - >\n      cd /x\n      && ls\n\n      if a; then b\n"),
        16,
        "`if` has no `fi`",
    ),
    "quote in joined lines": Case(
        command("\n    - bash\n    - -c\n    - >\n      cd /x &&\n      python 'x\n      -b\n"), 12, "`'` is not closed"
    ),
    # Variables that Kubernetes does not expand.
    "variable of the image": Case(
        command("[python, t.py, $HOME/x]"), 9, "the container has no variable `HOME`; set it in `env`"
    ),
    "variable of the image below a runtime": Case(
        command("[python, t.py, $USER/x]") + "  platform: trainer\n", 9, "has no variable `USER`; set it in `env`"
    ),
    "variable of the container": Case(
        command("[python, t.py, $OUT/x]") + "  env: {OUT: /x}\n", 9, "write `$(OUT)`", "has no"
    ),
    "path": Case(append('  env: {PYTHONPATH: "$PYTHONPATH:/src"}\n'), 10, "does not expand `$PYTHONPATH`, so that"),
    # Comments of other languages.
    "comment": Case(append("  // two nodes\n  replicas: 2\n"), 10, "write `# two nodes`", "aligned"),
    "comment of C": Case(append("  /* two nodes */\n  replicas: 2\n"), 10, "write `# two nodes`", "aligned"),
    "comment behind a number": Case(append("  replicas: 2 // nodes\n"), 10, "write `# nodes`", "9"),
    "comment behind a list": Case(command("[python, t.py] // run"), 9, "write `command: [python, t.py] # run`"),
    "comment behind a key": Case(append("  roles: // all\n    worker: {replicas: 2}\n"), 10, "# all`", "aligned"),
    "comment above the items": Case(command("\n    // run\n    - python\n    - t.py"), 10, "write `# run`", "folded"),
    "space before a tag": Case(change("a:1.0.0", "a: 1.0.0"), 6, "write `registry.example.com/a:1.0.0`", "quotes"),
    "space before a tag in braces": Case(
        DATA.partition("data")[0].replace("ConfigMap", "Pod")
        + "spec: {containers: [{image: r.example.com/a: 2, name: c}]}\n",
        3,
        "write `r.example.com/a:2`",
        "quotes",
        file="jobs/c.yaml",
    ),
    # What the next stranger wrote.
    "at sign in a mapping": Case(
        append("  labels: {team: vision, owner: @alice}\n"), 10, '`@alice` needs quotes; write `"@alice"`'
    ),
    "percent sign in a list": Case(command("[python, t.py, %d]"), 9, '`%d` needs quotes; write `"%d"`'),
    "version in a mapping": Case(append("  labels: {a: b, v: >=2.0}\n"), 10, 'write `">=2.0"`'),
    "first dash": Case(
        command("\n    -torchrun\n    - --nproc-per-node=4\n    - t.py"), 10, "write `- torchrun`", "must be a list"
    ),
    "first dash of arguments": Case(append("  args:\n    ---lr\n    - t.py\n"), 11, "write `- --lr`", "must be"),
    "name and key": Case(
        append("  env:\n    T: {name: hub, key: token}\n"),
        11,
        "write `{secretKeyRef: {name: hub, key: token}}`, or `configMapKeyRef`",
    ),
    "resources twice": Case(append("  resources: {gpu: 4}\n"), 10, "remove one, or join them"),
    "image twice": Case(append("  image: b:1\n"), 10, "keeps only the last one; remove one", "join"),
    "two dashes": Case(JOB + "--\n" + JOB.replace("name: a", "name: b"), 10, "write `---`", "colon"),
    "unknown anchor": Case(append("  env: *common\n"), 10, "write the value"),
    "excluded value": Case(
        H + "  matrix: {model: [small, large], exclude: [{model: lage}]}\n  args: ['${{ matrix.model }}']\n",
        9,
        "`model` is never `lage`; did you mean `large`?",
    ),
    "queue": Case(append("  queue: gpu_small\n"), 10, "did you mean `gpu-small`?", "valid", others=QUEUES),
    "path of a job": Case(
        patch("  patches: [{jsonPatch: [{op: replace, path: /spec/roles/worker/replicas, value: 7}]}]\n"),
        5,
        "`jsonPatch` changes the rendered object",
        file=PROD,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_has_the_answer_that_helps(name, tmp_path):
    case = CASES[name]
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB, **dict(case.others), case.file: case.text})

    assert len(found) == case.count, [each["message"] for each in found]
    assert (found[0]["file"], found[0]["line"]) == (case.file, case.line)
    assert case.words in found[0]["message"]
    assert case.forbidden not in found[0]["message"]


def test_a_variable_that_the_container_lacks_has_no_fix(tmp_path):
    text = command("[python, t.py, --out=$HOME/out]")
    lint_files(tmp_path, {"jobs/a.yaml": text})
    lint_paths(tmp_path, (), (), format_="text", fix="unsafe", today=TODAY)

    assert (tmp_path / "jobs/a.yaml").read_text() == text


def test_a_patch_may_delete_what_a_volume_has(tmp_path):
    job = append("  volumes: {d: {pvc: x, mountPath: /d, readOnly: true, subPath: a}}\n")
    change = "{volumes: {d: {readOnly: null, subPath: null, pvc: null, emptyDir: {}}}}"
    prod = patch(f"  patches: [{{match: {{names: [a]}}, merge: {change}}}]\n")

    assert lint_files(tmp_path, {"jobs/a.yaml": job, PROD: prod}) == []


@pytest.mark.parametrize(
    ("typed", "safe", "unsafe"),
    [
        ('  args: ["--out=$OUT/x"]\n  env: {OUT: /x}\n', "", '  args: ["--out=$(OUT)/x"]\n  env: {OUT: /x}\n'),
        ("  env: {A: 0,1, B: c}\n", '  env: {A: "0,1", B: c}\n', ""),
        ("  env: {A: 0, 1, B: c}\n", '  env: {A: "0, 1", B: c}\n', ""),
        ("  nodeSelector: {zone: a,b}\n", '  nodeSelector: {zone: "a,b"}\n', ""),
        ("  args: [--betas=(0.9, 0.999), -x]\n", '  args: ["--betas=(0.9, 0.999)", -x]\n', ""),
        ("  args: [t.py, --hosts=a.ex.com,b.ex.com]\n", "", '  args: [t.py, "--hosts=a.ex.com,b.ex.com"]\n'),
        ("  args: [t.py, --opts=a=1,b=2, -x]\n", "", '  args: [t.py, "--opts=a=1,b=2", -x]\n'),
        ("  resources: {cpu: 8,5, memory: 64Gi}\n", "", ""),
        ("  matrix: {lr: 0.1, 0.2}\n", "", ""),
    ],
)
def test_a_fix_writes_what_the_message_says(typed, safe, unsafe, tmp_path):
    lint_files(tmp_path, {"jobs/a.yaml": JOB + typed})
    for kind, expected in (("safe", safe or typed), ("unsafe", unsafe or safe or typed)):
        lint_paths(tmp_path, (), (), format_="text", fix=kind, today=TODAY)

        assert expected in (tmp_path / "jobs/a.yaml").read_text()


@pytest.mark.parametrize(
    "lines", ["torchrn() { torchrun t.py; }\ntorchrn", "function bsh { a; }\nbsh t", "paddlex --run"]
)
def test_a_script_may_define_its_programs(lines, tmp_path):
    script = "".join(f"      {line}\n" for line in lines.split("\n"))
    assert lint_files(tmp_path, {"jobs/a.yaml": command(f"\n    - bash\n    - -c\n    - |\n{script}")}) == []


@pytest.mark.parametrize(
    "item",
    [
        "- mpirun -np 8\n      -x A\n      python t.py",
        "- >\n      cd /app &&\n      pip install x;\n      python t.py\n      --lr 0.1",
        "- B=2; A=1\n      exec python t.py",
        "- exec nsys profile\n      python t.py",
        "- echo start a\n      python.",
        "- torchrun t.py\n      --script\n      run.py",
        '- echo "a\n      python t.py b"',
    ],
)
def test_lines_of_one_command_may_be_joined(item, tmp_path):
    assert lint_files(tmp_path, {"jobs/a.yaml": command(f"\n    - bash\n    - -c\n    {item}")}) == []


def test_pods_of_a_generated_name_meet_at_the_address_of_the_operator(tmp_path):
    job = PYTORCH.replace("name: bert,", "generateName: bert-,") + "              command: [torchrun, t.py]\n"
    worker = job[job.index("    Master:\n") :].replace("Master:", "Worker:").replace("replicas: 1", "replicas: 3")
    assert [each["rule"] for each in lint_files(tmp_path, {"m/a.yaml": job + worker})] == []


MOUNTS = """\
  configs: {cfg: {mountPath: /etc/cfg, data: {a.yaml: b}}}
  volumes: {raw: {pvc: x, mountPath: /raw, readOnly: true}, tmp: {emptyDir: {}, mountPath: /raw/tmp}}
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "sed -i 's/b/c/' /etc/cfg/a.yaml",
            "`sed` writes to `/etc/cfg/a.yaml`, but `/etc/cfg` is a volume of a ConfigMap",
        ),
        ("echo a >> /etc/cfg/a.yaml", "`echo` writes to `/etc/cfg/a.yaml`"),
        ("if a; then mkdir /raw/x; fi", "`mkdir` writes to `/raw/x`, but `/raw` is a volume that is read-only"),
        ("cp x y /raw/", "`cp` writes to `/raw/`"),
        ("chmod +x /etc/cfg/run.sh && b", "`chmod` writes to"),
        ("sed 's/b/c/' /etc/cfg/a.yaml > /tmp/a", ""),
        ("cp /etc/cfg/a.yaml /tmp/a", ""),
        ("touch /raw/tmp/x /dev/null", ""),
        ("mkdir -p /raw/x", ""),
        ("touch /raw/x || true", ""),
        ("if [ -w /raw ]; then touch /raw/x; fi", ""),
        ("if ! touch /raw/x; then a; fi", ""),
        ("touch /raw$X", ""),
    ],
)
def test_a_script_that_writes_to_a_read_only_volume_is_a_warning(line, words, tmp_path):
    text = f"{H}  command:\n    - bash\n    - -c\n    - |\n      set -x\n      {line}\n{MOUNTS}"
    found = lint_files(tmp_path, {"jobs/a.yaml": text})

    assert [(each["line"], each["severity"]) for each in found] == [(14, "warning")] * bool(words)
    assert all(words in each["message"] for each in found)


CURLY = """\
  command: [bash, -c]
  args:
    - |
      echo “done” — it’s ok # “finished”
      python t.py --a "b \\
      --b “c” d"
      cat <<EOF
      “text”
      EOF
      python t.py --prompt 'say “hi”' --title "a – b “c”" --x=“y”
  env: {A: "say “hi”", B: "“hi”", C: say “hi”, D: “hi”, E: "{“a”: 1}", F: '{"a": "x, “b”"}'}
"""


def test_curly_quotes_are_reported_where_they_stand_for_straight_ones(tmp_path):
    silent = CURLY.replace(" --x=“y”", "").replace(", D: “hi”", "").replace(', E: "{“a”: 1}"', "")
    assert lint_files(tmp_path, {"jobs/a.yaml": H + silent}) == []

    found = lint_files(tmp_path, {"jobs/a.yaml": H + CURLY})
    assert [(each["rule"], each["line"]) for each in found] == [
        ("curly-quote", 11),
        ("curly-quote", 19),
        ("curly-quote", 19),
    ]


@pytest.mark.parametrize("entry", ["env: {A: b}", "tolerations: [{operator: Exists}]", "volumes: [data:/data]"])
def test_a_field_of_the_job_below_resources_is_told_where_it_stands(entry, tmp_path):
    written = "resources: {cpu: 8, memory: 64Gi, gpu: 1}"
    text = JOB.replace(written, f"resources:\n    cpu: 8\n    memory: 64Gi\n    gpu: 1\n    {entry}")
    [found] = lint_files(tmp_path, {"jobs/a.yaml": text})

    name = entry.partition(":")[0]
    assert (text.splitlines()[found["line"] - 1], found["rule"]) == (f"    {entry}", "unknown-field")
    assert found["message"] == f"`{name}` is not a resource but a field beside `resources`; move it there"
