"""Tests of jobs: what they must be rendered as."""
