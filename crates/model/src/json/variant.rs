//! Variants of an enumeration.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, VariantAccess, Visitor};
use serde_json::Value;

use super::JsonError;
use super::reader::{KeyReader, ValueReader};

/// Variant of an enumeration: its name, or an object with its name and content.
pub(super) struct VariantReader {
    name: String,
    content: Option<Value>,
}

impl VariantReader {
    /// Variant without content.
    pub(super) fn unit(name: &str) -> Self {
        Self { name: name.to_owned(), content: None }
    }

    pub(super) fn new(value: Value) -> Result<Self, JsonError> {
        match value {
            Value::String(name) => Ok(Self { name, content: None }),
            Value::Object(entries) if entries.len() == 1 => {
                let entry = entries.into_iter().next();
                entry.map(|(name, content)| Self { name, content: Some(content) }).ok_or_else(no_variant)
            }
            _ => Err(no_variant()),
        }
    }
}

fn no_variant() -> JsonError {
    JsonError::custom("expected the name of a variant, or an object with it as its only key")
}

impl<'de> EnumAccess<'de> for VariantReader {
    type Error = JsonError;
    type Variant = ContentReader;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, ContentReader), JsonError> {
        Ok((seed.deserialize(KeyReader(&self.name))?, ContentReader { name: self.name, content: self.content }))
    }
}

/// Content of a variant.
pub(super) struct ContentReader {
    name: String,
    content: Option<Value>,
}

impl ContentReader {
    fn read<T>(self, read: impl FnOnce(ValueReader) -> Result<T, JsonError>) -> Result<T, JsonError> {
        let content = self.content.ok_or_else(|| JsonError::custom("the variant has no content"));
        content.and_then(|content| read(ValueReader(content))).map_err(|error| error.below(&self.name))
    }
}

impl<'de> VariantAccess<'de> for ContentReader {
    type Error = JsonError;

    fn unit_variant(self) -> Result<(), JsonError> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(JsonError::custom("the variant has no content").below(&self.name)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, JsonError> {
        self.read(|reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, JsonError> {
        self.read(|reader| reader.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.read(|reader| reader.deserialize_map(visitor))
    }
}
