-- The goals that could start, in the order of the queue: those that wait for others are not among them.
CREATE INDEX pool_ready ON pool (rank, goal) WHERE standing = 'queued' AND unmet = 0;
