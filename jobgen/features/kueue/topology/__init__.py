"""Topology-aware scheduling: on which nodes the pods of a pod set are placed together.

A flavor with a topology has a tree of domains (`tree`) over its nodes (`nodes`). A `TopologySnapshot` adds what is
free. `find_assignments` places the pod sets of a workload: it resolves what they ask for (`request`), counts what fits
in each domain (`eligible`, `counts`), chooses domains (`order`, `search`, `balanced`) or explains why there are none
(`exclusions`). Pods on a failed node (`replacement`) and elastic jobs (`elastic`) keep the places of their other pods.
"""

from jobgen.features.kueue.topology.assign import build_snapshots, find_all_assignments, find_assignments
from jobgen.features.kueue.topology.nodes import Node, parse_node, parse_nodes, select_nodes, sum_other_pods
from jobgen.features.kueue.topology.replacement import FailedNode
from jobgen.features.kueue.topology.request import Failure, Placement, PodSetRequest, TopologyGates, read_gates
from jobgen.features.kueue.topology.snapshot import TopologySnapshot
from jobgen.features.kueue.topology.tree import HOSTNAME, TopologyTree, Values, parse_topologies

__all__ = [
    "HOSTNAME",
    "FailedNode",
    "Failure",
    "Node",
    "Placement",
    "PodSetRequest",
    "TopologyGates",
    "TopologySnapshot",
    "TopologyTree",
    "Values",
    "build_snapshots",
    "find_all_assignments",
    "find_assignments",
    "parse_node",
    "parse_nodes",
    "parse_topologies",
    "read_gates",
    "select_nodes",
    "sum_other_pods",
]
