//! Recorded and scripted cases through the real line splitter, the real adapter and
//! the real core: what it says, when, and what it would do.

#[cfg(test)]
mod after_bar;
#[cfg(test)]
mod case;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod find;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod own;
#[cfg(test)]
mod player;
#[cfg(test)]
mod quiet;
#[cfg(test)]
mod script;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod words;
