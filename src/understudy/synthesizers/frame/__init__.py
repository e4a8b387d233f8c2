"""What every method needs around its core: working scale, and what is bought beside it."""
