"""What every test gets: the same fixtures and settings as tests of the product."""

from tests.conftest import pytest_sessionfinish, pytest_terminal_summary, understudy_home

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary", "understudy_home"]
