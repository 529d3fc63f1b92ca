"""Topology-aware scheduling: on which nodes the pods of a pod set are placed together.

A flavor with a topology has a tree of domains over its nodes. A `TopologySnapshot` adds what is free.
`find_assignments` in `snapshot` places the pod sets of a workload: it resolves what they ask for (`tree`), counts
what fits in each domain (`capacity`) and chooses domains (`search`), or explains why there are none. Pods on a failed
node and elastic jobs keep the places of their other pods.
"""
