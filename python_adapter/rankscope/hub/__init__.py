"""RankScope."""
