"""What is hidden is scored, what is missing is not, and a network that knows nothing draws the released values."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from understudy.synthesizers.dit.denoising import DDPM, Denoising, draw_hidden, mirrored_noise
from understudy.synthesizers.dit.interpolation import NO_AUTOCOVARIANCE, interpolate
from understudy.synthesizers.dit.published import MaskedDiT

CHANNELS, STATIC, STEPS = 2, 1, 12


def _model() -> MaskedDiT:
    torch.manual_seed(0)
    model = MaskedDiT(channels=CHANNELS + STATIC, context=1, num_classes=2, width=16, depth=1, num_heads=2, patch=3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def _batch(num_units: int = 6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "x": torch.randn(num_units, STEPS, CHANNELS + STATIC, generator=generator),
        "known": torch.rand(num_units, STEPS, CHANNELS + STATIC, generator=generator) < 0.7,
        "label": torch.zeros(num_units, dtype=torch.long),
        "context": torch.randn(num_units, STEPS, 1, generator=generator),
    }


def _loss(denoising: Denoising, model: nn.Module, batch: dict[str, Tensor], seed: int = 2) -> Tensor:
    return denoising.loss(model, batch, torch.Generator().manual_seed(seed))


MEMORY = np.array([0.3, 0.7, 0.3, 0.3, 0.8, 0.3, 0.3])[:, None] * np.ones(3)
NO_MEMORY = np.array(NO_AUTOCOVARIANCE)[:, None] * np.ones(3)
DENOISING = Denoising(autocovariance=MEMORY, season=4, num_channels=CHANNELS, num_classes=2, draws=3)


class _Answers(nn.Module):
    """A network whose answers are its parameters, and which remembers what it was shown."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.answer = nn.Parameter(torch.randn(rows, STEPS, CHANNELS + STATIC))

    def forward(
        self, noisy: Tensor, time: Tensor, values: Tensor, shown: Tensor, label: Tensor, context: Tensor
    ) -> Tensor:
        self.noisy, self.shown, self.label, self.context = noisy, shown, label, context
        return self.answer


def test_what_is_missing_is_neither_shown_nor_scored() -> None:
    model, batch = _model(), _batch()
    wild = {**batch, "x": torch.where(batch["known"], batch["x"], torch.tensor(1e6))}
    assert torch.equal(_loss(DENOISING, model, batch), _loss(DENOISING, model, wild))


def test_a_prediction_counts_where_its_entry_is_hidden_and_known_and_nowhere_else() -> None:
    batch, model = _batch(), _Answers(18)
    losses = _loss(DENOISING, model, batch)
    losses.sum().backward()
    known = batch["known"].repeat_interleave(3, 0)
    counted = model.answer.grad != 0
    assert torch.equal(counted, known & (model.shown == 0))
    assert not (counted & ~known).any()
    assert torch.equal(model.noisy != 0, counted)  # the network sees noise where it is asked, zeros elsewhere
    assert losses.shape == (18,)  # three draws of each unit, side by side: the engine averages them before the clip


@pytest.mark.parametrize(("drop", "said"), [(1.0, False), (0.0, True)])
def test_classes_and_contexts_are_left_unsaid_as_often_as_told(drop: float, said: bool) -> None:
    denoising, model = (
        Denoising(autocovariance=NO_MEMORY, num_channels=CHANNELS, num_classes=2, drop=drop),
        _Answers(400),
    )
    _loss(denoising, model, _batch(400))
    assert bool((model.label == (0 if said else 2)).all())
    assert bool((model.context[:, -1] != 0).all()) == said  # unsaid from some step on


def test_the_velocity_of_standard_normal_scores_can_not_be_guessed_from_what_is_noisy() -> None:
    """So a network that answers zero is the best without knowledge, and its loss is one."""
    model = MaskedDiT(channels=CHANNELS + STATIC, context=1, num_classes=2, width=16, depth=1, num_heads=2)
    batch = _batch(3000)
    denoising = Denoising(autocovariance=NO_MEMORY, num_channels=CHANNELS, num_classes=2)
    losses = _loss(denoising, model, {**batch, "known": torch.ones_like(batch["known"])})
    assert float(losses.detach().mean()) == pytest.approx(1.0, abs=0.03)
    x, noise = torch.randn(2, 200_000, generator=torch.Generator().manual_seed(3))
    for time in (10, 500, 900):
        at = torch.full((200_000,), time)
        noisy, velocity = DDPM.noised(x, noise, at), DDPM.target("velocity", x, noise, at)
        assert abs(float(torch.corrcoef(torch.stack([noisy, velocity]))[0, 1])) < 0.02


def test_an_untrained_network_draws_standard_normal_scores() -> None:
    model = MaskedDiT(channels=CHANNELS + STATIC, context=1, num_classes=2, width=16, depth=1, num_heads=2)
    shape = (500, STEPS, CHANNELS + STATIC)
    rows = {
        "x": np.zeros(shape, dtype=np.float32),
        "known": np.zeros(shape, dtype=bool),
        "hidden": np.ones(shape, dtype=bool),
        "label": np.zeros(500, dtype=np.int64),
        "context": np.zeros((500, STEPS, 1), dtype=np.float32),
    }
    drawn = DENOISING.fill(model, rows, mirrored_noise(shape, np.random.default_rng(0)), num_steps=25)
    assert abs(drawn.mean()) < 0.03
    assert 0.98 < drawn.std() < 1.02
    assert 0.92 < DDPM.left_by_implicit(25) < 0.94  # what DDIM would lose if it were not put right


def test_draws_come_in_pairs_around_the_middle_that_an_untrained_network_knows() -> None:
    """The mean of four draws is the middle; of one draw each it is not."""
    model = MaskedDiT(channels=CHANNELS + STATIC, context=1, num_classes=2, width=16, depth=1, num_heads=2)
    batch = _batch()
    known = batch["known"].numpy()
    middle = interpolate(torch.nan_to_num(batch["x"]), batch["known"].float(), torch.from_numpy(MEMORY).float(), 4)[0]

    def apart(draws: int, told: int) -> float:
        rows = {name: np.concatenate([tensor.numpy()] * draws) for name, tensor in batch.items()}
        start = mirrored_noise(rows["x"].shape, np.random.default_rng(0), told)
        drawn = DENOISING.fill(model, {**rows, "hidden": ~rows["known"]}, start, num_steps=5)
        drawn = drawn.reshape(draws, *known.shape)
        assert drawn.std(axis=0)[~known].min() > 0.01
        return float(np.abs(drawn.mean(axis=0) - middle.numpy())[~known].max())

    assert apart(4, 4) < 1e-5 < 0.1 < apart(4, 1)


def test_hidden_entries_are_what_forecasts_gaps_and_whole_series_need() -> None:
    rng = np.random.default_rng(0)
    hidden = draw_hidden(STEPS, CHANNELS, STATIC, lambda columns: rng.random((4000, columns)))
    everything = hidden.all(axis=(1, 2))
    assert 0.22 < everything.mean() < 0.28  # one way in four
    others = hidden[~everything]
    assert others[:, :, :CHANNELS].any(axis=(1, 2)).all()
    alone = others[:, :, 0].any(axis=1) & ~others[:, :, 1].any(axis=1)
    assert 0.1 < alone.mean() < 0.3  # a gap in one channel, the other shown
    static = others[:, :, CHANNELS]
    assert (static.all(axis=1) | ~static.any(axis=1)).all()
    assert 0.4 < static[:, 0].mean() < 0.6
