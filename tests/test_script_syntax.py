"""What jobgen calls a fault of a shell script, real shells refuse, and they refuse little that it does not."""

import re
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobgen.features.launch.shell.mistakes import find_mistakes
from jobgen.k8s.shell.syntax import SyntaxFault, parse_all

SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]
pytestmark = pytest.mark.skipif(not SHELLS, reason="no shell is installed")

SCRIPTS = [
    """set -euo pipefail
cd /app && pip install -r requirements.txt 2>&1 | tee log
if [ "$RANK" = 0 ]; then
  echo "the first" > /tmp/first
elif [[ $RANK == 1 && -n "${X:-}" ]]; then
  echo 'another'
else
  sleep 5
fi
torchrun --nnodes="$NNODES" --nproc-per-node=8 \\
  --master-addr "$MASTER_ADDR" \\
  train.py --lr 0.1 "$@"
""",
    """#!/bin/sh
for host in $(awk '{print $1}' /etc/mpi/hostfile); do
  until ssh "$host" true 2>/dev/null; do
    sleep 1
  done
done
N=$(($(wc -l < /etc/mpi/hostfile) * 8))
mpirun -np $N python train.py --name "it's `date +%s`"
""",
    """launch() {
  case "$1" in
    a|b) exec python train.py ;;
    *)
      echo "no mode $1" >&2
      exit 1
      ;;
  esac
}
cat > /tmp/c.yaml <<EOF
lr: ${LR:-0.1}  # it's
EOF
{ launch a || echo failed; } &
wait $!
""",
    """ARGS=(--lr 0.1)
ARGS+=("--name=${NAME//_/-}")
while read -r line; do echo "${line%%#*}"; done < <(grep -v '^#' list.txt)
(cd /data && tar xf train.tar) || { echo "no data"; exit 1; }
time python -c 'import sys
print(sys.argv)' "${ARGS[@]}"
""",
]
TOKENS = ["'", '"', "`", "(", ")", "$(", "${", "}", "{", " if ", " fi", " then ", " do ", " done", "\n", ";", "&&", "|"]
PIECES = re.compile(r"\b(?:if|then|elif|else|fi|do|done|esac|case|for|while|until)\b|['\"`(){}]|&&|\|\||;;|;")


def accepts(shell, script):
    return subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False).returncode == 0


def is_refused(script):
    return isinstance(parse_all(script).failure, SyntaxFault)


@st.composite
def changed_scripts(draw):
    text = draw(st.sampled_from(SCRIPTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        how = draw(st.sampled_from(("insert", "delete", "drop", "cut")))
        if how == "insert":
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at:]
        elif how == "delete":
            text = text[:at] + text[at + 1 :]
        elif how == "cut":
            text = text[:at]
        elif found := list(PIECES.finditer(text)):
            piece = found[at % len(found)]
            text = text[: piece.start()] + text[piece.end() :]
    return text


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(changed_scripts())
def test_real_shells_refuse_what_is_called_a_fault(script):
    if is_refused(script):
        assert [accepts(shell, script) for shell in SHELLS] == [False] * len(SHELLS)


def test_finds_most_of_what_a_missing_word_or_sign_breaks():
    assert [list(find_mistakes(script)) for script in SCRIPTS] == [[]] * len(SCRIPTS)
    changed = [text[: piece.start()] + text[piece.end() :] for text in SCRIPTS for piece in PIECES.finditer(text)]
    refused = [each for each in changed if not accepts("bash", each)]
    found = [each for each in refused if is_refused(each)]

    assert len(found) >= 0.8 * len(refused) > 50


FAULTS = [
    ("python t.py --name 'x", (1, "quotation mark `'` is not closed", True)),
    ("a 'b\necho 'c'\n", (1, "quotation mark `'` is not closed", True)),
    ("python -c 'a\nb'\necho it's\necho 'x'\n", (3, "quotation mark `'` is not closed", True)),
    ("echo `date", (1, "a backquote is not closed", True)),
    ("echo $(date", (1, "`$(` is not closed", True)),
    ("x=(1 2", (1, "`(` is not closed", True)),
    ("set -e\nif a; then\n  b\n", (2, "`if` has no `fi`", True)),
    ("if a\n  b\nfi\n", (1, "`if` has no `then`", True)),
    ("if a; then\n  b\nelse if c; then\n  d\nfi\n", (1, "write `elif` instead of `else if`", True)),
    ("for i in 1 2; do\n  a\n", (1, "`for` has no `done`", True)),
    ("for i in 1 2\n  a\ndone\n", (1, "`for` has no `do`", True)),
    ("while a; do if b; then c; done", (1, "`if` has no `fi`", True)),
    ("case x in a) b ;;", (1, "`case` has no `esac`", True)),
    ("a\nfi\n", (2, "`fi` ends nothing here", True)),
    ("a )\n", (1, "`)` ends nothing here", True)),
    ("if a; then\n  # later\nfi\n", (3, "nothing stands between `then` and `fi`", True)),
    ("a &&\n", (1, "no command follows `&&`", True)),
    ("f() {\n  a\n", (1, "`{` has no `}`", True)),
    ("torchrun \\ \n  train.py --lr 1\n", (1, "a space behind the `\\`", False)),
    ("torchrun \\ \n  --lr 1\n", (1, "a space behind the `\\`", True)),
    ("torchrun train.py\n  --lr 1\n  --name x\n", (2, "`--lr` is run as a program", True)),
    ("torchrun train.py\n  --lr 1\necho end\n", (2, "`--lr` is run as a program", False)),
    ("cat <<EOF\na\n  EOF\nb\n", (3, "no line is `EOF` alone", False)),
    ("cat <<EOF\na\nb\n", (1, "no line is `EOF` alone", False)),
    (
        "if [ -d x; then\n  a\nfi\n",
        (1, "`[` has no `]` as its last word, so that the test always fails; write `[ -d x ]`", False),
    ),
    ('[ -d "$X" && b\n', (1, '`[ -d "$X" ]`', False)),
    ('if [ "$A" = 1 && "$B" = 2 ]; then c; fi', (1, "`&&` ends the test before its `]`", False)),
    (
        "if [$A -eq 0]; then b; fi",
        (1, "`[$A` is run as a program, so that the test always fails; write `[ $A -eq 0 ]`", False),
    ),
    ('if ["$A" = b ]; then c; fi', (1, 'write `[ "$A" = b ]`', False)),
    ("if [[ -d x; then a; fi", (1, "`[[` has no `]]` as its last word", False)),
    (
        "if [ -d x ] then\n  a\nfi\n",
        (1, "no `;` is before it, so that the shell refuses the script; write `; then`", True),
    ),
    ("for i in 1 2 do\n  a\ndone\n", (1, "write `; do`", True)),
    ("export A = 1\nb\n", (1, "`A` gets no value; write `export A=1` without the spaces around `=`", False)),
    ("set -e\nb\nexport A = 1\nb\n", (3, "`A` gets no value", True)),
    ("a\nexec b \\\n  --c\nd e\n", (2, "`exec` ends the script here, so that `d e` never runs", False)),
    # A command ends the script before the fault, or may end it.
    ("exec torchrun train.py\necho 'x\n", None),
    ("exit 0\nfi\n", None),
    ("if a; then exec b; fi\nfi\n", (2, "`fi` ends nothing here", False)),
    ("a || { b; exit 1; }\nfi\n", (2, "`fi` ends nothing here", True)),
    # What is not understood, or what another tool completes.
    ("shopt -s extglob\nls !(a|b)\n", None),
    ("for i in ${DOLLAR}(seq 3); do a; done", None),
    ("{{ if .Values.x }} a 'b {{ end }}", None),
    ("select x in a b; do c\n", None),
    ("echo $(( '1' * (2 + 1) ))", None),
    ("cat <<'EOF'\nit's\nEOF\n", None),
    ("ls --all \\\n  --long\n", None),
    ("# it's\necho a # don't\n", None),
    ('[ "$A" = "]" ] && b', None),
    ("echo a = b\npython t.py --x = 1\n", None),
    ("exec python t.py\necho no\nexit 1\n", None),
    ("exec > >(tee x)\na\n", None),
    ("exec 3>&1\na\n", None),
    ("if a; then exec b; fi\nc\n", None),
    ("exec a || b\nc\n", None),
    ("(exec a)\nb\n", None),
]


@pytest.mark.parametrize(("script", "expected"), FAULTS)
def test_says_what_is_wrong_and_in_which_line(script, expected):
    found = [each[:3] for each in find_mistakes(script)]

    if expected is None:
        assert found == []
    else:
        [(line, message, is_error)] = found
        assert (line, expected[1] in message, is_error) == (expected[0], True, expected[2]), message


@pytest.mark.parametrize("script", [script for script, expected in FAULTS if expected and "space" not in expected[1]])
def test_shells_refuse_the_faults(script):
    if is_refused(script):
        assert not any(accepts(shell, script) for shell in SHELLS)


@pytest.mark.parametrize(
    ("script", "is_lost"),
    [
        ("a\ntorchrun t.py &\n", True),
        ("for i in 1 2; do\n  python $i &\ndone\n", True),
        ("a &\nb\n", False),
        ("a &\nwait $!\n", False),
        ("trap 'wait' EXIT\na &\n", False),
    ],
)
def test_a_script_that_ends_at_once_ends_what_it_started(script, is_lost):
    assert ["in the background" in each.message for each in find_mistakes(script, is_whole=True)] == [True] * is_lost
    assert not list(find_mistakes(script))


@pytest.mark.parametrize(
    "part", ["(", "$(", "`", "'", "if a; then ", "{ ", "${a:-", "<<A ", "\\ \n", "a\n--b\n", "((", "case a in b) "]
)
def test_hostile_scripts_end_soon(part):
    assert len(list(find_mistakes(part * 20_000))) <= 20_000
