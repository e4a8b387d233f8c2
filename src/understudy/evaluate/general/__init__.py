"""The suite `general`: measures for any synthetic table of series, whatever method made it."""

from understudy.evaluate.general import learners, neighbours, values

METRICS = (*values.METRICS, *learners.METRICS, *neighbours.METRICS)
