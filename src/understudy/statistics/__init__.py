"""The differentially private facts that methods share: marginals, labels, lengths and gaps, a copula, encodings."""
