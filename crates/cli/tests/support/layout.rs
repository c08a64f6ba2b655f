//! Comparison of text lines with iperf3's layouts.
//!
//! A layout is text with fields. A field is parsed, printed again with its format, and compared byte by byte, so that
//! widths and decimals are checked exactly:
//!
//! | field | is |
//! |---|---|
//! | `%d`, `%3d` | a whole number |
//! | `%.1f`, `%6.2f`, `%-6.2f` | a number with decimals |
//! | `%U` | a number of four characters and its unit, as `unit_snprintf` prints: `2.37 MBytes` |
//! | `%g` | a number as `%.2g` prints it |
//! | `%s` | a token |
//! | `%*` | the remainder of the line |

/// True when `line` has this layout.
pub(crate) fn fits(line: &str, layout: &str) -> bool {
    read(line, layout).is_some()
}

/// Asserts that every line of `text` has one of the layouts, and that each layout occurs.
///
/// # Panics
///
/// Panics otherwise.
#[track_caller]
pub(crate) fn assert_made_of(text: &str, layouts: &[&str], what: &str) {
    for line in text.lines() {
        let known = layouts.iter().any(|layout| fits(line, layout));
        assert!(known, "{what}: the line {line:?} has none of the layouts {layouts:#?}\nin:\n{text}");
    }
    for layout in layouts {
        let occurs = text.lines().any(|line| fits(line, layout));
        assert!(occurs, "{what}: no line has the layout {layout:?}\nin:\n{text}");
    }
}

fn read(mut line: &str, mut layout: &str) -> Option<()> {
    while let Some(next) = layout.chars().next() {
        if next != '%' {
            line = line.strip_prefix(next)?;
            layout = &layout[next.len_utf8()..];
            continue;
        }
        let end = layout[1..].find(|character: char| character.is_ascii_alphabetic() || "%*".contains(character))? + 2;
        let (field, rest) = layout.split_at(end);
        layout = rest;
        line = match field {
            "%%" => line.strip_prefix('%')?,
            "%*" => "",
            "%U" => unit(line)?,
            "%g" => line.strip_prefix(number(line)?.0)?,
            "%s" => word(line)?,
            other => printed(line, other)?,
        };
    }
    line.is_empty().then_some(())
}

/// Number at the start of `line`, after blanks: its text and its value.
fn number(line: &str) -> Option<(&str, f64)> {
    let line = line.trim_start_matches(' ');
    let length = line.find(|character: char| !(character.is_ascii_digit() || ".-+e".contains(character)));
    // The minus of `0.00-1.00` is not part of the number before it.
    let text = &line[..length.unwrap_or(line.len())];
    let text = text
        .char_indices()
        .skip(1)
        .find(|(at, character)| *character == '-' && !text[..*at].ends_with('e'))
        .map_or(text, |(at, _)| &text[..at]);
    Some((text, text.parse().ok()?))
}

fn word(line: &str) -> Option<&str> {
    let length = line.find([' ', ',', '(']).unwrap_or(line.len());
    (length > 0).then(|| &line[length..])
}

/// Field of a whole number or one with decimals: `%[-|0][width][.decimals](d|f)`.
fn printed<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let (_, value) = number(line)?;
    let kind = field.chars().last()?;
    let format = field.trim_start_matches('%').trim_end_matches(kind);
    let (width, decimals) = match format.trim_start_matches('-').split_once('.') {
        Some((width, decimals)) => (width, decimals.parse().ok()?),
        None => (format.trim_start_matches('-'), 0),
    };
    let width: usize = if width.is_empty() { 0 } else { width.parse().ok()? };
    let text = match format.chars().next() {
        Some('-') => format!("{value:<width$.decimals$}"),
        Some('0') => format!("{value:0>width$.decimals$}"),
        _ => format!("{value:>width$.decimals$}"),
    };
    line.strip_prefix(text.as_str())
}

fn unit(line: &str) -> Option<&str> {
    let (_, value) = number(line)?;
    let text = match value {
        small if small < 9.995 => format!("{small:4.2}"),
        middle if middle < 99.95 => format!("{middle:4.1}"),
        large => format!("{large:4.0}"),
    };
    let rest = line.strip_prefix(text.as_str())?.strip_prefix(' ')?;
    let rest = rest.strip_prefix(['K', 'M', 'G', 'T']).unwrap_or(rest);
    rest.strip_prefix("Bytes").or_else(|| rest.strip_prefix("bits"))
}

mod tests {
    use super::fits;

    #[test]
    fn fields_are_compared_to_the_byte() {
        let layout = "[%3d] %6.2f-%-6.2f sec  %U  %U/sec  %3d   %U       ";
        assert!(fits("[  4]   0.00-1.00   sec  2.76 GBytes  23.6 Gbits/sec   12    895 KBytes       ", layout));
        assert!(!fits("[  4]   0.00-1.00   sec  2.76 GBytes  23.6 Gbits/sec   12    895 KBytes      ", layout));
        assert!(!fits("[ 4]   0.00-1.00   sec  2.76 GBytes  23.6 Gbits/sec   12    895 KBytes       ", layout));
        assert!(!fits("[  4]   0.00-1.00  sec  2.76 GBytes  23.6 Gbits/sec   12    895 KBytes       ", layout));
        assert!(!fits("[  4]   0.00-1.00   sec  2.7 GBytes  23.6 Gbits/sec   12    895 KBytes       ", layout));
        assert!(fits("0/81 (0%)", "%d/%d (%g%%)") && fits("3/81 (3.7%)", "%d/%d (%g%%)"));
        assert!(!fits("0/81 (nothing)", "%d/%d (%g%%)"));
        assert!(fits("01 Dec", "%02d %s") && fits("12 Dec", "%02d %s") && !fits("1 Dec", "%02d %s"));
    }
}
