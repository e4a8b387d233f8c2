"""Figures of paper 004: Tables 1 to 3 and 5 without noise; Table 4 with noise, whose epsilons are claimed only."""

PLAIN: dict[str, dict[str, dict[str, float]]] = {
    "sine-2": {
        "vflgan-ts": {"sine_error": 0.049},
        "central-coscigan": {"sine_error": 0.215},
        "party-coscigan": {"sine_error": 0.046},
    },
    "sine-6": {
        "vflgan-ts": {"sine_error": 0.051},
        "central-coscigan": {"sine_error": 0.050},
        "party-coscigan": {"sine_error": 0.050},
    },
    "eeg": {
        "vflgan-ts": {"trtr": 0.92, "trts": 0.86, "tstr": 0.74, "tpd": 0.32},
        "central-coscigan": {"trts": 0.87, "tstr": 0.74, "tpd": 0.31},
        "party-coscigan": {"trts": 0.68, "tstr": 0.68, "tpd": 0.56},
        "vflgan": {"trts": 0.85, "tstr": 0.68, "tpd": 0.39},
    },
    "stock": {
        "vflgan-ts": {"trtr": 0.050, "tstr": 0.050, "tpd": 0.002},
        "central-coscigan": {"tstr": 0.056, "tpd": 0.015},
        "party-coscigan": {"tstr": 0.054, "tpd": 0.025},
        "vflgan": {"tstr": 0.053, "tpd": 0.015},
    },
    "energy": {
        "vflgan-ts": {"trtr": 0.062, "tstr": 0.067, "tpd": 0.008},
        "central-coscigan": {"tstr": 0.066, "tpd": 0.007},
        "party-coscigan": {"tstr": 0.099, "tpd": 0.098},
    },
}
CLAIMED: dict[str, dict[float, dict[str, float]]] = {
    "stock": {
        2.0: {"tstr": 0.126, "tpd": 0.132, "ratio": 2.52},
        4.0: {"tstr": 0.124, "tpd": 0.117, "ratio": 2.48},
        6.0: {"tstr": 0.115, "tpd": 0.104, "ratio": 2.30},
        8.0: {"tstr": 0.111, "tpd": 0.099, "ratio": 2.22},
        10.0: {"tstr": 0.109, "tpd": 0.094, "ratio": 2.18},
    },
    "energy": {
        2.0: {"tstr": 0.186, "tpd": 0.224, "ratio": 3.00},
        4.0: {"tstr": 0.178, "tpd": 0.204, "ratio": 2.87},
        6.0: {"tstr": 0.175, "tpd": 0.199, "ratio": 2.82},
        8.0: {"tstr": 0.173, "tpd": 0.193, "ratio": 2.79},
        10.0: {"tstr": 0.169, "tpd": 0.185, "ratio": 2.73},
    },
}
PARTIES: dict[int, dict[str, float]] = {
    number: {"tpd": tpd} for number, tpd in zip((2, 4, 6, 8, 10), (0.009, 0.006, 0.004, 0.008, 0.007), strict=True)
}
