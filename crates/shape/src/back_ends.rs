//! What can shape a line, best first: one file each.

mod builder;
mod cake;
mod cake_mq;
mod classify;
mod hierarchy;
mod htb_bfifo;
mod htb_fq_codel;
mod htb_fq_pie;
mod htb_sfq;
mod lartc_cbq;
mod lartc_htb;
mod receiving;
mod sizes;
mod tbf;

use linerate_units::{BitRate, ByteCount, Mtu, Ratio};

use crate::capability::{Capabilities, Feature};
use crate::link::Line;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::refusal::Refusal;

/// What is known of the interface that is to be shaped.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Its MTU.
    pub mtu: Mtu,
    /// What its link-layer header adds to the length that the kernel counts: 14 for Ethernet, 0 for PPP and tunnels.
    pub header: ByteCount,
    /// Its transmit queues; `None` when not known, which counts as one.
    pub transmit_queues: Option<u32>,
    /// How busy the busiest processor was with received and sent packets; `None` when not measured.
    pub busiest_processor: Option<Ratio>,
}

impl DeviceFacts {
    /// An Ethernet interface of which nothing but the name is known.
    #[must_use]
    pub fn ethernet(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            mtu: Mtu::new(1500),
            header: ByteCount::new(14),
            transmit_queues: None,
            busiest_processor: None,
        }
    }
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The line.
    pub line: &'a Line,
    /// What matters on it.
    pub policy: &'a Policy,
    /// What the kernel has.
    pub capabilities: &'a Capabilities,
    /// The interface.
    pub device: &'a DeviceFacts,
}

impl Inputs<'_> {
    /// What the largest packet occupies on the line. Where no overhead is stated, what the kernel itself counts.
    #[must_use]
    pub fn full_packet(&self) -> ByteCount {
        self.line.full_packet().max(self.full_frame())
    }

    /// What the kernel counts of the largest packet: with the interface's own header.
    #[must_use]
    pub fn full_frame(&self) -> ByteCount {
        self.line.mtu.byte_count() + self.device.header
    }
}

/// A way to shape.
#[derive(Debug)]
pub struct BackEnd {
    /// Its name on the command line: `cake`, `htb+fq_codel`, …
    pub id: &'static str,
    /// What it is, in one line without a full stop.
    pub title: &'static str,
    /// How it works and what it is good for: some sentences.
    pub explanation: &'static str,
    /// Where that comes from.
    pub citation: &'static str,
    /// What it cannot do without, to shape what is sent.
    pub needs: &'static [Feature],
    /// Why it is not the one to take on this line although it could be had, as a phrase; `None` when nothing speaks
    /// against it. Whoever asks for it by name gets it all the same.
    pub unsuitable: fn(&Inputs<'_>) -> Option<String>,
    /// Whether it is taken without being asked for; the scripts of the past are not.
    pub automatic: bool,
    /// Where to turn when it cannot be had, as a phrase without a full stop.
    way_out: &'static str,
    /// Adds its steps to an empty plan.
    make: fn(&Inputs<'_>, Plan) -> Plan,
}

impl BackEnd {
    /// Its plan for this line and kernel, or what it lacks.
    pub fn plan(&self, inputs: &Inputs<'_>) -> Result<Plan, Refusal> {
        let refusal = |reason| Refusal { back_end: Some(self.id), reason, way_out: self.way_out.to_owned() };
        if inputs.line.up.is_none_or(BitRate::is_zero) && inputs.line.down.is_none_or(BitRate::is_zero) {
            return Err(refusal("neither direction has a rate".to_owned()));
        }
        if let Some(lacking) = self.needs.iter().find_map(|feature| inputs.capabilities.lacks(*feature)) {
            return Err(refusal(lacking));
        }
        Ok((self.make)(inputs, Plan::empty(self.id, &inputs.device.name)))
    }
}

/// All of them, in the order in which they are tried.
pub static BACK_ENDS: &[&BackEnd] = &[
    &cake_mq::BACK_END,
    &cake::BACK_END,
    &htb_fq_codel::BACK_END,
    &htb_fq_pie::BACK_END,
    &htb_sfq::BACK_END,
    &htb_bfifo::BACK_END,
    &tbf::BACK_END,
    &lartc_htb::BACK_END,
    &lartc_cbq::BACK_END,
];

/// The back end with this name.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static BackEnd> {
    BACK_ENDS.iter().copied().find(|back_end| back_end.id == id)
}
