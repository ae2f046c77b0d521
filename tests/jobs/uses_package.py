"""A program that calls into an installed package."""

import tinypkg

print("RESULT", tinypkg.double(4))
