"""What is kept of a process that dies, and how it is read again."""
