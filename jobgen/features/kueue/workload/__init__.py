"""From a job to its workload: pod sets, requests after defaults, priority, devices."""
