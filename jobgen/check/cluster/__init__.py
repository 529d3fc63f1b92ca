"""What the objects of a cluster mean for others: limit ranges, quotas, and the objects that references lead to.

The objects stand in the repository or in its exported state. Everything here is a pure function of them.
"""
