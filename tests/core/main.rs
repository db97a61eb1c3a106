//! The pure core in a simulated world.

mod agent;
mod attached;
mod card_wait;
mod find;
mod follow;
#[cfg(test)]
mod judgement;
#[cfg(test)]
mod last_words;
#[cfg(test)]
mod launcher;
mod live;
#[cfg(test)]
mod lost_job;
mod patience;
mod props;
#[cfg(test)]
mod replay;
mod requests;
#[cfg(test)]
mod resend;
#[cfg(test)]
mod rocm;
mod short;
mod sim;
#[cfg(test)]
mod slow_link;
mod story;
mod trail;
mod trust;
