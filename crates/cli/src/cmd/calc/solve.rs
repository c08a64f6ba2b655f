//! A calculator: quantities, and relations between them each of which gives one that is missing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use linerate_model::formulas::Formula;
use linerate_units::{BitRate, ByteCount, Mss, Mtu, Ratio};

use super::nearest::nearest_of;
use super::quantity::{Kind, Quantity, Value, plain};

/// Stated and computed figures that differ by more than this share are told apart.
const TOLERANCE: f64 = 0.01;

/// Computes something of what is known. The error says why it cannot be had, and what can.
pub(super) type Compute<T> = fn(&Known) -> Result<T, String>;

/// A formula between quantities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation {
    pub(super) formula: Formula,
    /// Each quantity of it with the form of the formula that gives it; the first is what is usually asked.
    pub(super) solve: &'static [(&'static str, Compute<Value>)],
}

/// A figure that comes with the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    pub(super) compute: Compute<Value>,
}

/// One calculator: `linerate calc NAME`.
#[derive(Debug)]
pub(super) struct Calculator {
    pub(super) name: &'static str,
    /// What it answers, in a line.
    pub(super) about: &'static str,
    /// In the order in which words without an option are taken for them.
    pub(super) quantities: &'static [Quantity],
    pub(super) relations: &'static [Relation],
    pub(super) derived: &'static [Derived],
    /// Questions that follow, as words after `calc`.
    pub(super) next: &'static [Compute<Vec<String>>],
    /// Words after its name.
    pub(super) examples: &'static [&'static str],
}

impl Calculator {
    pub(super) fn quantity(&self, name: &str) -> &'static Quantity {
        self.quantities
            .iter()
            .find(|quantity| quantity.name == name)
            .expect("relations name quantities of the calculator")
    }

    /// Its formulas, each once.
    pub(super) fn formulas(&self) -> Vec<Formula> {
        let mut formulas: Vec<Formula> = Vec::new();
        for relation in self.relations {
            if !formulas.contains(&relation.formula) {
                formulas.push(relation.formula);
            }
        }
        formulas
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Given,
    Default,
    Computed,
}

/// The values that are known so far.
#[derive(Clone, Debug)]
pub(super) struct Known {
    calculator: &'static Calculator,
    values: BTreeMap<&'static str, (Value, Origin)>,
}

impl Known {
    /// Reads what was given: words with the option they belong to, and words alone.
    pub(super) fn read(calculator: &'static Calculator, given: &[(Option<String>, String)]) -> Result<Self, String> {
        let mut known = Self { calculator, values: BTreeMap::new() };
        for (option, word) in given {
            let Some(option) = option else { continue };
            let quantity = calculator
                .quantities
                .iter()
                .find(|quantity| quantity.name == option)
                .ok_or_else(|| format!("there is no option --{option}"))?;
            known.values.insert(quantity.name, (quantity.read(word)?, Origin::Given));
        }
        let mut words: Vec<&String> =
            given.iter().filter(|(option, _)| option.is_none()).map(|(_, word)| word).collect();
        // Words with a unit first: what is left then says what a bare number can be.
        words.sort_by_key(|word| plain(word).is_some());
        for word in words {
            let quantity = known.meant_by(word)?;
            known.values.insert(quantity.name, (quantity.read(word)?, Origin::Given));
        }
        for quantity in calculator.quantities {
            if let (Some(default), false) = (quantity.default, known.values.contains_key(quantity.name)) {
                known.values.insert(quantity.name, (quantity.read(default)?, Origin::Default));
            }
        }
        Ok(known)
    }

    /// The first quantity that is not known yet and that the word can be.
    fn meant_by(&self, word: &str) -> Result<&'static Quantity, String> {
        if word.starts_with('-') {
            return Err(self.no_value(word));
        }
        let free = || self.calculator.quantities.iter().filter(|quantity| !self.values.contains_key(quantity.name));
        let found =
            free().find(|quantity| quantity.takes_well(word)).or_else(|| free().find(|quantity| quantity.takes(word)));
        let time = free().find(|quantity| quantity.kind == Kind::Time && quantity.default.is_none());
        match (found, time) {
            // `10G 117`: likelier a time whose unit was forgotten than a size of 117 bytes.
            (Some(Quantity { kind: Kind::Size, .. }), Some(time))
                if plain(word).is_some_and(|number| number < 1000.0) =>
            {
                Err(format!("{word} has no unit: write {word}ms for the {}, or {word}B for a size", time.title))
            }
            (Some(found), _) => Ok(found),
            (None, _) => Err(self.fits_nothing(word)),
        }
    }

    /// A word that begins with a hyphen.
    fn no_value(&self, word: &str) -> String {
        let Some(option) = word.strip_prefix("--") else {
            return format!("{word}: nothing here can be negative");
        };
        let names = self.calculator.quantities.iter().map(|quantity| quantity.name);
        match nearest_of(option, names) {
            Some(known) => format!("there is no option {word}: did you mean --{known}?"),
            None => format!("there is no option {word}: `linerate calc {} --help` lists them", self.calculator.name),
        }
    }

    fn fits_nothing(&self, word: &str) -> String {
        let left: Vec<String> = self
            .calculator
            .quantities
            .iter()
            .filter(|quantity| !self.values.contains_key(quantity.name))
            .map(|quantity| format!("--{} such as {}", quantity.name, quantity.example))
            .collect();
        if left.is_empty() {
            format!("{word} is one too many: everything is given")
        } else {
            format!("{word} is none of what is not given yet: {}", left.join(", "))
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<(Value, Origin)> {
        self.values.get(name).copied()
    }

    /// All of them in the calculator's order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static Quantity, Value, Origin)> {
        self.calculator
            .quantities
            .iter()
            .filter_map(|quantity| self.get(quantity.name).map(|(value, origin)| (quantity, value, origin)))
    }

    fn value(&self, name: &str) -> Result<Value, String> {
        self.get(name).map(|(value, _)| value).ok_or_else(|| format!("{name} is not known"))
    }

    pub(super) fn rate(&self, name: &str) -> Result<BitRate, String> {
        self.value(name).map(|value| BitRate::from_bits_per_second(value.number()))
    }

    pub(super) fn size(&self, name: &str) -> Result<ByteCount, String> {
        match self.value(name)? {
            Value::Size(size) => Ok(size),
            other => Ok(ByteCount::from_f64(other.number())),
        }
    }

    pub(super) fn time(&self, name: &str) -> Result<Duration, String> {
        match self.value(name)? {
            Value::Time(time) => Ok(time),
            other => Err(format!("{} is no time", other.number())),
        }
    }

    pub(super) fn ratio(&self, name: &str) -> Result<Ratio, String> {
        Ratio::new(self.value(name)?.number()).ok_or_else(|| format!("{name} is no ratio"))
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, String> {
        self.value(name).map(Value::number)
    }

    /// A whole number.
    pub(super) fn count(&self, name: &str) -> Result<u64, String> {
        self.number(name).map(|number| ByteCount::from_f64(number).get())
    }

    pub(super) fn choice(&self, name: &str) -> Result<&'static str, String> {
        match self.value(name)? {
            Value::Choice(word) => Ok(word),
            other => Err(format!("{} is no choice", other.number())),
        }
    }

    pub(super) fn mss(&self, name: &str) -> Result<Mss, String> {
        self.packet(name).map(Mss::new)
    }

    pub(super) fn mtu(&self, name: &str) -> Result<Mtu, String> {
        self.packet(name).map(Mtu::new)
    }

    fn packet(&self, name: &str) -> Result<u32, String> {
        let bytes = self.size(name)?;
        u32::try_from(bytes.get())
            .ok()
            .filter(|bytes| *bytes <= LARGEST_PACKET)
            .ok_or_else(|| format!("--{name} {bytes}: no packet is larger than {LARGEST_PACKET} bytes"))
    }

    /// Words of a question that follows: a calculator, and quantities of this one under their names there.
    pub(super) fn ask(&self, calculator: &str, passed: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut words = vec![calculator.to_owned()];
        for (there, here) in passed {
            words.push(format!("--{there}"));
            words.push(self.value(here)?.word(self.calculator.quantity(here).kind));
        }
        Ok(words)
    }
}

/// Linux takes MTUs up to this on its loopback device, which has the largest.
const LARGEST_PACKET: u32 = 65_536;

/// A stated figure beside the computed one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) quantity: &'static Quantity,
    pub(super) stated: Value,
    pub(super) computed: Value,
}

impl Check {
    pub(super) fn holds(&self) -> bool {
        let (stated, computed) = (self.stated.number(), self.computed.number());
        (stated - computed).abs() <= TOLERANCE * computed.abs()
    }

    /// How many times the computed figure the stated one is.
    pub(super) fn factor(&self) -> Option<Ratio> {
        Ratio::of(self.stated.number(), self.computed.number())
    }
}

/// What came out.
#[derive(Debug)]
pub(super) struct Solution {
    pub(super) calculator: &'static Calculator,
    pub(super) known: Known,
    /// The computed quantities, in the calculator's order, each with its formula.
    pub(super) answers: Vec<(&'static Quantity, Value, Formula)>,
    pub(super) checks: Vec<Check>,
    /// Figures that come with it.
    pub(super) derived: Vec<(&'static str, Kind, Value)>,
}

/// Computes all that follows.
///
/// # Errors
/// What is given is too little, or has no answer.
pub(super) fn solve(calculator: &'static Calculator, mut known: Known) -> Result<Solution, String> {
    let mut answers = Vec::new();
    let mut used = vec![false; calculator.relations.len()];
    while let Some((index, name, compute)) = next_step(calculator, &known, &used) {
        let value = compute(&known)?;
        known.values.insert(name, (value, Origin::Computed));
        used[index] = true;
        answers.push((calculator.quantity(name), value, calculator.relations[index].formula));
    }
    let checks = checks(calculator, &known, &used);
    if answers.is_empty() && checks.is_empty() {
        return Err(too_little(calculator, &known));
    }
    for check in &checks {
        // What follows follows from the right figure.
        known.values.insert(check.quantity.name, (check.computed, Origin::Computed));
    }
    let place = |name: &str| calculator.quantities.iter().position(|quantity| quantity.name == name);
    answers.sort_by_key(|(quantity, ..)| place(quantity.name));
    let derived = calculator
        .derived
        .iter()
        .filter_map(|derived| (derived.compute)(&known).ok().map(|value| (derived.title, derived.kind, value)))
        .collect();
    Ok(Solution { calculator, known, answers, checks, derived })
}

/// A relation in which one quantity is missing.
fn next_step(
    calculator: &'static Calculator,
    known: &Known,
    used: &[bool],
) -> Option<(usize, &'static str, Compute<Value>)> {
    calculator.relations.iter().enumerate().filter(|(index, _)| !used[*index]).find_map(|(index, relation)| {
        let mut missing = relation.solve.iter().filter(|(name, _)| known.get(name).is_none());
        match (missing.next(), missing.next()) {
            (Some((name, compute)), None) => Some((index, *name, *compute)),
            _ => None,
        }
    })
}

/// Relations of which everything was known: what was stated for the first quantity that was, against what comes out.
fn checks(calculator: &'static Calculator, known: &Known, used: &[bool]) -> Vec<Check> {
    let unused = calculator.relations.iter().enumerate().filter(|(index, _)| !used[*index]);
    unused
        .filter(|(_, relation)| relation.solve.iter().all(|(name, _)| known.get(name).is_some()))
        .filter_map(|(_, relation)| {
            let given = |name: &str| matches!(known.get(name), Some((_, Origin::Given)));
            let (name, compute) = relation.solve.iter().find(|(name, _)| given(name))?;
            let stated = known.get(name)?.0;
            let computed = compute(known).ok()?;
            Some(Check { quantity: calculator.quantity(name), stated, computed })
        })
        .collect()
}

fn too_little(calculator: &Calculator, known: &Known) -> String {
    let mut text = String::from("too little is given to compute anything");
    for (index, relation) in calculator.relations.iter().enumerate() {
        let (mut have, mut missing) = (Vec::new(), Vec::new());
        for (name, _) in relation.solve {
            if known.get(name).is_some() { have.push(*name) } else { missing.push(format!("--{name}")) }
        }
        if have.is_empty() && index > 0 {
            continue;
        }
        let all_but_one = if missing.len() == 2 { "one of" } else { "all but one of" };
        let _ = write!(text, "\ngive {all_but_one} {}: what is left out is computed", missing.join(", "));
    }
    if let Some(example) = calculator.examples.first() {
        let _ = write!(text, "\nan example: linerate calc {} {example}", calculator.name);
    }
    text
}
