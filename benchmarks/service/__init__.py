"""Load test of `semibandit serve`: ``python -m benchmarks.service``, see `benchmarks.service.__main__`."""
