"""Stacked networks compute what one network per attribute would."""

import torch
from torch import nn
from torch.nn import functional

from understudy.synthesizers.vflgan_ts.network import AttributeDiscriminators, AttributeGenerators, kept_by_dropout

ATTRIBUTES, LATENT, STEPS, HIDDEN = 3, 5, 7, 4


def test_a_generator_is_an_lstm_over_one_step_and_a_linear() -> None:
    stacked, latent = AttributeGenerators(ATTRIBUTES, LATENT, STEPS, HIDDEN), torch.randn(6, LATENT)
    weight = stacked.gates.weight.detach().view(3, ATTRIBUTES, HIDDEN, LATENT)
    bias = stacked.gates.bias.detach().view(3, ATTRIBUTES, HIDDEN)
    for attribute in range(ATTRIBUTES):
        lstm = nn.LSTM(LATENT, HIDDEN, batch_first=True)
        with torch.no_grad():  # torch keeps the gates as enter, forget, cell, leave
            for part in (lstm.weight_ih_l0, lstm.bias_ih_l0, lstm.bias_hh_l0):
                part.zero_()
            for place, gate in zip((0, 3, 2), range(3), strict=True):
                lstm.weight_ih_l0[place * HIDDEN : (place + 1) * HIDDEN] = weight[gate, attribute]
                lstm.bias_ih_l0[place * HIDDEN : (place + 1) * HIDDEN] = bias[gate, attribute]
        hidden = lstm(latent.unsqueeze(1))[0].squeeze(1)
        expected = functional.linear(hidden, stacked.output.weight[attribute], stacked.output.bias[attribute])
        assert torch.allclose(stacked(latent)[:, attribute], expected, atol=1e-6)


def test_a_discriminator_is_a_perceptron_of_its_attribute_alone() -> None:
    stacked, series = AttributeDiscriminators(ATTRIBUTES, STEPS, (8, 4)), torch.randn(6, ATTRIBUTES, STEPS)
    found = stacked(series)
    for attribute in range(ATTRIBUTES):
        hidden = series[:, attribute]
        for layer in stacked.layers:
            hidden = functional.leaky_relu(
                functional.linear(hidden, layer.weight[attribute], layer.bias[attribute]), 0.2
            )
        expected = functional.linear(hidden, stacked.head.weight[attribute], stacked.head.bias[attribute]).squeeze(1)
        assert torch.allclose(found[:, attribute], expected, atol=1e-7)


def test_dropout_lets_the_stated_share_pass_and_keeps_the_mean() -> None:
    """False alarm below 1e-9: the share of 10⁶ numbers has a deviation of 0.0005, seven of which are 0.0035."""
    kept = kept_by_dropout((1000, 1000), 0.3, torch.Generator().manual_seed(1))
    assert kept is not None
    assert abs(float((kept > 0).float().mean()) - (1 - 77 / 256)) < 0.0035
    assert abs(float(kept.mean()) - 1) < 0.005
    assert kept_by_dropout((3, 3), 0.0, torch.Generator()) is None
    again = kept_by_dropout((1000, 1000), 0.3, torch.Generator().manual_seed(1))
    assert again is not None
    assert torch.equal(kept, again)
