"""Self-attention over steps."""

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

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = rearrange(
            self.project_in(x),
            "unit step (three head d) -> three unit head step d",
            three=3,
            head=self.num_heads,
        )
        mixed = functional.scaled_dot_product_attention(queries, keys, values)
        output: Tensor = self.project_out(rearrange(mixed, "unit head step d -> unit step (head d)"))
        return output
