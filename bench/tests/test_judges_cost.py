"""Both networks are timed in the same rounds, and the ratio is theirs."""

from understudy_bench.cost.judges import _compared


def test_ours_and_torchs_are_measured_beside_each_other() -> None:
    found = _compared(6, 2, rounds=2)
    ours, theirs = (found[name]["metrics"]["update_seconds"] for name in ("ours", "torch"))
    ratio = found["ours"]["metrics"]["speedup"]
    assert (
        0
        < theirs["low"] / ours["high"]
        <= ratio["low"]
        <= ratio["mean"]
        <= ratio["high"]
        <= theirs["high"] / ours["low"]
    )
