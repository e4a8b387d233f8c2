"""θ_T: entries that are not there neither attend nor are attended to, and hidden values are never seen."""

import pytest
import torch

from understudy.synthesizers.pub2priv.knowledge import KnowledgeTransformer, hide, plane_positions


@pytest.fixture
def transformer() -> KnowledgeTransformer:
    torch.manual_seed(0)
    return KnowledgeTransformer(width=16, num_heads=2, depth=2, feed_forward=32, dropout=0.0)


def test_every_place_of_the_plane_has_a_code_of_its_own() -> None:
    codes = plane_positions(30, 7, 16).reshape(-1, 16)
    assert torch.cdist(codes, codes).fill_diagonal_(1.0).min() > 1e-3


def test_missing_entries_change_nothing_elsewhere(transformer) -> None:
    context = torch.randn(3, 10, 2)
    padded = torch.cat([context, torch.full((3, 4, 2), torch.nan)], dim=1)
    assert torch.allclose(transformer(padded)[:, :10], transformer(context), atol=1e-6)
    wider = torch.cat([context, torch.full((3, 10, 1), torch.nan)], dim=2)
    assert torch.allclose(transformer(wider), transformer(context), atol=1e-6)


def test_present_entries_are_attended_to(transformer) -> None:
    """Negative control of the test above."""
    context = torch.randn(3, 10, 2)
    other = context.clone()
    other[:, 9, 1] += 1.0
    assert not torch.allclose(transformer(other)[:, :9], transformer(context)[:, :9], atol=1e-4)


def test_a_context_that_is_missing_altogether_gives_zero_and_no_nan(transformer) -> None:
    context = torch.randn(2, 6, 2)
    context[0] = torch.nan
    z = transformer(context)
    assert torch.equal(z[0], torch.zeros_like(z[0]))
    assert z.isfinite().all()


def test_rows_of_a_batch_do_not_see_each_other(transformer) -> None:
    context = torch.randn(4, 8, 3)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.allclose(transformer(context[order]), transformer(context)[order], atol=1e-6)


def test_hidden_values_are_never_seen(transformer) -> None:
    context, hidden = torch.randn(2, 8, 2), torch.zeros(2, 8, 2, dtype=torch.bool)
    hidden[:, 3] = True
    changed = torch.where(hidden, context + 5, context)
    assert torch.equal(transformer.entries(context, hidden)[0], transformer.entries(changed, hidden)[0])


def test_the_filling_loss_counts_hidden_entries_only(transformer) -> None:
    context, hidden = torch.randn(2, 8, 2), torch.zeros(2, 8, 2, dtype=torch.bool)
    hidden[0, 2, 1] = True
    transformer.reconstruct.weight.data.zero_()
    transformer.reconstruct.bias.data.fill_(0.0)
    expected = context[0, 2, 1].square() / (context[:, :, 1].var(correction=0) + 1e-6)
    assert torch.isclose(transformer.filling_loss(context, hidden), expected)
    assert transformer.filling_loss(context, torch.zeros_like(hidden)) == 0


def test_hiding_takes_between_15_and_60_percent_and_never_what_is_missing() -> None:
    present = torch.rand(50, 60, 3) < 0.8
    hidden = hide(present, torch.Generator().manual_seed(0))
    assert not (hidden & ~present).any()
    assert 0.15 < hidden.sum() / present.sum() < 0.6


def test_learning_to_fill_beats_guessing_the_mean() -> None:
    """Waves of one period: 300 updates bring the error below half of the variance; an untrained one stays above."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = KnowledgeTransformer(width=32, num_heads=4, depth=1, feed_forward=32, dropout=0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)

    def loss() -> torch.Tensor:
        phase = 6.28 * torch.rand(32, 1, 1, generator=generator)
        context = torch.sin(torch.arange(24)[None, :, None] * 0.5 + phase)
        return model.filling_loss(context, hide(~context.isnan(), generator, longest=6))

    before = loss().item()
    for _ in range(300):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
    assert before > 0.8
    assert loss().item() < 0.5
