"""Networks of Pub2Priv: the knowledge transformer θ_T (section 5.1) and the denoiser θ_DM (section 5.2, Appendix D).

θ_T: two-axis self-attention over entries [step, feature], first along time, then along features. Positions are sines on
both axes, so any number of steps and of features fits. Trained on public series by filling in what was hidden, then
frozen. θ_DM, in the manner of CSDI: residual layers in which entries look along time and along channels (Tashiro et
al., arXiv:2107.03502v2, Appendix E); every layer receives the condition z of each step and the diffusion time.
"""

import math

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.attention import SelfAttention, TimeEmbedding, positions


def plane_positions(num_steps: int, num_features: int, width: int) -> Tensor:
    """Returns codes [step, feature, width]: the first half says the step, the second the feature."""
    shape = (num_steps, num_features, -1)
    steps, features = positions(num_steps, width // 2), positions(num_features, width - width // 2)
    return torch.cat([steps[:, None].expand(shape), features[None].expand(shape)], dim=2)


class EncoderLayer(nn.Module):
    """Attention along one axis and a two-layer network, each added to its input and normalised."""

    def __init__(self, width: int, num_heads: int, feed_forward: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = SelfAttention(width, num_heads)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, feed_forward), nn.GELU(), nn.Dropout(dropout), nn.Linear(feed_forward, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Returns [row, position, width]; `present` [row, position] as in `SelfAttention`."""
        x = self.first(x + self.dropout(self.attention(x, present)))
        output: Tensor = self.second(x + self.dropout(self.feed_forward(x)))
        return output


class TwoAxisLayer(nn.Module):
    """Entries [unit, step, feature, width] look along time, then along features; an axis of one is skipped."""

    def __init__(self, width: int, num_heads: int, feed_forward: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.over_time = EncoderLayer(width, num_heads, feed_forward, dropout)
        self.over_features = EncoderLayer(width, num_heads, feed_forward, dropout)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Args: `present` [unit, step, feature] is False for entries that are not there."""
        num_steps, num_features = x.shape[1:3]
        if num_steps > 1:
            rows = rearrange(x, "unit step feature width -> (unit feature) step width")
            here = None if present is None else rearrange(present, "unit step feature -> (unit feature) step")
            x = rearrange(self.over_time(rows, here), "(u feature) step width -> u step feature width", u=len(x))
        if num_features > 1:
            rows = rearrange(x, "unit step feature width -> (unit step) feature width")
            here = None if present is None else rearrange(present, "unit step feature -> (unit step) feature")
            x = rearrange(self.over_features(rows, here), "(u step) feature width -> u step feature width", u=len(x))
        return x


class KnowledgeTransformer(nn.Module):
    """θ_T: public context c [unit, step, feature] → z [unit, step, width]. Missing entries of c are NaN."""

    def __init__(
        self, *, width: int = 128, num_heads: int = 8, depth: int = 4, feed_forward: int = 256, dropout: float = 0.05
    ) -> None:
        super().__init__()
        self.shape = {"width": width, "num_heads": num_heads, "depth": depth, "feed_forward": feed_forward}
        self.embed = nn.Linear(2, width)  # the value, and whether it was hidden
        self.layers = nn.ModuleList(TwoAxisLayer(width, num_heads, feed_forward, dropout) for _ in range(depth))
        self.summarise = nn.Linear(width, width)
        self.reconstruct = nn.Linear(width, 1)  # g_φ of section 5.1

    def entries(self, context: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns (entries [unit, step, feature, width], which of them are there); `hidden` ones show no value."""
        present = ~context.isnan()
        hidden = torch.zeros_like(present) if hidden is None else hidden & present
        values = torch.where(present & ~hidden, context, 0.0)
        x = self.embed(torch.stack([values, hidden.to(values)], dim=3))
        x = x + plane_positions(*x.shape[1:]).to(x)
        for layer in self.layers:
            x = layer(x, present)
        return x, present

    def forward(self, context: Tensor) -> Tensor:
        """Returns z: the mean over the features that are there; 0 at a step without any."""
        x, present = self.entries(context)
        weight = present.to(x).unsqueeze(3)
        mean = (x * weight).sum(2) / weight.sum(2).clamp(min=1)
        output: Tensor = self.summarise(mean) * present.any(2, keepdim=True)
        return output

    def filling_loss(self, context: Tensor, hidden: Tensor) -> Tensor:
        """Returns the mean squared error of hidden entries, each in units of its feature's variance (section 5.1)."""
        x, present = self.entries(context, hidden)
        guesses, asked = self.reconstruct(x).squeeze(3), hidden & present
        spread = (context - context.nanmean((0, 1))).square().nanmean((0, 1)).nan_to_num(1.0)  # of each feature
        error = torch.where(asked, (guesses - context.nan_to_num()).square() / (spread + 1e-6), 0.0)
        return error.sum() / asked.sum().clamp(min=1)


def hide(present: Tensor, generator: torch.Generator, *, share: float = 0.15, longest: int = 20) -> Tensor:
    """Returns which entries [unit, step, feature] to hide: single ones, and in each row one span of 5 to `longest`."""
    num_units, num_steps, num_features = present.shape
    single = torch.rand(present.shape, generator=generator) < share
    rows = (num_units, 1, num_features)
    length = torch.randint(min(5, num_steps), min(longest, num_steps) + 1, rows, generator=generator)
    start = (torch.rand(rows, generator=generator) * (num_steps - length + 1)).long()
    step = torch.arange(num_steps)[None, :, None]
    return (single | ((step >= start) & (step < start + length))) & present


class ConditionalBlock(nn.Module):
    """Returns the next residual stream and a skip contribution, both [unit, step, channel, width]."""

    def __init__(self, width: int, side: int, num_heads: int, feed_forward: int) -> None:
        super().__init__()
        self.time = nn.Linear(width, width)
        self.mix = TwoAxisLayer(width, num_heads, feed_forward)
        self.widen = nn.Linear(width, 2 * width)
        self.condition = nn.Linear(side, 2 * width)
        self.project_out = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor, side: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """Args: `side` [unit, step, channel, side] and the embedded `time` [unit, width]."""
        hidden = self.mix(x + self.time(time)[:, None, None])
        gate, value = (self.widen(hidden) + self.condition(side)).chunk(2, 3)
        residual, skip = self.project_out(torch.sigmoid(gate) * torch.tanh(value)).chunk(2, 3)
        return (x + residual) / math.sqrt(2), skip


class ConditionalDenoiser(nn.Module):
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit], given z [unit, step, condition].

    Starts by predicting zero, so that the first losses are one. Table 3 of the paper: four layers, width 256.
    """

    def __init__(
        self, *, condition: int, width: int = 256, depth: int = 4, num_heads: int = 8, feed_forward: int = 64
    ) -> None:
        super().__init__()
        self.codes = 64  # width of the code of step and channel
        self.embed = nn.Linear(1, width)
        self.time = TimeEmbedding(width)
        side = condition + self.codes
        self.blocks = nn.ModuleList(ConditionalBlock(width, side, num_heads, feed_forward) for _ in range(depth))
        self.skip = nn.Linear(width, width)
        self.predict = nn.Linear(width, 1)
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(self, x: Tensor, time: Tensor, z: Tensor) -> Tensor:
        """Returns the noise [unit, step, channel]."""
        hidden = functional.relu(self.embed(x.unsqueeze(3)))
        shape = (*z.shape[:2], x.shape[2], -1)
        codes = plane_positions(z.shape[1], x.shape[2], self.codes).to(z)
        side = torch.cat([z.unsqueeze(2).expand(shape), codes.expand(shape)], dim=3)  # of every entry
        embedded, skips = functional.silu(self.time(time)), torch.zeros_like(hidden)
        for block in self.blocks:
            hidden, skip = block(hidden, side, embedded)
            skips = skips + skip
        hidden = functional.relu(self.skip(skips / math.sqrt(len(self.blocks))))
        output: Tensor = self.predict(hidden).squeeze(3)
        return output
