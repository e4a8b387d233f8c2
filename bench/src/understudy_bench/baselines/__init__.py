"""Methods to compare with, each after its paper and with a guarantee that holds."""
