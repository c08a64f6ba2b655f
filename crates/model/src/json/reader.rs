//! Reader of a value as a type.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::JsonError;
use super::variant::VariantReader;

/// Value that is read as a type.
pub(super) struct ValueReader(pub(super) Value);

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, JsonError> {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => visitor.visit_u64(number),
        (None, Some(number)) => visitor.visit_i64(number),
        (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Methods for the values of one kind; other values are errors.
macro_rules! read {
    ($($method:ident $pattern:pat => $visit:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            match self.0 {
                $pattern => $visit(visitor),
                other => Err(JsonError::unexpected(&other, &visitor)),
            }
        })*
    };
}

/// Methods that read as another method does.
macro_rules! alike {
    ($($method:ident($($argument:ident: $type:ty),*) $as:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, JsonError> {
            self.$as(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for ValueReader {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => visit_number(&number, visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(ItemReader::new(items)),
            Value::Object(entries) => visitor.visit_map(EntryReader::new(entries)),
        }
    }

    read! {
        deserialize_bool Value::Bool(value) => |visitor: V| visitor.visit_bool(value);
        deserialize_u64 Value::Number(number) => |visitor| visit_number(&number, visitor);
        deserialize_string Value::String(text) => |visitor: V| visitor.visit_string(text);
        deserialize_unit Value::Null => |visitor: V| visitor.visit_unit();
        deserialize_seq Value::Array(items) => |visitor: V| visitor.visit_seq(ItemReader::new(items));
        deserialize_map Value::Object(entries) => |visitor: V| visitor.visit_map(EntryReader::new(entries));
    }

    alike! {
        deserialize_u8() deserialize_u64;
        deserialize_u16() deserialize_u64;
        deserialize_u32() deserialize_u64;
        deserialize_u128() deserialize_u64;
        deserialize_i8() deserialize_u64;
        deserialize_i16() deserialize_u64;
        deserialize_i32() deserialize_u64;
        deserialize_i64() deserialize_u64;
        deserialize_i128() deserialize_u64;
        deserialize_f32() deserialize_u64;
        deserialize_f64() deserialize_u64;
        deserialize_char() deserialize_string;
        deserialize_str() deserialize_string;
        deserialize_identifier() deserialize_string;
        deserialize_bytes() deserialize_seq;
        deserialize_byte_buf() deserialize_seq;
        deserialize_tuple(_length: usize) deserialize_seq;
        deserialize_tuple_struct(_name: &'static str, _length: usize) deserialize_seq;
        deserialize_unit_struct(_name: &'static str) deserialize_unit;
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]) deserialize_map;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_enum(VariantReader::new(self.0)?)
    }
}

/// Items of an array.
struct ItemReader {
    items: std::vec::IntoIter<Value>,
    index: usize,
}

impl ItemReader {
    fn new(items: Vec<Value>) -> Self {
        Self { items: items.into_iter(), index: 0 }
    }
}

impl<'de> SeqAccess<'de> for ItemReader {
    type Error = JsonError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(ValueReader(item)).map(Some).map_err(|error| error.at_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// Entries of an object.
struct EntryReader {
    entries: serde_json::map::IntoIter,
    /// Key and value of the entry whose key was read.
    entry: (String, Value),
}

impl EntryReader {
    fn new(entries: Map<String, Value>) -> Self {
        Self { entries: entries.into_iter(), entry: (String::new(), Value::Null) }
    }
}

impl<'de> MapAccess<'de> for EntryReader {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.entry = entry;
        seed.deserialize(KeyReader(&self.entry.0)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, JsonError> {
        let value = core::mem::take(&mut self.entry.1);
        seed.deserialize(ValueReader(value)).map_err(|error| error.below(&self.entry.0))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// Key of an object, which can also be a number.
pub(super) struct KeyReader<'k>(pub(super) &'k str);

/// Methods for keys that are numbers.
macro_rules! read_number {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            match self.0.parse() {
                Ok(number) => visit_number(&number, visitor),
                Err(_) => visitor.visit_str(self.0),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for KeyReader<'_> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_str(self.0)
    }

    read_number! {
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_enum(VariantReader::unit(self.0))
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
