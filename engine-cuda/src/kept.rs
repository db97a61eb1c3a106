//! Things that are made once and kept for a while: within a number of bytes, what was used longest ago goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// What is kept, the last used at the end.
#[derive(Debug)]
pub(crate) struct Kept<K, V> {
    most: usize,
    all: Mutex<VecDeque<Entry<K, V>>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    bytes: usize,
    value: Arc<V>,
}

impl<K: PartialEq, V> Kept<K, V> {
    /// At most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            all: Mutex::default(),
        }
    }

    /// What is kept under `key`; else what `make` makes, which is kept if its `bytes` leave any room. The room is made
    /// before it is made, and nothing is locked meanwhile: making it may clear all this.
    pub(crate) fn get<E>(
        &self,
        key: K,
        bytes: usize,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let keeps = bytes <= self.most;
        if keeps {
            self.leave(bytes);
        }
        let value = Arc::new(make()?);
        if keeps {
            // again: another may have made something meanwhile
            self.leave(bytes);
            self.with(|all| {
                all.push_back(Entry {
                    key,
                    bytes,
                    value: Arc::clone(&value),
                });
            });
        }
        Ok(value)
    }

    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<Entry<K, V>>) -> T) -> T {
        work(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find(&self, key: &K) -> Option<Arc<V>> {
        self.with(|all| {
            let at = all.iter().position(|entry| entry.key == *key)?;
            let entry = all.remove(at)?;
            let value = Arc::clone(&entry.value);
            all.push_back(entry);
            Some(value)
        })
    }

    /// Drops the oldest until there is room for `bytes`.
    fn leave(&self, bytes: usize) {
        self.with(|all| {
            let mut held: usize = all.iter().map(|entry| entry.bytes).sum();
            while held + bytes > self.most
                && let Some(oldest) = all.pop_front()
            {
                held -= oldest.bytes;
            }
        });
    }

    /// Drops all.
    pub(crate) fn clear(&self) {
        self.with(VecDeque::clear);
    }

    /// Bytes kept now.
    pub(crate) fn bytes(&self) -> usize {
        self.with(|all| all.iter().map(|entry| entry.bytes).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What is under `key`, and whether it was made for that.
    fn get(kept: &Kept<u32, u32>, key: u32, bytes: usize, value: u32) -> (u32, bool) {
        let mut made = false;
        let got = kept.get(key, bytes, || {
            made = true;
            Ok::<_, Infallible>(value)
        });
        (*got.unwrap(), made)
    }

    #[test]
    fn what_is_kept_is_made_once() {
        let kept = Kept::new(100);
        assert_eq!(get(&kept, 1, 60, 11), (11, true));
        assert_eq!(get(&kept, 1, 60, 12), (11, false));
        assert_eq!(get(&kept, 2, 40, 22), (22, true));
        assert_eq!(kept.bytes(), 100);
        kept.clear();
        assert_eq!(kept.bytes(), 0);
        assert_eq!(get(&kept, 1, 60, 13), (13, true));
    }

    #[test]
    fn the_one_used_longest_ago_goes_before_another_is_made() {
        let kept = Kept::new(100);
        get(&kept, 1, 40, 0);
        get(&kept, 2, 40, 0);
        get(&kept, 1, 40, 0);
        let made = kept.get(3, 50, || {
            Ok::<_, Infallible>(u32::try_from(kept.bytes()).unwrap())
        });
        assert_eq!(*made.unwrap(), 40, "room is made first");
        assert_eq!(kept.bytes(), 90);
        assert_eq!(get(&kept, 1, 40, 9), (0, false));
        assert_eq!(get(&kept, 2, 40, 9), (9, true));
    }

    #[test]
    fn what_is_too_large_is_not_kept_and_moves_nothing() {
        let kept = Kept::new(100);
        get(&kept, 1, 100, 5);
        assert_eq!(get(&kept, 2, 101, 6), (6, true));
        assert_eq!(get(&kept, 2, 101, 7), (7, true));
        assert_eq!(get(&kept, 1, 100, 8), (5, false));
    }

    #[test]
    fn making_may_clear_or_fail() {
        let kept = Kept::new(100);
        get(&kept, 1, 10, 5);
        let made = kept.get(2, 10, || {
            kept.clear();
            Ok::<_, Infallible>(6)
        });
        assert_eq!((*made.unwrap(), kept.bytes()), (6, 10));
        assert_eq!(kept.get(3, 10, || Err("full")).unwrap_err(), "full");
        assert_eq!(kept.bytes(), 10);
    }
}
