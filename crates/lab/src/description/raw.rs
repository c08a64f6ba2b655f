//! The description as written: keys and text with their locations, not yet validated.

use core::fmt;
use std::collections::BTreeMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPath {
    pub(super) story: Option<Spanned<String>>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) label: Option<Spanned<String>>,
    pub(super) scenario: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) host: BTreeMap<Spanned<String>, RawHost>,
    #[serde(default)]
    pub(super) link: Vec<RawLink>,
    #[serde(default)]
    pub(super) traffic: Vec<RawTraffic>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHost {
    pub(super) congestion_control: Option<Spanned<String>>,
    pub(super) queueing: Option<Spanned<String>>,
    pub(super) queueing_rate: Option<Spanned<RawQuantity>>,
    #[serde(default)]
    pub(super) sysctl: BTreeMap<Spanned<String>, Spanned<RawSetting>>,
    pub(super) offload: Option<bool>,
    pub(super) server: Option<Spanned<Vec<String>>>,
}

/// Keys that each direction can have, and the link for both.
macro_rules! directional {
    ($(#[$doc:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($own)*
            pub(super) rate: Option<Spanned<RawQuantity>>,
            pub(super) link_layer: Option<Spanned<RawLinkLayer>>,
            pub(super) steps: Option<Spanned<Vec<RawRateStep>>>,
            pub(super) trace: Option<Spanned<String>>,
            pub(super) delay: Option<Spanned<RawQuantity>>,
            pub(super) jitter: Option<Spanned<RawQuantity>>,
            pub(super) distribution: Option<Spanned<String>>,
            pub(super) loss: Option<Spanned<RawLoss>>,
            pub(super) duplicate: Option<Spanned<RawQuantity>>,
            pub(super) corrupt: Option<Spanned<RawQuantity>>,
            pub(super) reorder: Option<Spanned<RawReorder>>,
            pub(super) buffer: Option<Spanned<RawQuantity>>,
            pub(super) queue: Option<Spanned<String>>,
            pub(super) ecn_threshold: Option<Spanned<RawQuantity>>,
            pub(super) policer: Option<Spanned<RawPolicer>>,
            pub(super) drop_larger_than: Option<Spanned<RawQuantity>>,
            pub(super) bleach_ecn: Option<bool>,
            pub(super) rewrite_ect1: Option<bool>,
        }
    };
}

directional! {
    /// `[[link]]`.
    RawLink {
        pub(super) between: Option<Spanned<Vec<Spanned<String>>>>,
        pub(super) mtu: Option<Spanned<i64>>,
        pub(super) parallel: Option<bool>,
        pub(super) forward: Option<RawDirection>,
        pub(super) backward: Option<RawDirection>,
    }
}

directional! {
    /// `[link.forward]` and `[link.backward]`.
    RawDirection {}
}

impl RawLink {
    /// Keys of one direction: its own, and the link's where it has none.
    pub(super) fn direction(&self, own: Option<&RawDirection>) -> RawDirection {
        let own = own.cloned().unwrap_or_default();
        // A key's parameters go with that key: a direction's own queue does not take the link's threshold.
        let ecn_threshold = if own.queue.is_some() { None } else { self.ecn_threshold.clone() };
        let distribution = if own.jitter.is_some() { None } else { self.distribution.clone() };
        // A trace and a rate with its steps replace each other.
        let (rate, steps) = if own.trace.is_some() { (None, None) } else { (self.rate.clone(), self.steps.clone()) };
        let trace = if own.rate.is_some() || own.steps.is_some() { None } else { self.trace.clone() };
        macro_rules! merged {
            ($($key:ident)*) => { RawDirection {
                ecn_threshold: own.ecn_threshold.or(ecn_threshold),
                distribution: own.distribution.or(distribution),
                rate: own.rate.or(rate),
                steps: own.steps.or(steps),
                trace: own.trace.or(trace),
                $($key: own.$key.or_else(|| self.$key.clone()),)*
            } };
        }
        merged! {
            link_layer delay jitter loss duplicate corrupt reorder buffer queue policer drop_larger_than bleach_ecn
            rewrite_ect1
        }
    }
}

/// `loss`: a share, or a model of its own.
#[derive(Clone, Debug)]
pub(super) enum RawLoss {
    Share(RawQuantity),
    Model(RawLossModel),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLossModel {
    pub(super) gilbert_elliott: Option<RawGilbertElliott>,
    pub(super) every: Option<Spanned<i64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGilbertElliott {
    pub(super) good_to_bad: Spanned<RawQuantity>,
    pub(super) bad_to_good: Spanned<RawQuantity>,
    pub(super) loss_in_bad: Option<Spanned<RawQuantity>>,
    pub(super) loss_in_good: Option<Spanned<RawQuantity>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLinkLayer {
    pub(super) framing: Option<Spanned<String>>,
    pub(super) overhead: Spanned<RawQuantity>,
    pub(super) minimum: Option<Spanned<RawQuantity>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRateStep {
    pub(super) at: Spanned<RawQuantity>,
    pub(super) rate: Spanned<RawQuantity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReorder {
    pub(super) share: Spanned<RawQuantity>,
    pub(super) by: Spanned<RawQuantity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPolicer {
    pub(super) rate: Spanned<RawQuantity>,
    pub(super) burst: Spanned<RawQuantity>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTraffic {
    pub(super) kind: Spanned<String>,
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) protocol: Option<Spanned<String>>,
    pub(super) rate: Option<Spanned<RawQuantity>>,
    pub(super) streams: Option<Spanned<i64>>,
    pub(super) congestion_control: Option<Spanned<String>>,
    pub(super) start: Option<Spanned<RawQuantity>>,
    pub(super) duration: Option<Spanned<RawQuantity>>,
    pub(super) on: Option<Spanned<RawQuantity>>,
    pub(super) off: Option<Spanned<RawQuantity>>,
}

/// Text with a number and its unit. A bare number is rejected here, with a message for that.
#[derive(Clone, Debug)]
pub(super) struct RawQuantity(pub(super) String);

impl<'de> Deserialize<'de> for RawQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

/// Message for a number without a unit.
pub(super) fn no_unit(number: impl fmt::Display) -> String {
    format!("the number {number} has no unit")
}

impl Visitor<'_> for QuantityVisitor {
    type Value = RawQuantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity with its unit, in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RawQuantity, E> {
        Ok(RawQuantity(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RawQuantity, E> {
        Err(E::custom(no_unit(number)))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<RawQuantity, E> {
        Err(E::custom(no_unit(number)))
    }
}

impl<'de> Deserialize<'de> for RawLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LossVisitor)
    }
}

struct LossVisitor;

impl<'de> Visitor<'de> for LossVisitor {
    type Value = RawLoss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share such as \"0.1 %\", { gilbert_elliott = { … } } or { every = 36000 }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RawLoss, E> {
        Ok(RawLoss::Share(RawQuantity(text.to_owned())))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RawLoss, E> {
        Err(E::custom(no_unit(number)))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<RawLoss, E> {
        Err(E::custom(no_unit(number)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawLoss, A::Error> {
        RawLossModel::deserialize(MapAccessDeserializer::new(map)).map(RawLoss::Model)
    }
}

/// The value of a kernel setting: text, or a whole number.
#[derive(Clone, Debug)]
pub(super) struct RawSetting(pub(super) String);

impl<'de> Deserialize<'de> for RawSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = RawSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the setting's value, as text or as a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RawSetting, E> {
        Ok(RawSetting(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RawSetting, E> {
        Ok(RawSetting(number.to_string()))
    }
}
