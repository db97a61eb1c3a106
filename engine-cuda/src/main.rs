//! The worker for NVIDIA cards.

fn main() {}
