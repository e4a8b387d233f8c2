"""The suite `general`: measures for any synthetic table of series, whatever method made it."""

from understudy.evaluate.general import dynamics, learners, marginals, neighbours

METRICS = (*marginals.METRICS, *dynamics.METRICS, *learners.METRICS, *neighbours.METRICS)
