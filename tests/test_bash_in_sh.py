"""Syntax of Bash in scripts that `sh` runs: a warning on its line, but for images with another `sh`."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from test_command_mistakes import WRITERS, lint_text, write_job

# A script, the line of the finding, and what the message names; empty for what every shell accepts.
SCRIPTS = {
    "source /opt/venv/bin/activate\npython t.py": (1, "`source` is syntax of Bash"),
    ". /opt/venv/bin/activate\npython t.py": (0, ""),
    "# source it\npython t.py\nif [[ $A == b ]]; then\n  echo x\nfi": (3, "`[[` is syntax of Bash"),
    "if [ $A = b ]; then\n  echo x\nfi\npython t.py": (0, ""),
    "if [ $A == b ]; then\n  echo x\nfi\npython t.py": (1, "`==` in a test"),
    'A=(--lr 1)\npython t.py "${A[@]}"': (1, "an array"),
    "A=$(ls)\npython t.py --x=$A": (0, ""),
    "A=1\nA+=2\npython t.py $A": (2, "`+=`"),
    "set -euo pipefail\npython t.py": (1, "`set -o pipefail`"),
    "(set -o pipefail) && set -o pipefail\npython t.py": (0, ""),
    "set -eu\npython t.py": (0, ""),
    "function f {\n  echo x\n}\nf\npython t.py": (1, "`function`"),
    "f() {\n  echo function x\n}\nf\npython t.py": (0, ""),
    "python t.py &> /tmp/log": (1, "`&>` is syntax of Bash"),
    "python t.py > /tmp/log 2>&1": (0, ""),
    "python t.py <<< x": (1, "`<<<`"),
    "python t.py --x=<(ls)": (1, "`<(`"),
    "diff <(ls a) <(ls b)\npython t.py": (1, "`<(`"),
    "python t.py --x=${A//a/b}": (1, "this `${…}`"),
    "python t.py --x=${A:-b} --y=${A%%/*} --z=${#A}": (0, ""),
    "python t.py --x=${A:0:2}": (1, "this `${…}`"),
    "for ((i=0; i<3; i++)); do\n  python t.py\ndone": (1, "`((`"),
    "i=$((1 + 2))\npython t.py --x=$i": (0, ""),
    "declare -A m\npython t.py": (1, "`declare`"),
    "echo '[[ x ]] source pipefail +='\npython t.py": (0, ""),
    "if true; then\n  source a.sh\nfi\npython t.py": (2, "`source`"),
    'if [ -n "$BASH_VERSION" ]; then\n  set -o pipefail\nfi\npython t.py': (0, ""),
    "bash -c 'source a.sh && [[ x ]]'\npython t.py": (0, ""),
    "python t.py | sed 's/a/b/' && test 1 = 1": (0, ""),
}


def write_script(text: str, shell: str) -> str:
    return f"command: [{shell}, -c]\nargs:\n- |\n{textwrap.indent(text, '  ')}\n"


def list_found(folder: Path, text: str, **files: str) -> list[tuple[int, str]]:
    found = [each for each in lint_text(folder, text, **files) if "is syntax of Bash" in each["message"]]
    assert {(each["severity"], each["rule"]) for each in found} <= {("warning", "script-syntax")}
    return [(each["line"], each["message"]) for each in found]


@pytest.mark.parametrize("script", SCRIPTS)
def test_sh_does_not_have_what_bash_has(script, tmp_path):
    line, words = SCRIPTS[script]
    text = write_job(write_script(script, "sh"))
    found = list_found(tmp_path, text)

    assert [at - text[: text.index("- |")].count("\n") - 1 for at, _ in found] == [line] * bool(words), found
    assert all(words in message for _, message in found), found
    assert not list_found(tmp_path / "bash", write_job(write_script(script, "bash")))


@pytest.mark.parametrize("write", WRITERS)
def test_a_script_with_much_of_bash_has_one_finding(write, tmp_path):
    text = write(write_script("set -o pipefail\nsource a.sh\nA=(1 2)\n[[ $A ]] && python t.py\n", "/bin/sh"))
    [(line, message)] = list_found(tmp_path, text)

    assert text.split("\n")[line - 1].strip() == "set -o pipefail"
    assert "dash, the `sh` of Debian and Ubuntu" in message
    assert message.endswith("; start the script with `bash -c`")


@pytest.mark.parametrize(
    ("image", "script", "words"),
    [
        ("registry.access.redhat.com/ubi9/python-311:1", "source a.sh", ""),
        ("nvcr.io/nvidia/cuda:12.4.1-devel-rockylinux9", "[[ a ]]", ""),
        ("python:3.12-alpine", "set -o pipefail && source a.sh", ""),
        ("python:3.12-alpine", "A=(1 2)", "ash, the `sh` of Alpine"),
        ("python:3.12-slim", "A=(1 2)", "dash, the `sh` of Debian and Ubuntu"),
    ],
)
def test_the_image_can_say_which_shell_it_has(image, script, words, tmp_path):
    text = write_job(write_script(f"{script}\npython t.py", "sh")).replace("registry.example.com/a:1.0.0", image)

    assert [words in message for _, message in list_found(tmp_path, text)] == [True] * bool(words)


FILE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts, namespace: ml}
data:
  run.sh: |
    #!/bin/sh
    source /opt/venv/bin/activate
    python t.py
"""


@pytest.mark.parametrize(
    ("command", "is_found"),
    [
        ("[sh, /s/run.sh]", True),
        ("[bash, /s/run.sh]", False),
        ("[bash, -c, 'bash -x /s/run.sh']", False),
        ("[bash, -c, 'exec /s/run.sh']", True),
        ("[bash, -c, '. /s/run.sh']", False),
    ],
)
def test_a_file_is_run_by_the_shell_before_it_or_in_its_first_line(command, is_found, tmp_path):
    volumes = "volumes:\n- {name: s, configMap: {name: scripts, defaultMode: 0755}}\n"
    job = write_job(f"command: {command}\nvolumeMounts: [{{name: s, mountPath: /s}}]\n", volumes)
    found = list_found(tmp_path, job, **{"jobs/b.yaml": FILE})

    assert [(line, "`bash /s/run.sh`" in message) for line, message in found] == [(7, True)] * is_found
