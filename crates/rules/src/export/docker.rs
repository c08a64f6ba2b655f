//! Options of `docker run`, and of podman's.

use core::fmt::Write;

use linerate_model::change::Change;

use super::{Format, namespaced, shell_quoted};

pub(super) const FORMAT: Format = Format {
    name: "docker",
    title: "options for docker run and podman run",
    use_it: "Between `docker run` and the image. Not with --network host: there the host's own settings hold.",
    source: "docker-run(1), --sysctl; network_namespaces(7)",
    comment: "#",
    takes: namespaced::takes,
    write,
};

fn write(changes: &[&Change]) -> String {
    let options = changes.iter().fold(String::new(), |mut text, change| {
        let setting = format!("{}={}", namespaced::key(change), change.to);
        let _ = write!(text, " \\\n  --sysctl {}", shell_quoted(&setting));
        text
    });
    format!("docker run{options} \\\n  IMAGE\n")
}
