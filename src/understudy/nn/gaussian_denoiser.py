"""A denoiser of few numbers that starts as the exact one of white noise.

If x ~ N(m, V), the noise in √ᾱ x + √(1 − ᾱ) ε is best predicted by √(1 − ᾱ) (ᾱ V + (1 − ᾱ) I)⁻¹ (x_t − √ᾱ m). Mean
and covariance are parameters, so a private gradient is as short as the table of moments would be; what a Gaussian
can't say is left to a small network that begins by saying nothing.
"""

import itertools

import torch
from einops import rearrange
from torch import Tensor, nn


class GaussianDenoiser(nn.Module):
    """Predicts the noise in x [unit, group, place]: groups are independent, the mean is linear in a condition.

    Args:
        signal: ᾱ of every diffusion time.
        width, depth: Hidden layers of the network beside the Gaussian; none if depth is 0.
    """

    signal: Tensor

    def __init__(
        self, *, signal: Tensor, groups: int, places: int, condition: int, width: int = 0, depth: int = 0
    ) -> None:
        super().__init__()
        self.register_buffer("signal", signal.float())
        self.mean = nn.Parameter(torch.zeros(groups, places, 1 + condition))
        self.factor = nn.Parameter(torch.zeros(groups, places, places))  # of V: logarithms on the diagonal
        self.beyond = _network(groups * places + 2 + condition, groups * places, width, depth) if depth else None

    def forward(self, x: Tensor, time: Tensor, condition: Tensor) -> Tensor:
        """Returns the noise [unit, group, place] at diffusion time [unit]."""
        left = self.signal[time]
        share = left[:, None, None]
        known = torch.cat([torch.ones_like(left)[:, None], condition], dim=1)
        centred = x - share.sqrt() * torch.einsum("gpc,uc->ugp", self.mean, known)
        lower = torch.tril(self.factor, -1) + torch.diag_embed(torch.diagonal(self.factor, dim1=1, dim2=2).exp())
        covariance = lower @ lower.transpose(1, 2)
        spread = share[..., None] * covariance + (1 - share[..., None]) * torch.eye(x.shape[2]).to(x)
        noise: Tensor = (1 - share).sqrt() * torch.linalg.solve(spread, centred.unsqueeze(3)).squeeze(3)
        if self.beyond is None:
            return noise
        seen = torch.cat([noise.flatten(1), left[:, None].sqrt(), (1 - left[:, None]).sqrt(), condition], dim=1)
        return noise + rearrange(self.beyond(seen), "unit (group place) -> unit group place", group=x.shape[1])


def _network(inputs: int, outputs: int, width: int, depth: int) -> nn.Sequential:
    sizes = [inputs, *(width for _ in range(depth))]
    layers: list[nn.Module] = []
    for first, second in itertools.pairwise(sizes):
        layers += [nn.Linear(first, second), nn.SiLU()]
    last = nn.Linear(width, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)
