"""Tries to contradict what certificates say. A failed attempt is never evidence of privacy."""

from understudy.audit.canaries import Scene, scenes
from understudy.audit.gaussian_test import detectable_excess, mu_interval, mu_test, required_runs
from understudy.audit.result import AuditResult, ErrorRates, GaussianShift
from understudy.audit.scores import Scores, audit_scores, ceiling

__all__ = [
    "AuditResult",
    "ErrorRates",
    "GaussianShift",
    "Scene",
    "Scores",
    "audit_scores",
    "ceiling",
    "detectable_excess",
    "mu_interval",
    "mu_test",
    "required_runs",
    "scenes",
]
