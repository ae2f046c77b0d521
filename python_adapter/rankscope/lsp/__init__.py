"""The language server: findings of runs and mistakes in the source, as diagnostics. Works without a debug session."""
