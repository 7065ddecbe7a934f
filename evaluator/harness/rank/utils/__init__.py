"""Helper modules that published ParallelKernelBench solution files import as `utils`."""
