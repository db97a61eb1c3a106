//! The pure core in a simulated world.

mod find;
mod follow;
mod live;
mod props;
mod sim;
mod story;
mod trust;
