"""Command lines as lists and as scripts."""

import pytest

from jobgen.k8s.command_line import find_mpi_launches, find_option_values, parse_command


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
