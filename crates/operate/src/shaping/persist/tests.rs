use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_documents::shaper_persistence::PersistenceStep;
use linerate_model::host::managers::{InterfaceManager, InterfaceOwnership};
use linerate_sys::Error;
use linerate_sys::command::{Output, run};
use linerate_sys::whole_file::FileMode;

use super::*;

pub(super) const LONG: Duration = Duration::from_secs(30);

/// Names that the kernel accepts and that need escaping.
const ODD_NAMES: [&str; 10] =
    ["eth0", "ppp0", "br-lan", "eth0.10", "wlan0_1", "a'b\"c", "$IFACE", "%i\\", "-x", "\u{e9}t\u{e9};&"];

/// A directory in place of a host.
pub(super) struct HostDirectory(pub(super) PathBuf);

impl HostDirectory {
    pub(super) fn with(directories: &[&str]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("linerate-persist-{}-{number}", std::process::id()));
        let root = Self(root);
        fs::create_dir_all(&root.0).expect("created");
        for directory in directories {
            fs::create_dir_all(root.0.join(directory)).expect("created");
        }
        root
    }

    pub(super) fn place(&self, owner: Option<InterfaceManager>) -> PersistenceHost {
        let owner = owner.map(|manager| InterfaceOwnership { manager, evidence: "/run/state".to_owned() });
        PersistenceHost::below(&self.0, owner, true)
    }

    /// Content of every file, and whether it is executable.
    pub(super) fn files(&self) -> BTreeMap<String, (String, bool)> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.0.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("there") {
                let path = entry.expect("there").path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let is_program = fs::metadata(&path).expect("there").permissions().mode() & 0o111 != 0;
                    let name = path.strip_prefix(&self.0).expect("below").display().to_string();
                    found.insert(format!("/{name}"), (fs::read_to_string(&path).expect("text"), is_program));
                }
            }
        }
        found
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.files().into_keys().collect()
    }
}

impl Drop for HostDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const EVERYTHING: [&str; 5] =
    ["run/systemd/system", "etc/NetworkManager", "etc/network/if-up.d", "etc/ppp/ip-up.d", "etc/ppp/ipv6-up.d"];

/// --autorate runs in a unit's process, never in a script's.
#[test]
fn autorate_runs_at_each_boot() {
    let words = ["wwan0", "--variable"].map(str::to_owned);
    let autorate = ["--autorate", "--reflector", "linerate:far:5201"].map(str::to_owned);
    let wish = PersistRequest::following("wwan0", &words, &autorate, "/usr/local/bin/linerate").expect("a request");
    let unit = systemd::unit_file(&wish, &[]).contents;
    let start =
        "ExecStart=/usr/local/bin/linerate shape wwan0 --variable --replace --autorate --reflector linerate:far:5201";
    assert!(unit.lines().any(|line| line == start), "{unit}");
    assert!(!unit.contains("--follow"));
    let root = HostDirectory::with(&EVERYTHING);
    let place = root.place(Some(InterfaceManager::NetworkManager));
    let plan = PersistencePlan::to_persist(&place, &wish, None).expect("systemd is there");
    assert_eq!(plan.managers.iter().map(|manager| manager.manager.name()).collect::<Vec<_>>(), ["systemd"]);
    assert_eq!(plan.words.last().map(String::as_str), Some("linerate:far:5201"));
    let refused =
        PersistencePlan::to_persist(&place, &wish, Some(ShaperManager::NetworkManager)).expect_err("its scripts end");
    assert!(refused.text.contains("have to end"), "{}", refused.text);
}

fn wish(device: &str) -> PersistRequest {
    let words = [device, "--up", "20M", "--interactive", "tcp/22"].map(str::to_owned);
    PersistRequest::new(device, &words, "/usr/local/bin/linerate").expect("a request")
}

/// Carries a plan out with commands that are only recorded.
pub(super) fn carry_out(plan: &PersistencePlan, place: &PersistenceHost) -> (Result<(), ShapeError>, Vec<String>) {
    let mut commands = Vec::new();
    let done = plan.changes.carry_out(place, &plan.files, &mut |command| {
        commands.push(command.join(" "));
        Ok(())
    });
    (done, commands)
}

fn persisted(place: &PersistenceHost, wish: &PersistRequest, manager: Option<ShaperManager>) -> Vec<String> {
    let plan = PersistencePlan::to_persist(place, wish, manager).expect("a plan");
    let (done, commands) = carry_out(&plan, place);
    done.expect("done");
    commands
}

/// Runs `env` with these arguments.
fn sh(words: &[&str]) -> Output {
    run("env", words, None, LONG).expect("sh runs")
}

fn all_files() -> impl Iterator<Item = (ShaperManager, &'static str, managers::PersistentFile)> {
    let of = |manager: &&'static PersistenceManagerEntry| {
        let (id, files) = (manager.id, manager.files);
        ODD_NAMES
            .into_iter()
            .flat_map(move |device| files(&wish(device)).into_iter().map(move |file| (id, device, file)))
    };
    MANAGERS.iter().flat_map(of).collect::<Vec<_>>().into_iter()
}

#[test]
fn every_manager_is_in_order() {
    let ids: BTreeSet<_> = managers().map(ShaperManager::name).collect();
    assert_eq!(ids.len(), MANAGERS.len());
    for manager in MANAGERS {
        assert!(manager.id.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", manager.id);
        assert!(!manager.title.is_empty());
        assert_eq!((manager.files)(&wish("eth0")).is_empty(), manager.shared.is_some(), "{}", manager.id);
        let unit = (manager.unit)(&wish("eth0")).map(|unit| format!("/etc/systemd/system/{unit}"));
        let paths: Vec<String> = (manager.files)(&wish("eth0")).into_iter().map(|file| file.path).collect();
        assert!(unit.is_none_or(|unit| paths.contains(&unit)), "{}: {paths:?}", manager.id);
        let empty = HostDirectory::with(&[]);
        assert!((manager.obstacle)(&empty.place(None)).is_some(), "{} on a host that has nothing", manager.id);
    }
}

#[test]
fn every_file_is_in_order() {
    for (id, device, file) in all_files() {
        assert!(file_header::is_ours(&file.contents, device), "{id} {device}\n{}", file.contents);
        assert!(file.contents.ends_with('\n') && !file.contents.contains("\n\n\n"), "{id} {device}");
        assert!(file.contents.lines().all(|line| line == line.trim_end()), "{id} {device}\n{}", file.contents);
        assert!(file.path.starts_with("/etc/") && !file.path.contains("/../"), "{id}: {}", file.path);
        assert_eq!(file.contents.starts_with("#!/bin/sh\n"), file.mode == FileMode::Program, "{id}");
        let name = file.path.rsplit('/').next().expect("a name");
        if file.mode == FileMode::Program {
            let is_run = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert!(name.bytes().all(is_run), "run-parts(8) would leave {name} out");
        } else {
            assert!(name.ends_with(".service") && name.len() < 255);
        }
    }
}

#[test]
fn no_two_interfaces_have_one_file() {
    let mut paths = BTreeMap::new();
    for (_, device, file) in all_files() {
        let other = paths.insert(file.path.clone(), device);
        assert!(other.is_none_or(|other| other == device), "{}: {other:?} and {device}", file.path);
    }
}

#[test]
fn every_script_is_one() {
    let root = HostDirectory::with(&[]);
    for (id, device, file) in all_files().filter(|(.., file)| file.mode == FileMode::Program) {
        let path = root.0.join("script");
        fs::write(&path, &file.contents).expect("written");
        let output = run("sh", &["-n", &path.display().to_string()], None, LONG).expect("sh runs");
        assert!(output.status.success(), "{id} {device}: {}\n{}", output.stderr_text(), file.contents);
    }
}

/// A program that records its arguments, a line each, and ends with this status.
fn recorder(root: &HostDirectory, status: i32) -> String {
    let program = root.0.join("line rate$'%\"");
    let record = root.0.join("record");
    let text = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\nexit {status}\n", record.display());
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
    program.display().to_string()
}

/// Arguments that a script passed to the program; `None`: not run.
fn recorded(
    root: &HostDirectory,
    wish: &PersistRequest,
    manager: ShaperManager,
    file: usize,
    before: &[&str],
    after: &[&str],
) -> Option<Vec<String>> {
    let manager = MANAGERS.iter().find(|entry| entry.id == manager).expect("there");
    let script = root.0.join("script");
    fs::write(&script, &(manager.files)(wish)[file].contents).expect("written");
    let record = root.0.join("record");
    let _ = fs::remove_file(&record);
    let script = script.display().to_string();
    let words: Vec<&str> = before.iter().copied().chain(["sh", &script]).chain(after.iter().copied()).collect();
    let output = sh(&words);
    assert!(output.status.success(), "a network without a shaper is better than none: {}", output.stderr_text());
    fs::read_to_string(record).ok().map(|text| text.lines().map(str::to_owned).collect())
}

#[test]
fn scripts_run_the_program_for_their_interface_and_event_only() {
    let root = HostDirectory::with(&[]);
    let program = recorder(&root, 0);
    for device in ODD_NAMES {
        let words = [device, "--up", "1", "--bulk", "it's \"$HOME\" `id` %i \\"].map(str::to_owned);
        let wish = PersistRequest::new(device, &words, &program).expect("a request");
        let up = Some([&["shape".to_owned()], words.as_slice(), &["--replace", "--quiet"].map(str::to_owned)].concat());
        let down = Some(["shape", device, "off", "--quiet"].map(str::to_owned).to_vec());
        let variable = |value: &str| format!("IFACE={value}");
        let ppp = |value: &str| format!("PPP_IFACE={value}");
        for event in ["up", "dhcp4-change", "dhcp6-change", "vpn-up", "reapply"] {
            assert_eq!(
                recorded(&root, &wish, ShaperManager::NetworkManager, 0, &[], &[device, event]),
                up,
                "{device} {event}"
            );
        }
        for event in ["down", "pre-up", "hostname", "uppish", ""] {
            assert_eq!(
                recorded(&root, &wish, ShaperManager::NetworkManager, 0, &[], &[device, event]),
                None,
                "{event}"
            );
        }
        assert_eq!(recorded(&root, &wish, ShaperManager::NetworkManager, 0, &[], &["eth9", "up"]), None);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ifupdown, 0, &[&variable(device)], &[]), up);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ifupdown, 1, &[&variable(device)], &[]), down);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ifupdown, 0, &[&variable("eth9")], &[]), None);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ppp, 0, &[&ppp(device)], &["ppp9", "pts/0"]), up);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ppp, 0, &["-u", "PPP_IFACE"], &[device, "pts/0"]), up);
        assert_eq!(recorded(&root, &wish, ShaperManager::Ppp, 1, &[&ppp("ppp9")], &[device]), None);
    }
}

#[test]
fn a_script_whose_program_fails_or_is_gone_does_not_fail() {
    let root = HostDirectory::with(&[]);
    let words = ["eth0".to_owned()];
    let failing = PersistRequest::new("eth0", &words, &recorder(&root, 2)).expect("a request");
    assert!(recorded(&root, &failing, ShaperManager::Ifupdown, 0, &["IFACE=eth0"], &[]).is_some());
    let gone = PersistRequest::new("eth0", &words, "/nowhere/linerate").expect("a request");
    assert_eq!(recorded(&root, &gone, ShaperManager::Ifupdown, 0, &["IFACE=eth0"], &[]), None);
}

#[test]
fn every_unit_is_one() {
    let root = HostDirectory::with(&["units"]);
    for (manager, device) in [ShaperManager::Systemd, ShaperManager::Networkd]
        .into_iter()
        .flat_map(|id| ODD_NAMES.map(|device| (id, device)))
    {
        let manager = MANAGERS.iter().find(|entry| entry.id == manager).expect("there");
        let words = [device, "--up", "1", "--bulk", "it's \"$HOME\" %i \\ ;"].map(str::to_owned);
        let wish = PersistRequest::new(device, &words, "/bin/sh").expect("a request");
        let file = &(manager.files)(&wish)[0];
        let path = root.0.join("units").join(file.path.rsplit('/').next().expect("a name"));
        fs::write(&path, &file.contents).expect("written");
        let output = run("systemd-analyze", &["verify", "--man=no", &path.display().to_string()], None, LONG)
            .expect("not run: systemd-analyze of the package systemd is needed");
        let complaints = output.stderr_text();
        let has_manager = !complaints.contains("Failed to initialize manager");
        assert!(has_manager, "not run: systemd-analyze does not work here: {complaints}");
        // Older versions ignore keys new in systemd 254.
        let is_new = |line: &&str| line.contains("'RestartSteps'") || line.contains("'RestartMaxDelaySec'");
        let complaints: Vec<&str> = complaints.lines().filter(|line| !is_new(line)).collect();
        assert!(output.status.success() && complaints.is_empty(), "{device}: {complaints:?}\n{}", file.contents);
    }
}

#[test]
fn the_interfaces_manager_sets_it_up() {
    let root = HostDirectory::with(&EVERYTHING);
    let chosen = |root: &HostDirectory, device: &str, owner: Option<InterfaceManager>| -> Vec<&str> {
        let chosen = managers::choose(&root.place(owner), &wish(device), None).expect("a manager");
        assert!(chosen.iter().all(|(_, reason)| !reason.is_empty()));
        chosen.iter().map(|(manager, _)| manager.id.name()).collect()
    };
    let cases = [
        ("eth0", None, vec!["systemd"]),
        ("eth0", Some(InterfaceManager::Networkd), vec!["networkd"]),
        ("eth0", Some(InterfaceManager::Netplan), vec!["networkd"]),
        ("eth0", Some(InterfaceManager::NetworkManager), vec!["systemd", "network-manager"]),
        ("eth0", Some(InterfaceManager::Ifupdown), vec!["systemd", "ifupdown"]),
        ("ppp0", None, vec!["systemd", "ppp"]),
        ("ppp0", Some(InterfaceManager::Ifupdown), vec!["systemd", "ifupdown", "ppp"]),
    ];
    for (device, owner, expected) in cases {
        assert_eq!(chosen(&root, device, owner), expected, "{device} {owner:?}");
    }
    let without_systemd = HostDirectory::with(&EVERYTHING[1..]);
    assert_eq!(chosen(&without_systemd, "eth0", Some(InterfaceManager::NetworkManager)), ["network-manager"]);
    assert_eq!(chosen(&without_systemd, "ppp0", None), ["ppp"]);
    let error = managers::choose(&without_systemd.place(None), &wish("eth0"), None).expect_err("no manager");
    let advice = error.advice.expect("a remedy");
    assert!(advice.ends_with("linerate shape eth0 --up 20M --interactive tcp/22 --replace --quiet"), "{advice}");
    let error = managers::choose(&without_systemd.place(None), &wish("eth0"), Some(ShaperManager::Systemd))
        .expect_err("not here");
    assert!(error.text.contains("/run/systemd/system"), "{}", error.text);
}

#[test]
fn persist_change_and_unpersist() {
    let root = HostDirectory::with(&EVERYTHING);
    let place = root.place(Some(InterfaceManager::NetworkManager));
    let unit = "linerate-shape-eth0.service";
    let commands = persisted(&place, &wish("eth0"), None);
    let enable = format!("systemctl enable {unit}");
    let then = |verb: &str| format!("systemctl --no-block {verb} {unit}");
    assert_eq!(commands, ["systemctl daemon-reload", &enable, &then("restart")]);
    let (script, file) =
        ("/etc/NetworkManager/dispatcher.d/90-linerate-eth0".to_owned(), format!("/etc/systemd/system/{unit}"));
    let files = root.files();
    assert_eq!(files.keys().collect::<Vec<_>>(), [&script, &file]);
    assert!(files[&script].1 && !files[&file].1, "the script can be run");

    assert_eq!(persisted(&place, &wish("eth0"), None).last(), Some(&then("start")));
    assert_eq!(root.files(), files, "equal requests produce equal files");

    let other =
        PersistRequest::new("eth0", &["eth0", "--up", "1"].map(str::to_owned), "/usr/bin/linerate").expect("a request");
    assert_eq!(persisted(&place, &other, None).last(), Some(&then("restart")));
    assert!(root.files()[&file].0.contains("shape eth0 --up 1 --replace"));

    let commands = persisted(&place, &other, Some(ShaperManager::NetworkManager));
    assert_eq!(root.paths(), [script], "the file of the earlier choice is removed");
    assert_eq!(commands, [&format!("systemctl disable {unit}"), "systemctl daemon-reload", &then("stop")]);

    let plan = PersistencePlan::to_unpersist(&place, &wish("eth0")).expect("a plan");
    carry_out(&plan, &place).0.expect("done");
    assert!(root.paths().is_empty());
    let plan = PersistencePlan::to_unpersist(&place, &wish("eth0")).expect("a plan");
    assert!(plan.files.is_empty() && plan.notes.is_empty(), "nothing left to do is no error");
}

#[test]
fn the_unit_of_a_missing_interface_is_not_started() {
    let root = HostDirectory::with(&EVERYTHING);
    let place = PersistenceHost::below(&root.0, None, false);
    let commands = persisted(&place, &wish("ppp0"), None);
    assert_eq!(commands, ["systemctl daemon-reload", "systemctl enable linerate-shape-ppp0.service"]);
    assert_eq!(root.paths().len(), 3, "the unit, and a hook for each of IPv4 and IPv6");
}

#[test]
fn foreign_files_are_not_changed() {
    let root = HostDirectory::with(&EVERYTHING);
    let place = root.place(Some(InterfaceManager::NetworkManager));
    persisted(&place, &wish("eth1"), None);
    let path = root.0.join("etc/NetworkManager/dispatcher.d/90-linerate-eth0");
    fs::write(&path, "#!/bin/sh\n# foreign\n").expect("written");
    let before = root.files();
    let error = PersistencePlan::to_persist(&place, &wish("eth0"), None).expect_err("a foreign file");
    assert!(error.text.contains("90-linerate-eth0") && error.advice.is_some(), "{}", error.text);
    let plan = PersistencePlan::to_unpersist(&place, &wish("eth0")).expect("a plan");
    assert!(plan.files.is_empty());
    carry_out(&plan, &place).0.expect("nothing to do");
    assert_eq!(root.files(), before);
}

#[test]
fn one_unwritable_file_rolls_the_others_back() {
    let root = HostDirectory::with(&EVERYTHING);
    let place = root.place(Some(InterfaceManager::NetworkManager));
    // Not even root can create a file below a file.
    fs::write(root.0.join("etc/NetworkManager/dispatcher.d"), "in the way").expect("written");
    let before = root.files();
    let plan = PersistencePlan::to_persist(&place, &wish("eth0"), None).expect("a plan");
    let (done, commands) = carry_out(&plan, &place);
    let error = done.expect_err("in the way");
    assert!(error.text.contains("dispatcher.d") && error.text.ends_with("nothing was changed"), "{}", error.text);
    assert_eq!(root.files(), before);
    assert!(!commands.iter().any(|command| command.contains("enable")), "{commands:?}");
}

#[test]
fn a_failed_command_restores_the_files() {
    let refused = || Err(Error::Cancelled { operation: "systemctl".to_owned() });
    for failing in ["daemon-reload", "enable", "restart", "disable", "stop"] {
        let root = HostDirectory::with(&EVERYTHING);
        let place = root.place(Some(InterfaceManager::Ifupdown));
        let is_removal = matches!(failing, "disable" | "stop");
        if is_removal {
            persisted(&place, &wish("eth0"), None);
        }
        let before = root.files();
        let plan = if is_removal {
            PersistencePlan::to_unpersist(&place, &wish("eth0"))
        } else {
            PersistencePlan::to_persist(&place, &wish("eth0"), None)
        };
        let plan = plan.expect("a plan");
        let mut commands = Vec::new();
        let done = plan.changes.carry_out(&place, &plan.files, &mut |command| {
            commands.push(command.join(" "));
            if command.iter().any(|word| word == failing) { refused() } else { Ok(()) }
        });
        assert!(done.is_err(), "{failing}");
        assert_eq!(root.files(), before, "{failing}");
        let is_enabled_last =
            commands.iter().rev().find(|line| line.contains("able ")).map(|line| line.contains("enable "));
        assert_eq!(is_enabled_last, Some(is_removal), "{failing}: {commands:?}");
    }
}

#[test]
fn invalid_names_and_arguments_are_refused() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for name in ["", ".", "..", "a/b", "a b", "a:b", "eth0\n", "sixteen-bytes-xx"] {
        assert!(PersistRequest::to_forget(name).is_err(), "{name:?}");
    }
    assert!(PersistRequest::new("eth0", &words(&["eth1"]), "/bin/linerate").is_err());
    assert!(PersistRequest::new("eth0", &words(&[]), "/bin/linerate").is_err());
    assert!(PersistRequest::new("eth0", &words(&["eth0", "a\nb"]), "/bin/linerate").is_err());
    assert_eq!(wish("eth0").notes(), Vec::<String>::new());
    let fleeting = PersistRequest::new("eth0", &words(&["eth0"]), "/tmp/linerate").expect("a request");
    assert!(fleeting.notes()[0].contains("/usr/local/bin"));
}

#[test]
fn a_document_says_what_is_done_and_what_would_be() {
    let root = HostDirectory::with(&EVERYTHING);
    let place = root.place(Some(InterfaceManager::Networkd));
    let plan = PersistencePlan::to_persist(&place, &wish("eth0"), None).expect("a plan");
    let planned = document(&plan, false);
    assert_eq!(planned.files[0].change, PersistenceStep::Created);
    assert_eq!(planned.files[0].mode.as_deref(), Some("0644"));
    assert!(!planned.is_done && planned.managers[0].manager == ShaperManager::Networkd);
    assert!(planned.commands.iter().any(|line| line == "systemctl daemon-reload"), "{:?}", planned.commands);
    assert!(planned.files[0].contents.as_ref().is_some_and(|text| text.contains("BindsTo=")));
    assert!(planned.notes.iter().any(|note| note.contains("[CAKE]")));
    assert!(document(&plan, true).is_done);
    let nothing = PersistencePlan::to_unpersist(&place, &wish("eth0")).expect("a plan");
    assert!(document(&nothing, true).files.is_empty());
    assert!(!Path::new("/etc/systemd/system/linerate-shape-eth0.service").exists() && root.paths().is_empty());
}
