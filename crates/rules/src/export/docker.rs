//! Script that starts a container with `docker run` or `podman run`.

use core::fmt::Write;

use linerate_model::change::HostChange;

use super::text::shell_quoted;
use super::{ExportedFile, HostChanges, PlanFormat, namespaced};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "docker",
    title: "a script for docker run and podman run",
    use_it: "`sh linerate-run.sh [OPTION]... IMAGE [COMMAND]...` starts a container with these settings; \
             CONTAINER_ENGINE=podman selects podman. Not with --network host: there the host's own settings apply.",
    source: "docker-run(1), --sysctl; network_namespaces(7)",
    takes: namespaced::supports,
    write,
};

fn write(hosts: &[HostChanges<'_>]) -> Vec<ExportedFile> {
    hosts.iter().map(|host| host.file("linerate-run.sh", script(&host.changes))).collect()
}

fn script(changes: &[&HostChange]) -> String {
    let options = changes.iter().fold(String::new(), |mut text, change| {
        let setting = format!("{}={}", namespaced::key(change), change.to);
        let _ = write!(text, " \\\n  --sysctl {}", shell_quoted(&setting));
        text
    });
    format!("#!/bin/sh\nexec \"${{CONTAINER_ENGINE:-docker}}\" run{options} \\\n  \"$@\"\n")
}
