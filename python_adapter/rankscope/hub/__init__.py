"""The hub: members on one side, editors on the other, one asyncio process between them.

How its cost grows with the number n of ranks (`npm run bench -- scale`, one core of a small server):

* At rest, linearly: per rank and 5 s one look where it is and two heartbeats each way, about 20 µs apiece: 2 % of a
  core at 1,024. Memory, linearly: a socket, its buffers and the member, about 20 kB a rank on top of 30 MB.
* A question to everybody (stacks, compare, control), linearly: about 0.1 ms a rank to ask, read and merge. Equal
  stacks are read and merged once, so that part grows with the number of different places; where every rank stands
  elsewhere, the answer itself has a path per rank, and that is 0.5 ms a rank.
* What editors are told: the list of members whole, at most once per 0.05 s + 0.2 ms · n, about 14 µs a rank each time.
* Joining: about 0.4 ms a rank for the proofs on both sides, and a part that grows with the square of n, for each new
  rank is compared with those of its group; it is a third of the time at 3,000.
* A debugger costs what its relayed bytes cost, and only for ranks that are armed.

Where one hub ends: at one core, and at the open files that its user may have (it raises its limit as far as allowed,
and says when that is reached). 1,024 ranks are what it is built and measured for. 4,096 have joined, at rest they take
8 % of a core, and their stacks take one to two seconds. Of more than these that start at the same moment, the last ones
wait longer for their turn than an agent waits for the handshake (3 s) and have to try again. Larger jobs need hubs in
a tree, one per some thousand ranks; that is not built.
"""
