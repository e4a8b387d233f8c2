"""Variational autoencoder of strided convolutions over time (Kingma & Welling, arXiv:1312.6114v11)."""

from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

_GROUPS = 8


def _down(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(width_in, width_out, 5, stride=2, padding=2), nn.GELU(), nn.GroupNorm(_GROUPS, width_out)
    )


def _up(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose1d(width_in, width_out, 4, stride=2, padding=1), nn.GELU(), nn.GroupNorm(_GROUPS, width_out)
    )


class ConvVAE(nn.Module):
    """Maps series [series, step, channel] to one latent vector each, and back.

    Args:
        steps: Length of the series; lengths that halving does not divide are padded inside.
        widths: Channels after each halving of the time axis, multiples of 8.
    """

    def __init__(self, *, channels: int, steps: int, latent: int, widths: tuple[int, ...] = (32, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.steps, self.latent, self.widths = channels, steps, latent, tuple(widths)
        self.short = -(-steps // 2 ** len(widths))  # steps of the shortest layer, rounded up
        down = [channels, *widths]
        up = [*reversed(widths), widths[0]]
        self.encoder = nn.Sequential(*map(_down, down, down[1:]))
        self.to_latent = nn.Linear(widths[-1] * self.short, 2 * latent)
        self.from_latent = nn.Linear(latent, widths[-1] * self.short)
        self.decoder = nn.Sequential(*map(_up, up, up[1:]), nn.Conv1d(widths[0], channels, 5, padding=2))

    @property
    def shape(self) -> dict[str, int | list[int]]:
        """Arguments that make a network of this shape."""
        return {"channels": self.channels, "steps": self.steps, "latent": self.latent, "widths": list(self.widths)}

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns mean and log-variance [series, latent] of q(z | x)."""
        padding = self.short * 2 ** len(self.widths) - self.steps
        hidden = functional.pad(rearrange(x, "n step channel -> n channel step"), (0, padding), mode="replicate")
        mean, log_variance = self.to_latent(self.encoder(hidden).flatten(1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def decode(self, z: Tensor) -> Tensor:
        """Returns the mean of p(x | z)."""
        hidden = rearrange(self.from_latent(z), "n (width step) -> n width step", step=self.short)
        output: Tensor = rearrange(self.decoder(hidden), "n channel step -> n step channel")[:, : self.steps]
        return output
