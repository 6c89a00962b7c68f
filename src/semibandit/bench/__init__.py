"""The benchmark: our engines and their rivals side by side, in one run, on the same rounds."""

from __future__ import annotations
