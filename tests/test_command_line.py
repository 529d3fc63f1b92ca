"""Command lines as lists and as scripts."""

import pytest

from jobgen.k8s.command_line import find_mpi_launches, find_option_values, parse_command
from jobgen.k8s.shell_script import split_pipelines, split_words


def calls(*words):
    return [
        (call.processes.text if call.processes else None, call.limited_by_hostfile)
        for call in find_mpi_launches(parse_command(words))
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["mpirun", "-np", "4", "train"], [("4", True)]),
        (["/opt/bin/mpirun", "--np=4", "train"], [("4", True)]),
        (["mpiexec", "-n", "4", "train", "-n", "9"], [("4", True)]),
        (["mpirun", "train", "-n", "100"], [(None, True)]),
        (["mpirun", "-x", "A=1", "--mca", "btl", "^openib", "-bind-to", "none", "-np", "4"], [("4", True)]),
        (["mpirun", "--oversubscribe", "-np", "4", "train"], [("4", False)]),
        (["mpirun", "-np", "4", "--map-by", "slot:OVERSUBSCRIBE", "train"], [("4", False)]),
        (["mpirun", "--mca", "rmaps_base_oversubscribe", "1", "-np", "4", "train"], [("4", False)]),
        (["mpirun", "-H", "a,b", "-np", "4", "train"], [("4", False)]),
        (["mpirun", "--hostfile", "/etc/mpi/hostfile", "-np", "4", "train"], [("4", True)]),
        (["mpirun", "--hostfile", "hosts", "-np", "4", "train"], [("4", False)]),
        (["mpirun", "-np", "1", "a", ":", "-np", "2", "b"], [(None, True)]),
        (["mpirun", "--unknown", "value", "-np", "4"], [(None, True)]),
        (["mpirun", "-np"], [(None, True)]),
        (["mpirun", "-x"], [(None, True)]),
        (["sh", "-c", "cd /x && mpirun \\\n -np 2 a\nhorovodrun -np $N b"], [("2", True), ("$N", True)]),
        (["sh", "-c", "# mpirun -np 3\nmpirun -np 2 a"], [("2", True)]),
        (["sh", "-c", "it's broken; mpirun -np 2 a"], []),
        ([4, None], []),
    ],
)
def test_launcher_calls(words, found):
    assert calls(*words) == found


def test_values_of_an_option():
    words = parse_command(
        ["torchrun", "--nproc_per_node=2", "--nproc-per-node", "4", "-nproc-per-node", "--nproc_per_node"]
    )

    assert [word.text for word in find_option_values(words, "nproc-per-node")] == ["2", "4"]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("a | b && c; d", [("a", "b"), ("c",), ("d",)]),
        ("a 2>&1 | tee log\necho x # | y\n", [("a 2>&1", "tee log"), ("echo x",)]),
        ("a \\\n | b |\n c\n", [("a", "b", "c")]),
        ("x \"a|b\" '|' \\| $(c | d) `e | f` | g", [("x \"a|b\" '|' \\| $(c | d) `e | f`", "g")]),
        ('a "$(b "c|d" | e)" | f', [('a "$(b "c|d" | e)"', "f")]),
        ("if a; then b | c; fi", [("if a",), ("then b", "c"), ("fi",)]),
        ("(a | b) || c", [("a", "b"), ("c",)]),
        ("a &> log & a >| b; wait", [("a &> log",), ("a >| b",), ("wait",)]),
        ("# nothing", []),
        # What is not understood is not guessed.
        ("cat <<EOF\na | b\nEOF", []),
        ("echo 'open | b", []),
        ('echo "$(open" | b', []),
    ],
)
def test_script_is_split_into_pipelines(script, found):
    assert [pipeline.commands for pipeline in split_pipelines(script)] == found


def test_words_before_a_command_are_no_part_of_it():
    assert split_words("then LR=1 exec python 'a b.py'") == ("python", "a b.py")
    assert split_words("echo 'open") == ()


def test_a_script_is_split_up_to_a_length():
    assert len(split_pipelines("a | b # c\n" * 5_000)) == 5_000
    assert split_pipelines("a | b # c\n" * 5_001) == ()
