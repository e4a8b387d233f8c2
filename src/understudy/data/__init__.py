"""The data room: the public contract, the panel of series it describes, and the ways in and out.

Holds private data and releases nothing. Nothing here imports torch.
"""

from understudy.data.channels import Binary, Categorical, Channel, Continuous, Integer
from understudy.data.constraints import Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.draft import draft_schema
from understudy.data.io.context import read_context
from understudy.data.io.read import MIN_UNITS, read_panel
from understudy.data.io.write import panel_to_arrow, write_panel
from understudy.data.panel import Panel, concatenate
from understudy.data.schema import BudgetDeclaration, Population, PrivacyUnit, Schema
from understudy.data.simulators import (
    simulate_households,
    simulate_intensive_care,
    write_households,
    write_intensive_care,
)
from understudy.data.table import Partition, Table, open_table
from understudy.data.timegrid import Time

__all__ = [
    "MIN_UNITS",
    "Binary",
    "BudgetDeclaration",
    "Categorical",
    "Channel",
    "Continuous",
    "Integer",
    "Monotone",
    "NonNegative",
    "Panel",
    "Partition",
    "Population",
    "PrivacyUnit",
    "Schema",
    "Sum",
    "Table",
    "Time",
    "ZeroWhen",
    "concatenate",
    "draft_schema",
    "open_table",
    "panel_to_arrow",
    "read_context",
    "read_panel",
    "simulate_households",
    "simulate_intensive_care",
    "write_households",
    "write_intensive_care",
    "write_panel",
]
