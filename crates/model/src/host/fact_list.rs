//! Flat list of all facts of a host: for documents, and for counting unreadable ones.

use super::HostFacts;
use crate::fact::{Fact, ReadObstacle};
use linerate_units::CompactSort;

impl HostFacts {
    /// Lists every fact, sorted by name. Settings have sysctl's names, files begin with `files.`.
    #[must_use]
    pub fn listed(&self) -> Vec<(String, Fact<String>)> {
        let mut facts = vec![("kernel.release".to_owned(), self.kernel.release.clone())];
        facts.extend(self.memory.listed());
        facts.extend(self.privileges.listed());
        facts.extend(self.settings.listed());
        facts.extend(self.interfaces.iter().flat_map(super::link::NetworkLink::listed));
        facts.extend(self.managers.listed());
        facts.extend(self.processors.listed());
        facts.extend(self.counters.listed());
        facts.extend(self.applications.listed());
        facts.extend(super::hardware_facts::routes_listed(&self.routes));
        facts.retain(|(_, fact)| fact.unread().is_none_or(|unread| unread.obstacle != ReadObstacle::NotRead));
        facts.sort_compactly_by(|one, other| one.0.cmp(&other.0));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unread_host_lists_no_known_facts() {
        assert!(HostFacts::default().listed().iter().all(|(_, fact)| fact.known().is_none()));
        let mut host = HostFacts::default();
        host.kernel.release = Fact::Known("6.12".to_owned());
        assert!(host.listed().contains(&("kernel.release".to_owned(), Fact::Known("6.12".to_owned()))));
    }
}
