"""Self-attention over steps."""

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional


class SelfAttention(nn.Module):
    """Multi-head self-attention [unit, step, width] → same, built of two linears."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Args: `present` [unit, step] is False for steps that neither attend nor are attended to; they return 0."""
        queries, keys, values = rearrange(
            self.project_in(x),
            "unit step (three head d) -> three unit head step d",
            three=3,
            head=self.num_heads,
        )
        seen = None if present is None else _never_empty(present)[:, None, None]
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        output: Tensor = self.project_out(rearrange(mixed, "unit head step d -> unit step (head d)"))
        return output if present is None else output * present.unsqueeze(2)


def _never_empty(present: Tensor) -> Tensor:
    """Lets a unit without any step look at all of them, so that its softmax exists; what comes out is zeroed."""
    return torch.where(present.any(1, keepdim=True), present, True)
