//! Format of a kernel tracepoint's record, as tracefs describes it (`events/GROUP/NAME/format`).
//!
//! Offsets differ between kernels and configurations, so they are read on the host instead of compiled in.

use std::collections::BTreeMap;

/// Upper bound of a record's size (`PERF_MAX_TRACE_SIZE`): fields beyond it are rejected.
pub const MAX_RECORD_SIZE: u32 = 8192;

/// Upper bound of the number of values that a format names, above that of any kernel.
const MAX_SYMBOLS: usize = 4096;

/// Position of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracepointField {
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// Format of a tracepoint's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracepointFormat {
    /// Number of the tracepoint, for `perf_event_open(2)`.
    pub id: u64,
    fields: BTreeMap<String, TracepointField>,
    print: String,
}

impl TracepointFormat {
    /// Parses the text of tracefs; `None` where it has no number, or a field that exceeds a record.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut id = None;
        for line in text.lines() {
            if let Some(number) = line.strip_prefix("ID:") {
                id = Some(number.trim().parse().ok()?);
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                print.trim().clone_into(&mut format.print);
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                let (name, field) = parse_field(field)?;
                format.fields.insert(name, field);
            }
        }
        format.id = id?;
        Some(format)
    }

    /// Position of a field; `None` where this kernel has none of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<TracepointField> {
        self.fields.get(name).copied()
    }

    /// All fields by name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, TracepointField)> {
        self.fields.iter().map(|(name, field)| (name.as_str(), *field))
    }

    /// Names of a field's values (`__print_symbolic`); values without a number are left out.
    #[must_use]
    pub fn symbols(&self, field: &str) -> BTreeMap<u32, String> {
        let opening = format!("__print_symbolic(REC->{field},");
        let Some((_, list)) = self.print.split_once(&opening) else { return BTreeMap::new() };
        let mut symbols = BTreeMap::new();
        let mut rest = list;
        while let Some((value, name, after)) = next_symbol(rest) {
            if let Some(value) = parse_number(value) {
                symbols.insert(value, name.to_owned());
            }
            if symbols.len() >= MAX_SYMBOLS {
                break;
            }
            rest = after;
        }
        symbols
    }
}

/// Parses `unsigned int vec; offset:8; size:4; signed:0;`.
fn parse_field(text: &str) -> Option<(String, TracepointField)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse::<u32>().ok(),
            Some(("size", number)) => size = number.parse::<u32>().ok(),
            _ => {}
        }
    }
    let field = TracepointField { offset: offset?, size: size? };
    let name = declaration.split_whitespace().last()?.split('[').next()?.trim_start_matches('*');
    let fits = field.offset.checked_add(field.size)? <= MAX_RECORD_SIZE && !name.is_empty();
    fits.then(|| (name.to_owned(), field))
}

/// Splits `{ 2, "NAME" }, …` into `2`, `NAME` and the remainder; `None` at the end of the list.
fn next_symbol(text: &str) -> Option<(&str, &str, &str)> {
    let item = text.trim_start_matches([' ', ',']).strip_prefix('{')?;
    let (value, after) = item.split_once(',')?;
    let (name, after) = after.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((value.trim(), name, after.trim_start().strip_prefix('}')?))
}

fn parse_number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOFTIRQ: &str = "name: softirq_entry\nID: 223\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char prev_comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:void *location;\toffset:32;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 0x3, \"NET_RX\" }, \
        { TCP_CLOSE, \"CLOSE\" }, { 7, \"SCHED\" }), REC->other\n";

    #[test]
    fn a_format_has_its_number_its_fields_and_the_names_of_values() {
        let format = TracepointFormat::parse(SOFTIRQ).expect("a format");
        assert_eq!(format.id, 223);
        assert_eq!(format.field("vec"), Some(TracepointField { offset: 8, size: 4 }));
        assert_eq!(format.field("prev_comm"), Some(TracepointField { offset: 12, size: 16 }));
        assert_eq!(format.field("location"), Some(TracepointField { offset: 32, size: 8 }));
        assert_eq!(format.field("reason"), None);
        let symbols = format.symbols("vec");
        assert_eq!(
            symbols.into_iter().collect::<Vec<_>>(),
            [(0, "HI".to_owned()), (3, "NET_RX".to_owned()), (7, "SCHED".to_owned())]
        );
        assert!(format.symbols("location").is_empty());
    }

    #[test]
    fn text_without_a_number_or_with_a_field_beyond_the_record_is_refused() {
        assert_eq!(TracepointFormat::parse("name: x\nformat:\n"), None);
        assert_eq!(TracepointFormat::parse("ID: x\n"), None);
        for (offset, size) in [("8191", "2"), ("4294967295", "1"), ("-1", "4"), ("8", "")] {
            let text = format!("ID: 1\n\tfield:int a;\toffset:{offset};\tsize:{size};\tsigned:0;\n");
            assert_eq!(TracepointFormat::parse(&text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(?s).{0,300}") {
            if let Some(format) = TracepointFormat::parse(&text) {
                prop_assert!(format.symbols("vec").len() <= MAX_SYMBOLS);
            }
        }

        #[test]
        fn damaged_formats_never_yield_a_field_beyond_the_record(at in 0..SOFTIRQ.len(), byte in 32_u8..127) {
            let mut bytes = SOFTIRQ.as_bytes().to_vec();
            bytes[at] = byte;
            let text = String::from_utf8(bytes).expect("ASCII");
            if let Some(format) = TracepointFormat::parse(&text) {
                for field in format.fields.values() {
                    prop_assert!(field.offset + field.size <= MAX_RECORD_SIZE);
                }
                prop_assert!(format.symbols("vec").len() <= 4);
            }
        }
    }
}
