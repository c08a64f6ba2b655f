//! Key presses, parsed from a terminal's bytes (ECMA-48, and xterm's control sequences).

/// Key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPress {
    Character(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl with this letter.
    Control(char),
}

/// Parses the keys in these bytes; unknown sequences are skipped.
pub(crate) fn parse_keys(bytes: &[u8]) -> Vec<KeyPress> {
    let text = String::from_utf8_lossy(bytes);
    let mut characters = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => match characters.peek() {
                Some('[' | 'O') => {
                    characters.next();
                    keys.extend(sequence(&mut characters));
                }
                _ => keys.push(KeyPress::Escape),
            },
            '\r' | '\n' => keys.push(KeyPress::Enter),
            '\x7f' | '\x08' => keys.push(KeyPress::Backspace),
            control @ '\x01'..='\x1a' => {
                keys.push(KeyPress::Control(char::from(u8::try_from(u32::from(control)).unwrap_or(0) + b'a' - 1)));
            }
            character if !character.is_control() => keys.push(KeyPress::Character(character)),
            _ => {}
        }
    }
    keys
}

/// Parses the remainder of `ESC [` or `ESC O`: parameters, and a final character that selects the key.
fn sequence(characters: &mut impl Iterator<Item = char>) -> Option<KeyPress> {
    let mut parameters = String::new();
    for character in characters {
        match character {
            '0'..='9' | ';' => parameters.push(character),
            'A' => return Some(KeyPress::Up),
            'B' => return Some(KeyPress::Down),
            'C' => return Some(KeyPress::Right),
            'D' => return Some(KeyPress::Left),
            'H' => return Some(KeyPress::Home),
            'F' => return Some(KeyPress::End),
            '~' => {
                return match parameters.as_str() {
                    "1" | "7" => Some(KeyPress::Home),
                    "4" | "8" => Some(KeyPress::End),
                    "5" => Some(KeyPress::PageUp),
                    "6" => Some(KeyPress::PageDown),
                    _ => None,
                };
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinguished() {
        assert_eq!(
            parse_keys(b"q\r\x1b\x7f"),
            [KeyPress::Character('q'), KeyPress::Enter, KeyPress::Escape, KeyPress::Backspace]
        );
        assert_eq!(
            parse_keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"),
            [KeyPress::Up, KeyPress::Down, KeyPress::Right, KeyPress::Left]
        );
        assert_eq!(
            parse_keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~"),
            [KeyPress::PageUp, KeyPress::PageDown, KeyPress::Home, KeyPress::End]
        );
        assert_eq!(parse_keys(b"\x03\x1a"), [KeyPress::Control('c'), KeyPress::Control('z')]);
        assert_eq!(parse_keys("ü".as_bytes()), [KeyPress::Character('ü')]);
        assert_eq!(parse_keys(b"\x1b[200~x\x1b["), [KeyPress::Character('x')], "other sequences are skipped");
    }
}
