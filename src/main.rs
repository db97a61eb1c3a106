//! Thin binary over the library.
fn main() {}
