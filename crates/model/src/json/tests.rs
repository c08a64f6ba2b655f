use core::fmt;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Unit,
    Newtype(Box<Record>),
    Tuple(u8, i64),
    Fields { ratio: f64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Plain,
    Full { ratios: Vec<Option<f64>> },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    name: String,
    letter: Option<char>,
    numbers: Option<(i8, f32)>,
    #[serde(default)]
    table: BTreeMap<u16, Option<bool>>,
    #[serde(flatten)]
    rest: Flattened,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Flattened {
    last: Option<u64>,
    any: Value,
}

fn example() -> (Vec<Shape>, Vec<Tagged>) {
    let record = Record {
        name: "n\u{e9}\"".to_owned(),
        letter: Some('x'),
        numbers: Some((-8, 0.5)),
        table: [(1, None), (65_535, Some(true))].into(),
        rest: Flattened { last: Some(u64::MAX), any: json!([1, { "a": -1.5 }]) },
    };
    let shapes =
        vec![Shape::Unit, Shape::Newtype(Box::new(record)), Shape::Tuple(255, i64::MIN), Shape::Fields { ratio: 1.0 }];
    (shapes, vec![Tagged::Plain, Tagged::Full { ratios: vec![Some(0.25), None] }])
}

#[test]
fn every_kind_of_type_is_read_as_written() {
    let text = serde_json::to_string(&example()).expect("plain data");
    assert_eq!(from_str::<(Vec<Shape>, Vec<Tagged>)>(&text).expect("its own text"), example());
    assert_eq!(serde_json::from_str::<(Vec<Shape>, Vec<Tagged>)>(&text).expect("the same"), example());
}

#[track_caller]
fn refused<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
    from_str::<T>(text).expect_err("refused").to_string()
}

#[test]
fn errors_name_the_key_and_the_value() {
    let wrong = r#"[{ "name": "a", "any": 1 }, { "name": "b", "any": 1, "numbers": [1, "two"] }]"#;
    assert_eq!(refused::<Vec<Record>>(wrong), "[1].numbers[1]: invalid type: string \"two\", expected f32");
    assert_eq!(
        refused::<Shape>(r#"{ "fields": { "ratio": null } }"#),
        "fields.ratio: invalid type: unit value, expected f64"
    );
    assert!(refused::<Shape>(r#""square""#).contains("unknown variant `square`"));
    assert!(refused::<Shape>(r#"{ "unit": 1 }"#).starts_with("unit: "));
    assert!(refused::<Shape>(r#""tuple""#).starts_with("tuple: "));
    assert!(refused::<Shape>(r#"{ "tuple": [1], "unit": null }"#).contains("variant"));
    assert_eq!(refused::<Record>(r#"{ "any": null }"#), "missing field `name`");
    assert!(refused::<u8>("256").contains("256"));
    assert!(refused::<u8>("{").contains("EOF"));
    assert!(refused::<u8>("1 2").contains("trailing"));
}

#[test]
fn a_duplicate_key_is_refused_with_its_position() {
    let wrong = "{ \"name\": \"a\",\n \"any\": [{ \"b\": 1, \"b\": 2 }] }";
    assert!(refused::<Record>(wrong).starts_with("duplicate key `b` at line 2"), "{}", refused::<Record>(wrong));
    assert!(refused::<Value>(r#"{ "a": 1, "\u0061": 2 }"#).contains("duplicate key `a`"));
}

#[test]
fn an_array_is_no_structure() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its reading is tested")]
    struct Pair {
        one: u8,
        other: u8,
    }
    assert!(serde_json::from_str::<Pair>("[1, 2]").is_ok());
    assert!(refused::<Pair>("[1, 2]").contains("invalid type: sequence"));
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "[".repeat(100_000);
    assert!(refused::<Value>(&deep).contains("recursion limit"));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_value_is_read_and_written_as_it_is(value in values()) {
        prop_assert_eq!(&to_value(&value).expect("plain data"), &value);
        let text = serde_json::to_string_pretty(&value).expect("plain data");
        prop_assert_eq!(&to_string_pretty(&value).expect("plain data"), &text);
        prop_assert_eq!(from_str::<Value>(&text).expect("its own text"), value);
    }
}
