"""Planners of one workload over unlike pools: pure functions over paces and links, each exact or with its gap stated.

Each planner takes numbers only and is compared with brute force; `advisor.split.judgement` says whether its plan is worth it.
"""
