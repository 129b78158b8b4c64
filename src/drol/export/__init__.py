"""Export a trained policy as a bundle for `drol_runtime` (NumPy only), as ONNX or as StableHLO."""
