//! A table of nftables in the family `inet`, read and written as a whole with the program `nft`.

use core::time::Duration;

use crate::command;
use crate::error::{Error, Result};

const NFT_TIMEOUT: Duration = Duration::from_secs(10);

/// The table as `nft` prints it, without counters; `None` when there is none of this name.
pub(super) fn read(name: &str) -> Result<Option<String>> {
    let tables = nft(&["list", "tables", "inet"], None)?;
    let heading = format!("table inet {name}");
    if !tables.lines().any(|line| line.trim_end() == heading) {
        return Ok(None);
    }
    Ok(Some(nft(&["-s", "list", "table", "inet", name], None)?.trim_end().to_owned()))
}

/// Creates the table with commands of `nft`, one a line, or restores it from its listing; `None` deletes it. Each is one
/// transaction: afterwards the table is there completely, or as before.
pub(super) fn write(name: &str, value: Option<&str>) -> Result<()> {
    nft(&["-f", "-"], Some(&script(name, value)?)).map(drop)
}

/// Input of `nft -f`. Commands about anything else than this table are refused.
fn script(name: &str, value: Option<&str>) -> Result<String> {
    let Some(value) = value else { return Ok(format!("delete table inet {name}\n")) };
    if value.starts_with(&format!("table inet {name} {{")) {
        // Adding a table that exists is no error, deleting one that does not is.
        return Ok(format!("add table inet {name}\ndelete table inet {name}\n{value}\n"));
    }
    let (creation, others) = value.split_once('\n').unwrap_or((value, ""));
    let is_of_table =
        |line: &str| ["chain", "rule"].iter().any(|object| line.starts_with(&format!("add {object} inet {name} ")));
    if creation != format!("create table inet {name}") || !others.lines().all(is_of_table) {
        let reason = "the commands are not about this table alone";
        return Err(Error::refused(format!("setting up the nftables table {name}"), reason));
    }
    Ok(format!("{value}\n"))
}

fn nft(arguments: &[&str], input: Option<&str>) -> Result<String> {
    let input = input.map(str::as_bytes);
    Ok(command::run_bound_checked("nft", arguments, input, NFT_TIMEOUT)?.stdout_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: &str = "create table inet marks\nadd chain inet marks store { type filter hook postrouting priority -150 ; }\n\
                            add rule inet marks store ip dscp 0x2e ct mark set ct mark and 0x02ffffff or 0xb9000000";

    #[test]
    fn commands_about_other_tables_are_refused() {
        assert_eq!(script("marks", Some(COMMANDS)).expect("about it"), format!("{COMMANDS}\n"));
        assert_eq!(script("marks", None).expect("a name"), "delete table inet marks\n");
        let others = [
            "flush ruleset",
            "create table inet other",
            "create table inet marks\ndelete table inet filter",
            "create table inet marks\nadd rule inet marks2 store accept",
            "table inet marks2 {",
        ];
        for commands in others {
            assert!(script("marks", Some(commands)).is_err(), "{commands}");
        }
    }

    #[test]
    #[ignore = "needs root and nft: a table in a network namespace"]
    fn a_table_is_created_read_restored_and_deleted() {
        let namespace = crate::namespace::NetworkNamespace::create().expect("root");
        let within = || {
            assert_eq!(read("marks").expect("read"), None);
            write("marks", Some(COMMANDS)).expect("created");
            let table = read("marks").expect("read").expect("there");
            assert!(table.contains("0xb9000000"), "{table}");
            assert!(write("marks", Some(COMMANDS)).is_err(), "it exists");
            assert_eq!(read("marks").expect("read"), Some(table.clone()), "unchanged by a failed write");
            write("marks", None).expect("deleted");
            write("marks", Some(&table)).expect("restored");
            assert_eq!(read("marks").expect("read"), Some(table));
            write("marks", None).expect("deleted");
            assert_eq!(read("marks").expect("read"), None);
        };
        namespace.within(within).expect("entered");
    }
}
