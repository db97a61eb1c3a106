//! The pure core in a simulated world.

mod agent;
mod attached;
mod find;
mod follow;
#[cfg(test)]
mod last_words;
mod live;
mod props;
#[cfg(test)]
mod replay;
mod resend;
mod short;
mod sim;
mod story;
mod trail;
mod trust;
