"""`general`: what any synthetic table of series can be asked, whatever method made it."""

from understudy.evaluate.general import balls, boosting, copies, dynamics, location, marginals, resolution, rules, skill

METRICS = (
    *location.METRICS,
    *marginals.METRICS,
    *dynamics.METRICS,
    *boosting.METRICS,
    *skill.METRICS,
    *balls.METRICS,
    *copies.METRICS,
    *resolution.METRICS,
    *rules.METRICS,
)
