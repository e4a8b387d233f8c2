"""The suite `general`: measures for any synthetic table of series, whatever method made it."""

from understudy.evaluation.general import learners, neighbours, values

METRICS = (*values.METRICS, *learners.METRICS, *neighbours.METRICS)
