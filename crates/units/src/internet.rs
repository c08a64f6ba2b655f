use crate::ByteCount;

/// A TCP or UDP port that can be bound or connected to: 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(core::num::NonZeroU16);

impl Port {
    /// iperf3's port, 5201.
    pub const IPERF3: Self = match core::num::NonZeroU16::new(5201) {
        Some(port) => Self(port),
        None => unreachable!(),
    };

    /// The port of STAMP and TWAMP-Test reflectors, 862 (RFC 8545, RFC 8762 §4.1).
    pub const STAMP: Self = match core::num::NonZeroU16::new(862) {
        Some(port) => Self(port),
        None => unreachable!(),
    };

    /// The first port of the probes of traceroute(8), 33434.
    pub const TRACEROUTE: Self = match core::num::NonZeroU16::new(33434) {
        Some(port) => Self(port),
        None => unreachable!(),
    };

    /// Creates the port `number`; `None` for 0.
    #[must_use]
    pub fn new(number: u16) -> Option<Self> {
        core::num::NonZeroU16::new(number).map(Self)
    }

    /// Port number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl core::fmt::Display for Port {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! segment_size {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
        pub struct $name(u32);

        impl $name {
            /// Creates a size of `bytes` bytes.
            #[must_use]
            pub const fn new(bytes: u32) -> Self {
                Self(bytes)
            }

            /// Number of bytes.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Size as a [`ByteCount`].
            #[must_use]
            pub const fn byte_count(self) -> ByteCount {
                ByteCount::new(self.0 as u64)
            }
        }
    };
}

segment_size! {
    /// Maximum segment size: TCP payload bytes of a full segment (RFC 9293 §3.7.1), as `TCP_MAXSEG` counts them.
    Mss
}
segment_size! {
    /// Maximum transmission unit in bytes of IP packet, as Linux and RFC 791 count it: link-layer headers not included.
    Mtu
}

/// The former IPv4 type-of-service octet, or IPv6 traffic class: DSCP in the upper six bits, ECN in the lower two
/// (RFC 2474 §3, RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct TypeOfService(u8);

impl TypeOfService {
    /// Creates the octet.
    #[must_use]
    pub const fn new(octet: u8) -> Self {
        Self(octet)
    }

    /// Octet.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Differentiated-services codepoint.
    #[must_use]
    pub const fn dscp(self) -> Dscp {
        Dscp(self.0 >> 2)
    }
}

/// A differentiated-services codepoint, 0 to 63 (RFC 2474).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Creates the codepoint; `None` above 63.
    #[must_use]
    pub const fn new(codepoint: u8) -> Option<Self> {
        if codepoint < 64 { Some(Self(codepoint)) } else { None }
    }

    /// Codepoint.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Codepoint of a name in the IANA registry, in either case, without hyphens: `ef`, `af41`, `cs1`, `va`
    /// (voice-admit), `le` (lower effort).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, codepoint)| Self(*codepoint))
    }

    /// Name of the codepoint, lower case; `None` where it has none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, codepoint)| *codepoint == self.0).map(|(name, _)| *name)
    }

    /// Octet with this codepoint and Not-ECT.
    #[must_use]
    pub const fn type_of_service(self) -> TypeOfService {
        TypeOfService(self.0 << 2)
    }
}

/// RFC 2474 (cs), RFC 2597 (af), RFC 3246 (ef), RFC 5865 (va), RFC 8622 (le).
const NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// An IPv6 flow label, 1 to 0xFFFFF (RFC 8200 §6, RFC 6437).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowLabel(u32);

impl FlowLabel {
    /// Creates the label; `None` for 0 (no label) and above 20 bits.
    #[must_use]
    pub const fn new(label: u32) -> Option<Self> {
        if label >= 1 && label <= 0xF_FFFF { Some(Self(label)) } else { None }
    }

    /// Label.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}
