"""A GRU for small states and long series, where torch's own spends its time between its kernels.

Features come first, [step, feature, series], so that every gate is one stretch of memory; backpropagation through time
is written by hand, with three calls a step, and leaves each weight gradient to one product at the end.

**Notation** as `nn.GRU`: r, z, n = reset gate, update gate and candidate; h = state; h′ = (1 − z)·n + z·h.
"""

from typing import Any

import torch
from torch import Tensor, nn


class GatedRecurrent(nn.GRU):
    """`nn.GRU` of one layer over [series, step, input]: the same weights, states and gradients, by quicker loops."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden, batch_first=True)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]  # starts from zeros only
        """Returns the states [series, step, hidden] and the last of them [1, series, hidden]."""
        weights = (self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0)
        states: Tensor = _Loop.apply(series.permute(1, 2, 0).contiguous(), *weights)
        return states.permute(2, 0, 1), states[-1].t().unsqueeze(0)


class _Loop(torch.autograd.Function):
    """[step, input, series] → states [step, hidden, series], from a state of zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Tensor:
        hidden, both = w_hh.shape[1], 2 * w_hh.shape[1]
        gates = (w_ih @ x).add_(b_ih[:, None])
        gates[:, :both] += b_hh[:both, None]
        states, pulled = x.new_zeros(len(x) + 1, hidden, x.shape[2]), x.new_empty(len(x), hidden, x.shape[2])
        h, bias = states.unbind(0), b_hh[both:, None].expand(pulled.shape[1:]).contiguous()
        parts = (gates[:, :both], gates[:, :hidden], gates[:, hidden:both], gates[:, both:], pulled)
        for before, after, rz, r, z, n, pull in zip(h, h[1:], *(part.unbind(0) for part in parts), strict=False):
            rz.addmm_(w_hh[:both], before).sigmoid_()
            torch.addmm(bias, w_hh[both:], before, out=pull)
            n.addcmul_(r, pull).tanh_()
            torch.lerp(n, before, z, out=after)
        ctx.save_for_backward(x, gates, states, pulled, w_ih, w_hh)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, grad_states: Tensor) -> Any:
        x, gates, states, pulled, w_ih, w_hh = ctx.saved_tensors
        grad_h = grad_states.clone(memory_format=torch.contiguous_format)
        inner, candidate = _slopes(gates, states[:-1], pulled)
        by_gate, back = inner.unflatten(1, (3, w_hh.shape[1])).unbind(0), w_hh.t().contiguous()
        grads, pulls, update = grad_h.unbind(0), inner.unbind(0), gates.chunk(3, 1)[1].unbind(0)
        for step in reversed(range(len(grads))):
            by_gate[step].mul_(grads[step])
            if step:
                grads[step - 1].addcmul_(grads[step], update[step]).addmm_(back, pulls[step])
        outer = torch.cat([inner[:, : -w_hh.shape[1]], candidate.mul_(grad_h)], 1)
        of_input, of_state = (_rows(grad) for grad in (outer, inner))
        grad_x = w_ih.t() @ outer if ctx.needs_input_grad[0] else None
        of_weights = of_input @ _rows(x).t(), of_state @ _rows(states[:-1]).t()
        return grad_x, *of_weights, of_input.sum(1), of_state.sum(1)


def _slopes(gates: Tensor, before: Tensor, pulled: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ∂h′/∂(recurrent pre-activations) [step, 3·hidden, series] and ∂h′/∂(pre-activation of n)."""
    r, z, n = gates.chunk(3, 1)
    slopes = torch.empty_like(gates)
    slope_r, slope_z, slope_n = slopes.chunk(3, 1)
    candidate = (1 - z) * (1 - n * n)
    torch.mul(candidate, r, out=slope_n)
    torch.mul(slope_n, 1 - r, out=slope_r).mul_(pulled)
    torch.sub(before, n, out=slope_z).mul_(z).mul_(1 - z)
    return slopes, candidate


def _rows(steps: Tensor) -> Tensor:
    """Returns [feature, step · series] from [step, feature, series]."""
    return steps.transpose(0, 1).flatten(1)
