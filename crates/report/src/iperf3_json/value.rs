//! A JSON tree whose objects keep their order, printed as iperf3's JSON library prints it (cJSON 1.7.15).

use core::fmt::Write as _;
use std::borrow::Cow;

use linerate_units::{ByteCount, PacketCount, SegmentCount, StreamCount, c_format};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::layout;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderedValue {
    /// `null`: not known.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction.
    Integer(i128),
    /// Any other number; non-finite numbers are printed as `null`.
    Double(f64),
    /// A text.
    String(String),
    /// Values in order.
    Array(Vec<OrderedValue>),
    /// Keys with their values, in order.
    Object(OrderedObject),
    /// JSON on one line, as `serde_json` writes it: printed like the same value as a tree, without the tree.
    Text(String),
}

/// Keys with their values, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderedObject {
    members: Vec<(Cow<'static, str>, OrderedValue)>,
}

impl OrderedObject {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one member at the end.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<OrderedValue>) -> Self {
        self.push(key, value);
        self
    }

    /// Adds a member at the end. A key that is there already is not replaced.
    pub fn push(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<OrderedValue>) {
        self.members.push((key.into(), value.into()));
    }

    /// Adds the members of another object at the end.
    pub(super) fn append(&mut self, mut other: Self) {
        self.members.append(&mut other.members);
    }

    /// The value of the first member with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&OrderedValue> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members in order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &OrderedValue)> {
        self.members.iter().map(|(key, value)| (&**key, value))
    }
}

macro_rules! from {
    ($($type:ty, $value:ident => $result:expr;)*) => {
        $(impl From<$type> for OrderedValue {
            fn from($value: $type) -> Self {
                $result
            }
        })*
    };
}

from! {
    bool, value => Self::Bool(value);
    i32, value => Self::Integer(value.into());
    i64, value => Self::Integer(value.into());
    u8, value => Self::Integer(value.into());
    u16, value => Self::Integer(value.into());
    u32, value => Self::Integer(value.into());
    u64, value => Self::Integer(value.into());
    f64, value => Self::Double(value);
    &str, value => Self::String(value.to_owned());
    String, value => Self::String(value);
    OrderedObject, value => Self::Object(value);
    Vec<OrderedValue>, value => Self::Array(value);
    ByteCount, value => value.get().into();
    PacketCount, value => value.get().into();
    SegmentCount, value => value.get().into();
    StreamCount, value => value.get().into();
}

impl OrderedValue {
    /// Parses `text`, with the members of objects in the order of the text.
    ///
    /// # Errors
    /// The text is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Prints on several lines, as `cJSON_Print`: indented by tabs, a tab after each colon, the elements of an array
    /// one after the other.
    #[must_use]
    pub fn to_pretty(&self) -> String {
        let mut text = String::new();
        self.print(&mut text, Some(0));
        text
    }

    /// Prints on one line and without blanks, as `cJSON_PrintUnformatted`.
    #[must_use]
    pub fn to_compact(&self) -> String {
        let mut text = String::new();
        self.print(&mut text, None);
        text
    }

    /// `depth` is the number of tabs before the closing bracket; `None` for the compact form.
    fn print(&self, text: &mut String, depth: Option<usize>) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Integer(value) => text.push_str(&value.to_string()),
            Self::Double(value) => text.push_str(&double(*value)),
            Self::String(value) => print_string(value, text),
            Self::Array(elements) => print_array(elements, text, depth),
            Self::Object(object) => print_object(object, text, depth),
            Self::Text(json) => layout::print(json, text, depth),
        }
    }
}

fn print_array(elements: &[OrderedValue], text: &mut String, depth: Option<usize>) {
    text.push('[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            text.push_str(if depth.is_some() { ", " } else { "," });
        }
        element.print(text, depth.map(|depth| depth + 1));
    }
    text.push(']');
}

fn print_object(object: &OrderedObject, text: &mut String, depth: Option<usize>) {
    text.push('{');
    if depth.is_some() {
        text.push('\n');
    }
    for (index, (key, value)) in object.members.iter().enumerate() {
        indent(text, depth.map(|depth| depth + 1));
        print_string(key, text);
        text.push(':');
        if depth.is_some() {
            text.push('\t');
        }
        value.print(text, depth.map(|depth| depth + 1));
        if index + 1 < object.members.len() {
            text.push(',');
        }
        if depth.is_some() {
            text.push('\n');
        }
    }
    indent(text, depth);
    text.push('}');
}

pub(super) fn indent(text: &mut String, depth: Option<usize>) {
    text.extend(core::iter::repeat_n('\t', depth.unwrap_or(0)));
}

/// cJSON's number forms (`print_number`): integers without a fraction, else 15 significant digits where they round-trip
/// to the same number within one unit of rounding, else 17.
pub(super) fn double(value: f64) -> String {
    // The bounds of a 64-bit integer; above them cJSON treats the number as a double.
    const INTEGERS: core::ops::RangeInclusive<f64> = -9_223_372_036_854_775_808.0..=9_223_372_036_854_775_807.0;
    if !value.is_finite() {
        return "null".to_owned();
    }
    if value.fract() == 0.0 && INTEGERS.contains(&value) {
        #[expect(clippy::cast_possible_truncation, reason = "in range, and `as` saturates as cJSON does")]
        let integer = value as i64;
        return integer.to_string();
    }
    let short = c_format::general(value, 15);
    let back: f64 = short.parse().unwrap_or(f64::NAN);
    let close = (back - value).abs() <= back.abs().max(value.abs()) * f64::EPSILON;
    if close { short } else { c_format::general(value, 17) }
}

/// Quotes and escapes. Beyond what cJSON escapes, DEL and the C1 controls are: a terminal might obey them.
fn print_string(value: &str, text: &mut String) {
    text.push('"');
    print_escaping(value, text, |character| matches!(character, '"' | '\\') || character.is_control());
    text.push('"');
}

/// Prints `value` with those characters escaped that do not stand for themselves.
pub(super) fn print_escaping(value: &str, text: &mut String, is_escaped: impl Fn(char) -> bool) {
    let mut plain = value;
    while let Some(index) = plain.find(&is_escaped) {
        let (before, after) = plain.split_at(index);
        text.push_str(before);
        let mut characters = after.chars();
        characters.next().into_iter().for_each(|character| print_escaped(character, text));
        plain = characters.as_str();
    }
    text.push_str(plain);
}

fn print_escaped(character: char, text: &mut String) {
    match character {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        control => write!(text, "\\u{:04x}", u32::from(control)).expect("writing to a String never fails"),
    }
}

impl<'de> Deserialize<'de> for OrderedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = OrderedValue;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<OrderedValue, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<OrderedValue, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<OrderedValue, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<OrderedValue, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<OrderedValue, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<OrderedValue, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(OrderedValue::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<OrderedValue, A::Error> {
        let mut object = OrderedObject::new();
        while let Some((key, value)) = members.next_entry::<String, OrderedValue>()? {
            object.push(key, value);
        }
        Ok(OrderedValue::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_cjson_prints_them() {
        for (value, expected) in [
            (1.0, "1"),
            (-0.0, "0"),
            (1.007_127, "1.007127"),
            (f64::from(1.007_127_f32), "1.007127046585083"),
            (22_967_893_314.387_146, "22967893314.387146"),
            (94.256_790_926_524_93, "94.256790926524928"),
            (0.004_082_031_25, "0.00408203125"),
            (0.1 + 0.2, "0.3"),
            (1e18, "1000000000000000000"),
            (1e300, "1e+300"),
            (1.5e-7, "1.5e-07"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(double(value), expected, "{value:?}");
        }
    }

    #[test]
    fn layout_of_empty_and_nested_values() {
        let value: OrderedValue = OrderedObject::new()
            .with("empty", OrderedObject::new())
            .with("none", OrderedValue::Array(Vec::new()))
            .with("list", vec![1.into(), OrderedObject::new().with("a", "b").into(), OrderedValue::Null])
            .into();
        assert_eq!(
            value.to_pretty(),
            "{\n\t\"empty\":\t{\n\t},\n\t\"none\":\t[],\n\t\"list\":\t[1, {\n\t\t\t\"a\":\t\"b\"\n\t\t}, null]\n}"
        );
        assert_eq!(value.to_compact(), r#"{"empty":{},"none":[],"list":[1,{"a":"b"},null]}"#);
    }

    #[test]
    fn strings_are_escaped() {
        let value = OrderedValue::from("\"\\/\u{8}\u{c}\n\r\t\u{1b}\u{7f}\u{9b}é\u{1f600}");
        assert_eq!(value.to_compact(), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u001b\\u007f\\u009bé\u{1f600}\"");
    }

    #[test]
    fn printed_json_parses_back_in_order() {
        let text = r#"{"z":1,"a":[true,null,-7,2.5,{"k":"\u001b"}],"m":18446744073709551615}"#;
        assert_eq!(OrderedValue::parse(text).expect("valid").to_compact(), text);
        assert!(OrderedValue::parse("{").is_err());
    }

    proptest::proptest! {
        #[test]
        fn doubles_round_trip_within_one_rounding(value in proptest::num::f64::ANY) {
            let text = double(value);
            if value.is_finite() {
                let back: f64 = text.parse().expect("a number");
                proptest::prop_assert!((back - value).abs() <= back.abs().max(value.abs()) * f64::EPSILON, "{}", text);
            } else {
                proptest::prop_assert_eq!(text, "null");
            }
        }

        #[test]
        fn strings_round_trip(text in ".*") {
            let printed = OrderedValue::from(text.as_str()).to_compact();
            proptest::prop_assert!(!printed.contains(char::is_control));
            proptest::prop_assert_eq!(OrderedValue::parse(&printed).expect("valid"), OrderedValue::String(text));
        }

        #[test]
        fn general_is_close_to_its_value(value in -1e30..1e30_f64, precision in 1..17_usize) {
            let back: f64 = c_format::general(value, precision).parse().expect("a number");
            let digits = i32::try_from(precision).expect("small");
            proptest::prop_assert!((back - value).abs() <= value.abs() * 10_f64.powi(1 - digits));
        }
    }
}
