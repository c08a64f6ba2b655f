//! Marks of the IP header that are in use on the internet.

use core::fmt;

use linerate_units::TypeOfService;
use serde::{Deserialize, Serialize};

/// Declares the marks, each with its name and its value in the octet "type of service".
macro_rules! header_marks {
    ($($variant:ident $name:literal $octet:literal $doc:literal),* $(,)?) => {
        /// Marks of the IP header: ECN codepoints (RFC 3168 §5) and differentiated services (RFC 4594, RFC 8622).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum HeaderMark {
            $(#[doc = $doc] #[serde(rename = $name)] $variant,)*
        }

        impl HeaderMark {
            /// All marks: the ECN codepoints, then the DSCPs.
            pub const ALL: [Self; 19] = [$(Self::$variant),*];

            /// Name in the standards.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Octet of the header ("type of service", "traffic class") with this mark alone.
            #[must_use]
            pub const fn octet(self) -> TypeOfService {
                TypeOfService::new(match self { $(Self::$variant => $octet),* })
            }
        }
    };
}

header_marks! {
    NotEct "Not-ECT" 0x00 "Transport without ECN.",
    Ect1 "ECT(1)" 0x01 "ECN-capable transport, codepoint 1 (L4S).",
    Ect0 "ECT(0)" 0x02 "ECN-capable transport, codepoint 0.",
    Ce "CE" 0x03 "Congestion experienced.",
    Cs0 "CS0" 0x00 "Best effort.",
    Le "LE" 0x04 "Lower effort.",
    Cs1 "CS1" 0x20 "Class selector 1: background.",
    Af11 "AF11" 0x28 "Assured forwarding, class 1.",
    Cs2 "CS2" 0x40 "Class selector 2: operation.",
    Af21 "AF21" 0x48 "Assured forwarding, class 2.",
    Cs3 "CS3" 0x60 "Class selector 3: broadcast video.",
    Af31 "AF31" 0x68 "Assured forwarding, class 3.",
    Cs4 "CS4" 0x80 "Class selector 4: interactive video.",
    Af41 "AF41" 0x88 "Assured forwarding, class 4.",
    Cs5 "CS5" 0xa0 "Class selector 5: signalling.",
    Va "VA" 0xb0 "Admitted speech.",
    Ef "EF" 0xb8 "Expedited forwarding: speech.",
    Cs6 "CS6" 0xc0 "Class selector 6: routing.",
    Cs7 "CS7" 0xe0 "Class selector 7.",
}

impl fmt::Display for HeaderMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::Dscp;

    use super::*;

    #[test]
    fn values_are_those_of_the_names() {
        let (codepoints, classes) = HeaderMark::ALL.split_at(4);
        let bits: Vec<u8> = codepoints.iter().map(|mark| mark.octet().get()).collect();
        assert_eq!(bits, [0, 1, 2, 3]);
        for mark in classes {
            let known = Dscp::from_name(&mark.name().to_lowercase()).expect("a standard name");
            assert_eq!(mark.octet(), known.type_of_service(), "{mark}");
        }
        let names = HeaderMark::ALL.map(|mark| serde_json::to_value(mark).expect("serialises"));
        assert_eq!(names.to_vec(), HeaderMark::ALL.map(HeaderMark::name).to_vec());
    }
}
