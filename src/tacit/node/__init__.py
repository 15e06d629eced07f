"""Joins solver and gradient to torch: argmin, Node, and what a call may ask about a solution."""

from tacit.node.api import argmin, jacobian, regularity, solve, value
from tacit.node.module import Node

__all__ = ["Node", "argmin", "jacobian", "regularity", "solve", "value"]
