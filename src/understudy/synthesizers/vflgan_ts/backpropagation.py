"""Networks of VFLGAN-TS with their slopes written out.

Small networks spend their time between operations: autograd keeps a node, and moves a tensor, for each of them. Here a
network remembers what passed through it and goes back by itself, most of it in place. Attributes stand before rows, so
that everything is one call for all of them. There is no second derivative.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.ops import aten

from understudy.nn.layers import StackedLinear

SLOPE = 0.2  # of LeakyReLU below zero
Masks = Sequence[Tensor | None]  # what dropout leaves of each hidden layer, [row, width]; None leaves everything


class Perceptron:
    """A network of linear layers with LeakyReLU and dropout between them, seen through its parameters.

    Args:
        module: Its parameters are weight, bias, weight, bias, … in the order of the layers, in memory that stays where
            it is.
        gradients: Where the gradient of each parameter is added, by id.
    """

    def __init__(self, module: nn.Module, gradients: Mapping[int, Tensor]) -> None:
        self.parameters = list(module.parameters())
        self.weights, self.biases = ([each.detach() for each in self.parameters[first::2]] for first in (0, 1))
        self.gradients = [gradients[id(parameter)] for parameter in self.parameters]

    def __call__(self, numbers: Tensor, masks: Masks) -> "Passed":
        """Passes numbers [(attribute,) row, number] on.

        Args:
            masks: As many as layers, and LeakyReLU and dropout stand behind the last one too, or one less.
        """
        product, passed = torch.addmm if numbers.ndim == 2 else torch.baddbmm, [numbers]
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            numbers = product(bias.unsqueeze(-2), numbers, weight.mT)
            if place < len(masks):
                aten.leaky_relu_(numbers, SLOPE)
                kept = masks[place]
                if kept is not None:
                    numbers.mul_(kept)
            passed.append(numbers)
        return Passed(self, passed, masks)


@dataclass(frozen=True, eq=False, repr=False)
class Passed:
    """What a perceptron remembers of rows that passed through it: the input, then the output of each layer."""

    perceptron: Perceptron
    numbers: Sequence[Tensor]
    masks: Masks

    @property
    def output(self) -> Tensor:
        """What came out."""
        return self.numbers[-1]

    def back(self, slope: Tensor) -> "Slopes":
        """Goes back from the slope along the output. No row meets another on the way."""
        found = []
        for place in reversed(range(len(self.perceptron.weights))):
            if place < len(self.masks):
                slope = aten.leaky_relu_backward(slope, self.numbers[place + 1], SLOPE, True)  # dropout leaves signs
                kept = self.masks[place]
                if kept is not None:
                    slope.mul_(kept)
            found.append(slope)
            if place:
                slope = slope @ self.perceptron.weights[place]
        return Slopes(self, found[::-1])


@dataclass(frozen=True, eq=False, repr=False)
class Slopes:
    """Slopes along what each linear of a perceptron gives out, [(attribute,) row, output]."""

    passed: Passed
    layers: Sequence[Tensor]

    def along_input(self) -> Tensor:
        """Returns those along the input."""
        return self.layers[0] @ self.passed.perceptron.weights[0]

    @property
    def num_rows(self) -> int:
        """How many rows passed."""
        return self.layers[0].shape[-2]

    def add(self, *, fresh: bool = False) -> None:
        """Adds the gradients of all rows, or with `fresh` puts them in the place of what was there."""
        gradients = self.passed.perceptron.gradients
        for place, slope in enumerate(self.layers):
            weight, bias = gradients[2 * place : 2 * place + 2]
            add_product(weight, slope, self.passed.numbers[place], fresh=fresh)
            add_sum(bias, slope, fresh=fresh)

    def by_row(self) -> Iterator[tuple[nn.Parameter, nn.Parameter, Tensor, Tensor]]:
        """Yields weight, bias, slope and input of each layer, the last two as [row, (attribute,) number].

        One row's gradient is slope ⊗ input for the weight, and the slope for the bias.
        """
        parameters = self.passed.perceptron.parameters
        for place, slope in enumerate(self.layers):
            own = [slope, self.passed.numbers[place]]
            own = own if slope.ndim == 2 else [tensor.transpose(0, 1) for tensor in own]
            yield parameters[2 * place], parameters[2 * place + 1], own[0], own[1]


class Cells:
    """LSTM cells at rest with a linear behind each, seen through their parameters.

    Args:
        gates: Weights of i, o and c, in this order, each attribute by attribute.
        output: The linears.
        gradients: As for a perceptron.
    """

    def __init__(self, gates: nn.Linear, output: StackedLinear, gradients: Mapping[int, Tensor]) -> None:
        self.number, _, hidden = output.weight.shape

        def both(parameter: Tensor | None, *shape: int) -> tuple[Tensor, Tensor]:
            assert parameter is not None
            return parameter.detach().view(shape), gradients[id(parameter)].view(shape)

        self.gates, self.openings = both(gates.weight, 3 * self.number, hidden, -1), both(gates.bias, -1, 1, hidden)
        self.weight, self.bias = both(output.weight, *output.weight.shape), both(output.bias, self.number, 1, -1)

    def __call__(self, latent: Tensor) -> "PassedCells":
        """Makes [attribute, row, step] of a latent [row, number]: h = o · tanh(i · tanh(c)), i and o by a sigmoid."""
        shared = latent.expand(3 * self.number, -1, -1)
        opened = torch.baddbmm(self.openings[0], shared, self.gates[0].mT)
        opened[: 2 * self.number].sigmoid_()
        opened[2 * self.number :].tanh_()
        enter, leave, cell = opened.chunk(3)
        state = (enter * cell).tanh_()
        hidden = leave * state
        made = torch.baddbmm(self.bias[0], hidden, self.weight[0].mT)
        return PassedCells(self, shared, opened, state, hidden, made)


@dataclass(frozen=True, eq=False, repr=False)
class PassedCells:
    """What cells remember of a latent."""

    cells: Cells
    latent: Tensor
    opened: Tensor
    state: Tensor
    hidden: Tensor
    output: Tensor

    def learn(self, slope: Tensor) -> None:
        """Puts the gradients in place of those that were there, given the slope along the output."""
        cells, number = self.cells, self.cells.number
        enter, leave, cell = self.opened.chunk(3)
        slopes = torch.empty_like(self.opened)
        of_enter, of_leave, of_cell = slopes.chunk(3)
        add_product(cells.weight[1], slope, self.hidden, fresh=True)
        add_sum(cells.bias[1].squeeze(1), slope, fresh=True)
        before = torch.bmm(slope, cells.weight[0])
        torch.mul(before, self.state, out=of_leave)
        before.mul_(leave)
        aten.tanh_backward(before, self.state, grad_input=before)  # slope of i · tanh(c)
        torch.mul(before, cell, out=of_enter)
        torch.mul(before, enter, out=of_cell)
        doors = slopes[: 2 * number]
        aten.sigmoid_backward(doors, self.opened[: 2 * number], grad_input=doors)
        aten.tanh_backward(of_cell, cell, grad_input=of_cell)
        add_product(cells.gates[1], slopes, self.latent, fresh=True)
        add_sum(cells.openings[1].squeeze(1), slopes, fresh=True)


def add_product(target: Tensor, slope: Tensor, numbers: Tensor, *, fresh: bool) -> None:
    """Adds Σ over rows of slope ⊗ numbers, both [(attribute,) row, number]."""
    add = target.addmm_ if target.ndim == 2 else target.baddbmm_
    add(slope.mT, numbers, beta=0 if fresh else 1)


def add_sum(target: Tensor, slope: Tensor, *, fresh: bool) -> None:
    """Adds Σ over rows of slope."""
    if fresh:
        torch.sum(slope, -2, out=target)
    else:
        target.add_(slope.sum(-2))
