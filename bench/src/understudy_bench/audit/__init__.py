"""Audits of whole fits and of paper 004's tables. Canaries are shared with the product's tests: run from a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
