//! wondershaper's command lines, the classic one and that of version 1.4, and its file of presets, as arguments of `linerate shape`.

/// File of presets of version 1.4.
pub const PRESETS_FILE: &str = "/etc/systemd/wondershaper.conf";

/// Meaning of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Arguments of linerate.
    Arguments(Vec<String>),
    /// Show the usage.
    Usage,
}

/// Translates the arguments of wondershaper; `read` returns the text of a file of presets.
///
/// # Errors
///
/// A text that names the argument, or the file and its line.
pub fn translate(texts: &[String], read: impl Fn(&str) -> Result<String, String>) -> Result<Translation, String> {
    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help"] => Ok(Translation::Usage),
        [first, ..] if first.starts_with('-') => options(&words, read),
        ["clear", device] => Ok(shape(&[interface(device)?, "off"])),
        [device] => Ok(shape(&[interface(device)?, "status", "--once"])),
        [device, down, up] => {
            Request { device: Some(device.to_owned()), down: rate(down)?, up: rate(up)?, ..Request::default() }.set_up()
        }
        _ => Err(format!("'{}' is neither DEV DOWN UP nor clear DEV", words.join(" "))),
    }
}

fn version() -> Translation {
    Translation::Arguments(vec!["--version".to_owned()])
}

fn shape(words: &[&str]) -> Translation {
    Translation::Arguments(core::iter::once("shape").chain(words.iter().copied()).map(str::to_owned).collect())
}

/// Rate in kbit/s; 0 is no limit, as in version 1.4.
fn rate(text: &str) -> Result<Option<u64>, String> {
    let kilobits = text.parse::<u64>().map_err(|_| format!("'{text}' is no rate (expected a number of kbit/s)"))?;
    Ok(Some(kilobits).filter(|kilobits| *kilobits != 0))
}

/// Name of an interface, which must not become an option of linerate.
fn interface(text: &str) -> Result<&str, String> {
    let is_name = !text.is_empty() && !text.starts_with('-');
    is_name.then_some(text).ok_or_else(|| format!("'{text}' is no interface"))
}

/// A shaper as wondershaper describes it.
#[derive(Debug, Default)]
struct Request {
    device: Option<String>,
    down: Option<u64>,
    up: Option<u64>,
    /// Further arguments of `linerate shape`.
    others: Vec<String>,
}

impl Request {
    fn device(&self) -> Result<&str, String> {
        let device = self.device.as_deref().ok_or_else(|| "there is no interface: give -a DEV".to_owned())?;
        interface(device)
    }

    /// wondershaper replaces what the interface has; here `off` restores it.
    fn set_up(&self) -> Result<Translation, String> {
        let mut words = vec![self.device()?.to_owned()];
        for (option, kilobits) in [("--up", self.up), ("--down", self.down)] {
            if let Some(kilobits) = kilobits {
                words.extend([option.to_owned(), format!("{kilobits}k")]);
            }
        }
        if words.len() == 1 {
            return Err("there is no rate: give -d KBIT, -u KBIT or both".to_owned());
        }
        words.extend(self.others.iter().cloned());
        words.push("--replace".to_owned());
        Ok(shape(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

/// Options of version 1.4, as its getopts reads them: `hvd:u:a:pf:cs`.
fn options(words: &[&str], read: impl Fn(&str) -> Result<String, String>) -> Result<Translation, String> {
    let (mut request, mut action, mut presets) = (Request::default(), 'u', None);
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return Err(format!("unexpected argument '{word}'"));
        };
        match flags {
            "-help" => return Ok(Translation::Usage),
            "-version" => return Ok(version()),
            _ if flags.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => {}
        }
        for (at, letter) in flags.char_indices() {
            if "acdfu".contains(letter) && letter != 'c' {
                let attached = &flags[at + letter.len_utf8()..];
                let value = if attached.is_empty() { words.next() } else { Some(attached) };
                let value = value.ok_or_else(|| format!("the option -{letter} has no value"))?;
                match letter {
                    'a' => request.device = Some(value.to_owned()),
                    'd' => request.down = rate(value)?,
                    'f' => presets = Some(value.to_owned()),
                    _ => request.up = rate(value)?,
                }
                break;
            }
            match letter {
                'h' => return Ok(Translation::Usage),
                'v' => return Ok(version()),
                'p' => presets = presets.or_else(|| Some(PRESETS_FILE.to_owned())),
                'c' | 's' => action = letter,
                _ => return Err(format!("unknown option -{letter}")),
            }
        }
    }
    if let Some(file) = presets {
        add_presets(&mut request, &read(&file)?).map_err(|reason| format!("{file}: {reason}"))?;
    }
    match action {
        'c' => Ok(shape(&[request.device()?, "off"])),
        's' => Ok(shape(&[request.device()?, "status", "--once"])),
        _ => request.set_up(),
    }
}

/// Adds the assignments of a file of presets: `IFACE`, `DSPEED`, `USPEED`, and lists of hosts and ports. Options of the
/// command line go first.
fn add_presets(request: &mut Request, text: &str) -> Result<(), String> {
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with(['#', '['])) else { continue };
        let mut values =
            value.split(" #").next().unwrap_or_default().trim().trim_matches(['(', ')']).split_whitespace();
        let mut values: Vec<&str> =
            values.by_ref().map(|value| value.trim_matches(['"', '\''])).filter(|value| !value.is_empty()).collect();
        let located = |reason: String| format!("line {}: {reason}", number + 1);
        let mut select = |option: &str, kinds: &[&str]| {
            for value in values.drain(..) {
                request.others.extend(kinds.iter().flat_map(|kind| [option.to_owned(), format!("{kind}/{value}")]));
            }
        };
        match key.trim() {
            "HIPRIODST" => select("--interactive", &["host"]),
            "NOPRIOHOSTSRC" | "NOPRIOHOSTDST" => select("--bulk", &["host"]),
            "NOPRIOPORTSRC" | "NOPRIOPORTDST" => select("--bulk", &["tcp", "udp"]),
            "IFACE" if request.device.is_none() => request.device = values.first().map(|name| (*name).to_owned()),
            "DSPEED" if request.down.is_none() => {
                request.down = values.first().map_or(Ok(None), |value| rate(value)).map_err(located)?;
            }
            "USPEED" if request.up.is_none() => {
                request.up = values.first().map_or(Ok(None), |value| rate(value)).map_err(located)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[wondershaper]\n# Adapter\nIFACE=\"eth1\"\nDSPEED=\"2048\" # down\nUSPEED=\"512\"\n\
                        HIPRIODST=(192.0.2.1 192.0.2.2)\nNOPRIOHOSTSRC=\"\"\nNOPRIOPORTDST=\"6881\"\nCOMMONOPTIONS=()\n";

    fn translate(line: &str) -> Result<String, String> {
        let texts: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let read = |file: &str| {
            if file == PRESETS_FILE || file == "own.conf" {
                Ok(FILE.to_owned())
            } else {
                Err("no such file".to_owned())
            }
        };
        super::translate(&texts, read).map(|translation| match translation {
            Translation::Arguments(arguments) => arguments.join(" "),
            Translation::Usage => "usage".to_owned(),
        })
    }

    #[test]
    fn both_command_lines_are_read() {
        const PRESET: &str =
            "--interactive host/192.0.2.1 --interactive host/192.0.2.2 --bulk tcp/6881 --bulk udp/6881";
        for (line, expected) in [
            ("", "usage"),
            ("-h", "usage"),
            ("--help", "usage"),
            ("help", "usage"),
            ("-a eth0 --help", "usage"),
            ("--version", "--version"),
            ("-v", "--version"),
            ("eth0 1024 256", "shape eth0 --up 256k --down 1024k --replace"),
            ("eth0", "shape eth0 status --once"),
            ("clear eth0", "shape eth0 off"),
            ("-a eth0 -d 1024 -u 512", "shape eth0 --up 512k --down 1024k --replace"),
            ("-aeth0 -d1024", "shape eth0 --down 1024k --replace"),
            ("-a eth0 -u 512 -d 0", "shape eth0 --up 512k --replace"),
            ("-c -a eth0", "shape eth0 off"),
            ("-ca eth0", "shape eth0 off"),
            ("-s -a eth0", "shape eth0 status --once"),
            ("-p", &format!("shape eth1 --up 512k --down 2048k {PRESET} --replace")),
            ("-p -f own.conf -a eth0 -u 300", &format!("shape eth0 --up 300k --down 2048k {PRESET} --replace")),
        ] {
            assert_eq!(translate(line), Ok(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn other_command_lines_are_refused() {
        for (line, reason) in [
            ("eth0 1024", "neither"),
            ("eth0 1024 256 1", "neither"),
            ("eth0 fast 256", "'fast' is no rate"),
            ("eth0 0 0", "no rate"),
            ("-a eth0", "no rate"),
            ("-d 1024", "no interface"),
            ("-c", "no interface"),
            ("-a", "-a has no value"),
            ("-x", "unknown option -x"),
            ("--down 5", "unknown option --down"),
            ("--", "unknown option --"),
            ("-a eth0 -d -5", "no rate"),
            ("-a eth0 more", "unexpected argument"),
            ("-f nowhere", "no such file"),
            ("clear --all", "'--all' is no interface"),
            ("-a --replace -s", "'--replace' is no interface"),
        ] {
            let error = translate(line).expect_err(line);
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
