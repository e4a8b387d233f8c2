from itertools import pairwise

import numpy as np
import pytest
from understudy_bench.audit.canaries import panel_scenes

from tests.canaries.scenes import scenes
from understudy.errors import InputError
from understudy.synthesizers.contract.panels import plain_schema, rich_schema

BLOCKS = (3, 1, 4)


@pytest.fixture
def found() -> dict:
    made = scenes(BLOCKS, num_others=5, canary_length=7.0, others_length=3.0, rng=np.random.default_rng(0))
    return {scene.name: scene for scene in made}


def test_every_canary_meets_every_crowd(found: dict) -> None:
    canaries = {name.split(", ")[0] for name in found}
    crowds = {name.split(", ")[1] for name in found}
    assert canaries == {"ones", "e_0", "e_3", "e_4", "e_0 − e_1", "e_0 − e_3", "e_3 − e_4", "random"}
    assert crowds == {"others zero", "others aligned", "others opposed", "others orthogonal"}
    assert len(found) == len(canaries) * len(crowds)


@pytest.mark.parametrize(("crowd", "cosine"), [("zero", 0), ("aligned", 1), ("opposed", -1), ("orthogonal", 0)])
def test_a_crowd_pulls_the_way_it_is_named(found: dict, crowd: str, cosine: float) -> None:
    chosen = [scene for name, scene in found.items() if name.endswith(crowd)]
    for scene in chosen:
        lengths = np.linalg.norm(scene.others, axis=1)
        assert scene.others @ scene.axis == pytest.approx(cosine * lengths)
        assert (lengths > 0).all() == (crowd != "zero")
        assert set(np.unique(scene.others)) <= {-3.0, 0.0, 3.0}


def test_the_canary_comes_last_has_the_length_asked_for_and_is_made_of_whole_numbers(found: dict) -> None:
    for scene in found.values():
        assert np.array_equal(scene.everybody[:-1], scene.others)
        assert np.array_equal(scene.everybody[-1], scene.canary)
        assert np.linalg.norm(scene.axis) == pytest.approx(1.0)
        assert set(np.unique(scene.canary)) <= {-7.0, 0.0, 7.0}
        assert len(scene.others) == 5


def test_each_block_has_a_canary_of_its_own(found: dict) -> None:
    """A layer without noise is seen only by a canary that lives in it alone."""
    edges = np.cumsum((0, *BLOCKS))
    for start, stop in pairwise(edges):
        inside = np.zeros(sum(BLOCKS), bool)
        inside[start:stop] = True
        assert any((scene.canary[~inside] == 0).all() for scene in found.values())


@pytest.mark.parametrize("blocks", [(1,), (3, 0)])
def test_too_few_coordinates_are_refused(blocks: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="at least one coordinate"):
        scenes(blocks, rng=np.random.default_rng(0))


@pytest.mark.parametrize("schema", [plain_schema(), rich_schema(context=(), constraints=())], ids=["plain", "rich"])
def test_panels_differ_by_one_unit_that_comes_last(schema) -> None:
    found = panel_scenes(schema, num_others=3, rng=np.random.default_rng(0))
    assert len(found) == 16
    for name, (absent, present) in found.items():
        assert absent.num_units == (0 if name.endswith("nobody") else 3)
        assert present.num_units == absent.num_units + 1
        assert np.array_equal(present.values[:-1], absent.values)
        low, high = np.array([channel.bounds for channel in schema.channels]).T
        assert (present.values >= low - 1e-4).all()
        assert (present.values <= high + 1e-4).all()
