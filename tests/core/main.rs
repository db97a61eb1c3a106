//! The pure core in a simulated world.

mod follow;
mod live;
mod props;
mod sim;
mod story;
mod trail;
mod trust;
