//! Maps of JSON in which a name may stand once.

use core::fmt;
use core::marker::PhantomData;
use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Reads an object whose names are those of psConfig; a name that comes twice is an error, not the latter of both.
pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueMap(PhantomData))
}

struct UniqueMap<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for UniqueMap<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of named entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(name) = entries.next_key::<String>()? {
            if !is_name(&name) {
                return Err(A::Error::custom(format!("{name:?} is no name: letters, digits and :._- only")));
            }
            let value = entries.next_value()?;
            if map.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("the name {name:?} is there twice")));
            }
        }
        Ok(map)
    }
}

/// True for a name of psConfig's schema (`NameType`).
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || ":._-".contains(letter))
}
