"""Suites that measure the product on public data sets; `python -m benchmarks.suites SUITE FILE…` runs one."""
