//! What providers' bytes mean: server-sent events and wire formats, read and edited in place, without I/O.
