//! Changes to the kernel's sources: small, each at a location found by its text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::BuildEvent;
use super::error::KernelError;
use super::recipe::{CLOCK_CODE, HEADERS, HEADERS_RULE, SEED_CODE};
use super::shared_clock;
use super::workspace::BuildWorkspace;

/// A change of one file.
struct SourceEdit {
    /// Name of its purpose.
    name: &'static str,
    file: &'static str,
    change: EditChange,
    /// Consequence when its location is not found.
    otherwise: &'static str,
}

pub(super) enum EditChange {
    /// The text `anchor`, which must be there exactly once, becomes `by`.
    Replace { anchor: &'static str, by: &'static str },
    /// `text` goes in front of the text `before`, which must be there exactly once.
    Insert { before: &'static str, text: &'static str },
    /// As above, in the versions of the sources that have this text; the others need no change.
    Where { anchor: &'static str, by: &'static str },
    /// The text is added at the end.
    Append(&'static str),
}

const EDITS: [SourceEdit; 10] = [
    SourceEdit {
        name: "seeded-randomness",
        file: "drivers/char/random.c",
        change: EditChange::Replace {
            anchor: "static void extract_entropy(void *buf, size_t len)\n{\n",
            by: SEED_CODE,
        },
        otherwise: "ports, sequence numbers and hashes differ from run to run",
    },
    SourceEdit {
        name: "thousand-ticks",
        file: "arch/um/Kconfig",
        change: EditChange::Replace {
            anchor: "config HZ\n\tint\n\tdefault 100\n",
            by: "config HZ\n\tint\n\tdefault 1000\n",
        },
        otherwise: "the guest's clock ticks 100 times a second: timers of TCP are coarser",
    },
    SourceEdit {
        name: "cost-of-a-look",
        file: "arch/um/kernel/time.c",
        change: EditChange::Replace { anchor: "static u64 timer_read(struct clocksource *cs)\n", by: CLOCK_CODE },
        otherwise: WITHOUT_CLOCK,
    },
    SourceEdit {
        name: "cost-of-looking-only",
        file: "arch/um/kernel/time.c",
        change: EditChange::Replace {
            anchor: "\t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n",
            by: "\t\t\ttime_travel_update_time_rel(linerate_look());\n",
        },
        otherwise: WITHOUT_CLOCK,
    },
    SourceEdit {
        name: "files-below-an-overlay",
        file: "fs/hostfs/hostfs_kern.c",
        change: EditChange::Where {
            anchor: "\t\tr = w = 1;\n\n\tname = dentry_name(file->f_path.dentry);\n",
            by: "\t\tr = w = 1;\n\n\tname = dentry_name(file_dentry(file));\n",
        },
        otherwise: "the guest's programs cannot be started",
    },
    // Linux 7.2, for one, has not this function in the vDSO of User-Mode Linux; rustix insists on it.
    SourceEdit {
        name: "getcpu-in-the-vdso",
        file: "arch/x86/um/vdso/um_vdso.c",
        change: EditChange::Where { anchor: "#include <linux/time.h>\n#include <asm/unistd.h>\n", by: GETCPU_CODE },
        otherwise: WITHOUT_GETCPU,
    },
    SourceEdit {
        name: "getcpu-among-the-symbols-of-the-vdso",
        file: "arch/x86/um/vdso/vdso.lds.S",
        change: EditChange::Where {
            anchor: "\t\t__vdso_gettimeofday;\n\t\ttime;\n",
            by: "\t\t__vdso_gettimeofday;\n\t\t__vdso_getcpu;\n\t\ttime;\n",
        },
        otherwise: WITHOUT_GETCPU,
    },
    SourceEdit {
        name: "few-drivers",
        file: "drivers/Makefile",
        change: EditChange::Append("\n# Added by linerate.\nobj-y := $(filter base/ char/ net/ tty/,$(obj-y))\n"),
        otherwise: "the build looks into every driver's directory",
    },
    SourceEdit {
        name: "few-network-drivers",
        file: "drivers/net/Makefile",
        change: EditChange::Append("\n# Added by linerate.\nobj-y := $(filter %.o,$(obj-y))\n"),
        otherwise: "the build looks into every network driver's directory",
    },
    SourceEdit {
        name: "precompiled-headers",
        file: "Kbuild",
        change: EditChange::Append(HEADERS_RULE),
        otherwise: "the build takes twice as long",
    },
];

/// The guest has one processor.
const GETCPU_CODE: &str = "#include <linux/time.h>\n#include <asm/unistd.h>\n\n\
    long __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *cache);\n\
    long __vdso_getcpu(unsigned int *cpu, unsigned int *node, void *cache)\n{\n\
    \tif (cpu)\n\t\t*cpu = 0;\n\tif (node)\n\t\t*node = 0;\n\treturn 0;\n}\n\n";

const WITHOUT_GETCPU: &str = "programs that look for getcpu in the vDSO, as linerate's guest does, end at their start";
const WITHOUT_CLOCK: &str = "programs that ask for the time in a loop, as some iperf3 do, take very long";

/// Makes all changes that can be made in the tree; returns their names. The others are noted.
pub(super) fn apply(tree: &Path, workshop: &mut BuildWorkspace<'_>) -> Result<Vec<String>, KernelError> {
    write(&tree.join("linerate/precompiled.h"), HEADERS)?;
    // Replaces the compiled form where that is missing.
    write(&tree.join("linerate/all.h"), "")?;
    let mut made = Vec::new();
    for edit in &EDITS {
        let path = tree.join(edit.file);
        let text = fs::read_to_string(&path).unwrap_or_default();
        match changed(&text, &edit.change) {
            Some(text) => {
                write(&path, &text)?;
                made.push(edit.name.to_owned());
            }
            None if matches!(edit.change, EditChange::Where { .. }) => {}
            None => workshop.tell(&BuildEvent::Note(format!(
                "{} is not as expected, so the change {} is skipped: {}",
                edit.file, edit.name, edit.otherwise
            ))),
        }
    }
    if share_clock(tree)? {
        made.push(shared_clock::NAME.to_owned());
    } else {
        let text = format!("these sources lack the locations of {}: {}", shared_clock::NAME, shared_clock::OTHERWISE);
        workshop.tell(&BuildEvent::Note(text));
    }
    Ok(made)
}

/// Makes the changes of the clock that programs read without a system call; false when one cannot be made, and then none is.
fn share_clock(tree: &Path) -> Result<bool, KernelError> {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for (file, change) in &shared_clock::EDITS {
        let read = || fs::read_to_string(tree.join(file)).unwrap_or_default();
        let Some(text) = changed(texts.entry(file).or_insert_with(read), change) else { return Ok(false) };
        texts.insert(file, text);
    }
    let (header, code) = shared_clock::HEADER;
    texts.insert(header, code.to_owned());
    texts.into_iter().try_for_each(|(file, text)| write(&tree.join(file), &text))?;
    Ok(true)
}

fn write(path: &Path, text: &str) -> Result<(), KernelError> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, text))
        .map_err(|cause| KernelError::file("writing", path, cause))
}

/// Text after the change; `None` when its location is missing or ambiguous.
fn changed(text: &str, change: &EditChange) -> Option<String> {
    match change {
        EditChange::Replace { anchor, by } | EditChange::Where { anchor, by } => {
            let (before, after) = text.split_once(anchor)?;
            (!after.contains(anchor)).then(|| [before, by, after].concat())
        }
        EditChange::Insert { before: anchor, text: more } => {
            let (before, after) = text.split_once(anchor)?;
            (!after.contains(anchor)).then(|| [before, more, anchor, after].concat())
        }
        EditChange::Append(more) => (!text.is_empty()).then(|| [text, more].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::tests::TestCache;
    use super::*;

    fn edit(name: &str, text: &str) -> Option<String> {
        changed(text, &EDITS.iter().find(|edit| edit.name == name).expect("its name").change)
    }

    /// As in Linux 6.1 to 6.12.
    const RANDOM: &str = "/*\n * as a PRF key, that's then expanded block-by-block.\n */\nstatic void \
                          extract_entropy(void *buf, size_t len)\n{\n\tunsigned long flags;\n\tu8 \
                          seed[BLAKE2S_HASH_SIZE];\n}\n\n#define credit_init_bits(bits) 0\n\
                          \textract_entropy(key, sizeof(key));\n";

    #[test]
    fn randomness_gets_its_new_head_and_keeps_its_old_body() {
        let text = edit("seeded-randomness", RANDOM).expect("the anchor is there");
        assert!(text.contains("\nstatic void extract_pool_entropy(void *buf, size_t len)\n{\n\tunsigned long flags;"));
        assert!(text.contains("static void __ref extract_entropy(void *buf, size_t len)\n{\n\tstatic bool looked"));
        assert!(text.ends_with("extract_entropy(key, sizeof(key));\n"));
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn looking_at_the_clock_costs_more_the_longer_nothing_else_is_done() {
        let text = "static u64 timer_read(struct clocksource *cs)\n{\n\t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n}\n";
        let text = edit("cost-of-a-look", text).expect("the anchor is there");
        let text = edit("cost-of-looking-only", &text).expect("the anchor is there");
        assert!(
            text.contains("linerate_look());") && text.contains("\nstatic u64 timer_read(struct clocksource *cs)\n{\n")
        );
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    /// Tree in which each change of the shared clock finds its location.
    fn tree(folder: &Path) {
        for (file, change) in &shared_clock::EDITS {
            let (EditChange::Insert { before: anchor, .. } | EditChange::Replace { anchor, .. }) = change else {
                panic!("no location in {file}");
            };
            let path = folder.join(file);
            let text = fs::read_to_string(&path).unwrap_or_default() + anchor + "\n";
            write(&path, &text).expect("a file");
        }
    }

    #[test]
    fn the_clock_is_shared_by_all_parts_or_by_none() {
        let cache = TestCache::new("shared-clock");
        tree(&cache.0);
        assert!(share_clock(&cache.0).expect("written"));
        for (file, _) in &shared_clock::EDITS {
            let text = fs::read_to_string(cache.0.join(file)).expect("there");
            assert!(text.contains("linerate_"), "{file}: {text}");
        }
        assert!(cache.0.join("linerate/shared_clock.h").is_file());
        let older = TestCache::new("no-shared-clock");
        tree(&older.0);
        write(&older.0.join("arch/x86/um/vdso/vma.c"), "extern unsigned long task_size;\n").expect("a file");
        assert!(!share_clock(&older.0).expect("nothing written"));
        let text = fs::read_to_string(older.0.join("arch/um/kernel/time.c")).expect("there");
        assert!(!text.contains("linerate_settle") && !older.0.join("linerate/shared_clock.h").exists());
    }

    #[test]
    fn older_sources_open_the_file_below_an_overlay() {
        let older = "\tif (mode & FMODE_WRITE)\n\t\tr = w = 1;\n\n\tname = dentry_name(file->f_path.dentry);\n";
        let newer = "\tif (mode & FMODE_WRITE)\n\t\tr = w = 1;\n\n\tname = dentry_name(file_dentry(file));\n";
        assert_eq!(edit("files-below-an-overlay", older).as_deref(), Some(newer));
        assert_eq!(edit("files-below-an-overlay", newer), None);
    }

    #[test]
    fn newer_sources_get_getcpu_back_and_older_ones_keep_theirs() {
        let newer = "\t\t__vdso_gettimeofday;\n\t\ttime;\n";
        let older = "\t\t__vdso_gettimeofday;\n\t\tgetcpu;\n\t\t__vdso_getcpu;\n\t\ttime;\n";
        let edited = edit("getcpu-among-the-symbols-of-the-vdso", newer).expect("the anchor is there");
        assert_eq!(edited.matches("getcpu").count(), 1);
        assert_eq!(edit("getcpu-among-the-symbols-of-the-vdso", older), None);
        let code = edit("getcpu-in-the-vdso", "#include <linux/time.h>\n#include <asm/unistd.h>\n").expect("there");
        assert_eq!(code.matches('{').count(), code.matches('}').count());
        assert_eq!(edit("getcpu-in-the-vdso", "#include <linux/time.h>\n#include <linux/getcpu.h>\n"), None);
    }

    #[test]
    fn a_missing_or_doubled_place_is_no_place() {
        assert_eq!(edit("seeded-randomness", &RANDOM.replace("size_t len", "size_t length")), None);
        assert_eq!(edit("seeded-randomness", &RANDOM.repeat(2)), None);
        assert_eq!(edit("few-drivers", ""), None);
    }

    #[test]
    fn ticks() {
        let text = "config HZ\n\tint\n\tdefault 100\n\nconfig NR_CPUS\n\tint\n";
        assert_eq!(
            edit("thousand-ticks", text).as_deref(),
            Some("config HZ\n\tint\n\tdefault 1000\n\nconfig NR_CPUS\n\tint\n")
        );
    }

    #[test]
    fn rules_of_make_are_added_as_they_are() {
        let text = edit("precompiled-headers", "prepare: x\n").expect("can always be added");
        assert!(text.starts_with("prepare: x\n\n") && text.contains("\n\t-$(CC) "), "a rule begins with a tab: {text}");
    }
}
