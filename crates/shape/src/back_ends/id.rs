//! Identifiers of the back ends.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{
    BACK_ENDS, BackEnd, cake, cake_mq, htb_bfifo, htb_dualpi2, htb_fq_codel, htb_fq_pie, htb_sfq, lartc_cbq, lartc_htb,
    tbf,
};

/// Identifier of a back end on the command line, in records and in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BackEndId {
    /// CAKE with an instance for each transmit queue.
    CakeMq,
    /// CAKE.
    Cake,
    /// HTB with `fq_codel` in its leaves.
    #[serde(rename = "htb+fq_codel")]
    HtbFqCodel,
    /// HTB with `fq_pie` in its leaves.
    #[serde(rename = "htb+fq_pie")]
    HtbFqPie,
    /// HTB with `dualpi2`.
    #[serde(rename = "htb+dualpi2")]
    HtbDualpi2,
    /// HTB with SFQ in its leaves.
    #[serde(rename = "htb+sfq")]
    HtbSfq,
    /// HTB with short FIFOs in its leaves.
    #[serde(rename = "htb+bfifo")]
    HtbBfifo,
    /// Token bucket.
    Tbf,
    /// HTB as in the script of the LARTC HOWTO.
    #[serde(rename = "lartc-htb")]
    LartcHtb,
    /// CBQ as in the script of the LARTC HOWTO.
    #[serde(rename = "lartc-cbq")]
    LartcCbq,
}

impl BackEndId {
    /// Name: `cake`, `htb+fq_codel`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CakeMq => "cake_mq",
            Self::Cake => "cake",
            Self::HtbFqCodel => "htb+fq_codel",
            Self::HtbFqPie => "htb+fq_pie",
            Self::HtbDualpi2 => "htb+dualpi2",
            Self::HtbSfq => "htb+sfq",
            Self::HtbBfifo => "htb+bfifo",
            Self::Tbf => "tbf",
            Self::LartcHtb => "lartc-htb",
            Self::LartcCbq => "lartc-cbq",
        }
    }

    /// Parses a [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        BACK_ENDS.iter().map(|back_end| back_end.id).find(|id| id.name() == name)
    }

    /// True when it has classes for devices.
    #[must_use]
    pub const fn has_traffic_classes(self) -> bool {
        matches!(self, Self::HtbFqCodel | Self::HtbFqPie | Self::HtbSfq | Self::HtbBfifo)
    }

    /// Names of all, for messages.
    #[must_use]
    pub fn names() -> String {
        BACK_ENDS.iter().map(|back_end| back_end.id.name()).collect::<Vec<_>>().join(", ")
    }

    /// Back end of this identifier.
    #[must_use]
    pub const fn back_end(self) -> &'static BackEnd {
        match self {
            Self::CakeMq => &cake_mq::BACK_END,
            Self::Cake => &cake::BACK_END,
            Self::HtbFqCodel => &htb_fq_codel::BACK_END,
            Self::HtbFqPie => &htb_fq_pie::BACK_END,
            Self::HtbDualpi2 => &htb_dualpi2::BACK_END,
            Self::HtbSfq => &htb_sfq::BACK_END,
            Self::HtbBfifo => &htb_bfifo::BACK_END,
            Self::Tbf => &tbf::BACK_END,
            Self::LartcHtb => &lartc_htb::BACK_END,
            Self::LartcCbq => &lartc_cbq::BACK_END,
        }
    }
}

impl fmt::Display for BackEndId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
