//! JSON objects in which a key may stand once. A map keeps the last of two and says nothing, and two programs may keep
//! different ones: what a file means must not depend on who reads it.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// An object as it is written, keys that stand twice included.
#[derive(Debug)]
pub(super) struct Pairs<V>(pub(super) Vec<(String, V)>);

impl<V> Pairs<V> {
    /// The first key that stands there a second time.
    pub(super) fn twice(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        let mut keys = self.0.iter().map(|(key, _)| key.as_str());
        keys.find(|key| !seen.insert(*key))
    }
}

/// A key that stands a second time in the header of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The key.
    pub key: String,
    /// The name of the object in which it does; absent: the header itself.
    pub under: Option<String>,
}

/// The first key that stands twice in this header: the name of a tensor, or what is told under one name. An error where it is
/// no object of objects.
pub fn twice(header: &[u8]) -> serde_json::Result<Option<Twice>> {
    // `__metadata__` may be null
    let told: Pairs<Option<Pairs<IgnoredAny>>> = serde_json::from_slice(header)?;
    if let Some(key) = told.twice() {
        return Ok(Some(Twice {
            key: key.to_owned(),
            under: None,
        }));
    }
    let mut inner = told.0.iter();
    Ok(inner.find_map(|(name, pairs)| {
        Some(Twice {
            key: pairs.as_ref()?.twice()?.to_owned(),
            under: Some(name.clone()),
        })
    }))
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
