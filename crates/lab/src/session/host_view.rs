//! Programs that compute in a guest, seen from its host: for a guest that does not answer.
//!
//! A program of a User-Mode Linux is a process of the host, too, whose memory is pieces of the file that is the guest's
//! memory. At the upper end of its stack the guest's kernel has left the path of the program (`AT_EXECFN` of
//! `getauxval(3)`) and eight zeros.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use linerate_model::socket::ProcessId;
use linerate_sys::supervise::process_state;

/// Bytes of a stack that are examined: the longest path, and its end.
const STACK_BLOCK_SIZE: u64 = 4096;

/// Bytes that the guest's kernel leaves above the path, with the path's own end.
const PATH_TERMINATOR: &[u8] = &[0; 9];

/// Programs of those of these processes that are running.
pub(super) fn running_programs(processes: &[ProcessId]) -> Vec<String> {
    let runs = |process: &&ProcessId| process_state(**process).is_some_and(|state| state.letter == 'R');
    processes.iter().filter(runs).filter_map(|process| program(*process)).collect()
}

fn program(process: ProcessId) -> Option<String> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut block = vec![0; usize::try_from(STACK_BLOCK_SIZE).ok()?];
    // The stack is the uppermost piece of the guest's memory that ends like one.
    maps.lines().rev().filter_map(end_of_piece).find_map(|end| {
        memory.read_exact_at(&mut block, end.checked_sub(STACK_BLOCK_SIZE)?).ok()?;
        path_at_end(&block)
    })
}

/// End of a piece of the guest's memory that its program can write; `None` for lines about anything else.
fn end_of_piece(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    let shared = rights.starts_with("rw") && rights.ends_with('s') && line.ends_with("(deleted)");
    let (_, end) = range.split_once('-')?;
    u64::from_str_radix(end, 16).ok().filter(|_| shared)
}

/// The path, when these bytes are the upper end of a stack.
fn path_at_end(block: &[u8]) -> Option<String> {
    let text = block.strip_suffix(PATH_TERMINATOR)?;
    let start = text.iter().rposition(|byte| *byte == 0)? + 1;
    let path = core::str::from_utf8(&text[start..]).ok()?;
    let plausible = path.len() > 1 && path.chars().all(|character| !character.is_control());
    plausible.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_the_guests_memory_differ_from_others() {
        let piece = "7f7f867000-7f7f868000 rwxs 03a3c000 00:1b 1018                       /dev/shm/#1018 (deleted)";
        assert_eq!(end_of_piece(piece), Some(0x7f_7f86_8000));
        for other in [
            "7f7ffff000-7f80000000 r-xs 0242c000 00:1b 1018                       /dev/shm/#1018 (deleted)",
            "7ffedd652000-7ffedd673000 rw-p 00000000 00:00 0                          [stack]",
            "",
        ] {
            assert_eq!(end_of_piece(other), None, "{other}");
        }
    }

    #[test]
    fn the_path_is_the_last_text() {
        assert_eq!(path_at_end(b"TERM=xterm\0/usr/bin/sh\0\0\0\0\0\0\0\0\0").as_deref(), Some("/usr/bin/sh"));
        assert_eq!(path_at_end(b"TERM=xterm\0/usr/bin/sh\0\0\0"), None, "not eight zeros");
        assert_eq!(path_at_end(&[0; 64]), None);
        assert_eq!(path_at_end(b"\0\x01\x02\0\0\0\0\0\0\0\0\0"), None, "no text");
    }

    #[test]
    fn this_process_is_no_guests() {
        assert_eq!(program(ProcessId(std::process::id())), None);
    }
}
