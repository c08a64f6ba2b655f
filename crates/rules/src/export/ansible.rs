//! Playbook of Ansible, with built-in modules only.

use core::fmt::Write;
use core::net::IpAddr;

use linerate_model::change::{ChangeTarget, HostChange};

use super::text::{comment, file_name, unique_names, yaml_document, yaml_quoted};
use super::{ExportedFile, HostChanges, PlanFormat, sysctl_d, sysfs, systemd_link};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "ansible",
    title: "a playbook for Ansible",
    use_it: "`ansible-playbook -i INVENTORY linerate.yml` installs the files, and applies settings and values of /sys; \
             links take theirs when they appear: at the next boot.",
    source: "documentation of ansible.builtin.copy and ansible.builtin.command; sysctl.d(5), systemd.link(5), \
             tmpfiles.d(5)",
    takes: supports,
    write,
};

fn supports(change: &HostChange) -> Result<(), &'static str> {
    match &change.target {
        ChangeTarget::Setting { .. } => Ok(()),
        _ if systemd_link::key(change).is_some() || sysfs::line(change).is_some() => Ok(()),
        _ => Err("no configuration file of the host sets it at boot"),
    }
}

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    let inventory = unique_names(hosts.iter().map(|host| inventory_name(host.host)), usize::MAX);
    let plays: Vec<String> = hosts.iter().zip(&inventory).map(|(host, name)| play(host, name)).collect();
    let names: Vec<&str> = hosts.iter().map(|host| host.host).collect();
    let text = yaml_document(&format!("---\n{}", plays.join("\n")));
    vec![ExportedFile { hosts: names.join(", "), name: "linerate.yml".to_owned(), text }]
}

/// Groups of every inventory.
const GROUPS: [&str; 2] = ["all", "ungrouped"];

/// Name of a host in an inventory: its own, unless Ansible would take it for a pattern or a group.
fn inventory_name(host: &str) -> String {
    let is_plain = |name: &str| {
        name.starts_with(char::is_alphanumeric)
            && name.chars().all(|letter| letter.is_alphanumeric() || "._-".contains(letter))
    };
    let (address, zone) = host.split_once('%').unwrap_or((host, "lo"));
    let is_address = address.parse::<IpAddr>().is_ok() && is_plain(zone);
    if is_address || is_plain(host) && !GROUPS.contains(&host) {
        return host.to_owned();
    }
    format!("host-{}", file_name(host))
}

/// File that a play installs, with the command that applies it.
struct InstalledFile {
    location: String,
    text: String,
    command: Option<&'static str>,
}

fn files(changes: &[&HostChange]) -> Vec<InstalledFile> {
    let settings = sysctl_d::settings(changes);
    let values = sysfs::lines(changes);
    let mut files = Vec::new();
    if !settings.is_empty() {
        files.push(InstalledFile { location: sysctl_d::FILE.to_owned(), text: settings, command: Some("sysctl -p") });
    }
    for (interface, text) in systemd_link::links(changes) {
        files.push(InstalledFile { location: systemd_link::file(interface), text, command: None });
    }
    if !values.is_empty() {
        let text = values.join("\n") + "\n";
        let command = Some("systemd-tmpfiles --create");
        files.push(InstalledFile { location: sysfs::FILE.to_owned(), text, command });
    }
    files
}

fn play(host: &HostChanges<'_>, name: &str) -> String {
    let mut text = String::new();
    if name != host.host {
        text.push_str(&comment(0, &format!("In the inventory, {name} is the host \"{}\".", host.host)));
    }
    let _ = write!(
        text,
        "- name: Configure the network of {}\n  hosts: {}\n  become: true\n  tasks:\n",
        file_name(host.host),
        yaml_quoted(name)
    );
    let files = files(&host.changes);
    let tasks: Vec<String> = files.iter().map(task).collect();
    text.push_str(&tasks.join("\n"));
    let handlers: Vec<String> = files.iter().filter_map(handler).collect();
    if !handlers.is_empty() {
        let _ = write!(text, "  handlers:\n{}", handlers.join("\n"));
    }
    text
}

fn task(file: &InstalledFile) -> String {
    let InstalledFile { location, text, command } = file;
    // Ansible would evaluate braces as a template.
    let tag = if text.contains('{') { "!unsafe " } else { "" };
    let mut task = format!(
        "    - name: Install /{location}\n      ansible.builtin.copy:\n        dest: /{location}\n        owner: root\n        \
         group: root\n        mode: \"0644\"\n        content: {tag}|\n"
    );
    for line in text.lines() {
        let indent = if line.is_empty() { 0 } else { 10 };
        let _ = writeln!(task, "{:indent$}{line}", "");
    }
    if command.is_some() {
        let _ = writeln!(task, "      notify: Apply /{location}");
    }
    task
}

fn handler(file: &InstalledFile) -> Option<String> {
    let (location, command) = (&file.location, file.command?);
    Some(format!(
        "    - name: Apply /{location}\n      ansible.builtin.command: {command} /{location}\n      changed_when: true\n"
    ))
}
