"""What a budget buys before it is spent: noise, signal, minutes, memory and a simulation. Reads no private data."""

from understudy.planning.plans import Plan, plan

__all__ = ["Plan", "plan"]
