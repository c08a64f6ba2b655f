//! Options of `docker run` and `podman run`.

use core::fmt::Write;

use linerate_model::change::HostChange;

use super::{PlanFormat, namespaced, shell_quoted};

pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "docker",
    title: "options for docker run and podman run",
    use_it: "Between `docker run` and the image. Not with --network host: there the host's own settings apply.",
    source: "docker-run(1), --sysctl; network_namespaces(7)",
    comment: "#",
    takes: namespaced::supports,
    write,
};

fn write(changes: &[&HostChange]) -> String {
    let options = changes.iter().fold(String::new(), |mut text, change| {
        let setting = format!("{}={}", namespaced::key(change), change.to);
        let _ = write!(text, " \\\n  --sysctl {}", shell_quoted(&setting));
        text
    });
    format!("docker run{options} \\\n  IMAGE\n")
}
