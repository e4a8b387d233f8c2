"""Attacks → scores → a lower bound: tries to contradict what certificates say. A failed attempt proves nothing."""

from understudy.audit.gaussian_test import mu_test, required_runs
from understudy.audit.result import AuditResult
from understudy.audit.scores import Scores, audit_scores, ceiling

__all__ = ["AuditResult", "Scores", "audit_scores", "ceiling", "mu_test", "required_runs"]
