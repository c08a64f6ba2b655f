//! Command line of `linerate baseline`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linerate_units::{ByteCount, parse};

/// `linerate baseline`.
#[derive(Debug, Args)]
#[command(
    long_about = "Measures the throughput of this host without a network, to separate transfers limited by a disk, a \
                  processor or a cipher from those limited by the network: memory to memory (TCP over \
                  loopback), to and from a disk (past the page cache and through it), disk to disk, and encryption by \
                  one thread.\n\nFiles are written to the current directory or the given one. They have no name, \
                  so none of them remains, even after a crash.",
    after_help = "Examples:\n  linerate baseline\n  linerate baseline --directory /data --size 4GiB --time 10s\n  linerate \
                  baseline --json\n\nExit codes: 0 done, 2 usage or nothing could be measured, 3 interrupted."
)]
pub(crate) struct BaselineArguments {
    /// Directory of the test files: on the file system that a transfer would use
    #[arg(short, long, default_value = ".", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Largest file size; never more than a quarter of the free space
    #[arg(short, long, default_value = "1GiB", value_name = "SIZE", value_parser = size)]
    pub(crate) size: ByteCount,
    /// Longest time per part: loopback, writing, reading and copying; a quarter of it per cipher
    #[arg(short, long, default_value = "2s", value_name = "TIME", value_parser = time)]
    pub(crate) time: Duration,
    /// Print one JSON document (schema 1) instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON events while it measures, one per line; the last one has the document
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_stream: bool,
    /// No progress on the standard error output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn size(text: &str) -> Result<ByteCount, String> {
    let size = parse::size(text).map_err(|error| error.to_string())?;
    if size < ByteCount::from_mebibytes(1) { Err("at least 1MiB".to_owned()) } else { Ok(size) }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse::time(text).map_err(|error| error.to_string())?;
    let bounds = Duration::from_millis(100)..=Duration::from_secs(600);
    if bounds.contains(&time) { Ok(time) } else { Err("between 100ms and 10min".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(size("1GiB"), Ok(ByteCount::from_mebibytes(1024)));
        assert!(size("1kB").is_err() && size("x").is_err());
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert!(time("1ms").is_err() && time("1h").is_err());
    }
}
