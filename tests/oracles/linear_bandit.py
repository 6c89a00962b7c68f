"""Slow linear bandits: the posterior by exact fractions, or by inverting what was summed up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def exact_posterior(rows, counts, totals, scale, noise):
    """Mean and covariance of theta after `counts[k]` rewards of sum `totals[k]` with `rows[k]`, in exact arithmetic."""
    d = len(rows[0])
    lam, sigma = Fraction(scale), Fraction(noise)
    table = [[Fraction(0)] * d + [Fraction(int(i == j)) for j in range(d)] + [Fraction(0)] for i in range(d)]
    for i in range(d):
        table[i][i] = 1 / lam**2
    for row, count, total in zip(rows, counts, totals, strict=True):
        x = [Fraction(float(value)) for value in row]
        for i in range(d):
            table[i][2 * d] += x[i] * Fraction(float(total)) / sigma**2
            for j in range(d):
                table[i][j] += x[i] * x[j] * int(count) / sigma**2
    for i in range(d):  # Gauss and Jordan
        pivot = table[i][i]
        table[i] = [value / pivot for value in table[i]]
        for k in range(d):
            if k != i:
                factor = table[k][i]
                table[k] = [a - factor * b for a, b in zip(table[k], table[i], strict=True)]
    mean = np.array([float(line[2 * d]) for line in table])
    return mean, np.array([[float(value) for value in line[d : 2 * d]] for line in table])


class LinearModel:
    """Rows and rewards as they came; the posterior from all of them whenever asked. `held`: rows that wait."""

    def __init__(self, size, scale=1.0, noise=0.5):
        self.size, self.scale, self.noise = size, scale, noise
        self.rows, self.rewards = [], []
        self.held = {}

    def learn(self, rows, rewards):
        self.rows += [np.array(row) for row in rows]
        self.rewards += list(rewards)

    def precision(self, waiting=False):
        rows = self.rows + [row for part in (self.held.values() if waiting else ()) for row in part]
        x = np.array(rows).reshape(-1, self.size)
        return np.eye(self.size) / self.scale**2 + x.T @ x / self.noise**2

    def theta(self):
        x = np.array(self.rows).reshape(-1, self.size)
        return np.linalg.solve(self.precision(), x.T @ np.array(self.rewards) / self.noise**2)

    def index(self, features, width):
        sigma = np.linalg.inv(self.precision(waiting=True))
        return features @ self.theta() + width * np.sqrt(np.einsum("ij,jk,ik->i", features, sigma, features))
