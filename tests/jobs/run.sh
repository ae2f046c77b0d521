#!/bin/sh
# A person's launch script: torchrun from a shell.
set -e
here=$(cd "$(dirname "$0")" && pwd)
echo "RESULT script starts"
torchrun --standalone --nproc-per-node "${NPROC:-2}" "$here/torchrun_train.py"
echo "RESULT script ends"
