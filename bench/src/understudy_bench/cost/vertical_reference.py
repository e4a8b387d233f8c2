"""VFLGAN-TS the way it is usually written, for `cost-vertical`: a Python loop over attributes, one Adam per network."""

import time

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy

_LATENT, _HIDDEN, _FEATURES = 32, 256, 256
_BETAS = (0.5, 0.9)


class _Generator(nn.Module):
    """`nn.LSTM` over one step, then a linear."""

    def __init__(self, num_steps: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(_LATENT, _HIDDEN, batch_first=True)
        self.output = nn.Linear(_HIDDEN, num_steps)

    def forward(self, latent: Tensor) -> Tensor:
        return self.output(self.lstm(latent.unsqueeze(1))[0].squeeze(1))


class OneByOne:
    """Two parties with half of the attributes each and a shared discriminator, in one program."""

    def __init__(self, num_attributes: int, num_steps: int, num_rows: int, batch: int, iterations: int) -> None:
        self._data = torch.randn(num_rows, num_attributes, num_steps)
        self._batch, self._iterations = batch, iterations
        self._generators = [_Generator(num_steps) for _ in range(num_attributes)]
        self._discriminators = [_perceptron(num_steps, 128, 64) for _ in range(num_attributes)]
        half = num_attributes // 2
        self._halves = (slice(0, half), slice(half, num_attributes))
        self._extractors = [_features(half * num_steps) for _ in self._halves]
        self._shared = _perceptron(2 * _FEATURES, 256, 64)
        self._making = [_adam(network, 2e-4) for network in self._generators]
        self._judging = [_adam(network, 2e-4) for network in self._discriminators]
        self._judging += [_adam(network, 1e-4) for network in (*self._extractors, self._shared)]

    def seconds(self) -> list[float]:
        """Returns the processor time of each of some iterations."""
        found = []
        for _ in range(self._iterations):
            start = time.process_time()
            self._iterate()
            found.append(time.process_time() - start)
        return found

    def _iterate(self) -> None:
        real = self._data[torch.randperm(len(self._data))[: self._batch]]
        fake = self._generated().detach()
        loss = self._judged(real, 1.0) + self._judged(fake, 0.0)
        _descend(loss, self._judging)
        made = self._generated()
        _descend(self._judged(made, 1.0, coupling=5.0), self._making)

    def _generated(self) -> Tensor:
        latent = torch.randn(self._batch, _LATENT)
        return torch.stack([generator(latent) for generator in self._generators], dim=1)

    def _judged(self, series: Tensor, truth: float, coupling: float = 1.0) -> Tensor:
        wanted = torch.full((len(series), 1), truth)
        loss = torch.zeros(())
        for place, discriminator in enumerate(self._discriminators):
            loss = loss + binary_cross_entropy(discriminator(series[:, place]), wanted)
        parts = zip(self._extractors, self._halves, strict=True)
        features = torch.cat([extractor(series[:, half].flatten(1)) for extractor, half in parts], 1)
        return loss + coupling * binary_cross_entropy(self._shared(features), wanted)


def _perceptron(inputs: int, *widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Dropout(0.3)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1), nn.Sigmoid())


def _features(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, _FEATURES), nn.LeakyReLU(0.2), nn.Dropout(0.3))


def _adam(network: nn.Module, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(network.parameters(), lr=rate, betas=_BETAS)


def _descend(loss: Tensor, optimisers: list[torch.optim.Adam]) -> None:
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()
