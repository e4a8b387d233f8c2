"""Frames arrive as they were sent, or not at all."""

import pytest
import torch

from tests.unit.synthesizers.vflgan_ts.toy import schema
from understudy.errors import InputError
from understudy.synthesizers.vflgan_ts.protocol import Frame, RunConfig
from understudy.synthesizers.vflgan_ts.recipe import Recipe

SHAPES = {"real": (2, 3), "rows": (None,)}


def frame(**changes: torch.Tensor) -> Frame:
    tensors = {"real": torch.ones(2, 3), "rows": torch.arange(4)} | changes
    return Frame(7, "discriminate", tensors)


def test_a_frame_survives_the_way_to_bytes_and_back() -> None:
    sent = frame(rows=torch.zeros(0, dtype=torch.int64))  # nobody was drawn
    received = Frame.from_bytes(sent.to_bytes())
    assert (received.iteration, received.stage) == (7, "discriminate")
    assert set(received.tensors) == set(sent.tensors)
    for name, tensor in sent.tensors.items():
        assert torch.equal(received.tensors[name], tensor)
        assert received.tensors[name].dtype == tensor.dtype


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, frame().to_bytes()[:-3], b"junk" * 9])
def test_bytes_that_are_no_frame_are_refused(content: bytes) -> None:
    with pytest.raises(InputError, match="bytes that are none"):
        Frame.from_bytes(content)


def test_the_expected_frame_is_let_through() -> None:
    given = frame()
    assert given.expect(7, "discriminate", SHAPES, sender="bank") is given.tensors


@pytest.mark.parametrize(("iteration", "stage"), [(6, "discriminate"), (8, "discriminate"), (7, "generate")])
def test_a_frame_of_another_time_is_refused(iteration: int, stage: str) -> None:
    with pytest.raises(InputError, match="replayed, lost or reordered"):
        frame().expect(iteration, stage, SHAPES, sender="bank")


@pytest.mark.parametrize(
    "changes",
    [
        {"real": torch.ones(2, 4)},
        {"real": torch.ones(2)},
        {"rows": torch.arange(4)[None]},
        {"more": torch.ones(1)},
        {"real": torch.ones(2, 3, dtype=torch.float64)},
    ],
)
def test_a_frame_with_other_tensors_is_refused(changes: dict[str, torch.Tensor]) -> None:
    with pytest.raises(InputError, match=r"'bank'.*other tensors than agreed"):
        frame(**changes).expect(7, "discriminate", SHAPES, sender="bank")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(bad: float) -> None:
    values = torch.ones(2, 3)
    values[1, 1] = bad
    with pytest.raises(InputError, match=r"'bank'.*not finite"):
        frame(real=values).expect(7, "discriminate", SHAPES, sender="bank")


def test_critics_of_sound_take_five_steps_for_one_of_the_generators() -> None:
    """Each is an iteration of its own, which is charged; as published, both take turns."""
    recipe = Recipe(iterations=11)
    sound, plain = (
        [stage.name for stage in RunConfig(schema(), recipe, mode, 0).stages()] for mode in ("sound", "plain")
    )
    assert (sound.count("discriminate"), sound.count("generate")) == (11, 3)
    assert sound[-3:] == ["discriminate", "generate", "end"]  # generators come last, however few iterations there are
    assert sound[:7] == [*["discriminate"] * 5, "generate", "discriminate"]
    assert plain == [*["discriminate", "generate"] * 11, "end"]


def test_a_run_that_goes_on_keeps_the_turns() -> None:
    config = RunConfig(schema(), Recipe(iterations=10), "sound", 0)
    assert config.stages(done=7) == config.stages()[-5:]
    assert [stage.name for stage in config.stages(done=7)] == [*["discriminate"] * 3, "generate", "end"]
