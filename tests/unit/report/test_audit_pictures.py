"""Pictures of an audit: what they say in words is what they show."""

import numpy as np

from understudy.evaluation.words import share
from understudy.report.figures import audit_drawings


def finding(shift: float, number: int = 200) -> dict:
    rng = np.random.default_rng(0)
    arms = {"absent": rng.normal(size=number).tolist(), "present": rng.normal(shift, size=number).tolist()}
    return {
        "attack": "shadows, isolated, knn",
        "epsilon": 1.2,
        "ceiling": 3.3,
        "confidence": 0.95,
        "runs": number,
        "contradicts": False,
        "scores": arms,
    }


def test_every_finding_has_a_histogram_and_a_curve_and_all_share_one_comparison() -> None:
    made = audit_drawings([finding(0.0), finding(9.0)], claimed=2.0)
    assert [drawing.name for drawing in made] == [
        "audit-bounds",
        "audit-scores-1",
        "audit-curve-1",
        "audit-scores-2",
        "audit-curve-2",
    ]
    assert made[0].rows[0] == ("shadows, isolated, knn", "1.2", "3.3")
    assert made[4].figure.axes[0].get_xscale() == made[4].figure.axes[0].get_yscale() == "log"
    assert made[4].rows[1] == (share(0.01), share(1.0))
    assert made[2].rows[1][1] != share(1.0)
    for drawing in made:
        assert drawing.svg().startswith("<svg")
        assert "mathdefault" not in drawing.svg()  # labels of logarithmic axes are numbers, not mark-up


def test_without_findings_or_without_scores_less_is_drawn() -> None:
    assert audit_drawings(None, 1.0) == []
    bare = {name: value for name, value in finding(0.0).items() if name != "scores"}
    assert [drawing.name for drawing in audit_drawings([bare], None)] == ["audit-bounds"]
