//! Recorded and scripted cases through the real line splitter, the real adapter and
//! the real core: what it says, when, and what it would do.

mod case;
mod corpus;
mod faults;
mod judge;
mod player;
mod quiet;
mod script;
