# Two nodes on one machine: sh two_agents.sh PORT
agent() {
    torchrun --nnodes 2 --node-rank "$1" --nproc-per-node 1 --rdzv-backend c10d --rdzv-id both \
        --rdzv-endpoint "127.0.0.1:$2" two_agents.py
}
agent 0 "$1" &
agent 1 "$1" && wait $!
