"""Pod Security: what the levels `baseline` and `restricted` forbid in a pod, for each minor version of Kubernetes.

Pure functions of a pod's metadata and spec. `levels` reads the labels of a namespace; `checks` has the checks of both
levels with the versions that they apply to; `pod_checks` and `container_checks` implement them.
"""
