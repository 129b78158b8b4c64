"""A trained policy as files that run without jax: a bundle for `drol_runtime`, ONNX, StableHLO."""
