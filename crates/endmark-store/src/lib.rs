//! What Endmark remembers: recoveries of cut replies, and what upstreams were found to be able to do.
