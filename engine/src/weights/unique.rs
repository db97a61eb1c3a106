//! JSON objects in which a key may stand once. A map keeps the last of two and says nothing, and two programs may keep
//! different ones: what a file means must not depend on who reads it.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// An object as it is written, keys that stand twice included.
#[derive(Debug)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<V> Pairs<V> {
    /// The first key that stands there a second time.
    pub(super) fn twice(&self) -> Option<&str> {
        twice(self.0.iter().map(|(key, _)| key.as_str()))
    }
}

/// The keys of an object; none of anything else.
#[derive(Debug)]
pub(super) struct Keys(Vec<String>);

impl Keys {
    /// The first key that stands there a second time.
    pub(super) fn twice(&self) -> Option<&str> {
        twice(self.0.iter().map(String::as_str))
    }
}

fn twice<'a>(mut keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    keys.find(|key| !seen.insert(*key))
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
    type Value = Pairs<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            keys.push(key);
        }
        Ok(Keys(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Keys(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }
}
