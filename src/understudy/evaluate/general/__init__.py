"""The suite `general`: measures for any synthetic table of series, whatever method made it."""

from understudy.evaluate.general import dynamics, marginals, neighbours, rules, skill, trees

METRICS = (
    *marginals.METRICS,
    *dynamics.METRICS,
    *trees.METRICS,
    *skill.METRICS,
    *neighbours.METRICS,
    *rules.METRICS,
)
