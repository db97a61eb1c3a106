//! Around the child: the lock of a card, evidence, signals, and who watches the
//! watcher.

pub mod standstill;
