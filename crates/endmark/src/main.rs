//! The command `endmark`.
fn main() {}
