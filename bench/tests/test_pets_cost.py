"""The cost benchmark runs, and its parts add up to no more than the whole."""

from understudy_bench.cost.pets import _child


def test_an_iteration_is_measured_with_its_parts() -> None:
    facts = _child(32, 20, 30)
    parts = facts["embedding"] + facts["variation"] + facts["voting"]
    assert 0 < parts <= facts["iteration"]
    assert facts["private_encoding"] > 0
