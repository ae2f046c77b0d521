"""What a tensor, array, table or batch is and holds: facts, statistics, digest, one line.

Torch, numpy and pandas are used where the program has loaded them and are never imported.
"""
