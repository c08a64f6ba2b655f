//! The beds: paths, rates and loads, with the bounds that issue 6 sets.

/// Which directions are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Up,
    Down,
    Both,
}

impl Mode {
    /// `up`, `down` or `both`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

/// What a case must not exceed, and what it must reach.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// Mean of the pings in ms.
    pub(super) mean: Option<f64>,
    /// Longest in ms.
    pub(super) longest: Option<f64>,
    /// 99th percentile in ms.
    pub(super) p99: Option<f64>,
    /// Share of the set rate on the wire, in each loaded direction.
    pub(super) wire: Option<f64>,
    /// Goodput in each loaded direction, in Mbit/s.
    pub(super) goodput: Option<f64>,
}

/// One load on a bed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) mode: Mode,
    /// For the back ends of today.
    pub(super) bounds: Bounds,
}

/// A path with a shaper's rates.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// A name of the library, or a path's text.
    pub(super) path: Path,
    /// kbit/s up and down.
    pub(super) rates: (f64, f64),
    /// kbit/s up and down behind the shaper; `None` where nothing is slower than it.
    pub(super) line: Option<(f64, f64)>,
    /// The route's MTU; `None` for the path's.
    pub(super) mtu: Option<u32>,
    /// `none` is the line without a shaper.
    pub(super) back_ends: &'static [&'static str],
    pub(super) flows: u32,
    /// Seconds before it counts, and that count.
    pub(super) times: (u32, u32),
    pub(super) cases: &'static [Case],
    /// What stands below the table.
    pub(super) remark: &'static str,
}

/// Where the path is described.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    Library(&'static str),
    Own(&'static str),
}

const NONE: Bounds = Bounds { mean: None, longest: None, p99: None, wire: None, goodput: None };

const fn lartc(mode: Mode, mean: f64, longest: f64) -> Case {
    Case { mode, bounds: Bounds { mean: Some(mean), longest: Some(longest), wire: Some(0.93), ..NONE } }
}

const fn cake(mean: f64, p99: f64, goodput: Option<f64>) -> Case {
    Case { mode: Mode::Both, bounds: Bounds { mean: Some(mean), p99: Some(p99), goodput, ..NONE } }
}

const TODAY: &[&str] = &["none", "lartc-htb", "htb+fq_codel", "cake", "htb+fq_pie", "htb+sfq", "htb+bfifo", "tbf"];
const WITHOUT_POLICER: &[&str] = &["htb+fq_codel", "cake", "htb+fq_pie", "htb+sfq", "htb+bfifo"];

/// All of them.
pub(super) static BEDS: &[Bed] = &[
    Bed {
        name: "lartc",
        title: "The LARTC line: modem of 240 kbit/s up and 900 down, 18 ms; set to 220 and 850",
        path: Path::Library("xs4all-adsl"),
        rates: (220.0, 850.0),
        line: Some((240.0, 900.0)),
        mtu: None,
        back_ends: TODAY,
        flows: 1,
        times: (25, 60),
        cases: &[lartc(Mode::Up, 46.0, 80.0), lartc(Mode::Down, 35.0, 60.0), lartc(Mode::Both, 70.0, 130.0)],
        remark: "LARTC's own figures (2002, another line): 51.8 (79.9) for an upload, 46.9 (74.0) for a download, 850 for both. \
                 On a slow line our shaper holds what is received up to 5 % below the set rate.",
    },
    Bed {
        name: "lartc-small-packets",
        title: "The LARTC line with the offered MTU of 576 bytes",
        path: Path::Library("xs4all-adsl"),
        rates: (220.0, 850.0),
        line: Some((240.0, 900.0)),
        mtu: Some(576),
        back_ends: &["htb+fq_codel", "htb+bfifo"],
        flows: 1,
        times: (25, 60),
        cases: &[
            lartc(Mode::Up, 30.0, 45.0),
            Case { mode: Mode::Down, bounds: NONE },
            Case { mode: Mode::Both, bounds: NONE },
        ],
        remark: "A route with this MTU and the MSS that goes with it, on the near host.",
    },
    Bed {
        name: "cake-10-10",
        title: "The CAKE paper's 10 Mbit/s both ways, 50 ms, four flows each way",
        path: Path::Own(include_str!("beds/delay-50ms.toml")),
        rates: (10e3, 10e3),
        line: None,
        mtu: None,
        back_ends: WITHOUT_POLICER,
        flows: 4,
        times: (20, 60),
        cases: &[cake(51.7, 53.0, Some(9.2))],
        remark: "The paper: CAKE 51.7, 99th percentile 52.9, 9.29 and 9.30 Mbit/s; `fq_codel` 51.4, 52.8, 9.27 and 9.28.",
    },
    Bed {
        name: "cake-10-1",
        title: "The CAKE paper's 10 Mbit/s down and 1 up, 50 ms, four flows each way",
        path: Path::Own(include_str!("beds/delay-50ms.toml")),
        rates: (1e3, 10e3),
        line: None,
        mtu: None,
        back_ends: WITHOUT_POLICER,
        flows: 4,
        times: (20, 60),
        cases: &[cake(58.0, 64.0, None)],
        remark: "The paper: CAKE 58.0, 99th percentile 63.6; `fq_codel` 58.1 and 71.6.",
    },
    Bed {
        name: "modem-10-10",
        title: "The same 10 Mbit/s both ways before a modem of 10.5 Mbit/s that holds 1.5 MB",
        path: Path::Own(include_str!("beds/modem-10-10.toml")),
        rates: (10e3, 10e3),
        line: Some((10.5e3, 10.5e3)),
        mtu: None,
        back_ends: WITHOUT_POLICER,
        flows: 4,
        times: (20, 60),
        cases: &[Case { mode: Mode::Both, bounds: NONE }],
        remark: "Sharper than the paper's bed: what the shaper lets through too early stands in the modem.",
    },
    Bed {
        name: "modem-10-1",
        title: "The same 10 Mbit/s down and 1 up before a modem of 10.5 and 1.05 Mbit/s that holds 1.5 MB",
        path: Path::Own(include_str!("beds/modem-10-1.toml")),
        rates: (1e3, 10e3),
        line: Some((1.05e3, 10.5e3)),
        mtu: None,
        back_ends: WITHOUT_POLICER,
        flows: 4,
        times: (20, 60),
        cases: &[Case { mode: Mode::Both, bounds: NONE }],
        remark: "Sharper than the paper's bed: what the shaper lets through too early stands in the modem.",
    },
    Bed {
        name: "gigabit",
        title: "1 Gbit/s on a LAN of 2 Gbit/s",
        path: Path::Own(include_str!("beds/lan-2g.toml")),
        rates: (1e6, 1e6),
        line: None,
        mtu: None,
        back_ends: &["none", "cake", "htb+fq_codel", "htb+fq_pie", "htb+sfq", "htb+bfifo", "tbf", "lartc-htb"],
        flows: 4,
        times: (1, 2),
        cases: &[
            Case { mode: Mode::Up, bounds: Bounds { wire: Some(0.95), ..NONE } },
            Case { mode: Mode::Down, bounds: Bounds { wire: Some(0.95), ..NONE } },
        ],
        remark: "Processor time is that of the whole lab, both hosts and the path, for each packet on the wire: what a back end \
                 adds is the difference from the first row.",
    },
];

impl Bed {
    /// What a full packet takes on the slowest link of the direction, in ms: no ping of an unlucky moment waits less.
    pub(super) fn packet_times(&self) -> (f64, f64) {
        let bits = f64::from(self.mtu.unwrap_or(1500) + 14) * 8.0;
        let (up, down) = self.line.unwrap_or(self.rates);
        (bits / up, bits / down)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_shape::back_ends::by_id;

    use super::*;

    #[test]
    fn beds_name_back_ends_that_there_are() {
        let names: BTreeSet<_> = BEDS.iter().map(|bed| bed.name).collect();
        assert_eq!(names.len(), BEDS.len());
        for bed in BEDS {
            assert!(bed.back_ends.iter().all(|id| *id == "none" || by_id(id).is_some()), "{}", bed.name);
            assert!(!bed.cases.is_empty() && bed.times.1 > 0 && bed.flows > 0, "{}", bed.name);
        }
    }

    /// 1514 × 8 / 240 = 50.5 ms, 590 × 8 / 240 = 19.7 ms.
    #[test]
    fn a_packet_on_the_line() {
        assert!((BEDS[0].packet_times().0 - 50.47).abs() < 0.01);
        assert!((BEDS[1].packet_times().0 - 19.67).abs() < 0.01);
    }
}
