"""Fits the rates of estimates to the counts of the vocabularies. Prints the table for rates.rs, and the errors by
kind of text.
"""

import ast
import collections
import pathlib
import re
import sys

import numpy as np
from scipy.optimize import nnls

TALLY = pathlib.Path(__file__).parents[2] / "crates/endmark-context/src/count/tally.rs"
# The weights of some kinds of texts. All other kinds have the weight 1.
WEIGHTS = {
    "prose-en": 6,
    "prose-ru": 3,
    "prose-hi": 2,
    "prose-zh-hans": 3,
    "prose-zh-hant": 1.5,
    "prose-de": 3,
    "prose-fr": 3,
    "prose-es": 3,
    "prose-ja": 2,
    "prose-ko": 2,
    "code-python": 4,
    "code-rust": 3,
    "code-js": 4,
    "markdown": 3,
    "json-compact": 3,
    "json-plain": 3,
    "json-pretty": 3,
    "json-models": 2,
    "base64": 3,
    "log": 1.5,
    "caps": 0.2,
    "prose-sw": 0.2,
    "prose-pcm": 0.2,
    "prose-ms": 0.3,
    "prose-id": 0.5,
    "prose-sa": 0.2,
    "prose-be": 0.4,
    "prose-bg": 0.7,
    "prose-bn": 0.7,
}
RIDGE = 0.002
ROUNDS = 30
# Below this relative error, the error is squared.
SMALL_ERROR = 0.03


def fit(features, counted, weights):
    """Returns the rates with the smallest relative error. No rate is below 0."""
    design, wanted = features / counted[:, None] * weights[:, None], weights
    ridge, zeros = RIDGE * np.eye(features.shape[1]), np.zeros(features.shape[1])
    scale = np.ones(len(counted))
    for _ in range(ROUNDS + 1):
        rates, _ = nnls(
            np.vstack([design * scale[:, None], ridge]), np.concatenate([wanted * scale, zeros]), maxiter=10_000
        )
        errors = np.abs(design @ rates - wanted) / weights
        scale = 1 / np.sqrt(np.maximum(errors, SMALL_ERROR))
    return rates


def main():
    rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1], encoding="utf-8")]
    kinds = [name.split("~")[0] for name, *_ in rows]
    counted = np.array([ast.literal_eval(row[1]) for row in rows], float)
    features = np.array([ast.literal_eval(row[2]) for row in rows], float)
    of_kind = collections.Counter(kinds)
    weights = np.sqrt([WEIGHTS.get(kind, 1) / of_kind[kind] for kind in kinds])
    rates = np.array([fit(features, counted[:, column], weights) for column in range(counted.shape[1])])
    body = TALLY.read_text(encoding="utf-8").split("enum Feature {")[1].split("}")[0]
    for number, name in enumerate(re.findall(r"^    ([A-Z]\w+),", body, re.M)):
        print(f"    [{', '.join(str(round(1000 * rate)) for rate in rates[:, number])}], // {name}")
    print("\nerror in percent: mean and worst, by vocabulary")
    for kind in sorted(of_kind):
        of = [number for number, other in enumerate(kinds) if other == kind]
        errors = 100 * ((features[of] @ rates.T) / counted[of] - 1)
        worst = errors[np.abs(errors).argmax(axis=0), range(errors.shape[1])]
        print(f"{kind:<16}", "  ".join(f"{mean:+5.0f} {far:+5.0f}" for mean, far in zip(errors.mean(axis=0), worst)))


main()
