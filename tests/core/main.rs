//! The pure core in a simulated world.

mod follow;
mod props;
mod sim;
mod story;
