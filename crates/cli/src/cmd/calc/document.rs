//! Answers for programs (schema 1).

use linerate_model::formulas::Formula;
use serde_json::{Value as Json, json};

use super::following;
use super::quantity::{Kind, Quantity, Value};
use super::solve::{Calculator, Check, Origin, Solution};

/// The answer with all that the text has; numbers in base units, and unrounded.
pub(super) fn answer(solution: &Solution) -> String {
    let answers: Vec<Json> = solution
        .answers
        .iter()
        .map(|(quantity, value, of)| {
            let mut figure = figure(quantity, *value);
            figure["formula"] = formula(of);
            figure
        })
        .collect();
    let inputs: Vec<Json> = solution
        .known
        .all()
        .filter(|(_, _, origin)| *origin != Origin::Computed)
        .map(|(quantity, value, origin)| {
            let mut figure = figure(quantity, value);
            figure["default"] = (origin == Origin::Default).into();
            figure
        })
        .collect();
    let derived: Vec<Json> = solution.derived.iter().map(|(title, kind, value)| bare(title, *kind, *value)).collect();
    let next: Vec<Json> = following(solution).iter().map(|(words, solution)| question(words, solution)).collect();
    lines(&json!({
        "schema": 1,
        "calc": solution.calculator.name,
        "answers": answers,
        "checks": solution.checks.iter().map(check).collect::<Vec<Json>>(),
        "inputs": inputs,
        "derived": derived,
        "next": next,
    }))
}

fn question(words: &[String], solution: &Solution) -> Json {
    let first = solution.answers.first().map(|(quantity, value, _)| figure(quantity, *value));
    json!({ "command": format!("linerate calc {}", words.join(" ")), "answer": first })
}

fn check(check: &Check) -> Json {
    json!({
        "quantity": check.quantity.name,
        "title": check.quantity.title,
        "unit": check.quantity.kind.unit(),
        "stated": check.stated.number(),
        "computed": check.computed.number(),
        "holds": check.holds(),
    })
}

fn figure(quantity: &Quantity, value: Value) -> Json {
    let mut figure = bare(quantity.title, quantity.kind, value);
    figure["quantity"] = quantity.name.into();
    figure
}

fn bare(title: &str, kind: Kind, value: Value) -> Json {
    let number = match value {
        Value::Choice(word) => word.into(),
        Value::Size(size) => size.get().into(),
        other => other.number().into(),
    };
    let number: Json = number;
    json!({ "title": title, "value": number, "unit": kind.unit(), "text": value.text(kind) })
}

/// A formula as the list and the explanation have it.
pub(super) fn formula(formula: &Formula) -> Json {
    json!({ "name": formula.name, "text": formula.text, "citation": formula.citation })
}

/// What its formulas mean.
pub(super) fn explanation(calculator: &Calculator) -> String {
    lines(&json!({ "schema": 1, "calculators": [entry(calculator)] }))
}

/// A calculator, for the list and the explanation.
pub(super) fn entry(calculator: &Calculator) -> Json {
    let formulas: Vec<Json> = calculator
        .formulas()
        .iter()
        .map(|one| {
            let mut entry = formula(one);
            entry["explanation"] = one.explanation.into();
            entry
        })
        .collect();
    let quantities: Vec<Json> = calculator
        .quantities
        .iter()
        .map(|quantity| {
            json!({
                "quantity": quantity.name,
                "title": quantity.title,
                "unit": quantity.kind.unit(),
                "default": quantity.default,
            })
        })
        .collect();
    let examples: Vec<String> =
        calculator.examples.iter().map(|example| format!("linerate calc {} {example}", calculator.name)).collect();
    json!({
        "calc": calculator.name,
        "about": calculator.about,
        "formulas": formulas,
        "quantities": quantities,
        "examples": examples,
    })
}

pub(super) fn lines(document: &Json) -> String {
    format!("{document:#}\n")
}
