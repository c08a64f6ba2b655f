//! wondershaper's command line, by the name of the program or of the command.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use linerate_shape::wondershaper::{Translation, translate};

use crate::console;
use crate::exit::ExitStatus;

/// Name of the program, and of the command.
const NAME: &str = "wondershaper";

const USAGE: &str = "Usage: wondershaper [-hcspv] [-a DEV] [-d KBIT] [-u KBIT] [-f FILE]
       wondershaper DEV DOWN UP | wondershaper clear DEV | wondershaper DEV

  -a DEV   interface
  -d KBIT  downlink rate in kbit/s
  -u KBIT  uplink rate in kbit/s
  -p       rates and hosts of the presets in /etc/systemd/wondershaper.conf
  -f FILE  another file of presets
  -c       remove the shaper of the interface
  -s       show it
  -v       version

The shaper is that of `linerate shape`, which has more options.
";

/// Replaces wondershaper's command line, by the name of the program or the first argument, with that of `linerate shape`;
/// others stay.
pub(crate) fn translated(program: &OsStr, arguments: Vec<OsString>) -> Result<Vec<OsString>, ExitStatus> {
    let own = if Path::new(program).file_name() == Some(OsStr::new(NAME)) {
        &arguments[..]
    } else {
        match arguments.split_first() {
            Some((first, rest)) if first == NAME => rest,
            _ => return Ok(arguments),
        }
    };
    let texts: Vec<String> = own.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let read = |file: &str| fs::read_to_string(file).map_err(|cause| format!("cannot read {file}: {cause}"));
    match translate(&texts, read) {
        Ok(Translation::Arguments(arguments)) => Ok(arguments.into_iter().map(OsString::from).collect()),
        Ok(Translation::Usage) => {
            console::data(USAGE);
            Err(ExitStatus::Success)
        }
        Err(text) => {
            console::error(&format!("{text}\n`linerate wondershaper -h` shows both forms"), None);
            Err(ExitStatus::Unable)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_is_whole_lines_and_names_the_file_of_presets() {
        assert!(USAGE.contains(linerate_shape::wondershaper::PRESETS_FILE), "{USAGE}");
        assert!(USAGE.ends_with(".\n") && USAGE.lines().all(|line| line.len() <= 80), "{USAGE}");
    }
}
