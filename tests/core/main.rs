//! The pure core in a simulated world.

mod props;
mod sim;
mod story;
