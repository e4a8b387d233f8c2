"""Attacks → scores → a lower bound: tries to contradict what certificates say. A failed attempt proves nothing."""
