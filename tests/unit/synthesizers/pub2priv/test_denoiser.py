"""θ_DM: starts at zero, listens to its condition, and lets the engine clip each unit on its own."""

import torch

from understudy.synthesizers.pub2priv.published import ConditionalDenoiser
from understudy.training.validation import try_out, validate_module


def _denoiser(channels: int = 2) -> tuple[ConditionalDenoiser, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model = ConditionalDenoiser(condition=6, width=16, depth=2, num_heads=2, feed_forward=16)
    batch = {"x": torch.randn(6, 10, channels), "z": torch.randn(6, 10, 6)}
    return model, batch


def _awake(model: ConditionalDenoiser) -> ConditionalDenoiser:
    torch.nn.init.normal_(model.predict.weight)
    return model


def test_it_starts_by_predicting_no_noise() -> None:
    model, batch = _denoiser()
    assert torch.equal(model(batch["x"], torch.arange(6), batch["z"]), torch.zeros(6, 10, 2))


def test_the_condition_of_every_step_and_the_time_matter() -> None:
    model, batch = _denoiser()
    _awake(model)
    before = model(batch["x"], torch.arange(6), batch["z"])
    assert not torch.allclose(model(batch["x"], torch.arange(6), batch["z"] + 1), before)
    assert not torch.allclose(model(batch["x"], torch.arange(6) + 100, batch["z"]), before)


def test_any_number_of_channels_and_steps_fits() -> None:
    model, _ = _denoiser()
    for steps, channels in ((1, 1), (5, 1), (30, 4)):
        assert model(torch.randn(3, steps, channels), torch.zeros(3), torch.randn(3, steps, 6)).shape[1:] == (
            steps,
            channels,
        )


def test_units_are_separate_and_the_engine_s_gradients_are_right() -> None:
    for channels in (1, 3):
        model, batch = _denoiser(channels)
        _awake(model)
        validate_module(model)
        try_out(model, lambda m, b, g: m(b["x"], torch.zeros(len(b["x"])), b["z"]).square(), batch, 3)
