"""One mechanism in several hands: each owner of some of the parameters clips and noises its own block."""

import math

from understudy.privacy.events import SubsampledGaussian
from understudy.training.plan import SMALLEST_CLIP, DrawUnits, MechanismPlan


def block_of(plan: MechanismPlan, num_blocks: int, influence: int = 1) -> MechanismPlan:
    """Returns what each of `num_blocks` owners does so that together they execute `plan`.

    Privacy:
        Every owner clips a drawn row to C / (influence · √blocks) and adds N(0, (z·C)²) to each of its coordinates. One
        row moves the blocks together by at most C / influence, and a unit that changes up to `influence` rows' worth
        (an event: twice the windows it touches) moves them by at most C. No norms are exchanged. Where that clip would
        be smaller than float32 can vouch for, clip and noise are larger by the same factor.
    """
    assert isinstance(plan.event, SubsampledGaussian)
    assert isinstance(plan.draw, DrawUnits)
    share = 1 / (influence * math.sqrt(num_blocks))
    noise_multiplier = plan.noise_multiplier / share
    return MechanismPlan(
        sampler=plan.sampler,
        draw=plan.draw,
        clip_norm=max(SMALLEST_CLIP, plan.clip_norm * share),
        noise_multiplier=noise_multiplier,
        expected_batch=plan.expected_batch,
        event=SubsampledGaussian(plan.sampler.rate, noise_multiplier, plan.sampler.iterations),
    )
