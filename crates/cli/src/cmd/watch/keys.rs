//! Keys, from the bytes that terminals make of them (ECMA-48, and xterm's control sequences).

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
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

/// The keys in these bytes; sequences that mean none of them are passed over.
pub(crate) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(character) = rest.next() {
        match character {
            '\x1b' => match rest.peek() {
                Some('[' | 'O') => {
                    rest.next();
                    keys.extend(sequence(&mut rest));
                }
                _ => keys.push(Key::Escape),
            },
            '\r' | '\n' => keys.push(Key::Enter),
            '\x7f' | '\x08' => keys.push(Key::Backspace),
            control @ '\x01'..='\x1a' => {
                keys.push(Key::Control(char::from(u8::try_from(u32::from(control)).unwrap_or(0) + b'a' - 1)));
            }
            character if !character.is_control() => keys.push(Key::Character(character)),
            _ => {}
        }
    }
    keys
}

/// What follows `ESC [` or `ESC O`: parameters, and a last character that says which key.
fn sequence(rest: &mut impl Iterator<Item = char>) -> Option<Key> {
    let mut parameters = String::new();
    for character in rest {
        match character {
            '0'..='9' | ';' => parameters.push(character),
            'A' => return Some(Key::Up),
            'B' => return Some(Key::Down),
            'C' => return Some(Key::Right),
            'D' => return Some(Key::Left),
            'H' => return Some(Key::Home),
            'F' => return Some(Key::End),
            '~' => {
                return match parameters.as_str() {
                    "1" | "7" => Some(Key::Home),
                    "4" | "8" => Some(Key::End),
                    "5" => Some(Key::PageUp),
                    "6" => Some(Key::PageDown),
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
    fn keys_are_told_apart() {
        assert_eq!(keys(b"q\r\x1b\x7f"), [Key::Character('q'), Key::Enter, Key::Escape, Key::Backspace]);
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"), [Key::Up, Key::Down, Key::Right, Key::Left]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~"), [Key::PageUp, Key::PageDown, Key::Home, Key::End]);
        assert_eq!(keys(b"\x03\x1a"), [Key::Control('c'), Key::Control('z')]);
        assert_eq!(keys("ü".as_bytes()), [Key::Character('ü')]);
        assert_eq!(keys(b"\x1b[200~x\x1b["), [Key::Character('x')], "others are passed over");
    }
}
