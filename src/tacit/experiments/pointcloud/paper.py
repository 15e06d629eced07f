"""The figures the paper prints, to stand beside ours: tables 1 and 2 of section 7."""

from __future__ import annotations

from tacit.experiments.pointcloud.config import POOLINGS

__all__ = ["PAPER"]

# Share of outliers in %: top-1 accuracy in % of the six poolings, then mean average precision x 100.
_TRAINED_ALIKE = """
 0  88.4 84.7 84.7 86.3 86.1 85.4  95.6 93.8 95.0 95.4 95.0 93.8
10  79.4 84.3 85.6 85.5 86.6 85.5  89.4 94.3 94.6 95.1 94.6 94.7
20  76.2 84.8 84.8 85.2 86.3 85.5  87.8 94.8 95.0 95.0 94.8 95.0
50  72.0 84.0 83.1 83.9 84.3 83.9  83.3 93.8 93.5 94.3 94.8 94.8
90  29.7 61.7 63.4 63.1 65.3 61.8  38.9 76.8 78.7 78.5 79.1 76.6
"""
_TRAINED_CLEAN = """
 0  88.4 84.7 84.7 86.3 86.1 85.4  95.6 93.8 95.0 95.4 95.0 93.8
 1  32.6 84.9 84.7 86.4 86.2 85.3  48.6 93.8 95.1 95.3 95.1 93.0
10  6.47 83.9 84.6 85.3 86.0 85.9  8.20 93.4 94.8 94.4 94.9 93.9
20  5.95 79.6 82.8 81.1 84.7 84.9  7.73 91.9 93.4 92.7 94.2 94.6
30  5.55 70.9 74.2 72.2 77.6 83.2  6.00 87.8 89.5 85.1 90.9 92.8
40  5.35 55.3 59.1 55.4 63.1 75.6  6.41 77.6 80.2 72.7 83.2 90.6
50  4.86 32.9 36.0 34.6 44.1 57.9  5.68 62.3 60.2 60.1 66.4 85.3
60  4.42 14.5 16.2 18.1 27.1 30.6  5.08 39.1 36.3 38.5 42.7 68.5
70  4.25 5.03 6.33 7.95 14.1 11.9  4.66 22.5 19.3 18.4 25.7 47.9
80  3.11 4.10 4.51 5.64 8.88 5.11  4.21 10.8 8.91 8.98 14.9 26.7
90  3.72 4.06 4.06 4.30 5.68 4.22  4.49 8.20 5.98 5.80 8.37 9.78
"""


def _read(text: str) -> dict[tuple[str, float, str], float]:
    figures = {}
    for line in text.split("\n"):
        if line.strip():
            percent, *values = map(float, line.split())
            for metric, part in (("top1", values[:6]), ("mAP", values[6:])):
                figures.update({(pooling, percent / 100, metric): value for pooling, value in zip(POOLINGS, part)})
    return figures


# Table -> (pooling, share, "top1" or "mAP") -> figure in %.
PAPER = {"1": _read(_TRAINED_ALIKE), "2": _read(_TRAINED_CLEAN)}
